//! Where metadata was compared, when, and what that has shown. Resync and audit share it: what one has compared the other
//! need not ask for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aggregator::KindId;
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use watcher::plan::Interest;

/// Objects on the first page of a list, as on all others.
const FIRST_PAGE_SIZE: u32 = 500;
/// Objects on the first page where the last list was of the same version as the one before, and the next one probably is too.
const FIRST_PAGE_SIZE_AT_REST: u32 = 1;
/// Longest time for which a place is taken to be unchanged by the version of its list alone. 1 h: versions of a server whose
/// etcd was restored come again.
const MAX_PROOF_AGE: Duration = Duration::from_hours(1);

/// What is listed of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PlaceContent {
    /// The metadata of a kind.
    Metadata(KindId),
    /// Workloads of a kind, whole, because their pods are to be looked up.
    Workloads(KindId),
    /// The metadata of pods, of workloads of all kinds.
    Pods,
}

/// Where is compared what the server has: what is listed in a namespace, or (`None`) in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ComparedPlace {
    pub(super) content: PlaceContent,
    pub(super) namespace: Option<String>,
}

impl ComparedPlace {
    /// The pods there, which are compared after workloads were listed.
    pub(super) fn pods_of_workloads(&self) -> Option<ComparedPlace> {
        let PlaceContent::Workloads(_) = self.content else { return None };
        Some(ComparedPlace { content: PlaceContent::Pods, namespace: self.namespace.clone() })
    }
}

/// What a comparison depends on besides the server.
#[derive(Clone, Debug)]
pub(super) struct HeldState {
    /// Digest of the objects and versions that are held.
    pub(super) digest: u64,
    /// What decides which objects are wanted.
    pub(super) interest: Arc<Interest>,
}

/// A comparison that found all as it is held. Where all that it depends on is the same, the next one would find that again.
#[derive(Debug)]
struct UnchangedProof {
    list_version: u64,
    held: HeldState,
    listed_at: Instant,
    /// The last list had the version of the one before.
    is_at_rest: bool,
}

impl UnchangedProof {
    fn holds_for(&self, held: &HeldState, now: Instant) -> bool {
        let is_same = self.held.digest == held.digest && Arc::ptr_eq(&self.held.interest, &held.interest);
        is_same && now < self.listed_at + MAX_PROOF_AGE
    }
}

#[derive(Debug, Default)]
struct PlaceRecord {
    compared_at: Option<Instant>,
    /// When a comparison was not answered: for a while, reads go alone again.
    unanswered_at: Option<Instant>,
    /// A list was ordered and has not ended.
    is_awaited: bool,
    /// Number of objects that the last list had.
    objects: Option<usize>,
    proof: Option<UnchangedProof>,
}

/// What is known of each place that was compared. Written by resync and audit, which may compare the same place at once: each
/// writes what it has found, and both are right.
#[derive(Debug, Default)]
pub(crate) struct PlaceComparisons(Mutex<FxHashMap<ComparedPlace, PlaceRecord>>);

impl PlaceComparisons {
    fn records(&self) -> MutexGuard<'_, FxHashMap<ComparedPlace, PlaceRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the place was compared, or its comparison ordered, within this time.
    pub(super) fn is_covered(&self, place: &ComparedPlace, within: Duration, now: Instant) -> bool {
        let compared_at = self.records().get(place).and_then(|record| record.compared_at);
        compared_at.is_some_and(|at| now < at + within)
    }

    /// A comparison that is ordered now covers what is asked for from now on.
    pub(super) fn order(&self, place: &ComparedPlace, now: Instant) {
        self.cover(place, now);
        if let Some(record) = self.records().get_mut(place) {
            record.is_awaited = true;
        }
    }

    /// Whether a comparison was ordered and has not ended.
    pub(super) fn is_awaited(&self, place: &ComparedPlace) -> bool {
        self.records().get(place).is_some_and(|record| record.is_awaited)
    }

    /// A comparison has ended. One that was not answered covers nothing.
    pub(super) fn settle(&self, place: &ComparedPlace, answered: bool, now: Instant) {
        if let Some(record) = self.records().get_mut(place) {
            record.is_awaited = false;
        }
        if !answered {
            self.forget(place, now);
        }
    }

    /// Whether a comparison was not answered within this time.
    pub(super) fn was_unanswered(&self, place: &ComparedPlace, within: Duration, now: Instant) -> bool {
        let unanswered_at = self.records().get(place).and_then(|record| record.unanswered_at);
        unanswered_at.is_some_and(|at| now < at + within)
    }

    /// A comparison that began then and found all that differs, or will begin then, covers what is asked for from then on.
    pub(super) fn cover(&self, place: &ComparedPlace, from: Instant) {
        let mut records = self.records();
        let record = records.entry(place.clone()).or_default();
        record.compared_at = record.compared_at.max(Some(from));
    }

    /// A comparison was not answered: it covers nothing.
    pub(super) fn forget(&self, place: &ComparedPlace, now: Instant) {
        if let Some(record) = self.records().get_mut(place) {
            (record.compared_at, record.unanswered_at) = (None, Some(now));
        }
    }

