//! The search for what the objects of trees own and no policy counts: by owner references of every kind, judged by the
//! built-in rules.

use std::collections::BTreeMap;
use std::time::Duration;

use inspect::discover::listable_kinds;
use inspect::owned_index::{
    KnownObjects, OwnedIndex, OwnedMeta, is_idle_replica_set, is_workload_kind, retain_searched_kinds,
};
use inspect::owned_reader::{OwnedContents, OwnedReadLimits, OwnedReader};
use inspect::owned_walk::{OwnedBranch, OwnedWalk};
use readiness::Time;
use rollcall_core::TreeNode;
use watcher::wire::ChildObject;
use watcher::{ApiKind, ParentObject};

use super::leaf_node::leaf_node;
use super::pick::{NodeTimes, node_key};
use super::policy_cluster::PolicyCluster;
use super::since::leaf_since;
use super::survey::hash_key;
use super::uncounted::{PolicyAnswers, UNCOUNTED_ROLE, UncountedFindings};

/// Bounds of one search; of how many objects, the user decides.
const READ_LIMITS: OwnedReadLimits = OwnedReadLimits {
    concurrent: 8,
    page_timeout: Duration::from_secs(10),
    total_timeout: Duration::from_secs(30),
    objects_per_kind: usize::MAX,
    bytes_per_kind: usize::MAX,
};
/// Maximum number of kinds named in one line about what could not be read.
const MAX_NAMED_KINDS: usize = 8;

/// Below which objects is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchDepth {
    /// Not below workloads: what they own is the matter of their controllers.
    AboveWorkloads,
    /// To the last object.
    Everything,
}

impl SearchDepth {
    fn descends(self, group: &str, kind: &str) -> bool {
        self == SearchDepth::Everything || !is_workload_kind(group, kind)
    }
}

/// A search below trees, which needs nothing of the cluster's state.
#[derive(Clone)]
pub(super) struct UncountedSearch {
    client: kube::Client,
    /// `None` for all namespaces.
    namespace: Option<String>,
    depth: SearchDepth,
}

impl UncountedSearch {
    /// A search with the user's rights, in the namespace of the command.
    pub(super) fn new(cluster: &PolicyCluster, depth: SearchDepth) -> UncountedSearch {
        let namespace = cluster.namespace().map(str::to_owned);
        UncountedSearch { client: cluster.client.clone(), namespace, depth }
    }

    /// Finds what the objects of these trees own and is not in them.
    pub(super) async fn find_below(&self, trees: &[TreeNode], now: Time) -> UncountedFindings {
        let reader = OwnedReader::new(self.client.clone(), "you", READ_LIMITS);
        let mut kinds = match listable_kinds(&self.client).await {
            Ok(kinds) => kinds,
            Err(error) => {
                let unread =
                    vec![("what no policy counts".to_owned(), format!("{:#}", anyhow::Error::from(error)))];
                return UncountedFindings { unread, ..UncountedFindings::default() };
            }
        };
        let namespace = self.namespace.as_deref();
        retain_searched_kinds(&mut kinds, namespace);
        let mut known = KnownObjects::default();
        for tree in trees {
            self.add_known(&mut known, tree, true);
        }
        let (known, reader) = (&known, &reader);
        let list = |api: ApiKind| async move { reader.list_owned(&api, namespace, known).await };
        let index = reader.index_kinds(kinds, list).await;
        let branches = self.branches_below(trees, &index);
        let mut found = Vec::new();
        branches.values().flatten().for_each(|branch| branch.collect_metas(&mut found));
        let contents =
            reader.read_contents(&index, &found, |api, child| judge_uncounted(api, child, now)).await;
        let mut findings =
            UncountedFindings { unread: unread_texts(&index, &contents), ..UncountedFindings::default() };
        for (owner, branches) in branches {
            let nodes = branches.iter().filter_map(|branch| shown_node(&index, &contents, branch)).collect();
            findings.below.insert(owner, nodes);
        }
        let times =
            contents.by_uid.into_values().map(|judged| (hash_key(node_key(&judged.node)), judged.times));
        findings.times = times.collect();
        findings.kinds = index.kinds;
        findings
    }

    fn add_known(&self, known: &mut KnownObjects, node: &TreeNode, is_root: bool) {
        let is_searched = is_root || self.depth.descends(&node.group, &node.kind);
        known.add_object(hash_key(node_key(node)), is_searched);
        for child in &node.children {
            self.add_known(known, child, false);
        }
    }

