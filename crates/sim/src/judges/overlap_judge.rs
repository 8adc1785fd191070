//! The judge of what a former process writes beside the one that took over from it.

use std::collections::BTreeMap;

use readiness::rollup::ConditionStatus;

use super::judged_moment::JudgedMoment;
use super::own_entries::entry_of;
use super::write_troubles::WriteTroubles;
use crate::wires::{CommittedWrite, WriteInFlight, WriteSender};
use crate::world::{ModelCondition, ModelObject};

/// Longest time for which a True of a former process stands that the process knows to be wrong that took over, since that was
/// last refused a write of the parent, in milliseconds. Longer where writes fail.
const MAX_STALE_TRUE_MS: i64 = 20_000;
/// Maximum number of writes of one parent by a former process.
const MAX_GHOST_WRITES: u32 = 8;

/// What a former process has written under one condition type.
struct GhostWord {
    said: ModelCondition,
    /// Its process has been beside the one that runs: it did not send it before it was replaced.
    is_beside: bool,
    /// Since when the process that took over has held both it and another answer.
    wrong_since: Option<i64>,
}

/// The judge of overlaps.
///
/// A guarded write replaces nothing that its process did not know, and nothing but the guard keeps a former leader from
/// writing. So what it held before can be put over an entry that is still as it was: where children have changed without a
/// change of the entry, a stale True may land. The law is that it does not stand: the process that took over sees it in its
/// watch of the parent, like an overwrite by anybody, and puts its own answer over it as soon as the server takes its
/// write. The former process does not see that, or finds the entry changed under its next write; it may not go on for
/// ever either, so that its writes of one parent are counted.
#[derive(Default)]
pub(crate) struct OverlapJudge {
    /// By UID of the parent and condition type.
    words: BTreeMap<(String, String), GhostWord>,
    written: BTreeMap<String, u32>,
    /// Writes of former processes that were committed, and Trues among them that had to be taken back.
    pub(crate) ghost_writes: u64,
    pub(crate) ghost_trues: u64,
}

impl OverlapJudge {
    /// Another process begins.
    pub(crate) fn reset_for_restart(&mut self) {
        self.written.clear();
        self.words.values_mut().for_each(|word| word.wrong_since = None);
    }

    /// Returns `true` if a former process has put this entry on a parent beside the one that runs. What that one says after it
    /// turns nothing that it has said itself.
    pub(crate) fn has_put(&self, uid: &str, entry: &ModelCondition) -> bool {
        let mut words = self.words.iter().filter(|((of, _), word)| of == uid && word.is_beside);
        words.any(|(_, word)| word.said == *entry)
    }

    /// Checks a committed write, of the process that runs now or of another.
    pub(crate) fn check_commit(
        &mut self,
        at: &JudgedMoment<'_>,
        (flight, sender): (&WriteInFlight, WriteSender),
        committed: &CommittedWrite,
    ) {
        let is_own = sender == WriteSender::Running;
        let kind = flight.write.kind.index();
        let read = |object| at.world.read_object(kind, object);
        let (old, new) = (read(&committed.before), read(&committed.after));
        for (of, said) in new.ours.iter().filter(|(of, said)| old.ours.get(*of) != Some(said)) {
            let key = (new.uid.clone(), of.clone());
            if is_own {
                self.words.remove(&key);
            } else {
                let is_beside = sender == WriteSender::Beside;
                self.words.insert(key, GhostWord { said: said.clone(), is_beside, wrong_since: None });
            }
        }
        if !is_own {
            self.check_ghost_write(at, flight, (&old, &new));
        }
    }

    fn check_ghost_write(
        &mut self,
        at: &JudgedMoment<'_>,
        flight: &WriteInFlight,
        (old, new): (&ModelObject, &ModelObject),
    ) {
        let name = at.describe_object(new);
        let moved = old.ours.iter().filter(|(of, said)| new.ours.get(*of) != Some(said));
        for (of, said) in moved {
            if flight.known.get(of) != Some(said) {
                let known = flight.known.get(of);
                let what = format_args!("{name}: {of} {said:?}, where {known:?} was known");
                at.fail_invariant("a lost lease overwrites nothing unknown", what);
            }
        }
        self.ghost_writes += 1;
        let written = self.written.entry(new.uid.clone()).or_default();
        *written += 1;
        if *written > MAX_GHOST_WRITES {
            at.fail_invariant("two leaders do not duel", format_args!("{name}: {written} writes"));
        }
    }

    /// The server refused a write of a parent: what stands there may stand for longer.
    pub(crate) fn note_failure(&mut self, uid: &str, now: i64) {
        let words = self.words.iter_mut().filter(|((of, _), _)| of == uid);
        words.filter_map(|(_, word)| word.wrong_since.as_mut()).for_each(|since| *since = now);
    }

    /// Checks that no True of a former process stands that this one knows to be wrong.
    pub(crate) fn check_standing(&mut self, at: &JudgedMoment<'_>, troubles: &WriteTroubles) {
        for ((uid, of), word) in &mut self.words {
            let is_wrong = says_ready(&word.said) && is_known_wrong(at, uid, of, &word.said);
            self.ghost_trues += u64::from(is_wrong && word.wrong_since.is_none());
            word.wrong_since = is_wrong.then(|| word.wrong_since.unwrap_or(at.now));
            // Writes that nobody answers may take the places of all others.
            let is_over =
                |since: &i64| since + MAX_STALE_TRUE_MS + troubles.allowed_lag(at, uid, *since) < at.now;
            if let Some(since) = word.wrong_since.filter(is_over) {
                let what = format_args!("{of} of {uid}: {:?} for {} ms", word.said, at.now - since);
                at.fail_invariant("a stale True is taken back", what);
            }
        }
    }
}

/// Returns `true` if an entry says that all is ready. `Stalled` and `Reconciling` are True of what is not.
fn says_ready(said: &ModelCondition) -> bool {
    said.status == "True" && said.reason.condition_status() == ConditionStatus::True
}

/// Returns `true` if the loop holds this True, which stands on a parent, and an answer of its own that is not True.
fn is_known_wrong(at: &JudgedMoment<'_>, uid: &str, of: &str, said: &ModelCondition) -> bool {
    let Some(parent) = at.shown.observed.get(uid).filter(|parent| parent.deleted.is_none()) else {
        return false;
    };
    let id = at.core.reflector.find_object(uid);
    let mut policies = at.policies.iter().filter(|p| p.parent == parent.kind && !p.shadow);
    let answered = |policy| id.and_then(|id| at.core.engine.answer_of(id, policy));
    parent.ours.get(of) == Some(said)
        && policies.any(|policy| {
            entry_of(policy, parent).is_some_and(|entry| entry == said)
                && answered(policy.id).is_some_and(|a| a.reason.condition_status() != ConditionStatus::True)
        })
}
