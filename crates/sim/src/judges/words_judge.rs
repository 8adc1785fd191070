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
use super::shared_parents::is_shared;
use super::write_troubles::WriteTroubles;
use crate::scenario::PolicyDef;
use crate::world::{ModelObject, SimObjectRef, version_of};

/// Largest lag of a message behind what was shown, in milliseconds: the shortest interval between writes that change nothing
/// else, the debounce at each of three levels, and the slowest way of a write and of its answer.
const MAX_WORDS_LAG_MS: i64 = 10_000 + 3 * MAX_ANSWER_LAG_MS + 7_000;
/// The judge of messages.
#[derive(Default)]
pub(crate) struct WordsJudge {
    /// Time since which the message of a parent under a policy is wrong, and nothing else was decided.
    wrong_since: BTreeMap<(PolicyId, String), i64>,
    /// The last right message that was decided: to decide it again helps nobody.
    decided: BTreeMap<(PolicyId, String), Option<String>>,
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

    /// Checks the messages of all parents.
    pub(crate) fn check_messages(&mut self, at: &JudgedMoment<'_>, troubles: &WriteTroubles) {
        let models = at.shown.all_observed();
        let mut wrong = BTreeMap::new();
        for policy in at.policies.iter().filter(|policy| !policy.shadow && at.core.engine.is_open(policy.id))
        {
            let is_own =
                |parent: &&Rc<ModelObject>| parent.kind == policy.parent && !is_shared(at, policy, parent);
            for parent in models.iter().filter(is_own) {
                let Some((says, expected)) = misstated(at, policy, parent, &models, &mut self.judged) else {
                    continue;
                };
                let key = (policy.id, parent.uid.clone());
                let since = self.wrong_since.get(&key).copied().unwrap_or(at.now);
                if since + MAX_WORDS_LAG_MS + troubles.allowed_lag(at, &parent.uid, since) < at.now {
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
    let is_judged = is_current(at, parent)
        && said.observed == parent.generation
        && !awaits_list_below(at, parent.kind)
        && !awaits_child_list(at, policy, parent, models)
        && !awaits_rule_below(at, parent.kind, models);
    let expected = is_judged.then(|| naive_message(at, policy, parent, models)).flatten()?;
    *judged += 1;
    let is_right = said.reason == reason && is_message(&said.message, &expected);
    (!is_right).then(|| (format!("{:?}: {}", said.reason, said.message), format!("{reason:?}: {expected}")))
}

/// Returns `true` if this is the expected message; what is known of finalizers is added behind it, and nothing of children that a
/// deletion waits for.
fn is_message(said: &str, expected: &str) -> bool {
    let is_of_children = |rest: &str| rest.contains("waits for") || rest.contains("not deleted yet");
    let is_added = |rest: &str| rest.is_empty() || rest.starts_with("; ") && !is_of_children(rest);
    said.strip_prefix(expected).is_some_and(is_added)
}

/// Returns `true` if the loop holds a parent as it stands: it cannot write on one that has changed and that it cannot read.
pub(super) fn is_current(at: &JudgedMoment<'_>, parent: &ModelObject) -> bool {
    let ModelObject { kind, namespace, name, .. } = parent;
    let place = SimObjectRef { kind: *kind, namespace: namespace.clone(), name: name.clone() };
    at.world.find_object(&place).is_some_and(|stored| version_of(&stored) == parent.version)
}

/// Returns `true` if an object awaits its rule under a policy of this kind or of one below: what is quoted of it may be of before.
pub(super) fn awaits_rule_below(at: &JudgedMoment<'_>, kind: usize, models: &[Rc<ModelObject>]) -> bool {
    let below = at.policies.iter().filter(|policy| policy.parent <= kind);
    below.into_iter().any(|policy| !at.find_unjudged(policy, models).is_empty())
}

/// Returns `true` if a kind that policies of this kind or of one below rest on is to be listed: what is quoted of its objects
/// may be by a rule that does not hold any more, for as long as the kind cannot be read.
pub(super) fn awaits_list_below(at: &JudgedMoment<'_>, kind: usize) -> bool {
    at.policies.iter().any(|policy| policy.parent <= kind && at.plan_watch.awaits_list(policy))
}