    /// Number of objects that the last list of the place had.
    pub(super) fn listed_objects(&self, place: &ComparedPlace) -> Option<usize> {
        self.records().get(place)?.objects
    }

    /// Version of the list at which the place is as it is held; `None` where that has to be compared.
    pub(super) fn unchanged_version(
        &self,
        place: &ComparedPlace,
        held: &HeldState,
        now: Instant,
    ) -> Option<u64> {
        let records = self.records();
        let proof = records.get(place)?.proof.as_ref()?;
        proof.holds_for(held, now).then_some(proof.list_version)
    }

    /// Number of objects to ask for at first.
    pub(super) fn first_page_size(&self, place: &ComparedPlace) -> u32 {
        let records = self.records();
        let proof = records.get(place).and_then(|record| record.proof.as_ref());
        if proof.is_some_and(|proof| proof.is_at_rest) { FIRST_PAGE_SIZE_AT_REST } else { FIRST_PAGE_SIZE }
    }

    /// The list had the version at which the place is as it is held.
    pub(super) fn on_same_version(&self, place: &ComparedPlace) {
        let mut records = self.records();
        if let Some(proof) = records.get_mut(place).and_then(|record| record.proof.as_mut()) {
            proof.is_at_rest = true;
        }
    }

    /// The place was listed whole, and all that differs is read now. Where nothing did, the version of the list proves it.
    pub(super) fn on_compared(
        &self,
        place: &ComparedPlace,
        begun: Instant,
        objects: usize,
        proven: Option<(u64, HeldState)>,
    ) {
        let mut records = self.records();
        let record = records.entry(place.clone()).or_default();
        record.objects = Some(objects);
        record.proof = proven.map(|(list_version, held)| UnchangedProof {
            list_version,
            held,
            listed_at: begun,
            is_at_rest: false,
        });
    }

    /// Not all that differs is read now.
    pub(super) fn on_cut_short(&self, place: &ComparedPlace) {
        if let Some(record) = self.records().get_mut(place) {
            record.proof = None;
        }
    }

    /// The server's history has gone back: no version proves anything.
    pub(super) fn forget_proofs(&self) {
        self.records().values_mut().for_each(|record| record.proof = None);
    }

    /// Forgets places that nothing was ordered of for long.
    pub(super) fn remove_idle(&self, now: Instant) {
        let latest = |record: &PlaceRecord| record.compared_at.max(record.unanswered_at);
        self.records().retain(|_, record| latest(record).is_some_and(|at| now < at + MAX_PROOF_AGE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ComparedPlace {
        ComparedPlace { content: PlaceContent::Metadata(KindId(1)), namespace: None }
    }

    fn held(digest: u64, interest: &Arc<Interest>) -> HeldState {
        HeldState { digest, interest: interest.clone() }
    }

    #[test]
    fn a_version_proves_nothing_once_anything_else_has_changed() {
        let (comparisons, now) = (PlaceComparisons::default(), Instant::now());
        let interest = || Arc::new(Interest::for_kind(KindId(1), "example.com", "Part"));
        let (first, second) = (interest(), interest());
        comparisons.on_compared(&place(), now, 3, Some((7, held(1, &first))));
        let version = |held: HeldState, at| comparisons.unchanged_version(&place(), &held, at);
        assert_eq!(version(held(1, &first), now), Some(7));
        assert_eq!(version(held(2, &first), now), None, "what is held has changed");
        assert_eq!(version(held(1, &second), now), None, "what is wanted may have");
        assert_eq!(version(held(1, &first), now + MAX_PROOF_AGE), None);
        comparisons.forget_proofs();
        assert_eq!(version(held(1, &first), now), None, "versions come again");
        assert_eq!(comparisons.listed_objects(&place()), Some(3));
    }

    #[test]
    fn where_versions_do_not_move_one_object_is_asked_for_to_see_it() {
        let (comparisons, now) = (PlaceComparisons::default(), Instant::now());
        let interest = Arc::new(Interest::for_kind(KindId(1), "example.com", "Part"));
        let proven = || Some((7, held(1, &interest)));
        assert_eq!(comparisons.first_page_size(&place()), FIRST_PAGE_SIZE);
        comparisons.on_compared(&place(), now, 3, proven());
        assert_eq!(comparisons.first_page_size(&place()), FIRST_PAGE_SIZE, "it may move all the time");
        comparisons.on_same_version(&place());
        assert_eq!(comparisons.first_page_size(&place()), FIRST_PAGE_SIZE_AT_REST);
        comparisons.on_compared(&place(), now, 3, proven());
        assert_eq!(comparisons.first_page_size(&place()), FIRST_PAGE_SIZE);
    }

    #[test]
    fn places_that_are_not_compared_any_more_are_forgotten() {
        let (comparisons, now) = (PlaceComparisons::default(), Instant::now());
        comparisons.cover(&place(), now);
        comparisons.remove_idle(now + MAX_PROOF_AGE / 2);
        assert!(comparisons.is_covered(&place(), MAX_PROOF_AGE, now));
        comparisons.remove_idle(now + MAX_PROOF_AGE);
        assert!(comparisons.records().is_empty());
    }
}
