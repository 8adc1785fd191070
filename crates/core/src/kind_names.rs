//! Display names of kinds.

use std::collections::BTreeMap;

use aggregator::KindId;

/// Display name of each kind, and the same with its group.
#[derive(Clone, Debug, Default)]
pub(super) struct KindNames(BTreeMap<KindId, (String, String)>);

impl KindNames {
    /// Sets the display name of a kind; returns `true` if it had another one, or none.
    pub(super) fn insert(&mut self, kind: KindId, name: &str, group: &str) -> bool {
        let label = if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") };
        let names = (name.to_owned(), label);
        self.0.insert(kind, names.clone()) != Some(names)
    }

    /// Kind and group as in metrics and logs: `Deployment.apps`.
    pub(super) fn label(&self, kind: KindId) -> String {
        self.0.get(&kind).map_or_else(|| "object".to_owned(), |(_, label)| label.clone())
    }

    /// The group of a kind; empty for the core group.
    pub(super) fn group(&self, kind: KindId) -> &str {
        let group = self.0.get(&kind).and_then(|(name, label)| label.get(name.len() + 1..));
        group.unwrap_or_default()
    }

    /// The name of a kind, for messages; `object` where it is not known.
    pub(super) fn name(&self, kind: KindId) -> &str {
        self.0.get(&kind).map_or("object", |(name, _)| name.as_str())
    }

    /// All of them.
    pub(super) fn all(&self) -> &BTreeMap<KindId, (String, String)> {
        &self.0
    }
}
