//! What a rollout that ended waited for, as it is kept, exported and stored.

use std::collections::BTreeSet;

use inspect::rollout::PathPart;
use readiness::Time;
use serde_json::{Value, json};

use super::rollout_reader::RolloutNode;

/// A resource in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RolloutPlace {
    /// Its group; empty for the core group.
    pub(crate) group: String,
    /// Its plural name.
    pub(crate) resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub(crate) namespace: Box<str>,
}

/// What the rollout of one generation of a parent waited for.
#[derive(Clone, Debug)]
pub(crate) struct RolloutReport {
    /// When it was read.
    pub(crate) read_at: Time,
    /// API version of the parent.
    pub(crate) api_version: String,
    /// Kind of the parent.
    pub(crate) kind: String,
    /// Its namespace; empty for a cluster-scoped one.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
    /// The generation that was rolled out.
    pub(crate) generation: i64,
    /// The policy that judges it.
    pub(crate) policy: String,
    /// Its beginning.
    pub(crate) from: Time,
    /// Its end.
    pub(crate) to: Time,
    /// What it waited for, oldest first.
    pub(crate) parts: Vec<PathPart>,
    /// Where what it waited for was read: whoever may list all of that may see it.
    pub(crate) places: BTreeSet<RolloutPlace>,
    /// What could not be read, with the reason.
    pub(crate) not_read: Vec<String>,
}

/// Where these objects were read, and the Events of pods among them.
pub(super) fn places_of(nodes: &[RolloutNode]) -> BTreeSet<RolloutPlace> {
    let place = |group: &str, resource: &str, node: &RolloutNode| RolloutPlace {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: node.namespace.as_str().into(),
    };
    let objects = nodes.iter().map(|node| place(&node.api.group, &node.api.plural, node));
    let events = nodes.iter().filter(|node| node.is_pod()).map(|node| place("", "events", node));
    objects.chain(events).collect()
}

/// A part as the API tells it.
pub(super) fn part_json(part: &PathPart) -> Value {
    json!({
        "object": part.object, "cause": part.cause, "detail": part.detail, "says": part.cause_text(),
        "from": part.from.0, "to": part.to.0,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use inspect::rollout::WaitCause;

    use super::*;

    /// A rollout of so many parts that began at the second of its generation, and took a second for each part.
    pub(crate) fn report(uid: &str, generation: i64, parts: usize) -> RolloutReport {
        let from = generation * 1_000;
        let part = |at: i64| PathPart {
            object: "Pod orders-0".to_owned(),
            cause: WaitCause::ImagePull,
            detail: "r/db:2".to_owned(),
            from: Time(from + at * 1_000),
            to: Time(from + (at + 1) * 1_000),
        };
        let parts: Vec<_> = (0..).take(parts).map(part).collect();
        RolloutReport {
            read_at: Time(1_000_000),
            api_version: "example.com/v1".to_owned(),
            kind: "Database".to_owned(),
            namespace: "shop".to_owned(),
            name: "orders".to_owned(),
            uid: uid.to_owned(),
            generation,
            policy: "databases".to_owned(),
            from: Time(from),
            to: parts.last().map_or(Time(from), |last| last.to),
            parts,
            places: BTreeSet::new(),
            not_read: Vec::new(),
        }
    }
}
