//! Commands for users to copy. Names come from the cluster, so everything that a shell would interpret is quoted.

use serde_json::{Value, json};

/// Object as an argument of kubectl.
#[derive(Clone, Copy, Debug)]
pub struct KubectlObject<'o> {
    /// API group; empty for the core group.
    pub group: &'o str,
    /// Kind.
    pub kind: &'o str,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: &'o str,
    /// Name.
    pub name: &'o str,
}

impl KubectlObject<'_> {
    /// True if the object is of this kind.
    pub fn is_kind(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// Name, quoted for a shell.
    pub fn quoted_name(&self) -> String {
        shell_quote(self.name)
    }

    /// Command for the object, as in `kubectl -n shop describe deployment.apps web`.
    pub fn command_for(&self, verb: &str) -> String {
        format!(
            "kubectl{} {verb} {} {}",
            self.namespace_flag(),
            shell_quote(&self.resource_name()),
            shell_quote(self.name)
        )
    }

    /// Command for all objects of the kind, as in `kubectl -n shop describe resourcequota`.
    pub fn command_for_all(&self, verb: &str) -> String {
        format!("kubectl{} {verb} {}", self.namespace_flag(), shell_quote(&self.resource_name()))
    }

    /// Command for logs, as in `kubectl -n shop logs job/seed`.
    pub fn logs_command(&self, how: &str) -> String {
        let what = shell_quote(&format!("{}/{}", self.kind.to_lowercase(), self.name));
        format!("kubectl{} logs {what} {how}", self.namespace_flag())
    }

    /// Command that patches the object; printed, never executed.
    pub fn patch_command(&self, ops: &Value) -> String {
        self.command_for("patch") + " --type=json -p " + &shell_quote(&ops.to_string())
    }

    /// Command that removes a finalizer, with its presence as precondition.
    pub fn release_command(&self, at: usize, finalizer: &str) -> String {
        let path = format!("/metadata/finalizers/{at}");
        self.patch_command(&json!([
            { "op": "test", "path": path, "value": finalizer },
            { "op": "remove", "path": path },
        ]))
    }

    fn namespace_flag(&self) -> String {
        if self.namespace.is_empty() { String::new() } else { format!(" -n {}", shell_quote(self.namespace)) }
    }

    fn resource_name(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }
}

/// Quotes a word for a shell if necessary.
pub fn shell_quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._/:@=,".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_a_command() {
        let object = KubectlObject {
            group: "example.com",
            kind: "Database",
            namespace: "shop",
            name: "a'; rm -rf ~ #",
        };
        assert_eq!(
            object.command_for("describe"),
            r"kubectl -n shop describe database.example.com 'a'\''; rm -rf ~ #'"
        );
        let node = KubectlObject { group: "", kind: "Node", namespace: "", name: "n1" };
        assert_eq!(node.command_for("describe"), "kubectl describe node n1");
        assert_eq!(
            node.release_command(1, "a.io/x"),
            r#"kubectl patch node n1 --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"a.io/x"},{"op":"remove","path":"/metadata/finalizers/1"}]'"#
        );
    }
}
