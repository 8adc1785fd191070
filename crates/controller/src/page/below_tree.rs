//! What was found below the objects of a tree, as a flat list of nodes by the object that owns them.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::ObjectId;
use inspect::owned_index::{OwnedIndex, OwnedMeta};
use inspect::owned_reader::OwnedContents;
use inspect::owned_walk::OwnedBranch;
use readiness::{Level, UnreadySince, Verdict};
use rollcall_core::NodeReason;
use serde::Serialize;
use watcher::ApiKind;

/// Index into [`BelowFindings::kinds`], and a namespace.
pub(super) type FoundPlace = (usize, Box<str>);

/// Verdict of one object by the built-in rules.
#[derive(Clone, Debug)]
pub(super) struct BelowVerdict {
    pub(super) verdict: Verdict,
    /// Time since which it has not been ready, as far as its fields tell.
    pub(super) since: Option<UnreadySince>,
    /// It is a ReplicaSet of an earlier rollout.
    pub(super) is_idle: bool,
}

/// One object that no policy counts here.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BelowNode {
    /// Depth below the object of the tree that owns it; at least 1.
    pub(super) depth: usize,
    /// Kind.
    pub(super) kind: String,
    /// Kind and group, as in `Order.acme.io`.
    pub(super) label: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) namespace: String,
    /// Name.
    pub(super) name: String,
    /// Verdict.
    pub(super) verdict: &'static str,
    /// Reason.
    pub(super) reason: NodeReason,
    /// Human-readable reason.
    pub(super) detail: String,
    /// Time since which the object has not been ready, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
    /// Origin of `since`: a field of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since_from: Option<String>,
    /// Index into [`BelowFindings::kinds`], for the access check.
    #[serde(skip)]
    pub(super) kind_index: usize,
    /// Uid: the object may be a parent itself.
    #[serde(skip)]
    pub(super) object_uid: Box<str>,
}

/// What one object of the tree owns.
#[derive(Clone, Debug)]
pub(super) struct BelowGroup {
    /// The object of the tree.
    pub(super) owner: ObjectId,
    /// Each object after the one that owns it, the worst first.
    pub(super) nodes: Vec<BelowNode>,
}

/// Kinds that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct UnreadKinds {
    pub(super) kinds: Vec<String>,
    pub(super) why: String,
}

/// A kind of which something was found that could not be read. That tells of its objects, and is for those who may list them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnreadObjects {
    pub(super) place: FoundPlace,
    pub(super) why: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct BelowFindings {
    pub(super) groups: Vec<BelowGroup>,
    /// Kinds of the nodes.
    pub(super) kinds: Vec<ApiKind>,
    /// Kinds that could not be listed.
    pub(super) not_listed: Vec<UnreadKinds>,
    /// Objects that were found and could not be read, or not searched to their end.
    pub(super) not_read: Vec<UnreadObjects>,
    /// Number of objects that were found and are not among the nodes, by kind and namespace.
    pub(super) left_out: BTreeMap<FoundPlace, usize>,
}

impl BelowFindings {
    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.groups.iter().map(|group| group.nodes.len()).sum()
    }

    /// Records the kinds for which there was no room.
    pub(super) fn note_unsearched(&mut self, kinds: &[ApiKind], most: usize) {
        if !kinds.is_empty() {
            let kinds = kinds.iter().map(ToString::to_string).collect();
            self.not_listed.push(UnreadKinds { kinds, why: format!("more than {most} kinds are served") });
        }
    }

    /// Records what could not be listed in this namespace, and of what was found what could not be read.
    pub(super) fn note_unread<T>(
        &mut self,
        index: &OwnedIndex,
        contents: &OwnedContents<T>,
        namespace: Option<&str>,
    ) {
        for (why, kinds) in &index.unread {
            let mut kinds = kinds.clone();
            // Custom kinds are what people ask for rights on, and the server's own are many.
            kinds.sort_by_key(|kind| (!is_custom_label(kind), kind.clone()));
            self.not_listed.push(UnreadKinds { kinds, why: why.clone() });
        }
        for (kind, listed) in &index.cut {
            let place = (*kind, namespace.unwrap_or_default().into());
            let why = format!("only the first {listed} of them were searched");
            self.not_read.push(UnreadObjects { place, why });
        }
        for ((kind, namespace), why) in &contents.unread {
            let place = (*kind, namespace.as_str().into());
            self.not_read.push(UnreadObjects { place, why: format!("their contents: {why}") });
        }
    }

    /// Kinds and namespaces of the nodes of these owners, and of what else is told of objects.
    pub(super) fn places(&self, is_seen: impl Fn(ObjectId) -> bool) -> BTreeSet<FoundPlace> {
        let groups = self.groups.iter().filter(|group| is_seen(group.owner));
        let nodes = groups.flat_map(|group| &group.nodes);
        let of_nodes = nodes.map(|node| (node.kind_index, Box::from(&*node.namespace)));
        let unread = self.not_read.iter().map(|unread| unread.place.clone());
        of_nodes.chain(unread).chain(self.left_out.keys().cloned()).collect()
    }

    /// What could not be read, for a viewer who may list these places.
    pub(super) fn unread_for(&self, may_list: impl Fn(&FoundPlace) -> bool) -> Vec<UnreadKinds> {
        let mut by_reason: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for unread in self.not_read.iter().filter(|unread| may_list(&unread.place)) {
            by_reason.entry(&unread.why).or_default().insert(self.kinds[unread.place.0].to_string());
        }
        let of_objects = by_reason
            .into_iter()
            .map(|(why, kinds)| UnreadKinds { kinds: kinds.into_iter().collect(), why: why.to_owned() });
        self.not_listed.iter().cloned().chain(of_objects).collect()
    }
}

