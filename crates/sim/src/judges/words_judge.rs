//! The judge of messages: what a parent says stands no longer than it takes to say something else.

use std::collections::BTreeMap;
use std::rc::Rc;

use aggregator::PolicyId;
use rollcall_core::ParentWrite;

use super::answer_agreement::awaits_child_list;
use super::checked_generation::MAX_ANSWER_LAG_MS;
use super::judged_moment::JudgedMoment;
use super::naive_words::naive_message;
use super::own_entries::entry_of;
use crate::scenario::PolicyDef;
use crate::wires::WRITE_TIMEOUT_MS;
use crate::world::{ModelObject, SimObjectRef};

/// Largest lag of a message behind what was shown, in milliseconds: the shortest interval between writes that change nothing
/// else, the debounce at each of three levels, and the slowest way of a write and of its answer.
const MAX_WORDS_LAG_MS: i64 = 10_000 + 3 * MAX_ANSWER_LAG_MS + 7_000;
/// Time that writes of others may wait for a writer that has room for few, while some are not answered: as long as three of
/// these take, and longer where there were more.
const QUEUE_LAG_MS: i64 = 3 * WRITE_TIMEOUT_MS;
/// Longest backoff of a parent some of whose writes failed or were overwritten.
const BACKOFF_LAG_MS: i64 = 75_000;
/// Time after such a write for which its parent may still back off: as long as a conflict lasts.
const BACKOFF_LASTS_MS: i64 = 300_000;

/// The judge of messages.
#[derive(Default)]
pub(crate) struct WordsJudge {
    /// Time since which the message of a parent under a policy is wrong, and nothing else was decided.
    wrong_since: BTreeMap<(PolicyId, String), i64>,
    /// The last right message that was decided: to decide it again helps nobody.
    decided: BTreeMap<(PolicyId, String), Option<String>>,
    /// Time of the last write of a parent that failed, by its UID, and of the last of any.
    failed_at: BTreeMap<String, i64>,
    any_failed_at: Option<i64>,
    /// Times of writes of any parent that were not answered.
    unanswered_at: Vec<i64>,
    /// Number of checks of a message that was known, for the counts of the run.
    pub(crate) judged: u64,
}

impl WordsJudge {
    pub(crate) fn reset_for_restart(&mut self) {
        *self = WordsJudge { judged: self.judged, ..WordsJudge::default() };
    }

