//! Tree of one parent as a flat list: each object follows its owner.

use std::collections::VecDeque;

use aggregator::{ChildOf, GroupRole, ObjectId, PolicyId};
use readiness::Level;
use rollcall_core::NodeReason;
use rustc_hash::FxHashSet;
use serde::Serialize;
use watcher::reflector::{ObjectRow, Reflector};

use super::edge_list::EdgeList;
use super::view::{KindNamespace, MAX_TREE_DEPTH, PageRow, PageView};

/// One object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageNode {
    /// Depth below the root.
    pub(super) depth: usize,
    /// Display name of the kind.
    pub(super) kind: String,
    /// Display name of the kind, with its group.
    pub(super) label: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) namespace: String,
    /// Object name.
    pub(super) name: String,
    /// Verdict.
    pub(super) verdict: &'static str,
    /// Reason.
    pub(super) reason: NodeReason,
    /// Human-readable reason.
    pub(super) detail: String,
    /// Time since which the object has not been ready, in milliseconds since the Unix epoch; for a parent also the time
    /// since which it has been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
    /// Origin of `since`, unless it is the parent's own condition: a field of the object, `seen` or `firstSeen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since_from: Option<String>,
    /// The object is optional: shown, not counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) optional: bool,
    /// Uid, if the object is itself a parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<String>,
    /// Policy under which the object is a parent.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) policy: String,
    /// Number of its best children that are omitted.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) more: usize,
    /// The object.
    #[serde(skip)]
    pub(super) id: ObjectId,
    /// Kind and namespace, for the access check.
    #[serde(skip)]
    pub(super) kind_namespace: KindNamespace,
    /// Verdict of the object that counts here.
    #[serde(skip)]
    pub(super) rule_index: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Extracts the tree of one parent.
pub(super) struct TreePicker<'a> {
    pub(super) view: &'a PageView,
    pub(super) edges: &'a EdgeList,
    pub(super) reflector: &'a Reflector,
    /// Number of objects that still fit.
    pub(super) room: usize,
    /// Number of objects that may be listed again below parents whose children were. Parents that have children in common, on
    /// level after level, have exponentially many paths; their objects are few.
    pub(super) repeats: usize,
    /// Parents whose children were listed.
    pub(super) expanded: FxHashSet<(ObjectId, PolicyId)>,
}

