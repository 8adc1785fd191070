//! One parent with everything below it, as a list: each object after the one that it belongs to.

use aggregator::{ChildOf, KindId, ObjectId, PolicyId, Role};
use readiness::Level;
use serde::Serialize;
use watcher::reflector::{Namespace, Reflector};

use super::shown::{DEPTH, Row, Shown};

/// One object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    /// How far below the root.
    pub(super) depth: usize,
    /// What people call its kind.
    pub(super) kind: String,
    /// With its group.
    pub(super) label: String,
    /// Its namespace, where it has one.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// How ready it is.
    pub(super) verdict: &'static str,
    /// The reason, as a word.
    pub(super) reason: String,
    /// The reason, for people.
    pub(super) detail: String,
    /// Since when it has not been ready, in milliseconds since the Unix epoch; of a parent, also since when it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
    /// Which moment that is, where it is not the parent's own condition: the object's field, `seen` or `firstSeen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since_from: Option<String>,
    /// It is only shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) optional: bool,
    /// Its uid, where it is a parent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<String>,
    /// The policy that makes it one.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) policy: String,
    /// So many of its children, the best, are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) more: usize,
    /// Where it lives, for the question whether it may be seen.
    #[serde(skip)]
    pub(super) place: Place,
    /// Which of its verdicts counts here.
    #[serde(skip)]
    pub(super) lens: u8,
}

/// A kind, and a namespace in which its objects live.
pub(super) type Place = (KindId, Namespace);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Takes one parent's tree out of everything.
pub(super) struct Pick<'a> {
    pub(super) shown: &'a Shown,
    pub(super) reflector: &'a Reflector,
    /// So many objects more.
    pub(super) room: usize,
}

impl Pick<'_> {
    /// The parent, and everything below it.
    pub(super) fn tree(mut self, root: &Row) -> Vec<Node> {
        let edge = ChildOf {
            child: root.parent,
            parent: root.parent,
            policy: root.policy,
            group: 0,
            lens: 0,
            role: Role::Critical,
        };
        let mut nodes = Vec::new();
        if let Some(node) = self.node(&edge, Some(root), 0) {
            nodes.push(node);
            self.below(root.parent, root.policy, 1, &mut nodes);
        }
        nodes
    }

    fn below(&mut self, parent: ObjectId, policy: PolicyId, depth: usize, nodes: &mut Vec<Node>) {
        let at = nodes.len() - 1;
        if depth > DEPTH {
            return;
        }
        let shown = self.shown;
        let mut children: Vec<_> = shown
            .children(parent, policy)
            .iter()
            .filter_map(|edge| {
                Some((edge, shown.worst(edge.child), self.node(edge, shown.worst(edge.child), depth)?))
            })
            .collect();
        children.sort_by(|(_, _, a), (_, _, b)| order(a).cmp(&order(b)));
        // Brothers and sisters come before what is below them.
        let kept = children.len().min(self.room);
        self.room -= kept;
        nodes[at].more = children.len() - kept;
        for (edge, row, node) in children.into_iter().take(kept) {
            nodes.push(node);
            if let Some(row) = row {
                self.below(edge.child, row.policy, depth + 1, nodes);
            }
        }
    }

    fn node(&self, edge: &ChildOf, row: Option<&Row>, depth: usize) -> Option<Node> {
        let shown = self.shown;
        let (mut node, own) = self.reflector.read(edge.child, |object| {
            let verdict = object.through(edge.lens).at(shown.now);
            let since = object.since(edge.lens).filter(|_| verdict.level != Level::Ready);
            let node = Node {
                depth,
                kind: shown.names.kind(object.kind).to_owned(),
                label: shown.names.label(object.kind).to_owned(),
                namespace: object.namespace.to_string(),
                name: object.name.to_string(),
                verdict: verdict.level.word(),
                reason: verdict.reason.token().to_owned(),
                detail: verdict.reason.to_string(),
                since: since.map(|since| since.at.0),
                since_from: since.map(|since| since.from.to_string()),
                optional: edge.role == Role::Optional,
                uid: None,
                policy: String::new(),
                more: 0,
                place: (object.kind, object.namespace.clone()),
                lens: edge.lens,
            };
            (node, verdict.level)
        })?;
        // A parent that is deleted or stuck counts as that, whatever stands below it.
        let overridden = matches!(own, Level::Terminating | Level::Stuck) && depth > 0;
        if let Some(row) = row {
            node.uid = Some(row.uid.to_string());
            shown.names.policy(row.policy).clone_into(&mut node.policy);
            if !overridden {
                node.verdict = row.level().word();
                row.answer.reason.word().clone_into(&mut node.reason);
                node.detail = format!("{} of {} ready", row.answer.ready, row.answer.total);
                (node.since, node.since_from) = (row.since.map(|s| s.0), None);
            }
        }
        Some(node)
    }
}

fn order(node: &Node) -> (usize, &str, &str, &str) {
    let severity = Level::ALL.iter().position(|l| l.word() == node.verdict).unwrap_or(0);
    (severity, &node.kind, &node.namespace, &node.name)
}

/// Leaves out what may not be seen, with everything below it; `true` where something was.
pub(super) fn hide(nodes: &mut Vec<Node>, may_see: impl Fn(&Place) -> bool) -> bool {
    let before = nodes.len();
    let mut below: Option<usize> = None;
    nodes.retain(|node| {
        if below.is_some_and(|depth| node.depth > depth) {
            return false;
        }
        let may = may_see(&node.place);
        below = (!may).then_some(node.depth);
        may
    });
    nodes.len() < before
}
