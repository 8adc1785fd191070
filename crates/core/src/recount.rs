//! The self-check: after each list, and now and then, what the engine holds of a kind is compared with the rows of the
//! reflector and counted again. What differs is put right and reported, never carried on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::{Engine, KindId, ObjectId, RecountResult};
use readiness::Time;
use timer::Seed;
use watcher::reflector::Reflector;

use super::fleet_numbers::NumberSlice;
use super::loop_core::Core;
use super::parent_findings::FindingSources;

/// Time after a list until its kind is counted again. Lists often come together. 5 s.
const RECOUNT_AFTER_LIST: Duration = Duration::from_secs(5);
/// Time until a kind is counted again without a cause. 5 min, and up to as much again.
const RECOUNT_INTERVAL: Duration = Duration::from_mins(5);
/// Time that an object has to be observed as it is: it may have changed a moment ago. 1 s.
const OBSERVATION_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Differences of one kind, which have been put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecountDrift {
    /// The kind.
    pub kind: KindId,
    /// Objects of it that were not observed as they are.
    pub objects: usize,
    /// Objects of it with edges other than their links.
    pub edges: usize,
    /// Parents with another count than their edges amount to.
    pub counts: usize,
    /// Numbers that these did not amount to: objects of the kind, sums of a policy, and what is held of a parent beside its
    /// answer.
    pub numbers: usize,
    /// One of these objects or parents: `namespace/name`.
    pub example: String,
}

impl RecountDrift {
    /// Number of differences.
    pub fn total(&self) -> usize {
        self.objects + self.edges + self.counts + self.numbers
    }
}

/// An object that was held otherwise than it was shown, and its version then.
#[derive(Clone, Copy, Debug)]
struct SuspectedObject {
    id: ObjectId,
    version: Option<u64>,
}

/// When which kind is counted again.
#[derive(Debug)]
pub struct RecountSchedule {
    /// Kinds that were listed.
    listed: BTreeSet<KindId>,
    listed_due: Option<Time>,
    /// Objects that are looked at again before they count as a difference.
    suspects: BTreeMap<KindId, Vec<SuspectedObject>>,
    suspects_due: Option<Time>,
    next_random: Option<Time>,
    rounds: u64,
    seed: Seed,
}

impl RecountSchedule {
    /// Nothing is due before the first list.
    pub fn new(seed: Seed) -> Self {
        RecountSchedule {
            listed: BTreeSet::new(),
            listed_due: None,
            suspects: BTreeMap::new(),
            suspects_due: None,
            next_random: None,
            rounds: 0,
            seed,
        }
    }

    /// A list of this kind was completed.
    pub fn on_listed(&mut self, kind: KindId, now: Time) {
        self.listed.insert(kind);
        self.listed_due.get_or_insert(now + RECOUNT_AFTER_LIST);
        if self.next_random.is_none() {
            self.schedule_random(now);
        }
    }

    fn schedule_random(&mut self, now: Time) {
        self.rounds += 1;
        let spread = self.seed.duration_below(RECOUNT_INTERVAL, self.rounds);
        self.next_random = Some(now + RECOUNT_INTERVAL + spread);
    }

    /// Earliest time at which something is due.
    pub fn next_deadline(&self) -> Option<Time> {
        [self.listed_due, self.suspects_due, self.next_random].into_iter().flatten().min()
    }