impl TreePicker<'_> {
    /// Lists the parent and its descendants.
    pub(super) fn pick_tree(&mut self, root: &PageRow) -> Vec<PageNode> {
        let mut nodes = Vec::new();
        if let Some(node) = self.build_node(&root_edge(root), Some(root), 0) {
            nodes.push(node);
            self.add_children(root.parent, root.policy, 1, &mut nodes);
        }
        nodes
    }

    /// Finds one object of the tree by the label of its kind, its namespace and its name, as it counts worst.
    pub(super) fn find_node(
        &self,
        root: &PageRow,
        is_meant: &dyn Fn(&str, &str, &str) -> bool,
    ) -> Option<PageNode> {
        let is_found = |child| {
            let meant = |object: &ObjectRow| {
                is_meant(self.view.names.kind_label(object.kind), &object.namespace, &object.name)
            };
            self.reflector.read_row(child, meant) == Some(true)
        };
        if is_found(root.parent) {
            return self.build_node(&root_edge(root), Some(root), 0);
        }
        // The nearest first: below the largest depth nothing is looked for.
        let mut open = VecDeque::from([(root.parent, root.policy, 1)]);
        let mut known = FxHashSet::default();
        let mut found: Option<PageNode> = None;
        while let Some((parent, policy, depth)) = open.pop_front() {
            for edge in self.edges.children_of(parent, policy) {
                let row = self.view.worst_row(edge.child);
                if is_found(edge.child) {
                    let node = self.build_node(edge, row, depth);
                    found =
                        found.into_iter().chain(node).min_by(|a, b| display_order(a).cmp(&display_order(b)));
                }
                if let Some(row) = row.filter(|_| depth < MAX_TREE_DEPTH)
                    && known.insert((edge.child, row.policy))
                {
                    open.push_back((edge.child, row.policy, depth + 1));
                }
            }
        }
        found
    }

    /// Returns `true` if the children of this parent are to be listed: where it stands first, and while there is room for more.
    fn may_expand(&mut self, parent: ObjectId, policy: PolicyId, children: usize) -> bool {
        if self.room == 0 {
            return false;
        }
        if !self.expanded.insert((parent, policy)) {
            let Some(left) = self.repeats.checked_sub(children) else { return false };
            self.repeats = left;
        }
        true
    }

    fn add_children(&mut self, parent: ObjectId, policy: PolicyId, depth: usize, nodes: &mut Vec<PageNode>) {
        let at = nodes.len() - 1;
        if depth > MAX_TREE_DEPTH {
            return;
        }
        let (shown, edges) = (self.view, self.edges.children_of(parent, policy));
        if !self.may_expand(parent, policy, edges.len()) {
            nodes[at].more = edges.len();
            return;
        }
        let mut children: Vec<_> = edges
            .iter()
            .filter_map(|edge| {
                Some((
                    edge,
                    shown.worst_row(edge.child),
                    self.build_node(edge, shown.worst_row(edge.child), depth)?,
                ))
            })
            .collect();
        children.sort_by(|(_, _, a), (_, _, b)| display_order(a).cmp(&display_order(b)));
        // Siblings take up the room before their descendants.
        let kept = children.len().min(self.room);
        self.room -= kept;
        nodes[at].more = children.len() - kept;
        for (edge, row, node) in children.into_iter().take(kept) {
            nodes.push(node);
            if let Some(row) = row {
                self.add_children(edge.child, row.policy, depth + 1, nodes);
            }
        }
    }

    fn build_node(&self, edge: &ChildOf, row: Option<&PageRow>, depth: usize) -> Option<PageNode> {
        let shown = self.view;
        let (mut node, held) = self.reflector.read_row(edge.child, |object| {
            let verdict = object.assessment_for(edge.rule_index).verdict_at(shown.now);
            let since = object.unready_since(edge.rule_index).filter(|_| verdict.level != Level::Ready);
            let node = PageNode {
                depth,
                kind: shown.names.kind_name(object.kind).to_owned(),
                label: shown.names.kind_label(object.kind).to_owned(),
                namespace: object.namespace.to_string(),
                name: object.name.to_string(),
                verdict: verdict.level.as_str(),
                reason: NodeReason::Object(verdict.reason.clone()),
                detail: verdict.reason.to_string(),
                since: since.map(|since| since.at.0),
                since_from: since.map(|since| since.from.to_string()),
                optional: edge.role == GroupRole::Optional,
                uid: None,
                policy: String::new(),
                more: 0,
                id: edge.child,
                kind_namespace: (object.kind, object.namespace.clone()),
                rule_index: edge.rule_index,
            };
            let deleting = object.parent.as_ref().is_some_and(|parent| parent.view.deleting);
            (node, deleting && matches!(verdict.level, Level::Terminating | Level::Stuck))
        })?;
        // A parent that is being deleted, or stuck in that, counts as that, regardless of its descendants.
        let overridden = held && depth > 0;
        if let Some(row) = row {
            node.uid = Some(row.uid.to_string());
            shown.names.policy_name(row.policy).clone_into(&mut node.policy);
            if !overridden {
                node.verdict = row.verdict_level().as_str();
                node.reason = NodeReason::Parent(row.answer.reason);
                node.detail = format!("{} of {} ready", row.answer.ready, row.answer.total);
                (node.since, node.since_from) = (row.since.map(|s| s.0), None);
            }
        }
        Some(node)
    }
}

/// The edge by which a root is listed.
fn root_edge(root: &PageRow) -> ChildOf {
    ChildOf {
        child: root.parent,
        parent: root.parent,
        policy: root.policy,
        group: 0,
        rule_index: 0,
        role: GroupRole::Critical,
    }
}

fn display_order(node: &PageNode) -> (usize, &str, &str, &str) {
    let severity = Level::ALL.iter().position(|l| l.as_str() == node.verdict).unwrap_or(0);
    (severity, &node.kind, &node.namespace, &node.name)
}

/// Removes hidden objects with their descendants. Returns true if any were removed.
pub(super) fn hide_nodes<N>(
    nodes: &mut Vec<N>,
    depth_of: impl Fn(&N) -> usize,
    may_see: impl Fn(&N) -> bool,
) -> bool {
    let before = nodes.len();
    let mut below: Option<usize> = None;
    nodes.retain(|node| {
        if below.is_some_and(|depth| depth_of(node) > depth) {
            return false;
        }
        let may = may_see(node);
        below = (!may).then(|| depth_of(node));
        may
    });
    nodes.len() < before
}
