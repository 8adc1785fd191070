//! View of the page, built from the state of all parents: rows sorted by severity, and edges from parents to children.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::{ChildOf, KindId, ObjectId, PolicyAnswer, PolicyId};
#[cfg(feature = "fixtures")]
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use rustc_hash::FxHashMap;
use watcher::reflector::{NamespaceName, Reflector};

use super::digests::{child_digests, hash_of};
use rollcall_core::{ClusterSnapshot, ParentAnswer, ParentDetail};

/// Maximum depth shown.
pub(super) const MAX_TREE_DEPTH: usize = 16;

/// A kind, and a namespace of its objects.
pub(super) type KindNamespace = (KindId, NamespaceName);

/// One policy's answer about one parent, with names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PageRow {
    /// The parent, as long as its uid is the one below.
    pub(super) parent: ObjectId,
    /// The policy.
    pub(super) policy: PolicyId,
    /// The parent's uid.
    pub(super) uid: Arc<str>,
    /// Its kind.
    pub(super) kind: KindId,
    /// Its namespace.
    pub(super) namespace: NamespaceName,
    /// Its name.
    pub(super) name: Box<str>,
    /// The answer.
    pub(super) answer: PolicyAnswer,
    /// Time since which the parent has been ready, or not ready.
    pub(super) since: Option<Time>,
    /// Fingerprint of everything shown in the row.
    digest: u64,
}

impl PageRow {
    pub(super) fn verdict_level(&self) -> Level {
        self.answer.reason.child_level()
    }
}

/// Names of kinds and policies.
#[derive(Clone, Debug, Default)]
pub(super) struct PageNames {
    /// Kinds: display name, and the same with the group.
    pub(super) kinds: BTreeMap<KindId, (String, String)>,
    /// Policies.
    pub(super) policies: BTreeMap<PolicyId, String>,
}

impl PageNames {
    /// Display name of a kind.
    pub(super) fn kind_name(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(name, _)| name)
    }

    /// Display name of a kind, with its group.
    pub(super) fn kind_label(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(_, label)| label)
    }

    /// Name of a policy.
    pub(super) fn policy_name(&self, policy: PolicyId) -> &str {
        self.policies.get(&policy).map_or("", String::as_str)
    }
}

/// Immutable view of everything that is shown.
#[derive(Debug, Default)]
pub(super) struct PageView {
    /// Time of the view.
    pub(super) now: Time,
    /// Rows, worst first.
    pub(super) rows: Vec<PageRow>,
    /// Names of kinds and policies.
    pub(super) names: Arc<PageNames>,
    /// Kinds and namespaces of the parents, without duplicates.
    pub(super) places: Vec<KindNamespace>,
    /// Details of some answers, requested once.
    pub(super) details: tokio::sync::Mutex<FxHashMap<(ObjectId, PolicyId), ParentDetail>>,
    /// Edges, sorted by parent and policy.
    edges: Vec<ChildOf>,
    by_uid: FxHashMap<Arc<str>, Vec<u32>>,
    by_id: FxHashMap<(ObjectId, PolicyId), u32>,
}

/// Difference between two views.
#[derive(Debug, Default)]
pub(super) struct PageDifference {
    /// New or changed rows.
    pub(super) changed: Vec<PageRow>,
    /// Deleted rows.
    pub(super) gone: Vec<PageRow>,
}

impl PageView {
    /// Builds a view.
    pub(super) fn new(mut world: ClusterSnapshot, reflector: &Reflector) -> PageView {
        world.edges.sort_unstable_by_key(|e| (e.parent, e.policy, e.child));
        let policies = world.policies.into_iter().map(|(id, words)| (id, words.name)).collect();
        let names = Arc::new(PageNames { kinds: world.kinds, policies });
        let digests = child_digests(&world.edges, reflector, world.now);
        let rows = world.answers.iter().filter_map(|answer| build_row(reflector, answer));
        let mut shown = PageView::of_rows(world.now, names, world.edges, rows.collect());
        shown.set_digests(&digests);
        shown
    }

    /// A view of these rows, put in order.
    fn of_rows(now: Time, names: Arc<PageNames>, edges: Vec<ChildOf>, mut rows: Vec<PageRow>) -> PageView {
        rows.sort_by(|a, b| sort_key(&names, a).cmp(&sort_key(&names, b)));
        let places: BTreeSet<KindNamespace> =
            rows.iter().map(|row| (row.kind, row.namespace.clone())).collect();
        let places = places.into_iter().collect();
        let mut shown = PageView { now, rows, names, places, edges, ..PageView::default() };
        for (at, row) in (0..=u32::MAX).zip(&shown.rows) {
            shown.by_uid.entry(row.uid.clone()).or_default().push(at);
            shown.by_id.insert((row.parent, row.policy), at);
        }
        shown
    }

