//! The judge who reads the server's objects after every step as kstatus does, and with it Flux and Helm.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use aggregator::KindState;
use readiness::rollup::ConditionStatus;
use readiness::saturating_millis;

use super::answer_agreement::awaits_child_list;
use super::checked_generation::{BLIND_LIMIT, MAX_ANSWER_LAG_MS};
use super::judged_moment::JudgedMoment;
use super::kstatus_reader::reads_current;
use super::own_entries::given_up_for;
use super::shared_parents::is_shared;
use super::store_shortfall::{StoreShortfall, kinds_below};
use super::stored_objects::StoredObjects;
use super::words_judge::{awaits_list_below, awaits_rule_below, is_current};
use super::write_troubles::WriteTroubles;
use crate::scenario::{PolicyDef, kind_id};
use crate::world::ModelObject;

/// Largest lag of what stands on a parent behind what the loop knows, in milliseconds: the debounce at each of three levels,
/// and the slowest way of a write and of its answer.
const MAX_STANDING_LAG_MS: i64 = 3 * MAX_ANSWER_LAG_MS + 7_000;
/// The condition type by which these readers decide.
const READY: &str = "Ready";

/// Why a parent must not read Current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotCurrentBecause {
    /// Our entry is gone, and its policy is not.
    EntryGone,
    /// It is True of an earlier generation.
    Outdated,
    /// The loop does not take the parent for ready, and its answers are judged by what it has observed.
    Answered,
    /// A kind on which the answer rests has not been seen for too long.
    Blind,
    /// The loop knows that a kind on which the answer rests cannot be seen, whichever plan it was seen by.
    Unseen,
}

/// A parent that reads Current and must not.
#[derive(Clone, Copy, Debug, Default)]
struct WrongReading {
    /// Since when the loop has known that; `None` if it does not.
    known: Option<(i64, NotCurrentBecause)>,
    /// Since when the server's objects alone have shown it; `None` if they do not.
    shown_since: Option<i64>,
    /// Last time at which nothing could be written by what the loop held, or it awaited something.
    excused_at: i64,
}

/// The judge of readers.
///
/// The law: no parent under a policy that writes `Ready`, once that was written, reads Current while it is not ready.
///
/// - What the loop knows reaches the reader within the way of a write: that its answer is not True (which the judge of
///   answers compares with a count from scratch over all that the loop has observed), that the generation is another
///   than the True was said of, that the entry was taken away, that a kind cannot be seen.
/// - What the server's objects show, counted from scratch, reaches the reader in the same time once every kind below was
///   listed or audited since.
///
/// What cannot be avoided: between an edit of a parent and the write of the next answer its old True stands. Where its
/// operator keeps `status.observedGeneration` a reader waits for that; where nobody does, the edited parent reads Current
/// until the loop has observed the edit and its write has arrived. No definition of the simulation has the default by which
/// the field would be Rollcall's. And where an overwritten type was given up for the policy's fallback, its place is left to
/// the client that took it.
#[derive(Default)]
pub(crate) struct ReaderJudge {
    stored: StoredObjects,
    /// Number of plans by which the server's objects were judged.
    plans: u64,
    /// Parents that were told `Ready`, by number of the policy and UID.
    told: BTreeSet<(usize, String)>,
    wrong: BTreeMap<(usize, String), WrongReading>,
    /// Number of looks at a parent that read Current by an entry of ours.
    pub(crate) looks: u64,
}

impl ReaderJudge {
    pub(crate) fn reset_for_restart(&mut self) {
        self.wrong.clear();
    }

    /// Reads all parents.
    pub(crate) fn check_readers(&mut self, at: &JudgedMoment<'_>, troubles: &WriteTroubles) {
        let plans = at.world.timeline.counts.plans;
        let is_replanned = std::mem::replace(&mut self.plans, plans) != plans;
        let has_moved = self.stored.update(at.world) || is_replanned;
        let shortfall = StoreShortfall::new(at, self.stored.models());
        let (mut wrong, mut looks) = (BTreeMap::new(), 0);
        for (object, parent) in self.stored.iter() {
            let writes = |p: &&PolicyDef| {
                p.parent == parent.kind && p.condition == READY && !p.shadow && !is_shared(at, p, parent)
            };
            for policy in at.policies.iter().filter(writes) {
                let key = (policy.number, parent.uid.clone());
                if parent.ours.contains_key(READY) {
                    self.told.insert(key.clone());
                }
                let is_left = parent.foreign.contains(READY) || given_up_for(policy, parent).is_some();
                if is_left || !reads_current(object) || !self.told.contains(&key) {
                    continue;
                }
                looks += u64::from(has_moved);
                let before = self.wrong.get(&key).copied();
                let is_short = match before {
                    Some(before) if !has_moved => before.shown_since.is_some(),
                    _ => shortfall.find(policy, parent).is_some() || is_outdated(parent),
                };
                let reading = read_on(at, policy, parent, is_short, before.unwrap_or_default());
                check_reading(at, policy, parent, &reading, troubles);
                wrong.insert(key, reading);
            }
        }
        self.looks += looks;
        self.wrong = wrong;
    }
}