    /// Notes a write that leaves the loop: what it says may take its time to arrive, if it is right.
    pub(crate) fn note_decision(&mut self, at: &JudgedMoment<'_>, write: &ParentWrite) {
        let Some(parent) = at.shown.observed.get(&write.uid) else { return };
        let models = at.shown.all_observed();
        for policy in at.policies.iter().filter(|policy| write.policies.contains(&policy.id)) {
            let types = [Some(policy.condition), policy.fallback];
            let mut entries = write.wanted.entries.iter();
            let entry = entries.find(|entry| types.contains(&Some(entry.r#type.as_str())));
            let expected = naive_message(at, policy, parent, &models);
            let key = (policy.id, write.uid.clone());
            let is_right =
                |expected: &String| entry.is_some_and(|entry| is_message(&entry.message, expected));
            let is_news = self.decided.get(&key) != Some(&expected);
            if is_news && expected.as_ref().is_none_or(is_right) {
                self.wrong_since.remove(&key);
                self.decided.insert(key, expected);
            }
        }
    }

    /// Notes a write that failed or, if it was not answered, of which nobody knows what became.
    pub(crate) fn note_failure(&mut self, uid: &str, is_answered: bool, now: i64) {
        self.failed_at.insert(uid.to_owned(), now);
        self.any_failed_at = Some(now);
        self.unanswered_at.extend((!is_answered).then_some(now));
    }

    /// Checks the messages of all parents.
    pub(crate) fn check_messages(&mut self, at: &JudgedMoment<'_>) {
        let models = at.shown.all_observed();
        let mut wrong = BTreeMap::new();
        for policy in at.policies.iter().filter(|policy| !policy.shadow && at.core.engine.is_open(policy.id))
        {
            for parent in models.iter().filter(|parent| parent.kind == policy.parent) {
                let Some((says, expected)) = misstated(at, policy, parent, &models, &mut self.judged) else {
                    continue;
                };
                let key = (policy.id, parent.uid.clone());
                let since = self.wrong_since.get(&key).copied().unwrap_or(at.now);
                if since + self.allowed_lag(at, parent, since) < at.now {
                    let name = at.describe_object(parent);
                    let lag = at.now - since;
                    let what = format!("{name} says {says:?} for {lag} ms, to say {expected:?}");
                    at.fail_invariant("words are as fresh as verdicts", what);
                }
                wrong.insert(key, since);
            }
        }
        self.wrong_since = wrong;
    }

    fn allowed_lag(&self, at: &JudgedMoment<'_>, parent: &ModelObject, since: i64) -> i64 {
        let lately = |since: Option<i64>, lasts: i64| since.is_some_and(|since| at.now < since + lasts);
        let overwritten = at.world.overwrites_of(&parent.uid) > 0 && !at.faults_stopped;
        let backs_off = lately(self.failed_at.get(&parent.uid).copied(), BACKOFF_LASTS_MS) || overwritten;
        let queues = lately(self.any_failed_at, BACKOFF_LAG_MS);
        MAX_WORDS_LAG_MS
            + if backs_off { BACKOFF_LAG_MS } else { 0 }
            + if queues { self.queue_lag(at, since) } else { 0 }
    }

    /// Time for which the writer's places may have been taken by writes that were not answered, since then.
    fn queue_lag(&self, at: &JudgedMoment<'_>, since: i64) -> i64 {
        let meanwhile = self.unanswered_at.iter().filter(|sent| **sent > since - WRITE_TIMEOUT_MS);
        let rounds = meanwhile.count().div_ceil(at.writer_room);
        QUEUE_LAG_MS.max(i64::try_from(rounds).unwrap_or(i64::MAX).saturating_mul(WRITE_TIMEOUT_MS))
    }
}

/// Returns what stands on a parent and what is to stand there, where these differ.
fn misstated(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
    judged: &mut u64,
) -> Option<(String, String)> {
    let said = entry_of(policy, parent)?;
    let id = at.core.reflector.find_object(&parent.uid)?;
    let reason = at.core.engine.answer_of(id, policy.id)?.reason;
    let is_judged = parent.deleted.is_none()
        && is_current(at, parent)
        && said.observed == parent.generation
        && !awaits_list_below(at, parent.kind)
        && !awaits_child_list(at, policy, parent, models)
        && !awaits_rule_below(at, parent.kind, models);
    let expected = naive_message(at, policy, parent, models).filter(|_| is_judged)?;
    *judged += 1;
    // What is known of finalizers is added behind it.
    let rest = said.message.strip_prefix(&expected);
    let is_right =
        said.reason == reason && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("; "));
    (!is_right).then(|| (format!("{:?}: {}", said.reason, said.message), format!("{reason:?}: {expected}")))
}

/// Returns `true` if this is the expected message; what is known of finalizers is added behind it.
fn is_message(said: &str, expected: &str) -> bool {
    said.strip_prefix(expected).is_some_and(|rest| rest.is_empty() || rest.starts_with("; "))
}

/// Returns `true` if the loop holds a parent as it stands: it cannot write on one that has changed and that it cannot read.
fn is_current(at: &JudgedMoment<'_>, parent: &ModelObject) -> bool {
    let ModelObject { kind, namespace, name, .. } = parent;
    let place = SimObjectRef { kind: *kind, namespace: namespace.clone(), name: name.clone() };
    let stored = at.world.find_object(&place);
    stored.is_some_and(|stored| at.world.read_object(*kind, &stored).version == parent.version)
}

/// Returns `true` if an object awaits its rule under a policy of this kind or of one below: what is quoted of it may be of before.
fn awaits_rule_below(at: &JudgedMoment<'_>, kind: usize, models: &[Rc<ModelObject>]) -> bool {
    let below = at.policies.iter().filter(|policy| policy.parent <= kind);
    below.into_iter().any(|policy| !at.find_unjudged(policy, models).is_empty())
}

/// Returns `true` if a kind that policies of this kind or of one below rest on is to be listed: what is quoted of its objects
/// may be by a rule that does not hold any more, for as long as the kind cannot be read.
fn awaits_list_below(at: &JudgedMoment<'_>, kind: usize) -> bool {
    at.policies.iter().any(|policy| policy.parent <= kind && at.plan_watch.awaits_list(policy))
}