    /// A view of one policy and one kind, with these parents: namespace, name and reason.
    #[cfg(feature = "fixtures")]
    pub(super) fn of_parents(parents: &[(&str, &str, ParentReason)]) -> PageView {
        let (policy, kind) = (PolicyId(0), KindId(0));
        let names = PageNames {
            kinds: BTreeMap::from([(kind, ("Database".to_owned(), "Database.example.com".to_owned()))]),
            policies: BTreeMap::from([(policy, "databases".to_owned())]),
        };
        let row = |(at, (namespace, name, reason)): (u32, &(&str, &str, ParentReason))| PageRow {
            parent: ObjectId(at),
            policy,
            uid: Arc::from(format!("uid-{at}")),
            kind,
            namespace: (*namespace).into(),
            name: (*name).into(),
            answer: PolicyAnswer { reason: *reason, total: 1, ready: 0, reconciling: false, stalled: false },
            since: None,
            digest: 0,
        };
        let rows = (0..=u32::MAX).zip(parents).map(row).collect();
        PageView::of_rows(Time(0), Arc::new(names), Vec::new(), rows)
    }

    /// Answers about the parent with this uid.
    pub(super) fn rows_of(&self, uid: &str) -> impl Iterator<Item = &PageRow> {
        self.by_uid.get(uid).into_iter().flatten().filter_map(|at| self.rows.get(*at as usize))
    }

    /// Worst answer about an object that is also a parent.
    pub(super) fn worst_row(&self, id: ObjectId) -> Option<&PageRow> {
        let policies = self.names.policies.keys().filter_map(|policy| self.by_id.get(&(id, *policy)));
        policies
            .filter_map(|at| self.rows.get(*at as usize))
            .min_by_key(|row| (row.verdict_level(), row.policy))
    }

    /// Children of a parent under a policy.
    pub(super) fn children_of(&self, parent: ObjectId, policy: PolicyId) -> &[ChildOf] {
        let from = self.edges.partition_point(|e| (e.parent, e.policy) < (parent, policy));
        let to = self.edges.partition_point(|e| (e.parent, e.policy) <= (parent, policy));
        &self.edges[from..to]
    }

    /// Difference from `before`.
    pub(super) fn diff_from(&self, before: &PageView) -> PageDifference {
        let held = |of: &PageView, row: &PageRow| -> Option<u64> {
            of.rows_of(&row.uid).find(|other| other.policy == row.policy).map(|other| other.digest)
        };
        PageDifference {
            changed: self.rows.iter().filter(|row| held(before, row) != Some(row.digest)).cloned().collect(),
            gone: before.rows.iter().filter(|row| held(self, row).is_none()).cloned().collect(),
        }
    }

    /// Sets the fingerprint of every row, over its own answer and its descendants.
    fn set_digests(&mut self, digests: &FxHashMap<ObjectId, u64>) {
        let mut done: Vec<Option<u64>> = vec![None; self.rows.len()];
        for at in 0..self.rows.len() {
            self.row_digest(at, digests, &mut done, 0);
        }
        for (row, digest) in self.rows.iter_mut().zip(done) {
            row.digest = digest.unwrap_or_default();
        }
    }

    fn row_digest(
        &self,
        at: usize,
        digests: &FxHashMap<ObjectId, u64>,
        done: &mut [Option<u64>],
        depth: usize,
    ) -> u64 {
        if let Some(known) = done[at] {
            return known;
        }
        let row = &self.rows[at];
        let PolicyAnswer { reason, total, ready, reconciling, stalled } = row.answer;
        let mut sum = hash_of((reason.as_str(), total, ready, reconciling, stalled, row.since.map(|s| s.0)));
        // Set before the descent: a row met again below itself is not walked a second time.
        done[at] = Some(sum);
        if depth >= MAX_TREE_DEPTH {
            return sum;
        }
        for edge in self.children_of(row.parent, row.policy) {
            let own = digests.get(&edge.child).copied().unwrap_or_default();
            sum = sum.wrapping_add(hash_of((edge.child.0, edge.group, own)));
            if let Some(below) = self.worst_row(edge.child) {
                let below = self.by_id.get(&(below.parent, below.policy)).copied();
                let below = below.map_or(0, |at| self.row_digest(at as usize, digests, done, depth + 1));
                sum = sum.wrapping_add(hash_of(below));
            }
        }
        done[at] = Some(sum);
        sum
    }
}

/// Sort key of a row: severity, then name. Deterministic for the same state.
pub(super) fn sort_key<'a>(names: &'a PageNames, row: &'a PageRow) -> (usize, [&'a str; 5]) {
    let rest =
        [&*row.namespace, &*row.name, names.kind_label(row.kind), names.policy_name(row.policy), &*row.uid];
    (row.verdict_level() as usize, rest)
}

fn build_row(reflector: &Reflector, of: &ParentAnswer) -> Option<PageRow> {
    let ParentAnswer { parent, policy, answer, not_ready_since } = *of;
    let read = reflector.read_row(parent, |row| {
        let own = row.parent.as_ref()?;
        let view = own.view.answers.iter().find(|a| a.policy == policy)?;
        let written = view
            .written
            .filter(|written| written.reason.condition_status() == answer.reason.condition_status());
        Some(PageRow {
            parent,
            policy,
            uid: own.uid.to_string().into(),
            kind: row.kind,
            namespace: row.namespace.clone(),
            name: row.name.clone(),
            answer,
            since: not_ready_since.or(written.map(|written| written.since)),
            digest: 0,
        })
    });
    read.flatten()
}
