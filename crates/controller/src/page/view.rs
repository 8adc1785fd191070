//! View of the page: the rows of all parents, in the order in which they are listed.

use std::cmp::Ordering;
#[cfg(any(test, feature = "fixtures"))]
use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::{KindId, ObjectId, PolicyAnswer, PolicyId};
use policy::GROUP_KIND;
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use rustc_hash::FxHashMap;
use watcher::reflector::{NamespaceName, Reflector};

use rollcall_core::{ClusterNames, ParentAnswer, ParentChanges, ParentDetail};

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
}

impl PageRow {
    pub(super) fn verdict_level(&self) -> Level {
        self.answer.reason.child_level()
    }
}

/// A row in its place, by its [`sort_key`].
#[derive(Clone, Debug)]
struct RankedRow {
    row: Arc<PageRow>,
    names: Arc<ClusterNames>,
}

impl RankedRow {
    fn rank(&self) -> (usize, [&str; 5]) {
        sort_key(&self.names, &self.row)
    }
}

impl PartialEq for RankedRow {
    fn eq(&self, other: &RankedRow) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for RankedRow {}

impl PartialOrd for RankedRow {
    fn partial_cmp(&self, other: &RankedRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedRow {
    fn cmp(&self, other: &RankedRow) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Immutable view of everything that is shown. It shares with the view before it what did not change.
#[derive(Debug, Default)]
pub(super) struct PageView {
    /// Number of the changes up to which it shows everything.
    pub(super) number: u64,
    /// Time of the view.
    pub(super) now: Time,
    /// Names of kinds and policies.
    pub(super) names: Arc<ClusterNames>,
    /// Details of some answers, requested once.
    pub(super) details: tokio::sync::Mutex<FxHashMap<(ObjectId, PolicyId), ParentDetail>>,
    rows: RedBlackTreeSetSync<RankedRow>,
    by_id: RedBlackTreeMapSync<(ObjectId, PolicyId), Arc<PageRow>>,
    by_uid: RedBlackTreeMapSync<Arc<str>, ObjectId>,
    /// Number of rows in each kind and namespace.
    places: RedBlackTreeMapSync<KindNamespace, usize>,
}

/// Difference between two views.
#[derive(Debug, Default)]
pub(super) struct PageDifference {
    /// New or changed rows, and those of which something below may have changed.
    pub(super) changed: Vec<Arc<PageRow>>,
    /// Deleted rows.
    pub(super) gone: Vec<Arc<PageRow>>,
    /// Everything may have changed.
    pub(super) is_whole: bool,
}

impl PageView {
    /// Builds the view that shows these changes too, and says how it differs. Costs what has changed, unless everything is
    /// told.
    pub(super) fn with_changes(
        &self,
        changes: &ParentChanges,
        reflector: &Reflector,
    ) -> (PageView, PageDifference) {
        let ParentChanges { number, now, is_whole, ref changed, ref answers, ref names } = *changes;
        let mut view = PageView { number, now, names: names.clone(), ..PageView::default() };
        let mut difference = PageDifference { is_whole, ..PageDifference::default() };
        if !is_whole {
            (view.rows, view.by_id) = (self.rows.clone(), self.by_id.clone());
            (view.by_uid, view.places) = (self.by_uid.clone(), self.places.clone());
            difference.gone = changed.iter().flat_map(|parent| view.remove_parent(*parent)).collect();
        }
        for row in answers.iter().filter_map(|answer| build_row(reflector, answer)) {
            let row = Arc::new(row);
            view.insert_row(row.clone());
            if !is_whole {
                difference.changed.push(row);
            }
        }
        let is_there =
            |gone: &PageRow| view.find_row(gone.parent, gone.policy).is_some_and(|row| row.uid == gone.uid);
        difference.gone.retain(|gone| !is_there(gone));
        (view, difference)
    }

    fn insert_row(&mut self, row: Arc<PageRow>) {
        let place = (row.kind, row.namespace.clone());
        let count = self.places.get(&place).copied().unwrap_or(0);
        self.places.insert_mut(place, count + 1);
        self.by_uid.insert_mut(row.uid.clone(), row.parent);
        self.by_id.insert_mut((row.parent, row.policy), row.clone());
        self.rows.insert_mut(RankedRow { row, names: self.names.clone() });
    }

    /// Removes the rows of a parent, and returns them.
    fn remove_parent(&mut self, parent: ObjectId) -> Vec<Arc<PageRow>> {
        let rows: Vec<_> = self.rows_of_id(parent).cloned().collect();
        for row in &rows {
            self.by_id.remove_mut(&(parent, row.policy));
            if self.by_uid.get(&row.uid) == Some(&parent) {
                self.by_uid.remove_mut(&row.uid);
            }
            self.rows.remove_mut(&RankedRow { row: row.clone(), names: self.names.clone() });
            let place = (row.kind, row.namespace.clone());
            match self.places.get(&place).copied() {
                Some(count @ 2..) => self.places.insert_mut(place, count - 1),
                _ => _ = self.places.remove_mut(&place),
            }
        }
        rows
    }

    /// A view of one policy and one kind, with these parents: namespace, name and reason.
    #[cfg(any(test, feature = "fixtures"))]
    pub(super) fn of_parents(parents: &[(&str, &str, ParentReason)]) -> PageView {
        let (policy, kind) = (PolicyId(0), KindId(0));
        let names = ClusterNames {
            kinds: BTreeMap::from([(kind, ("Database".to_owned(), "Database.example.com".to_owned()))]),
            policies: BTreeMap::from([(policy, "databases".to_owned())]),
        };
        let mut view = PageView { names: Arc::new(names), ..PageView::default() };
        for (at, (namespace, name, reason)) in (0..=u32::MAX).zip(parents) {
            view.insert_row(Arc::new(PageRow {
                parent: ObjectId(at),
                policy,
                uid: Arc::from(format!("uid-{at}")),
                kind,
                namespace: (*namespace).into(),
                name: (*name).into(),
                answer: PolicyAnswer {
                    reason: *reason,
                    total: 1,
                    ready: 0,
                    reconciling: false,
                    stalled: false,
                    counted_as: None,
                },
                since: None,
            }));
        }
        view
    }

    /// All rows, in the order of [`sort_key`].
    #[cfg(test)]
    pub(super) fn rows(&self) -> impl Iterator<Item = &PageRow> {
        self.shared_rows().map(|row| &**row)
    }

    /// All rows, in the order of [`sort_key`], each shared with other views.
    pub(super) fn shared_rows(&self) -> impl Iterator<Item = &Arc<PageRow>> {
        self.rows.iter().map(|ranked| &ranked.row)
    }

    /// Kinds and namespaces of the parents, each once.
    pub(super) fn places(&self) -> impl Iterator<Item = &KindNamespace> {
        self.places.keys()
    }

    fn find_row(&self, parent: ObjectId, policy: PolicyId) -> Option<&PageRow> {
        self.by_id.get(&(parent, policy)).map(|row| &**row)
    }

    fn rows_of_id(&self, parent: ObjectId) -> impl Iterator<Item = &Arc<PageRow>> {
        let range = (parent, PolicyId(0))..=(parent, PolicyId(u32::MAX));
        self.by_id.range(range).map(|(_, row)| row)
    }

    /// Answers about the parent with this uid, worst first.
    pub(super) fn rows_of(&self, uid: &str) -> Vec<&PageRow> {
        let rows = self.by_uid.get(uid).into_iter().flat_map(|parent| self.rows_of_id(*parent));
        let mut rows: Vec<&PageRow> = rows.map(|row| &**row).filter(|row| *row.uid == *uid).collect();
        rows.sort_by_key(|row| sort_key(&self.names, row));
        rows
    }

    /// Uid of the parent with this name. The address of a parent that is created again stays the same, its uid does not.
    pub(super) fn uid_of_name(&self, label: &str, namespace: &str, name: &str) -> Option<Arc<str>> {
        let mut kinds = self.names.kinds.iter().filter(|(_, (_, known))| known == label);
        let (&kind, _) = kinds.next()?;
        Level::ALL.into_iter().find_map(|level| self.find_named(kind, level, namespace, name))
    }

    /// Uid of the parent with this name that has such a verdict. Rows are not held by name: they are found by their order.
    fn find_named(&self, kind: KindId, level: Level, namespace: &str, name: &str) -> Option<Arc<str>> {
        let reason = ParentReason::ALL.into_iter().find(|reason| reason.child_level() == level)?;
        let answer =
            PolicyAnswer { reason, total: 0, ready: 0, reconciling: false, stalled: false, counted_as: None };
        // Of all rows with this name, the first: no policy and no uid is empty.
        let first = RankedRow {
            row: Arc::new(PageRow {
                parent: ObjectId(0),
                policy: PolicyId(u32::MAX),
                uid: Arc::from(""),
                kind,
                namespace: namespace.into(),
                name: name.into(),
                answer,
                since: None,
            }),
            names: self.names.clone(),
        };
        let next = self.rows.range(first..).next().map(|found| &found.row)?;
        let is_meant = *next.namespace == *namespace && *next.name == *name && next.kind == kind;
        (is_meant && next.verdict_level() == level).then(|| next.uid.clone())
    }

    /// Worst answer about an object that is also a parent.
    pub(super) fn worst_row(&self, id: ObjectId) -> Option<&PageRow> {
        let rows = self.rows_of_id(id).map(|row| &**row);
        rows.min_by_key(|row| (row.verdict_level(), row.policy))
    }
}

/// Sort key of a row: what is not ready, and of that the groups before other parents, as of what is ready; then severity, then
/// name. Deterministic for the same state.
pub(super) fn sort_key<'a>(names: &'a ClusterNames, row: &'a PageRow) -> (usize, [&'a str; 5]) {
    let (label, level) = (names.kind_label(row.kind), row.verdict_level());
    let rest = [&*row.namespace, &*row.name, label, names.policy_name(row.policy), &*row.uid];
    (list_rank(level, is_group_label(label)), rest)
}

/// Rank of a row in the list. A group stands for what people look for, and its members for parts of it.
fn list_rank(level: Level, is_group: bool) -> usize {
    let levels = Level::ALL.len();
    let part = 2 * usize::from(level == Level::Ready) + usize::from(!is_group);
    part * levels + level as usize
}

fn is_group_label(label: &str) -> bool {
    let (group, kind) = GROUP_KIND;
    label.strip_prefix(kind).and_then(|rest| rest.strip_prefix('.')) == Some(group)
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
        })
    });
    read.flatten()
}

#[cfg(test)]
mod tests;
