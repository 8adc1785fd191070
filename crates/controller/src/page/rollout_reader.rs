//! Reads the objects of a rollout live, with Rollcall's rights. Its costs are bounded whatever viewers ask for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aggregator::PolicyId;
use futures::{StreamExt, stream};
use inspect::client::{EVENTS_LABEL, InspectClient};
use inspect::owned_reader::has_only_metadata;
use inspect::rollout::{RolloutObject, member_changed_at};
use readiness::{RuleKind, Time};
use serde_json::Value;
use tokio::time::timeout;
use watcher::{ApiKind, ParentObject, get_live, get_live_head};

use super::refusal::PageRefusal;
use super::ttl_cache::TtlCache;
use super::view::PageRow;
use crate::reviews::{RequestBudget, SharedBudget};

/// Objects that are read for all viewers together.
const ROLLOUT_READ_BUDGET: RequestBudget = RequestBudget { burst: 400, interval: Duration::from_millis(50) };
/// Maximum number of concurrent requests for one rollout.
const MAX_CONCURRENT_READS: usize = 4;
/// Longest time that the objects of one rollout take to read. 10 s.
const ROLLOUT_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a rollout is cached, for all viewers who may see the same objects. 10 s.
const ROLLOUT_CACHE_TTL: Duration = Duration::from_secs(10);
/// Maximum number of cached rollouts.
const ROLLOUT_CACHE_SIZE: usize = 64;

/// One object of a rollout.
#[derive(Clone, Debug)]
pub(super) struct RolloutNode {
    /// Depth below the parent.
    pub(super) depth: usize,
    pub(super) api: ApiKind,
    /// Namespace; empty for cluster-scoped objects.
    pub(super) namespace: String,
    pub(super) name: String,
    /// Its verdict is `Ready`.
    pub(super) is_ready: bool,
}

impl RolloutNode {
    pub(super) fn is_pod(&self) -> bool {
        RuleKind::from_group_kind(&self.api.group, &self.api.kind) == RuleKind::Pod
    }
}

/// What a viewer sees of a parent's rollout: who sees the same gets the same answer.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct RolloutKey {
    uid: Arc<str>,
    policy: PolicyId,
    objects: Vec<String>,
    silent: BTreeSet<String>,
}

impl RolloutKey {
    pub(super) fn new(row: &PageRow, nodes: &[RolloutNode], silent: &BTreeSet<String>) -> RolloutKey {
        let object = |node: &RolloutNode| format!("{}/{}/{}", node.api, node.namespace, node.name);
        RolloutKey {
            uid: row.uid.clone(),
            policy: row.policy,
            objects: nodes.iter().map(object).collect(),
            silent: silent.clone(),
        }
    }
}

/// Objects of a rollout as they were read.
pub(super) struct ReadRollout {
    /// The parent as it is.
    pub(super) root_object: Value,
    /// The parent with what it owns.
    pub(super) root: RolloutObject,
    /// Newest change of the spec of an object directly below it that no controller made.
    pub(super) members_changed: Option<Time>,
    /// What could not be read, with the reason.
    pub(super) not_read: BTreeSet<String>,
}

/// Reads rollouts, with what was read a short time ago.
pub(super) struct LiveRolloutReader {
    client: kube::Client,
    budget: SharedBudget,
    known: TtlCache<RolloutKey, Value>,
}

impl LiveRolloutReader {
    pub(super) fn new(client: kube::Client) -> LiveRolloutReader {
        LiveRolloutReader {
            client,
            budget: SharedBudget::new(ROLLOUT_READ_BUDGET),
            known: TtlCache::new(ROLLOUT_CACHE_TTL, ROLLOUT_CACHE_SIZE),
        }
    }

    /// Frees what is too old to be used.
    pub(super) fn remove_expired(&self, now: Time) {
        self.known.remove_expired(now);
    }

    /// Answer that was given a short time ago.
    pub(super) fn known(&self, key: &RolloutKey, now: Time) -> Option<Value> {
        self.known.get(key, now)
    }

    /// Keeps an answer for others.
    pub(super) fn keep(&self, key: RolloutKey, answer: Value, now: Time) {
        self.known.put(key, answer, 1, now);
    }

