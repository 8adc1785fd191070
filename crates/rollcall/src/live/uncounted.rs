//! What the objects of a tree own and no policy counts: found by owner references of every kind, judged by the built-in rules,
//! and shown as what it is.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use futures::{StreamExt, stream};
use readiness::{Level, Time};
use rollcall_core::TreeNode;
use watcher::{ApiKind, ParentObject, get_live, list_live};

use super::node_reason::node_level;
use super::owned_objects::{OwnedMeta, OwnedObjects, answer_in_time, is_workload};
use super::pick::{NodeTimes, node_key};
use super::policy_cluster::{PolicyCluster, leaf_node};
use super::since::leaf_since;
use super::survey::hash_key;

/// Role of a node that no policy counts.
pub(crate) const UNCOUNTED_ROLE: &str = "uncounted";
/// Number of objects of one kind and namespace from which on they are listed instead of read one by one.
const LISTED_FROM: usize = 4;
/// Maximum number of concurrent reads.
const MAX_CONCURRENT_READS: usize = 8;
/// Maximum number of kinds named in one line about what could not be read.
const MAX_NAMED_KINDS: usize = 8;
/// Levels below an object of a policy that are searched.
const MAX_UNCOUNTED_DEPTH: usize = 16;

/// What policies say of all their parents, in whatever tree these stand.
#[derive(Debug, Default)]
pub(super) struct PolicyAnswers(BTreeMap<NodeKey, TreeNode>);

impl PolicyAnswers {
    /// Collects what is said in these trees.
    pub(super) fn collect(trees: &[TreeNode]) -> PolicyAnswers {
        let mut answers = PolicyAnswers::default();
        for tree in trees {
            answers.add_tree(tree);
        }
        answers
    }

    fn add_tree(&mut self, node: &TreeNode) {
        if !node.policy.is_empty() {
            let answer = TreeNode {
                verdict: node.verdict,
                reason: node.reason.clone(),
                detail: node.detail.clone(),
                policy: node.policy.clone(),
                stalled: node.stalled,
                ..TreeNode::default()
            };
            self.0.insert(key_of(node), answer);
        }
        for child in &node.children {
            self.add_tree(child);
        }
    }
}

/// What was learned of objects that no policy counts.
#[derive(Debug, Default)]
pub(super) struct UncountedFindings {
    /// The kinds that the cluster serves.
    pub(super) kinds: Vec<ApiKind>,
    times: BTreeMap<u64, NodeTimes>,
}

impl UncountedFindings {
    /// Times of an object that no policy counts.
    pub(super) fn node_times(&self, node: &TreeNode) -> Option<NodeTimes> {
        self.times.get(&hash_key(node_key(node))).cloned()
    }
}

/// Adds to these trees what their objects own and no policy counts; `answers` are what policies say of the objects that are
/// parents themselves. What could not be read is reported.
pub(super) async fn add_uncounted(
    cluster: &mut PolicyCluster,
    trees: &mut [TreeNode],
    answers: &PolicyAnswers,
    now: Time,
) -> UncountedFindings {
    let owned = match OwnedObjects::read(&cluster.client, cluster.namespace(), trees).await {
        Ok(owned) => owned,
        Err(error) => {
            cluster.note_unread("what no policy counts".to_owned(), format!("{error:#}"));
            return UncountedFindings::default();
        }
    };
    let mut search = UncountedSearch { owned: &owned, known: BTreeSet::new(), found: Vec::new() };
    for tree in trees.iter_mut() {
        search.search_below(tree, true);
    }
    let found = std::mem::take(&mut search.found);
    let judged = judge_found(cluster, &owned, found, now).await;
    for tree in trees.iter_mut() {
        fill_in(tree, &judged.nodes, answers);
    }
    for ((kind, _), why) in &judged.unread {
        cluster.note_unread(format!("the contents of {}", owned.kinds[*kind]), why.clone());
    }
    for (why, kinds) in &owned.unread {
        let named = kinds.iter().take(MAX_NAMED_KINDS).cloned().collect::<Vec<_>>().join(", ");
        let more = kinds.len().saturating_sub(MAX_NAMED_KINDS);
        let more = if more > 0 { format!(" and {more} more kinds") } else { String::new() };
        cluster.note_unread(format!("what is owned of {named}{more}"), why.clone());
    }
    UncountedFindings { kinds: owned.kinds, times: judged.times }
}

type NodeKey = [String; 4];

fn key_of(node: &TreeNode) -> NodeKey {
    let (group, kind, namespace, name) = node_key(node);
    [group, kind, namespace, name].map(str::to_owned)
}

struct UncountedSearch<'o> {
    owned: &'o OwnedObjects,
    /// Objects that were found.
    known: BTreeSet<NodeKey>,
    found: Vec<&'o OwnedMeta>,
}

impl UncountedSearch<'_> {
    fn search_below(&mut self, node: &mut TreeNode, is_root: bool) {
        for child in &mut node.children {
            self.search_below(child, false);
        }
        let Some(uid) = self.owned.node_uid(node) else { return };
        if is_root || !is_workload(node) {
            self.add_owned(node, uid, 0);
        }
    }

    /// Adds what this object owns, each object once in all trees.
    fn add_owned(&mut self, node: &mut TreeNode, uid: &str, depth: usize) {
        if depth == MAX_UNCOUNTED_DEPTH {
            return;
        }
        let owned = self.owned;
        for of in owned.owned_by(uid, &node.namespace) {
            let mut child = uncounted_node(&owned.kinds[of.kind], of);
            if !self.known.insert(key_of(&child)) {
                continue;
            }
            self.found.push(of);
            if !is_workload(&child) {
                self.add_owned(&mut child, &of.uid, depth + 1);
            }
            node.children.push(child);
        }
    }
}

