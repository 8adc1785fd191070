//! Trees of parents and children with verdicts, as drawn by the live page, the demo and the CLI.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{GroupRole, ObjectId, PolicyId};
use readiness::{Level, Time};
use serde::Serialize;

use super::causes::CauseFinder;
use super::node_reason::NodeReason;
use super::render::ConditionRenderer;

/// One object in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Verdict: `Ready`, `Progressing`, …
    pub verdict: &'static str,
    /// Reason.
    pub reason: NodeReason,
    /// Human-readable reason.
    pub detail: String,
    /// Time since which it has had this verdict, in milliseconds since the Unix epoch.
    pub since: i64,
    /// Origin of that time: a field of the object, as in `conditions[Ready].lastTransitionTime`, or `seen`; empty if
    /// unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since_from: String,
    /// `critical` or `optional`; `uncounted` for what no policy counts; empty for a root.
    pub role: &'static str,
    /// Will not recover by itself: failed permanently according to the API, or beyond a limit.
    pub stalled: bool,
    /// Policy under which it is a parent; empty if it is none.
    pub policy: String,
    /// Its children, worst first.
    pub children: Vec<TreeNode>,
    /// Number of further children that are omitted.
    #[serde(skip_serializing_if = "is_none")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_none(more: &usize) -> bool {
    *more == 0
}

/// Time since which each object has been observed to have its verdict.
#[derive(Clone, Debug, Default)]
pub struct VerdictAges {
    since: BTreeMap<ObjectId, (Level, Time)>,
}

impl VerdictAges {
    fn verdict_since(&mut self, id: ObjectId, level: Level, now: Time) -> Time {
        let held = self.since.entry(id).or_insert((level, now));
        if held.0 != level {
            *held = (level, now);
        }
        held.1
    }
}

/// Maximum depth drawn: deeper trees are not readable.
const MAX_TREE_DEPTH: usize = 16;
/// Maximum number of nodes that are drawn in trees though they were drawn before. Parents that have children in common, on
/// level after level, have exponentially many paths; their objects are few.
const MAX_REPEATED_NODES: usize = 5_000;

/// Draws the trees of all parents at one instant.
pub(super) struct TreeBuilder<'a> {
    renderer: ConditionRenderer<'a>,
    members: BTreeMap<(ObjectId, PolicyId), Vec<(ObjectId, GroupRole)>>,
    ages: &'a mut VerdictAges,
    now: Time,
    /// Parents whose children were drawn.
    expanded: BTreeSet<(ObjectId, PolicyId)>,
    /// Number of nodes that may be drawn again.
    repeats_left: usize,
}

impl<'a> TreeBuilder<'a> {
    pub(super) fn new(renderer: ConditionRenderer<'a>, ages: &'a mut VerdictAges, now: Time) -> Self {
        let mut members: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for edge in renderer.causes.engine.counted_children() {
            members.entry((edge.parent, edge.policy)).or_default().push((edge.child, edge.role));
        }
        TreeBuilder {
            renderer,
            members,
            ages,
            now,
            expanded: BTreeSet::new(),
            repeats_left: MAX_REPEATED_NODES,
        }
    }

    /// All parents that are not a child of another one, with their descendants.
    pub(super) fn parent_trees(mut self) -> Vec<TreeNode> {
        let engine = self.renderer.causes.engine;
        let children: BTreeSet<ObjectId> = self.members.values().flatten().map(|(child, _)| *child).collect();
        let roots = engine.evaluation_states().filter(|state| !children.contains(&state.parent));
        let mut trees: Vec<_> =
            roots.filter_map(|state| self.tree_node(state.parent, Some(state.policy), "", 0)).collect();
        trees.sort_by(|a, b| display_order(a).cmp(&display_order(b)));
        trees
    }

    fn tree_node(
        &mut self,
        id: ObjectId,
        policy: Option<PolicyId>,
        role: &'static str,
        depth: usize,
    ) -> Option<TreeNode> {
        let CauseFinder { engine, policies, .. } = self.renderer.causes;
        // Below another parent the worst of its answers counts, as in what that parent is told.
        let asked = policy.map_or_else(|| engine.policies_of(id).collect(), |policy| vec![policy]);
        let answers = asked.into_iter().filter_map(|policy| Some((policy, engine.answer_of(id, policy)?)));
        let answer = answers.min_by_key(|(policy, answer)| (answer.counted_reason().child_level(), *policy));
        let (mut node, mut level) = self.object_node(id)?;
        node.role = role;
        if let Some((policy, answer)) = answer {
            level = answer.reason.child_level();
            node.stalled = answer.stalled;
            node.reason = NodeReason::Parent(answer.reason);
            node.detail = self.renderer.render_message(id, policy, answer, self.now);
            node.policy = policies.get(&policy).map(|p| p.name.clone()).unwrap_or_default();
            let members = self.members_to_draw(id, policy, depth);
            node.more = self.members.get(&(id, policy)).map_or(0, Vec::len) - members.len();
            node.children = members
                .into_iter()
                .filter_map(|(child, role)| self.tree_node(child, None, role_word(role), depth + 1))
                .collect();
            node.children.sort_by(|a, b| display_order(a).cmp(&display_order(b)));
        }
        node.verdict = level.as_str();
        node.since = self.ages.verdict_since(id, level, self.now).0;
        Some(node)
    }

    /// The children to draw below a parent: all of them, or none where that is too deep or was drawn too often.
    fn members_to_draw(
        &mut self,
        id: ObjectId,
        policy: PolicyId,
        depth: usize,
    ) -> Vec<(ObjectId, GroupRole)> {
        let Some(members) = self.members.get(&(id, policy)).filter(|_| depth < MAX_TREE_DEPTH) else {
            return Vec::new();
        };
        if !self.expanded.insert((id, policy)) {
            let Some(left) = self.repeats_left.checked_sub(members.len()) else { return Vec::new() };
            self.repeats_left = left;
        }
        members.clone()
    }

    /// The object by itself, with its own verdict, whatever it is a parent of.
    fn object_node(&self, id: ObjectId) -> Option<(TreeNode, Level)> {
        let CauseFinder { reflector, kinds, .. } = self.renderer.causes;
        reflector.read_row(id, |row| {
            let verdict = row.assessment.verdict_at(self.now).clone();
            let node = TreeNode {
                group: kinds.group(row.kind).to_owned(),
                kind: kinds.name(row.kind).to_owned(),
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                detail: if row.is_remembered() && verdict.level != Level::Unknown {
                    format!("{}; remembered, it is gone", verdict.reason)
                } else {
                    verdict.reason.to_string()
                },
                stalled: verdict.is_terminal() || verdict.level == Level::Stuck,
                reason: NodeReason::Object(verdict.reason),
                ..TreeNode::default()
            };
            (node, verdict.level)
        })
    }
}

fn role_word(role: GroupRole) -> &'static str {
    match role {
        GroupRole::Critical => "critical",
        GroupRole::Optional => "optional",
    }
}

fn display_order(node: &TreeNode) -> (usize, &str, &str, &str) {
    let severity = Level::ALL.iter().position(|l| l.as_str() == node.verdict).unwrap_or(0);
    (severity, &node.kind, &node.namespace, &node.name)
}