    /// What the objects of these trees own, by hashes of their names.
    fn branches_below<'o>(
        &self,
        trees: &[TreeNode],
        index: &'o OwnedIndex,
    ) -> BTreeMap<u64, Vec<OwnedBranch<'o>>> {
        let descends = |api: &ApiKind| self.depth.descends(&api.group, &api.kind);
        let mut walk = OwnedWalk::new(index, usize::MAX, &descends);
        let mut branches = BTreeMap::new();
        for tree in trees {
            self.search_below(tree, true, index, &mut walk, &mut branches);
        }
        branches
    }

    /// Adds what the objects of this tree own, each under the first that owns it.
    fn search_below<'o>(
        &self,
        node: &TreeNode,
        is_root: bool,
        index: &'o OwnedIndex,
        walk: &mut OwnedWalk<'o, '_>,
        branches: &mut BTreeMap<u64, Vec<OwnedBranch<'o>>>,
    ) {
        for child in &node.children {
            self.search_below(child, false, index, walk, branches);
        }
        let key = hash_key(node_key(node));
        let Some(uid) = index.known_uid(key) else { return };
        if is_root || self.depth.descends(&node.group, &node.kind) {
            let found = walk.find_below(uid, &node.namespace);
            if !found.is_empty() {
                branches.entry(key).or_default().extend(found);
            }
        }
    }
}

/// Adds to these trees what their objects own and no policy counts. What could not be read is reported.
pub(super) async fn add_uncounted(
    cluster: &mut PolicyCluster,
    trees: &mut [TreeNode],
    answers: &PolicyAnswers,
    depth: SearchDepth,
    now: Time,
) -> UncountedFindings {
    let findings = UncountedSearch::new(cluster, depth).find_below(trees, now).await;
    findings.add_to(trees, answers);
    findings.note_unread(cluster);
    findings
}

/// What the built-in rules say of one object.
struct JudgedNode {
    node: TreeNode,
    times: NodeTimes,
    /// It is a ReplicaSet of an earlier rollout.
    is_idle: bool,
}

fn judge_uncounted(api: &ApiKind, child: &ChildObject, now: Time) -> JudgedNode {
    let object = ParentObject::without_text(child.clone()).with_type_meta(&api.api_version(), &api.kind);
    JudgedNode {
        node: TreeNode { role: UNCOUNTED_ROLE, ..leaf_node(&object, now) },
        times: NodeTimes { created: child.meta.created, since: leaf_since(&object) },
        is_idle: is_idle_replica_set(api, &child.facts),
    }
}

/// The node of a branch; `None` for a ReplicaSet of an earlier rollout, which says nothing of the current one.
fn shown_node(
    index: &OwnedIndex,
    contents: &OwnedContents<JudgedNode>,
    branch: &OwnedBranch<'_>,
) -> Option<TreeNode> {
    let children: Vec<_> =
        branch.children.iter().filter_map(|child| shown_node(index, contents, child)).collect();
    let meta = branch.meta;
    let Some(judged) = contents.by_uid.get(&meta.uid) else {
        let why = contents.unread.get(&(meta.kind, meta.namespace.to_string()));
        return Some(TreeNode { children, ..unread_node(&index.kinds[meta.kind], meta, why) });
    };
    let is_shown = !judged.is_idle || !children.is_empty();
    is_shown.then(|| TreeNode { children, ..judged.node.clone() })
}

/// A node of which nothing but the metadata is known.
fn unread_node(api: &ApiKind, of: &OwnedMeta, why: Option<&String>) -> TreeNode {
    let (verdict, detail) = match why {
        Some(why) => ("Unknown", format!("it could not be read: {why}")),
        None if api.group.is_empty() && api.kind == "Secret" => {
            ("Ready", "it exists; Secrets are not read".to_owned())
        }
        None => ("Unknown", "it could not be read".to_owned()),
    };
    TreeNode {
        group: api.group.clone(),
        kind: api.kind.clone(),
        namespace: of.namespace.to_string(),
        name: of.name.to_string(),
        verdict,
        detail,
        role: UNCOUNTED_ROLE,
        ..TreeNode::default()
    }
}

/// What could not be read, and why.
fn unread_texts<T>(index: &OwnedIndex, contents: &OwnedContents<T>) -> Vec<(String, String)> {
    debug_assert!(index.cut.is_empty(), "lists have no bound here");
    let of_contents = contents.unread.iter();
    let mut unread: Vec<_> = of_contents
        .map(|((kind, _), why)| (format!("the contents of {}", index.kinds[*kind]), why.clone()))
        .collect();
    for (why, kinds) in &index.unread {
        let named = kinds.iter().take(MAX_NAMED_KINDS).cloned().collect::<Vec<_>>().join(", ");
        let more = kinds.len().saturating_sub(MAX_NAMED_KINDS);
        let more = if more > 0 { format!(" and {more} more kinds") } else { String::new() };
        unread.push((format!("what is owned of {named}{more}"), why.clone()));
    }
    unread
}
