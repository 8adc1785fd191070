//! Commands for a person to copy: names come from the cluster, so that each is quoted where a shell would read more in it.

use serde_json::{Value, json};

/// An object as kubectl is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Object<'o> {
    /// API group; empty for the core group.
    pub group: &'o str,
    /// Kind.
    pub kind: &'o str,
    /// Namespace; empty for what lives in none.
    pub namespace: &'o str,
    /// Name.
    pub name: &'o str,
}

impl Object<'_> {
    /// It is of this kind.
    pub fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// Its name, as a shell reads it.
    pub fn name(&self) -> String {
        quoted(self.name)
    }

    /// `kubectl -n shop describe deployment.apps web`
    pub fn kubectl(&self, verb: &str) -> String {
        format!("kubectl{} {verb} {} {}", self.scope(), quoted(&self.resource()), quoted(self.name))
    }

    /// `kubectl -n shop describe resourcequota`: all of the kind.
    pub fn all(&self, verb: &str) -> String {
        format!("kubectl{} {verb} {}", self.scope(), quoted(&self.resource()))
    }

    /// `kubectl -n shop logs job/seed`
    pub fn logs(&self, how: &str) -> String {
        let what = quoted(&format!("{}/{}", self.kind.to_lowercase(), self.name));
        format!("kubectl{} logs {what} {how}", self.scope())
    }

    /// A patch, which is printed and never sent.
    pub fn patch(&self, ops: &Value) -> String {
        self.kubectl("patch") + " --type=json -p " + &quoted(&ops.to_string())
    }

    /// Takes a finalizer off: only if it still stands there.
    pub fn release(&self, at: usize, finalizer: &str) -> String {
        let path = format!("/metadata/finalizers/{at}");
        self.patch(&json!([
            { "op": "test", "path": path, "value": finalizer },
            { "op": "remove", "path": path },
        ]))
    }

    fn scope(&self) -> String {
        if self.namespace.is_empty() { String::new() } else { format!(" -n {}", quoted(self.namespace)) }
    }

    fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }
}

/// A word as a shell reads it: as it is, or in quotes.
pub fn quoted(word: &str) -> String {
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
        let object =
            Object { group: "example.com", kind: "Database", namespace: "shop", name: "a'; rm -rf ~ #" };
        assert_eq!(
            object.kubectl("describe"),
            r"kubectl -n shop describe database.example.com 'a'\''; rm -rf ~ #'"
        );
        let node = Object { group: "", kind: "Node", namespace: "", name: "n1" };
        assert_eq!(node.kubectl("describe"), "kubectl describe node n1");
        assert_eq!(
            node.release(1, "a.io/x"),
            r#"kubectl patch node n1 --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"a.io/x"},{"op":"remove","path":"/metadata/finalizers/1"}]'"#
        );
    }
}
