//! What the objects of a tree own and no policy counts: found by owner references of every kind, judged by the built-in rules,
//! and shown as what it is.

use std::collections::BTreeMap;
use std::time::Duration;

use inspect::discover::listable_kinds;
use inspect::owned_index::{KnownObjects, OwnedIndex, OwnedMeta, is_workload_kind, retain_searched_kinds};
use inspect::owned_reader::{OwnedContents, OwnedReadLimits, OwnedReader};
use inspect::owned_walk::{OwnedBranch, OwnedWalk};
use readiness::{Level, Time};
use rollcall_core::TreeNode;
use watcher::wire::ChildObject;
use watcher::{ApiKind, ParentObject};

use super::node_reason::node_level;
use super::pick::{NodeTimes, node_key};
use super::policy_cluster::{PolicyCluster, leaf_node};
use super::since::leaf_since;
use super::survey::hash_key;

/// Role of a node that no policy counts.
pub(crate) const UNCOUNTED_ROLE: &str = "uncounted";
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
    let reader = OwnedReader::new(cluster.client.clone(), "you", READ_LIMITS);
    let mut kinds = match listable_kinds(&cluster.client).await {
        Ok(kinds) => kinds,
        Err(error) => {
            cluster
                .note_unread("what no policy counts".to_owned(), format!("{:#}", anyhow::Error::from(error)));
            return UncountedFindings::default();
        }
    };
    let namespace = cluster.namespace().map(str::to_owned);
    retain_searched_kinds(&mut kinds, namespace.as_deref());
    let mut known = KnownObjects::default();
    for tree in trees.iter() {
        add_known(&mut known, tree, true);
    }
    let (known, namespace) = (&known, namespace.as_deref());
    let reader = &reader;
    let index =
        reader.index_kinds(kinds, |api| async move { reader.list_owned(&api, namespace, known).await }).await;
    let mut search = UncountedSearch::new(&index);
    for tree in trees.iter_mut() {
        search.search_below(tree, true);
    }
    let judge = |api: &ApiKind, child: &ChildObject| judge_uncounted(api, child, now);
    let judged = reader.read_contents(&index, &search.found, judge).await;
    let verdicts = search.verdicts(&judged);
    for tree in trees.iter_mut() {
        fill_in(tree, &verdicts, answers);
    }
    let times = verdicts.into_values().map(|(node, times)| (hash_key(node_key(&node)), times)).collect();
    note_unread(cluster, &index, &judged);
    UncountedFindings { kinds: index.kinds, times }
}

fn add_known(known: &mut KnownObjects, node: &TreeNode, is_root: bool) {
    let is_searched = is_root || !is_workload_kind(&node.group, &node.kind);
    known.add_object(hash_key(node_key(node)), is_searched);
    for child in &node.children {
        add_known(known, child, false);
    }
}

/// Reports what could not be read.
fn note_unread<T>(cluster: &mut PolicyCluster, index: &OwnedIndex, contents: &OwnedContents<T>) {
    for ((kind, _), why) in &contents.unread {
        cluster.note_unread(format!("the contents of {}", index.kinds[*kind]), why.clone());
    }
    for (why, kinds) in &index.unread {
        let named = kinds.iter().take(MAX_NAMED_KINDS).cloned().collect::<Vec<_>>().join(", ");
        let more = kinds.len().saturating_sub(MAX_NAMED_KINDS);
        let more = if more > 0 { format!(" and {more} more kinds") } else { String::new() };
        cluster.note_unread(format!("what is owned of {named}{more}"), why.clone());
    }
}

/// The node of an object that no policy counts, by the built-in rules, and its times.
fn judge_uncounted(api: &ApiKind, child: &ChildObject, now: Time) -> (TreeNode, NodeTimes) {
    let object = ParentObject::without_text(child.clone()).with_type_meta(&api.api_version(), &api.kind);
    let node = TreeNode { role: UNCOUNTED_ROLE, ..leaf_node(&object, now) };
    (node, NodeTimes { created: child.meta.created, since: leaf_since(&object) })
}

type NodeKey = [String; 4];

fn key_of(node: &TreeNode) -> NodeKey {
    let (group, kind, namespace, name) = node_key(node);
    [group, kind, namespace, name].map(str::to_owned)
}

struct UncountedSearch<'o> {
    index: &'o OwnedIndex,
    walk: OwnedWalk<'o>,
    found: Vec<&'o OwnedMeta>,
}

impl<'o> UncountedSearch<'o> {
    fn new(index: &'o OwnedIndex) -> UncountedSearch<'o> {
        // What workloads and Pods own is the matter of their controllers.
        let walk = OwnedWalk::new(index, usize::MAX, &|api| !is_workload_kind(&api.group, &api.kind));
        UncountedSearch { index, walk, found: Vec::new() }
    }

    fn search_below(&mut self, node: &mut TreeNode, is_root: bool) {
        for child in &mut node.children {
            self.search_below(child, false);
        }
        let Some(uid) = self.index.known_uid(hash_key(node_key(node))) else { return };
        if is_root || !is_workload_kind(&node.group, &node.kind) {
            for branch in self.walk.find_below(uid, &node.namespace) {
                branch.collect_metas(&mut self.found);
                node.children.push(uncounted_node(&self.index.kinds, &branch));
            }
        }
    }

    /// What was found, by its name: its verdict, or why it has none.
    fn verdicts(
        &self,
        judged: &OwnedContents<(TreeNode, NodeTimes)>,
    ) -> BTreeMap<NodeKey, (TreeNode, NodeTimes)> {
        let verdict = |of: &&OwnedMeta| {
            let mut node = unread_node(&self.index.kinds[of.kind], of);
            if let Some(judged) = judged.by_uid.get(&of.uid) {
                return Some((key_of(&node), judged.clone()));
            }
            let why = judged.unread.get(&(of.kind, of.namespace.to_string()))?;
            node.detail = format!("it could not be read: {why}");
            Some((key_of(&node), (node, NodeTimes::default())))
        };
        self.found.iter().filter_map(verdict).collect()
    }
}

/// A branch of which nothing but the metadata is known.
fn uncounted_node(kinds: &[ApiKind], branch: &OwnedBranch<'_>) -> TreeNode {
    let children = branch.children.iter().map(|child| uncounted_node(kinds, child)).collect();
    TreeNode { children, ..unread_node(&kinds[branch.meta.kind], branch.meta) }
}

fn unread_node(api: &ApiKind, of: &OwnedMeta) -> TreeNode {
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
fn fill_in(node: &mut TreeNode, judged: &BTreeMap<NodeKey, (TreeNode, NodeTimes)>, answers: &PolicyAnswers) {
    if node.role == UNCOUNTED_ROLE {
        let (key, children) = (key_of(node), std::mem::take(&mut node.children));
        if let Some(answer) = answers.0.get(&key) {
            let [group, kind, namespace, name] = key;
            *node = TreeNode { group, kind, namespace, name, role: UNCOUNTED_ROLE, ..answer.clone() };
        } else if let Some((verdict, _)) = judged.get(&key) {
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
