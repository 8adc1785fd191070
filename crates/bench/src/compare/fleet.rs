//! Numbers and sizes of the objects that are judged.

use serde_json::{Value, json};

use crate::families::widget_policy;

/// Label of parents by which a policy selects some of them.
pub(crate) const SHARD_LABEL: &str = "shard";

/// Fields of a child of about 4 kB.
const DEFAULT_SETTINGS: usize = 40;

/// Parents, their children and the policies over them.
#[derive(Clone, Debug)]
pub(crate) struct FleetShape {
    pub(crate) parents: usize,
    /// Children of each parent.
    pub(crate) children: usize,
    /// Fields of each child, beside its metadata and status. With one it has no managers either, and 0.8 kB in all.
    pub(crate) settings: usize,
    /// Where there are several, each has the parents whose number has the same remainder.
    pub(crate) policies: Vec<Value>,
}

impl FleetShape {
    /// One policy over parents with children of about 4 kB.
    pub(crate) fn of(parents: usize, children: usize) -> FleetShape {
        FleetShape { parents, children, settings: DEFAULT_SETTINGS, policies: vec![widget_policy()] }
    }

    /// The same, with so many policies that share the parents out among them.
    pub(crate) fn under_policies(self, policies: usize) -> FleetShape {
        let policies = (0..policies).map(shard_policy).collect();
        FleetShape { policies, ..self }
    }
}

fn shard_policy(number: usize) -> Value {
    let mut policy = widget_policy();
    policy["metadata"]["name"] = json!(format!("widgets-{number}"));
    policy["spec"]["parent"]["selector"] = json!({ "matchLabels": { SHARD_LABEL: number.to_string() } });
    policy
}