/// Returns `true` for the label of a kind that Kubernetes itself does not bring along.
fn is_custom_label(label: &str) -> bool {
    label.split_once('.').is_some_and(|(_, group)| group.contains('.') && !group.ends_with("k8s.io"))
}

/// The nodes of what one object of the tree owns.
pub(super) fn build_group(
    owner: ObjectId,
    branches: &[OwnedBranch<'_>],
    index: &OwnedIndex,
    contents: &OwnedContents<BelowVerdict>,
) -> BelowGroup {
    let mut nodes = Vec::new();
    add_branches(branches, 1, index, contents, &mut nodes);
    BelowGroup { owner, nodes }
}

fn add_branches(
    branches: &[OwnedBranch<'_>],
    depth: usize,
    index: &OwnedIndex,
    contents: &OwnedContents<BelowVerdict>,
    nodes: &mut Vec<BelowNode>,
) {
    // A ReplicaSet of an earlier rollout says nothing of the current one.
    let is_shown = |branch: &&OwnedBranch<'_>| {
        let judged = contents.by_uid.get(&branch.meta.uid);
        !branch.children.is_empty() || judged.is_none_or(|judged| !judged.is_idle)
    };
    let mut shown: Vec<_> = branches
        .iter()
        .filter(is_shown)
        .map(|branch| (build_node(branch.meta, depth, index, contents), branch))
        .collect();
    shown.sort_by(|(a, _), (b, _)| display_order(a).cmp(&display_order(b)));
    for (node, branch) in shown {
        nodes.push(node);
        add_branches(&branch.children, depth + 1, index, contents, nodes);
    }
}

fn build_node(
    meta: &OwnedMeta,
    depth: usize,
    index: &OwnedIndex,
    contents: &OwnedContents<BelowVerdict>,
) -> BelowNode {
    let api = &index.kinds[meta.kind];
    let node = BelowNode {
        depth,
        kind: api.kind.clone(),
        label: api.to_string(),
        namespace: meta.namespace.to_string(),
        name: meta.name.to_string(),
        verdict: Level::Unknown.as_str(),
        reason: NodeReason::default(),
        detail: "it could not be read".to_owned(),
        since: None,
        since_from: None,
        kind_index: meta.kind,
        object_uid: meta.uid.clone(),
    };
    if let Some(judged) = contents.by_uid.get(&meta.uid) {
        let level = judged.verdict.level;
        let since = judged.since.as_ref().filter(|_| level != Level::Ready);
        return BelowNode {
            verdict: level.as_str(),
            reason: NodeReason::Object(judged.verdict.reason.clone()),
            detail: judged.verdict.reason.to_string(),
            since: since.map(|since| since.at.0),
            since_from: since.map(|since| since.from.to_string()),
            ..node
        };
    }
    if let Some(why) = contents.unread.get(&(meta.kind, meta.namespace.to_string())) {
        return BelowNode { detail: format!("it could not be read: {why}"), ..node };
    }
    if api.group.is_empty() && api.kind == "Secret" {
        let detail = "it exists; Secrets are not read".to_owned();
        return BelowNode { verdict: Level::Ready.as_str(), detail, ..node };
    }
    node
}

fn display_order(node: &BelowNode) -> (usize, &str, &str, &str) {
    let severity = Level::ALL.iter().position(|level| level.as_str() == node.verdict).unwrap_or(0);
    (severity, &node.kind, &node.namespace, &node.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, kind: &str) -> ApiKind {
        ApiKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            has_status: true,
        }
    }

    #[test]
    fn what_tells_of_objects_is_told_to_those_who_may_list_them_and_custom_kinds_come_first() {
        let kinds = [
            ("", "Pod"),
            ("acme.io", "Order"),
            ("apps", "Deployment"),
            ("rbac.authorization.k8s.io", "Role"),
        ];
        let mut index = OwnedIndex::of_kinds(kinds.map(|(group, name)| kind(group, name)).to_vec());
        for at in [0, 1, 3] {
            index.note_unread(at, "Rollcall may not list them".to_owned());
        }
        index.cut.insert(2, 10_000);
        let unread = [((1, "a".to_owned()), "gone".to_owned()), ((1, "b".to_owned()), "gone".to_owned())];
        let contents = OwnedContents::<u8> { by_uid: BTreeMap::new(), unread: unread.into() };
        let mut findings = BelowFindings::default();
        findings.note_unread(&index, &contents, Some("a"));
        findings.kinds = index.kinds;
        let told = |may: &dyn Fn(&FoundPlace) -> bool| {
            let unread = findings.unread_for(may);
            unread.iter().map(|of| format!("{}: {}", of.kinds.join(" "), of.why)).collect::<Vec<_>>()
        };
        let refused = "Order.acme.io Pod Role.rbac.authorization.k8s.io: Rollcall may not list them";
        assert_eq!(told(&|_| false), [refused]);
        assert_eq!(
            told(&|(_, namespace)| **namespace == *"b"),
            [refused, "Order.acme.io: their contents: gone"]
        );
        let cut = "Deployment.apps: only the first 10000 of them were searched";
        assert_eq!(told(&|_| true), [refused, cut, "Order.acme.io: their contents: gone"]);
        assert_eq!(findings.places(|_| true).len(), 3, "each is reviewed");
    }
}
