//! What the objects of a tree own and no policy counts, as it was found, and how it is shown in trees.

use std::collections::{BTreeMap, BTreeSet};

use readiness::Level;
use rollcall_core::TreeNode;
use watcher::ApiKind;

use super::node_reason::node_level;
use super::pick::{NodeTimes, node_key};
use super::policy_cluster::PolicyCluster;
use super::survey::hash_key;

/// Role of a node that no policy counts.
pub(crate) const UNCOUNTED_ROLE: &str = "uncounted";

/// What policies say of all their parents, in whatever tree these stand.
#[derive(Debug, Default)]
pub(super) struct PolicyAnswers(BTreeMap<u64, TreeNode>);

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
            self.0.insert(hash_key(node_key(node)), answer);
        }
        for child in &node.children {
            self.add_tree(child);
        }
    }

    /// Replaces the built-in verdicts of these nodes and those below by what policies say of them.
    fn replace_verdicts(&self, node: &mut TreeNode) {
        if let Some(answer) = self.0.get(&hash_key(node_key(node))) {
            let answer = answer.clone();
            (node.verdict, node.reason, node.detail) = (answer.verdict, answer.reason, answer.detail);
            (node.policy, node.stalled) = (answer.policy, answer.stalled);
        }
        for child in &mut node.children {
            self.replace_verdicts(child);
        }
    }
}

/// What was learned of objects that no policy counts.
#[derive(Debug, Default)]
pub(super) struct UncountedFindings {
    /// The kinds that the cluster serves.
    pub(super) kinds: Vec<ApiKind>,
    /// What an object of a tree owns, by the hash of its name.
    pub(super) below: BTreeMap<u64, Vec<TreeNode>>,
    /// Times of what was found, by hashes of names.
    pub(super) times: BTreeMap<u64, NodeTimes>,
    /// What could not be read, and why.
    pub(super) unread: Vec<(String, String)>,
}

impl UncountedFindings {
    /// Times of an object that no policy counts.
    pub(super) fn node_times(&self, node: &TreeNode) -> Option<NodeTimes> {
        self.times.get(&hash_key(node_key(node))).cloned()
    }

    /// Reports what could not be read.
    pub(super) fn note_unread(&self, cluster: &mut PolicyCluster) {
        for (what, why) in &self.unread {
            cluster.note_unread(what.clone(), why.clone());
        }
    }

    /// Adds what was found to these trees, each object once and none that stands in them; `answers` are what policies say of
    /// the objects that are parents themselves.
    pub(super) fn add_to(&self, trees: &mut [TreeNode], answers: &PolicyAnswers) {
        let mut known = BTreeSet::new();
        for tree in trees.iter() {
            collect_keys(tree, &mut known);
        }
        let mut done = BTreeSet::new();
        for tree in trees {
            self.add_below(tree, answers, &known, &mut done);
        }
    }

    fn add_below(
        &self,
        node: &mut TreeNode,
        answers: &PolicyAnswers,
        known: &BTreeSet<u64>,
        done: &mut BTreeSet<u64>,
    ) {
        for child in &mut node.children {
            self.add_below(child, answers, known, done);
        }
        let key = hash_key(node_key(node));
        let Some(found) = self.below.get(&key).filter(|_| done.insert(key)) else { return };
        // It may have come to count since it was found.
        let mut found = found.clone();
        remove_known(&mut found, known);
        for child in &mut found {
            answers.replace_verdicts(child);
            sort_worst_first(child);
        }
        found.sort_by(|a, b| worst_first(a).cmp(&worst_first(b)));
        node.children.extend(found);
    }
}

fn collect_keys(node: &TreeNode, keys: &mut BTreeSet<u64>) {
    keys.insert(hash_key(node_key(node)));
    for child in &node.children {
        collect_keys(child, keys);
    }
}

/// Removes what stands in the trees itself.
fn remove_known(nodes: &mut Vec<TreeNode>, known: &BTreeSet<u64>) {
    nodes.retain(|node| !known.contains(&hash_key(node_key(node))));
    for node in nodes {
        remove_known(&mut node.children, known);
    }
}

fn worst_first(node: &TreeNode) -> (Option<Level>, super::pick::TreeNodeKey<'_>) {
    (node_level(node), node_key(node))
}

fn sort_worst_first(node: &mut TreeNode) {
    node.children.sort_by(|a, b| worst_first(a).cmp(&worst_first(b)));
    for child in &mut node.children {
        sort_worst_first(child);
    }
}

/// The worst of the objects in this tree that no policy counts, are not ready, and own nothing that explains it.
pub(super) fn worst_uncounted(tree: &TreeNode) -> Option<&TreeNode> {
    let mut below: Vec<&TreeNode> = tree.children.iter().filter_map(worst_uncounted).collect();
    let is_unready = node_level(tree).is_some_and(|level| !matches!(level, Level::Ready | Level::Suspended));
    if below.is_empty() && tree.role == UNCOUNTED_ROLE && is_unready {
        below.push(tree);
    }
    below.into_iter().min_by_key(|node| worst_first(node))
}