/// A node of which nothing but its metadata is known.
fn uncounted_node(api: &ApiKind, of: &OwnedMeta) -> TreeNode {
    TreeNode {
        group: api.group.clone(),
        kind: api.kind.clone(),
        namespace: of.namespace.to_string(),
        name: of.name.to_string(),
        verdict: "Unknown",
        detail: "it could not be read".to_owned(),
        role: UNCOUNTED_ROLE,
        ..TreeNode::default()
    }
}

/// What the full reads of the objects that were found yielded.
#[derive(Default)]
struct JudgedObjects {
    nodes: BTreeMap<NodeKey, TreeNode>,
    /// Their times, by hashes of their names.
    times: BTreeMap<u64, NodeTimes>,
    /// Why objects could not be read, by the index of the kind and the namespace.
    unread: BTreeMap<(usize, String), String>,
}

/// Reads what was found in full, one by one or by lists, and judges it.
async fn judge_found(
    cluster: &PolicyCluster,
    owned: &OwnedObjects,
    found: Vec<&OwnedMeta>,
    now: Time,
) -> JudgedObjects {
    let mut by_kind: BTreeMap<(usize, &str), Vec<&OwnedMeta>> = BTreeMap::new();
    for of in found {
        by_kind.entry((of.kind, &of.namespace)).or_default().push(of);
    }
    let reads = by_kind.into_iter().map(|((kind, namespace), found)| {
        let (client, api) = (cluster.client.clone(), owned.kinds[kind].clone());
        async move { (kind, namespace, read_found(&client, &api, namespace, &found).await, found) }
    });
    let reads: Vec<_> = reads.collect();
    let mut reads = stream::iter(reads).buffer_unordered(MAX_CONCURRENT_READS);
    let mut judged = JudgedObjects::default();
    while let Some((kind, namespace, read, found)) = reads.next().await {
        match read {
            Ok(objects) => {
                for object in objects {
                    let node = TreeNode { role: UNCOUNTED_ROLE, ..leaf_node(&object, now) };
                    let times = NodeTimes { created: object.child.meta.created, since: leaf_since(&object) };
                    judged.times.insert(hash_key(node_key(&node)), times);
                    judged.nodes.insert(key_of(&node), node);
                }
            }
            Err(why) => {
                for of in found {
                    let mut node = uncounted_node(&owned.kinds[kind], of);
                    node.detail = format!("it could not be read: {why}");
                    judged.nodes.insert(key_of(&node), node);
                }
                judged.unread.insert((kind, namespace.to_owned()), why);
            }
        }
    }
    judged
}

async fn read_found(
    client: &kube::Client,
    api: &ApiKind,
    namespace: &str,
    found: &[&OwnedMeta],
) -> Result<Vec<ParentObject>, String> {
    let scope = Some(namespace).filter(|_| api.namespaced);
    // Nothing but the metadata of a Secret is read.
    if api.group.is_empty() && api.kind == "Secret" {
        return Ok(Vec::new());
    }
    let objects = if found.len() >= LISTED_FROM {
        let names: BTreeSet<&str> = found.iter().map(|of| &*of.name).collect();
        let mut all = answer_in_time("list", list_live::<ParentObject>(client, api, scope, None)).await?;
        all.retain(|object| names.contains(&*object.child.meta.name));
        all
    } else {
        let reads = found.iter().map(|of| get_live::<ParentObject>(client, api, scope, &of.name));
        answer_in_time("get", try_join_all(reads)).await?.into_iter().flatten().collect()
    };
    let typed = |object: ParentObject| object.with_type_meta(&api.api_version(), &api.kind);
    Ok(objects.into_iter().map(typed).collect())
}

/// The worst of the objects in this tree that no policy counts, are not ready, and own nothing that explains it.
pub(super) fn worst_uncounted(tree: &TreeNode) -> Option<&TreeNode> {
    let mut below: Vec<&TreeNode> = tree.children.iter().filter_map(worst_uncounted).collect();
    let is_unready = node_level(tree).is_some_and(|level| !matches!(level, Level::Ready | Level::Suspended));
    if below.is_empty() && tree.role == UNCOUNTED_ROLE && is_unready {
        below.push(tree);
    }
    below.into_iter().min_by_key(|node| (node_level(node), node_key(node)))
}

/// Puts the verdicts into the nodes that were added, and the worst first.
fn fill_in(node: &mut TreeNode, judged: &BTreeMap<NodeKey, TreeNode>, answers: &PolicyAnswers) {
    if node.role == UNCOUNTED_ROLE {
        let (key, children) = (key_of(node), std::mem::take(&mut node.children));
        if let Some(answer) = answers.0.get(&key) {
            let [group, kind, namespace, name] = key;
            *node = TreeNode { group, kind, namespace, name, role: UNCOUNTED_ROLE, ..answer.clone() };
        } else if let Some(verdict) = judged.get(&key) {
            *node = verdict.clone();
        } else if node.group.is_empty() && node.kind == "Secret" {
            (node.verdict, node.detail) = ("Ready", "it exists; Secrets are not read".to_owned());
        }
        node.children = children;
    }
    for child in &mut node.children {
        fill_in(child, judged, answers);
    }
    let counted = node.children.iter().take_while(|child| child.role != UNCOUNTED_ROLE).count();
    node.children[counted..].sort_by(|a, b| (node_level(a), node_key(a)).cmp(&(node_level(b), node_key(b))));
}