fn is_outdated(parent: &ModelObject) -> bool {
    parent.ours.get(READY).is_some_and(|said| said.observed != parent.generation)
}

/// Returns what is remembered of a parent that reads Current, after this step.
fn read_on(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    is_short: bool,
    before: WrongReading,
) -> WrongReading {
    let because = find_known(at, policy, parent);
    let known = because.map(|because| (before.known.map_or(at.now, |(since, _)| since), because));
    let shown_since = is_short.then(|| before.shown_since.unwrap_or(at.now));
    let is_excused = match because {
        Some(NotCurrentBecause::Unseen) => cannot_say(at, policy, parent),
        Some(_) => is_excused(at, policy, parent),
        None => is_short && is_excused(at, policy, parent),
    };
    let excused_at = if is_excused { at.now } else { before.excused_at };
    WrongReading { known, shown_since, excused_at }
}

/// Returns why the loop knows that a parent must not read Current, if it does.
fn find_known(at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) -> Option<NotCurrentBecause> {
    let id = at.core.reflector.find_object(&parent.uid)?;
    let answer = at.core.engine.answer_of(id, policy.id);
    let is_judged = !policy.groups.is_empty();
    let is_blind = |kind: usize| {
        let wire = &at.wires[kind];
        wire.synced && at.now - wire.last_answer > saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS
    };
    match () {
        () if is_judged && !parent.ours.contains_key(READY) => Some(NotCurrentBecause::EntryGone),
        () if is_judged && is_outdated(parent) => Some(NotCurrentBecause::Outdated),
        () if answer.is_some_and(|a| a.reason.condition_status() != ConditionStatus::True) => {
            Some(NotCurrentBecause::Answered)
        }
        () if is_judged && policy.involved_kinds().into_iter().any(is_blind) => {
            Some(NotCurrentBecause::Blind)
        }
        () if is_judged && policy.involved_kinds().into_iter().any(|kind| is_unseen(at, kind)) => {
            Some(NotCurrentBecause::Unseen)
        }
        () => None,
    }
}

/// Returns `true` if the loop knows that a kind cannot be seen.
fn is_unseen(at: &JudgedMoment<'_>, kind: usize) -> bool {
    matches!(at.core.engine.kind_state(kind_id(kind)), KindState::Forbidden | KindState::Stale)
}

/// Returns `true` if the loop does not hold a parent as it stands, so that it can write nothing there, or awaits a plan or, for
/// this policy, a list that may come.
fn cannot_say(at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) -> bool {
    let held = at.shown.observed.get(&parent.uid);
    !held.is_some_and(|held| is_current(at, held))
        || at.policy_watch.awaits_plan()
        || !at.core.engine.is_open(policy.id)
}

/// Returns `true` if it cannot, or awaits a list, a plan or a rule: until then what stands stays.
fn is_excused(at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) -> bool {
    let models: Vec<Rc<ModelObject>> = at.shown.all_observed();
    cannot_say(at, policy, parent)
        || awaits_list_below(at, parent.kind)
        || awaits_child_list(at, policy, parent, &models)
        || awaits_rule_below(at, parent.kind, &models)
}

fn check_reading(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    reading: &WrongReading,
    troubles: &WriteTroubles,
) {
    let is_over = |since: i64| {
        let since = since.max(reading.excused_at);
        since + MAX_STANDING_LAG_MS + troubles.allowed_lag(at, &parent.uid, since) < at.now
    };
    let fail = |since: i64, why: &str| {
        let (name, lag) = (at.describe_object(parent), at.now - since);
        let said = parent.ours.get(READY);
        let what = format_args!("{name} under {}, for {lag} ms, {why}: {said:?}", policy.name());
        at.fail_invariant("what is not ready does not read Current", what);
    };
    if let Some((since, because)) = reading.known.filter(|(since, _)| is_over(*since)) {
        fail(since, &format!("{because:?}"));
    }
    if let Some(since) = reading.shown_since
        && let Some(caught_up) = caught_up_at(at, policy, since)
        && is_over(caught_up + saturating_millis(policy.longest_kept()))
    {
        fail(since, "by the server's objects");
    }
}

/// Returns when every kind below a policy had been listed or audited that was not before `since`; `None` if not all have.
fn caught_up_at(at: &JudgedMoment<'_>, policy: &PolicyDef, since: i64) -> Option<i64> {
    let kinds = kinds_below(at.policies, policy).into_iter();
    let caught_up = kinds.map(|kind| at.wires[kind].caught_up.filter(|caught| caught.as_of > since));
    caught_up.map(|caught| caught.map(|caught| caught.at)).try_fold(since, |last, at| Some(last.max(at?)))
}