    /// Compares and counts what is due. `kinds` are those that are followed.
    pub fn run_due(&mut self, core: &mut Core, kinds: &[KindId], now: Time) -> Vec<RecountDrift> {
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let (mut due, mut found) = (BTreeSet::new(), BTreeMap::new());
        if is_due(self.listed_due) {
            self.listed_due = None;
            due = std::mem::take(&mut self.listed);
        }
        if is_due(self.next_random) {
            self.schedule_random(now);
            let most = u64::try_from(kinds.len().max(1)).unwrap_or(u64::MAX);
            let any = usize::try_from(self.seed.number_for(self.rounds) % most).ok();
            let any = any.and_then(|any| kinds.get(any));
            due.extend(any);
            found.extend(any.map(|kind| (*kind, self.mend_numbers(core, *kind, now))));
        }
        if is_due(self.suspects_due) && core.reflector.dirty_len() > 0 {
            // What has not been observed yet is no difference.
            self.suspects_due = Some(now + OBSERVATION_GRACE_PERIOD);
        } else if is_due(self.suspects_due) {
            self.suspects_due = None;
            for (kind, suspects) in std::mem::take(&mut self.suspects) {
                let missed = RecountDrift::observe_missed(core, kind, &suspects, now);
                found.entry(kind).or_insert_with(|| RecountDrift::none(kind)).add_missed(missed);
            }
        }
        if !due.is_empty() {
            self.recount(core, &due, now, &mut found);
        }
        found.into_values().filter(|drift| drift.total() > 0).collect()
    }

    /// Counts the sums of all policies anew, and a slice of what else is held of parents. A number is wrong of a policy, whose kinds
    /// are many: the difference counts for the kind whose turn it is.
    fn mend_numbers(&self, core: &mut Core, kind: KindId, now: Time) -> RecountDrift {
        core.refresh_numbers(now);
        let sums = core.engine.correct_sums();
        let mut drift = RecountDrift { numbers: sums.len(), ..RecountDrift::none(kind) };
        // What has not been observed yet shows in rows, and nowhere else.
        if core.reflector.dirty_len() == 0 {
            let sources = FindingSources { engine: &core.engine, reflector: &core.reflector };
            let slice = NumberSlice::of_round(self.rounds);
            let (parents, policies) = core.numbers.mend_slice(sources, slice, now);
            drift.numbers += policies.len();
            // What changed in the meantime is no difference.
            if core.reflector.dirty_len() == 0 {
                drift.numbers += parents.len();
                let check = ObservationCheck { engine: &core.engine, reflector: &core.reflector, now };
                parents.first().into_iter().for_each(|parent| drift.name_example(*parent, &check));
            }
        }
        if drift.numbers > 0 && drift.example.is_empty() {
            "sums of a policy".clone_into(&mut drift.example);
        }
        drift
    }

    /// Counts these kinds again, and looks for what is held otherwise than it is shown.
    fn recount(
        &mut self,
        core: &mut Core,
        due: &BTreeSet<KindId>,
        now: Time,
        found: &mut BTreeMap<KindId, RecountDrift>,
    ) {
        let result = core.engine.recount_kinds(now, due);
        let check = ObservationCheck { engine: &core.engine, reflector: &core.reflector, now };
        add_recount(found, &result, due, &check);
        for kind in due.iter().filter(|kind| core.reflector.correct_count(**kind)) {
            let drift = found.entry(*kind).or_insert_with(|| RecountDrift::none(*kind));
            drift.numbers += 1;
            if drift.example.is_empty() {
                "number of its objects".clone_into(&mut drift.example);
            }
        }
        let suspects = check.find_unobserved(due);
        if !suspects.is_empty() {
            self.suspects.extend(suspects);
            self.suspects_due.get_or_insert(now + OBSERVATION_GRACE_PERIOD);
        }
    }
}

impl RecountDrift {
    fn none(kind: KindId) -> Self {
        RecountDrift { kind, objects: 0, edges: 0, counts: 0, numbers: 0, example: String::new() }
    }

    /// Observes those suspects that still differ. One that has changed since will be observed as any other.
    fn observe_missed(core: &mut Core, kind: KindId, suspects: &[SuspectedObject], now: Time) -> Self {
        let check = ObservationCheck { engine: &core.engine, reflector: &core.reflector, now };
        let same = |suspect: &&SuspectedObject| check.version_of(suspect.id) == suspect.version;
        let missed = suspects.iter().filter(same).map(|suspect| suspect.id);
        let missed: Vec<_> = missed.filter(|id| !check.is_observed(*id)).collect();
        let example = missed.first().map(|id| check.name_of(*id)).unwrap_or_default();
        core.observe_objects(now, &missed);
        RecountDrift { objects: missed.len(), example, ..RecountDrift::none(kind) }
    }

