//! Trees of parents and children with verdicts, as drawn by the live page, the demo and the CLI.

use std::collections::BTreeMap;

use aggregator::{GroupRole, ObjectId, PolicyId};
use readiness::{Level, Time};
use serde::Serialize;

use super::Core;

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
    /// Reason, in CamelCase.
    pub reason: String,
    /// Human-readable reason.
    pub detail: String,
    /// Time since which it has had this verdict, in milliseconds since the Unix epoch.
    pub since: i64,
    /// Origin of that time: a field of the object, as in `conditions[Ready].lastTransitionTime`, or `seen`; empty if
    /// unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since_from: String,
    /// `critical` or `optional`; empty for a root.
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

impl Core {
    /// All parents that are not a child of another one, with their descendants.
    pub fn parent_trees(&self, now: Time, ages: &mut VerdictAges) -> Vec<TreeNode> {
        let mut below: BTreeMap<(ObjectId, PolicyId), Vec<(ObjectId, GroupRole)>> = BTreeMap::new();
        let mut children = std::collections::BTreeSet::new();
        for edge in self.engine.counted_children() {
            children.insert(edge.child);
            below.entry((edge.parent, edge.policy)).or_default().push((edge.child, edge.role));
        }
        let roots = self.engine.evaluation_states().filter(|roll| !children.contains(&roll.parent));
        let mut trees: Vec<_> = roots
            .filter_map(|roll| self.tree_node(roll.parent, Some(roll.policy), "", &below, now, ages, 0))
            .collect();
        trees.sort_by(|a, b| display_order(a).cmp(&display_order(b)));
        trees
    }

    #[expect(clippy::too_many_arguments, reason = "what is the same for the whole tree, and the place in it")]
    fn tree_node(
        &self,
        id: ObjectId,
        policy: Option<PolicyId>,
        role: &'static str,
        below: &BTreeMap<(ObjectId, PolicyId), Vec<(ObjectId, GroupRole)>>,
        now: Time,
        ages: &mut VerdictAges,
        depth: usize,
    ) -> Option<TreeNode> {
        let policy = policy.or_else(|| self.engine.policies_of(id).next());
        let answer = policy.and_then(|policy| Some((policy, self.engine.answer_of(id, policy)?)));
        let (mut node, own) = self.reflector.read_row(id, |row| {
            let verdict = row.assessment.verdict_at(now).clone();
            let node = TreeNode {
                group: self.kinds.group(row.kind).to_owned(),
                kind: self.kind_name(row.kind).to_owned(),
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                reason: verdict.reason.as_token().to_owned(),
                detail: if row.is_remembered() && verdict.level != Level::Unknown {
                    format!("{}; remembered, it is gone", verdict.reason)
                } else {
                    verdict.reason.to_string()
                },
                role,
                stalled: verdict.is_terminal() || verdict.level == Level::Stuck,
                ..TreeNode::default()
            };
            (node, verdict.level)
        })?;
        let mut level = own;
        if let Some((policy, answer)) = answer {
            level = answer.reason.child_level();
            node.stalled = answer.stalled;
            answer.reason.as_str().clone_into(&mut node.reason);
            node.detail = self.render_message(id, policy, answer, now);
            node.policy = self.policies.get(&policy).map(|p| p.name.clone()).unwrap_or_default();
            let members = below.get(&(id, policy)).filter(|_| depth < MAX_TREE_DEPTH);
            node.children = members
                .into_iter()
                .flatten()
                .filter_map(|(child, role)| {
                    self.tree_node(*child, None, role_word(*role), below, now, ages, depth + 1)
                })
                .collect();
            node.children.sort_by(|a, b| display_order(a).cmp(&display_order(b)));
        }
        node.verdict = level.as_str();
        node.since = ages.verdict_since(id, level, now).0;
        Some(node)
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