    /// Reads these objects, of which the first is the parent; in the namespaces of `silent` no Events. What is not ready is taken
    /// to end at `unfinished`.
    pub(super) async fn read(
        &self,
        nodes: &[RolloutNode],
        silent: &BTreeSet<String>,
        unfinished: Option<Time>,
        now: Time,
    ) -> Result<ReadRollout, PageRefusal> {
        let (parent, below) = nodes.split_first().ok_or(PageRefusal::NotFound)?;
        let reading = async {
            let root = self.read_node(parent, silent, unfinished, now).await;
            let mut others = Vec::new();
            for node in below {
                others.push(self.read_times(node, silent, unfinished, now));
            }
            (root, stream::iter(others).buffered(MAX_CONCURRENT_READS).collect::<Vec<_>>().await)
        };
        let (root, others) =
            timeout(ROLLOUT_READ_TIMEOUT, reading).await.map_err(|_| PageRefusal::Unreachable)?;
        let (root_rollout, root_object) = root.found.ok_or(PageRefusal::NotFound)?;
        let mut not_read = root.not_read;
        let (mut objects, mut members_changed) = (Vec::new(), None);
        for (depth, times) in others {
            not_read.extend(times.not_read);
            if depth == parent.depth + 1 {
                members_changed = members_changed.max(times.changed);
            }
            objects.push((depth, times.rollout));
        }
        Ok(ReadRollout { root_object, root: build_tree(root_rollout, objects), members_changed, not_read })
    }

    /// Depth of an object, and what is known of its time. The objects themselves are not kept: they may
    /// be many, and large.
    async fn read_times(
        &self,
        node: &RolloutNode,
        silent: &BTreeSet<String>,
        unfinished: Option<Time>,
        now: Time,
    ) -> (usize, ReadTimes) {
        let NodeRead { found, not_read } = self.read_node(node, silent, unfinished, now).await;
        let changed = found.as_ref().and_then(|(_, object)| member_changed_at(object));
        (node.depth, ReadTimes { rollout: found.map(|(rollout, _)| rollout), changed, not_read })
    }

    async fn read_node(
        &self,
        node: &RolloutNode,
        silent: &BTreeSet<String>,
        unfinished: Option<Time>,
        now: Time,
    ) -> NodeRead {
        let refused = |why: &str| NodeRead {
            found: None,
            not_read: BTreeSet::from([format!("{} {}: {why}", node.api.kind, node.name)]),
        };
        if !self.budget.take(now) {
            return refused("too many objects were asked for; try again in a few seconds");
        }
        let namespace = Some(&*node.namespace).filter(|_| node.api.namespaced);
        let read = if has_only_metadata(&node.api) {
            get_live_head::<ParentObject>(&self.client, &node.api, namespace, &node.name).await
        } else {
            get_live::<ParentObject>(&self.client, &node.api, namespace, &node.name).await
        };
        let object = match read {
            Ok(Some(object)) => object.with_type_meta(&node.api.api_version(), &node.api.kind),
            Ok(None) => return NodeRead::default(),
            Err(error) => return refused(&error.detail),
        };
        let Ok(mut value) = serde_json::from_str::<Value>(object.text.get()) else {
            return refused("it is nested too deeply");
        };
        // What is metadata alone calls itself by another kind.
        value["apiVersion"] = node.api.api_version().into();
        value["kind"] = node.api.kind.clone().into();
        let mut ask = InspectClient::on_behalf(self.client.clone(), barred_events(node, silent));
        let uid = &*object.child.meta.uid;
        let events = if node.is_pod() { ask.list_events(&node.namespace, uid).await } else { Vec::new() };
        let rollout = RolloutObject::from_object(&value, &events, node.is_ready, unfinished);
        NodeRead { found: Some((rollout, value)), not_read: ask.refused }
    }
}

/// What is known of the time of one object.
struct ReadTimes {
    rollout: Option<RolloutObject>,
    /// Change of its spec, if no controller made it.
    changed: Option<Time>,
    not_read: BTreeSet<String>,
}

/// What was read of one object.
#[derive(Default)]
struct NodeRead {
    found: Option<(RolloutObject, Value)>,
    not_read: BTreeSet<String>,
}

fn barred_events(node: &RolloutNode, silent: &BTreeSet<String>) -> BTreeSet<&'static str> {
    if silent.contains(&node.namespace) { BTreeSet::from([EVENTS_LABEL]) } else { BTreeSet::new() }
}