    /// Adds the objects that were missed.
    fn add_missed(&mut self, missed: RecountDrift) {
        self.objects += missed.objects;
        if self.example.is_empty() {
            self.example = missed.example;
        }
    }

    /// Names this object if none is named yet.
    fn name_example(&mut self, id: ObjectId, check: &ObservationCheck<'_>) {
        if self.example.is_empty() {
            self.example = check.name_of(id);
        }
    }
}

/// Adds what the engine has put right when it counted these kinds again.
fn add_recount(
    found: &mut BTreeMap<KindId, RecountDrift>,
    result: &RecountResult,
    due: &BTreeSet<KindId>,
    check: &ObservationCheck<'_>,
) {
    for (kind, child) in &result.children {
        let drift = found.entry(*kind).or_insert_with(|| RecountDrift::none(*kind));
        drift.edges += 1;
        drift.name_example(*child, check);
    }
    // A count is wrong of a parent, whichever of the kinds it was that showed it.
    if let Some((first, kind)) = result.parents.first().zip(due.first()) {
        let drift = found.entry(*kind).or_insert_with(|| RecountDrift::none(*kind));
        drift.counts += result.parents.len();
        drift.name_example(*first, check);
    }
}

/// Compares what the engine has observed with what the reflector shows.
struct ObservationCheck<'a> {
    engine: &'a Engine,
    reflector: &'a Reflector,
    now: Time,
}

impl ObservationCheck<'_> {
    /// Objects of these kinds that the engine holds otherwise than the reflector shows them.
    fn find_unobserved(&self, kinds: &BTreeSet<KindId>) -> BTreeMap<KindId, Vec<SuspectedObject>> {
        let mut objects: BTreeSet<(KindId, ObjectId)> =
            self.engine.present_objects(kinds).into_iter().collect();
        for kind in kinds {
            self.reflector.for_each_row_in(*kind, None, |id, _| {
                objects.insert((*kind, id));
            });
        }
        let mut differing = BTreeMap::<KindId, Vec<SuspectedObject>>::new();
        for (kind, id) in objects.into_iter().filter(|(_, id)| !self.is_observed(*id)) {
            let suspect = SuspectedObject { id, version: self.version_of(id) };
            differing.entry(kind).or_default().push(suspect);
        }
        differing
    }

    fn version_of(&self, id: ObjectId) -> Option<u64> {
        self.reflector.read_row(id, |row| row.version)
    }

    fn is_observed(&self, id: ObjectId) -> bool {
        self.reflector.with_view(id, self.now, |view| self.engine.is_observed_as(id, view))
    }

    fn name_of(&self, id: ObjectId) -> String {
        let name = self.reflector.read_row(id, |row| format!("{}/{}", row.namespace, row.name));
        name.unwrap_or_else(|| "an object that is gone".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_edge_and_every_count_that_was_put_right_is_drift() {
        let core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(1));
        let check = ObservationCheck { engine: &core.engine, reflector: &core.reflector, now: Time(1) };
        let due = BTreeSet::from([KindId(1), KindId(2)]);
        for (children, parents, totals) in
            [([0, 0], 0, [1, 0]), ([2, 1], 0, [3, 1]), ([0, 0], 3, [4, 0]), ([2, 1], 3, [6, 1])]
        {
            let of_kind = |at: u32, count: u32| (0..count).map(move |id| (KindId(at), ObjectId(id)));
            let children = of_kind(1, children[0]).chain(of_kind(2, children[1])).collect();
            let result = RecountResult { children, parents: (0..parents).map(ObjectId).collect() };
            let mut found = BTreeMap::new();
            found.insert(KindId(1), RecountDrift { objects: 1, ..RecountDrift::none(KindId(1)) });
            add_recount(&mut found, &result, &due, &check);
            let total = |kind: u32| found.get(&KindId(kind)).map_or(0, RecountDrift::total);
            assert_eq!([total(1), total(2)], totals, "{result:?}");
            let names_one =
                |drift: &RecountDrift| drift.example.is_empty() == (drift.total() == drift.objects);
            assert!(found.values().all(names_one), "one of them is named: {found:?}");
        }
    }
}
