//! Parents for which another release speaks, too: what it says there is not for the release under test to take away.

use super::judged_moment::JudgedMoment;
use crate::scenario::PolicyDef;
use crate::world::{ModelCondition, ModelObject, OTHER_RELEASE_WORDS, StoredPolicy};

/// Longest time after a change of a policy that is another release's for which the process may judge its parents as before, in
/// milliseconds: two minutes in which a policy may have been accepted, and the way of watches and lists.
const UNSETTLED_MS: i64 = 180_000;
/// Longest time after which the process knows a policy, in milliseconds.
const KNOWN_AFTER_MS: i64 = 60_000;

/// Returns `true` if another release speaks for a parent under a condition of this policy, or did so lately: whose answer it is to
/// carry is not judged at such a moment, but at the end.
pub(super) fn is_shared(at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) -> bool {
    let server = &at.world.policy_server;
    let types = [Some(policy.condition), Some(policy.other_condition), policy.fallback];
    let speaks = |other: &StoredPolicy| {
        other.is_others()
            && server.other_has(&parent.namespace)
            && other.said_types(parent.kind).into_iter().any(|of| types.contains(&Some(of)))
    };
    let unsettled = server.unsettled_at.get(&parent.kind);
    unsettled.is_some_and(|since| since + UNSETTLED_MS > at.now) || server.stored.values().any(speaks)
}

/// Returns `true` if another release has ever had policies over this kind.
pub(super) fn was_shared(at: &JudgedMoment<'_>, kind: usize) -> bool {
    at.world.policy_server.unsettled_at.contains_key(&kind)
}

/// Returns `true` if an older policy of another release rules this parent for the condition of this one.
pub(super) fn gives_way(at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) -> bool {
    let server = &at.world.policy_server;
    let own = server.selected().find(|own| own.number == policy.number);
    own.is_some_and(|own| {
        server.stored.values().any(|other| {
            other.is_others()
                && server.other_has(&parent.namespace)
                && other
                    .said()
                    .is_some_and(|said| (said.parent, said.condition) == (policy.parent, policy.condition))
                && other.rank() < own.rank()
        })
    })
}

/// Checks that a write of ours takes nothing away of what another release says by a policy that it has, and that rules there.
pub(super) fn check_theirs(at: &JudgedMoment<'_>, name: &str, old: &ModelObject, new: &ModelObject) {
    for (of, said) in old.theirs.iter().filter(|(of, said)| new.theirs.get(*of) != Some(said)) {
        if let Some(policy) = ruling_policy(at, of, said, old) {
            let now = new.ours.get(of);
            let what = format!("{name}: {of} of {} became {now:?}", policy.stub.name());
            at.fail_invariant("only our own entries", what);
        }
    }
}

/// Returns the policy of another release by which this stands on a parent, if every process knows that it rules there.
fn ruling_policy<'w>(
    at: &JudgedMoment<'w>,
    of: &str,
    said: &ModelCondition,
    parent: &ModelObject,
) -> Option<&'w StoredPolicy> {
    let server = &at.world.policy_server;
    let number = said.message.strip_prefix(OTHER_RELEASE_WORDS)?.parse().ok()?;
    let policy: &StoredPolicy = server.stored.get(&number)?;
    let is_known = |number: usize| {
        let touched = server.touched_at.get(&number);
        touched.is_none_or(|touched| touched + KNOWN_AFTER_MS <= at.now)
    };
    // One that is not there any more may have ruled a moment ago.
    let rivals = at.scenario.first_policies.iter().filter(|own| own.parent == parent.kind);
    let is_younger = |own: &PolicyDef| match server.stored.get(&own.number) {
        Some(stored) => stored.rank() > policy.rank() || stored.number == policy.number,
        None => true,
    };
    let rules = rivals.into_iter().all(|own| is_known(own.number) && is_younger(own));
    let is_said = policy.is_others()
        && server.other_has(&parent.namespace)
        && policy.said().is_some_and(|spec| (spec.parent, spec.condition) == (parent.kind, of));
    (is_said && rules && is_known(number)).then_some(policy)
}
