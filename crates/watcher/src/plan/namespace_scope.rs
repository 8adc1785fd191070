//! Namespaces in which a rule holds.

use std::collections::BTreeSet;
use std::sync::Arc;

/// All namespaces, or some by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceScope(Option<Arc<BTreeSet<Box<str>>>>);

impl NamespaceScope {
    /// These namespaces and no others.
    pub fn only<'n>(names: impl IntoIterator<Item = &'n str>) -> NamespaceScope {
        NamespaceScope(Some(Arc::new(names.into_iter().map(Box::from).collect())))
    }

    /// Returns `true` if the namespace is one of them.
    pub fn covers(&self, namespace: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_all_namespaces_or_those_that_it_names() {
        assert!(NamespaceScope::default().covers("shop"));
        let shop = NamespaceScope::only(["shop"]);
        assert_eq!(["shop", "shops", ""].map(|name| shop.covers(name)), [true, false, false]);
        assert!(!NamespaceScope::only([]).covers("shop"));
    }
}
