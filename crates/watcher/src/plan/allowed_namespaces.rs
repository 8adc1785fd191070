//! Namespaces, besides a parent's own, to which a policy lets parents lead.

/// Names of namespaces, and beginnings of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedNamespaces {
    any: bool,
    names: Vec<Box<str>>,
    prefixes: Vec<Box<str>>,
}

impl AllowedNamespaces {
    /// Every namespace: for who looks with rights of their own.
    pub fn any() -> AllowedNamespaces {
        AllowedNamespaces { any: true, ..AllowedNamespaces::default() }
    }

    /// These: a name, or a beginning of names and `*`.
    pub fn listed<'n>(entries: impl IntoIterator<Item = &'n str>) -> AllowedNamespaces {
        let mut allowed = AllowedNamespaces::default();
        for entry in entries {
            match entry.strip_suffix('*') {
                Some("") => {}
                Some(prefix) => allowed.prefixes.push(prefix.into()),
                None => allowed.names.push(entry.into()),
            }
        }
        allowed
    }

    /// Returns `true` if the namespace is one of them.
    pub fn allows(&self, namespace: &str) -> bool {
        self.any
            || self.names.iter().any(|name| **name == *namespace)
            || self.prefixes.iter().any(|prefix| namespace.starts_with(&**prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_allows_itself_a_beginning_what_begins_so_and_nothing_everything() {
        let allowed = AllowedNamespaces::listed(["shop", "team-*", "*"]);
        let of = |namespace: &str| allowed.allows(namespace);
        assert_eq!(["shop", "team-a", "team-"].map(of), [true; 3]);
        assert_eq!(["shops", "team", "bank", ""].map(of), [false; 4]);
        assert!(!AllowedNamespaces::default().allows("shop"));
        assert!(AllowedNamespaces::any().allows("bank"));
    }
}