/// Puts each object below its owner, which stands before it. Of what is below an object that could not be read, nobody knows
/// when it was waited for.
fn build_tree(root: RolloutObject, objects: Vec<(usize, Option<RolloutObject>)>) -> RolloutObject {
    let mut path = vec![(0, root)];
    let mut unread = usize::MAX;
    for (depth, object) in objects {
        if depth > unread {
            continue;
        }
        unread = if object.is_none() { depth } else { usize::MAX };
        close_path(&mut path, depth.max(1));
        path.extend(object.map(|object| (depth, object)));
    }
    close_path(&mut path, 1);
    path.swap_remove(0).1
}

/// Gives each object of this depth or below it to its owner.
fn close_path(path: &mut Vec<(usize, RolloutObject)>, depth: usize) {
    while path.last().is_some_and(|(last, _)| *last >= depth)
        && let Some((_, ended)) = path.pop()
        && let Some((_, owner)) = path.last_mut()
    {
        owner.children.push(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviews::review_server::ReviewServer;
    use inspect::rollout::WaitCause;
    use serde_json::json;

    fn object(name: &str) -> RolloutObject {
        RolloutObject {
            object: name.to_owned(),
            own_cause: WaitCause::Operator,
            began: None,
            ended: None,
            steps: Vec::new(),
            children: Vec::new(),
        }
    }

    /// Names, each owner with what it owns.
    fn names(object: &RolloutObject) -> String {
        let below: Vec<_> = object.children.iter().map(names).collect();
        if below.is_empty() {
            object.object.clone()
        } else {
            format!("{}({})", object.object, below.join(" "))
        }
    }

    #[test]
    fn each_object_stands_below_its_owner_and_nothing_below_one_that_was_not_read() {
        let flat = [(1, "a"), (2, "b"), (3, "c"), (2, "d"), (1, "-"), (2, "e"), (3, "f"), (1, "g"), (2, "h")];
        let flat = flat.map(|(depth, name)| (depth, (name != "-").then(|| object(name))));
        assert_eq!(names(&build_tree(object("root"), flat.to_vec())), "root(a(b(c) d) g(h))");
        assert_eq!(names(&build_tree(object("root"), Vec::new())), "root");
    }

    fn node(depth: usize, kind: &str, name: &str) -> RolloutNode {
        let api = ApiKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            has_status: true,
        };
        let (namespace, name) = ("shop".to_owned(), name.to_owned());
        RolloutNode { depth, api, namespace, name, is_ready: true }
    }

    /// An API server that has every object, and the Events of none.
    fn objects(path: &str, _: &Value) -> Value {
        if path.ends_with("/events") {
            return json!({ "items": [] });
        }
        let name = path.rsplit('/').next();
        json!({ "metadata": { "name": name, "uid": name, "namespace": "shop" } })
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_read_than_the_budget_allows_and_what_is_left_out_is_named() {
        let server = ReviewServer::new(objects);
        let reader = LiveRolloutReader::new(server.client());
        let nodes: Vec<_> = (0..=ROLLOUT_READ_BUDGET.burst)
            .map(|at| node(usize::from(at > 0), "ConfigMap", &format!("part-{at}")))
            .collect();
        let read = reader.read(&nodes, &BTreeSet::new(), None, Time(1)).await.unwrap();
        let left_out: Vec<_> = read.not_read.into_iter().collect();
        assert_eq!((read.root.children.len(), server.asked()), (399, 400));
        assert_eq!(
            left_out,
            ["ConfigMap part-400: too many objects were asked for; try again in a few seconds"]
        );
    }

    #[tokio::test]
    async fn where_a_viewer_may_not_list_events_none_are_read() {
        let server = ReviewServer::new(objects);
        let reader = LiveRolloutReader::new(server.client());
        let nodes = [node(0, "ConfigMap", "site"), node(1, "Pod", "web-0")];
        let silent = BTreeSet::from(["shop".to_owned()]);
        let read = reader.read(&nodes, &silent, None, Time(1)).await.unwrap();
        assert_eq!((names(&read.root), server.asked()), ("ConfigMap site(Pod web-0)".to_owned(), 2));
        assert_eq!(read.not_read, BTreeSet::from(["Events: you may not read them here".to_owned()]));
    }
}
