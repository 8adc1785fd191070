//! Ids of resources in a ResourceGraphDefinition of kro, by which expressions name them.

/// Ids that kro 0.9.4 refuses: words of its own, and of CEL.
const RESERVED: [&str; 53] = [
    "apiVersion",
    "as",
    "break",
    "const",
    "context",
    "continue",
    "dependencies",
    "dependency",
    "each",
    "else",
    "externalRef",
    "externalReference",
    "externalReferences",
    "externalRefs",
    "false",
    "for",
    "function",
    "graph",
    "if",
    "import",
    "in",
    "instance",
    "item",
    "items",
    "kind",
    "kro",
    "let",
    "loop",
    "metadata",
    "namespace",
    "null",
    "object",
    "package",
    "resource",
    "resourceGraphDefinition",
    "resourcegraphdefinition",
    "resources",
    "return",
    "root",
    "runtime",
    "schema",
    "self",
    "serviceAccountName",
    "spec",
    "status",
    "this",
    "true",
    "var",
    "variables",
    "vars",
    "version",
    "void",
    "while",
];

/// Returns an id for a resource of this kind: the kind itself, as far as kro lets it be one.
pub(super) fn kro_id(kind: &str) -> String {
    // A kind may have hyphens.
    let mut letters = kind.chars().filter(char::is_ascii_alphanumeric);
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    let id: String = first.into_iter().chain(letters).collect();
    if RESERVED.contains(&id.as_str()) { format!("{id}Resource") } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_kind_unless_kro_takes_that_for_a_word_of_its_own() {
        for (kind, id) in [
            ("Database", "database"),
            ("ReadinessGroup", "readinessGroup"),
            ("APIKey", "aPIKey"),
            ("Web-App", "webApp"),
            ("Instance", "instanceResource"),
            ("Function", "functionResource"),
            ("Namespace", "namespaceResource"),
        ] {
            assert_eq!(kro_id(kind), id);
        }
    }
}
