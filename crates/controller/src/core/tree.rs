//! Who belongs to whom, with verdicts: what the live page, the demo and the CLI draw.

use std::collections::BTreeMap;

use aggregator::{ObjectId, PolicyId, Role};
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
    /// How ready it is: `Ready`, `Progressing`, …
    pub verdict: &'static str,
    /// The reason as a CamelCase word.
    pub reason: String,
    /// The reason for people.
    pub detail: String,
    /// Since when it has had this verdict, in milliseconds since the Unix epoch.
    pub since: i64,
    /// Which moment that is: a field of the object, as in `conditions[Ready].lastTransitionTime`, or `seen`; empty where
    /// nobody said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since_from: String,
    /// `critical` or `optional`; for a root, empty.
    pub role: &'static str,
    /// It will not get better by itself: failed for good by the API's own word, or beyond a limit.
    pub stalled: bool,
    /// The policy that makes it a parent; empty for one that is none.
    pub policy: String,
    /// Its children, worst first.
    pub children: Vec<TreeNode>,
    /// So many more of its children are left out here.
    #[serde(skip_serializing_if = "is_none")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_none(more: &usize) -> bool {
    *more == 0
}

/// Since when each object has had its verdict, as far as anybody was looking.
#[derive(Clone, Debug, Default)]
pub struct Ages {
    since: BTreeMap<ObjectId, (Level, Time)>,
}

impl Ages {
    fn since(&mut self, id: ObjectId, level: Level, now: Time) -> Time {
        let held = self.since.entry(id).or_insert((level, now));
        if held.0 != level {
            *held = (level, now);
        }
        held.1
    }
}

/// Deeper than this nothing is drawn: a tree that deep is one that no person reads.
const DEPTH: usize = 16;

impl Core {
    /// Every parent that is nobody's child, with everything below it.
    pub fn trees(&self, now: Time, ages: &mut Ages) -> Vec<TreeNode> {
        let mut below: BTreeMap<(ObjectId, PolicyId), Vec<(ObjectId, Role)>> = BTreeMap::new();
        let mut children = std::collections::BTreeSet::new();
        for edge in self.engine.edges() {
            children.insert(edge.child);
            below.entry((edge.parent, edge.policy)).or_default().push((edge.child, edge.role));
        }
        let roots = self.engine.rolls().filter(|roll| !children.contains(&roll.parent));
        let mut trees: Vec<_> = roots
            .filter_map(|roll| self.node(roll.parent, Some(roll.policy), "", &below, now, ages, 0))
            .collect();
        trees.sort_by(|a, b| order(a).cmp(&order(b)));
        trees
    }

    #[expect(clippy::too_many_arguments, reason = "what is the same for the whole tree, and the place in it")]
    fn node(
        &self,
        id: ObjectId,
        policy: Option<PolicyId>,
        role: &'static str,
        below: &BTreeMap<(ObjectId, PolicyId), Vec<(ObjectId, Role)>>,
        now: Time,
        ages: &mut Ages,
        depth: usize,
    ) -> Option<TreeNode> {
        let policy = policy.or_else(|| self.engine.policies_of(id).next());
        let answer = policy.and_then(|policy| Some((policy, self.engine.answer(id, policy)?)));
        let (mut node, own) = self.reflector.read(id, |row| {
            let verdict = row.assessment.at(now).clone();
            let node = TreeNode {
                group: self.kind_group(row.kind).to_owned(),
                kind: self.kind_name(row.kind).to_owned(),
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                reason: verdict.reason.token().to_owned(),
                detail: if row.is_remembered() && verdict.level != Level::Unknown {
                    format!("{}; remembered, it is gone", verdict.reason)
                } else {
                    verdict.reason.to_string()
                },
                role,
                stalled: verdict.terminal() || verdict.level == Level::Stuck,
                ..TreeNode::default()
            };
            (node, verdict.level)
        })?;
        let mut level = own;
        if let Some((policy, answer)) = answer {
            level = answer.reason.level();
            node.stalled = answer.stalled;
            answer.reason.word().clone_into(&mut node.reason);
            node.detail = self.message(id, policy, answer, now);
            node.policy = self.policies.get(&policy).map(|p| p.name.clone()).unwrap_or_default();
            let members = below.get(&(id, policy)).filter(|_| depth < DEPTH);
            node.children = members
                .into_iter()
                .flatten()
                .filter_map(|(child, role)| self.node(*child, None, word(*role), below, now, ages, depth + 1))
                .collect();
            node.children.sort_by(|a, b| order(a).cmp(&order(b)));
        }
        node.verdict = level.word();
        node.since = ages.since(id, level, now).0;
        Some(node)
    }
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Critical => "critical",
        Role::Optional => "optional",
    }
}

fn order(node: &TreeNode) -> (usize, &str, &str, &str) {
    let severity = Level::ALL.iter().position(|l| l.word() == node.verdict).unwrap_or(0);
    (severity, &node.kind, &node.namespace, &node.name)
}
