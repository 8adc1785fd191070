//! Checks of the store after our writes: they changed only our own entries.

use std::collections::{BTreeMap, BTreeSet};

use readiness::rollup::ParentReason;
use serde_json::{Value, json};

use super::checked_parents::CheckedParents;
use super::judged_moment::JudgedMoment;
use super::overlap_judge::OverlapJudge;
use super::own_entries::entry_of;
use super::policy_checks;
use super::shared_parents::{check_theirs, is_shared};
use crate::scenario::PolicyDef;
use crate::wires::{CommittedWrite, WriteInFlight, WriteSender};
use crate::world::{ModelCondition, ModelMark, ModelObject, conditions_of};

/// Longest condition message, in bytes.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// Returns the object without the fields that our writes may change.
fn without_own_entries(object: &Value, types: &[&str]) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
        meta.remove("managedFields");
    }
    let foreign: Vec<Value> = conditions_of(&object["status"])
        .iter()
        .filter(|c| !types.iter().any(|t| c["type"] == *t))
        .cloned()
        .collect();
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("conditions");
        if !foreign.is_empty() {
            status.insert("conditions".into(), json!(foreign));
        }
    }
    if object["status"].as_object().is_none_or(serde_json::Map::is_empty)
        && let Some(object) = object.as_object_mut()
    {
        object.remove("status");
    }
    object
}

/// The judge of the writes that the server has committed.
#[derive(Default)]
pub(crate) struct CommitJudge {
    /// Generations of parents for which an answer was written, by policy.
    announced: BTreeSet<(usize, String, i64)>,
    /// UIDs of parents on which a fallback type was written because another client had the type, and of those on which a
    /// former process did so.
    yielded: BTreeSet<String>,
    yielded_before: BTreeSet<String>,
    /// UIDs of parents whose last write is of the process that runs.
    worded: BTreeSet<String>,
    /// Writes of other processes that landed after such a word, by UID of the parent: to the process that runs each looks like an
    /// overwrite by another client.
    written_beside: BTreeMap<String, u32>,
    /// Policies that were in force when a process ended: what it has sent may land before the next one has any.
    former_policies: Vec<PolicyDef>,
    /// Number of conditions that became True.
    pub(crate) trues: u64,
}

impl CommitJudge {
    pub(crate) fn reset_for_restart(&mut self) {
        self.yielded_before.append(&mut self.yielded);
        self.worded.clear();
    }

    /// Notes the policies of a process that ends, or that another begins beside.
    pub(crate) fn note_former_policies(&mut self, policies: &[PolicyDef]) {
        for policy in policies {
            if !self.former_policies.contains(policy) {
                self.former_policies.push(policy.clone());
            }
        }
    }

    /// Returns `true` if a former process wrote a fallback type on the parent because another client had the type. A process
    /// that finds the fallback alone does not know that, and leaves the type to the client that keeps taking it.
    pub(crate) fn has_yielded_before(&self, uid: &str) -> bool {
        self.yielded_before.contains(uid)
    }

    /// Number of words of a process that runs, on the parent, after which another one's write has landed.
    pub(crate) fn written_beside(&self, uid: &str) -> u32 {
        self.written_beside.get(uid).copied().unwrap_or_default()
    }

    /// Checks a committed write, of the process that runs now or of another.
    pub(crate) fn check_commit(
        &mut self,
        at: &JudgedMoment<'_>,
        (checked, overlaps): (&mut CheckedParents, &OverlapJudge),
        (flight, sender): (&WriteInFlight, WriteSender),
        committed: &CommittedWrite,
    ) {
        let write = &flight.write;
        let name = format!("{}/{}", write.namespace, write.name);
        let CommittedWrite { before, after, changes } = committed;
        let kind = write.kind.index();
        let def = &at.scenario.kinds[kind];
        let (old, new) =
            (ModelObject::from_json(kind, def, before), ModelObject::from_json(kind, def, after));
        if sender == WriteSender::Running {
            self.worded.insert(new.uid.clone());
        } else if self.worded.remove(&new.uid) {
            *self.written_beside.entry(new.uid.clone()).or_default() += 1;
        }
        if old.uid != write.uid {
            return at.fail_invariant(
                "identity is the uid",
                format_args!("{name}: the write was for another object"),
            );
        }
        match changes {
            0 => return at.fail_invariant("no echo", format_args!("{name}: a write that changed nothing")),
            1 => {}
            _ => {
                return at.fail_invariant(
                    "only our own entries",
                    format_args!("{name}: more than one object moved"),
                );
            }
        }
        check_theirs(at, &name, &old, &new);
        let ours = old.ours.keys().chain(new.ours.keys()).chain(old.theirs.keys());
        let ours: Vec<&str> = ours.map(String::as_str).collect();
        if without_own_entries(before, &ours) != without_own_entries(after, &ours) {
            let (was, is) = (without_own_entries(before, &ours), without_own_entries(after, &ours));
            return at.fail_invariant("only our own entries", format_args!("{name}: {was} became {is}"));
        }
        let is_empty = |object: &Value| object["status"]["conditions"] == json!([]);
        if is_empty(after) && !is_empty(before) {
            return at.fail_invariant("only our own entries", format_args!("{name}: an empty list was left"));
        }
        check_types(at, &name, &old, &new);
        self.check_entries(at, &name, &old, &new);
        policy_checks::check_release(at, &name, &old, &new);
        // A predecessor that sent the write may have given the same ids to other policies.
        let is_of = |p: &&PolicyDef| write.policies.contains(&p.id) && p.parent == kind;
        for policy in at.policies.iter().filter(is_of) {
            if is_shared(at, policy, &new) {
                continue;
            }
            self.check_first_answer(at, policy, &name, (&old, &new), sender, flight.was_known_handled);
            let stood_beside = entry_of(policy, &old).is_some_and(|said| overlaps.has_put(&old.uid, said));
            if !stood_beside {
                policy_checks::check_turn(at, policy, &name, (&old, &new), flight.was_shown_handled);
            }
            let stands_in = policy.fallback.is_some_and(|fallback| new.ours.contains_key(fallback));
            if stands_in && new.foreign.contains(policy.condition) {
                self.yielded.insert(new.uid.clone());
            }
        }
        self.note_announced(at, &new);
        let decided_by = if sender == WriteSender::Running { &*write.policies } else { &[] };
        checked.note_committed((&old, &new), decided_by);
    }

    fn check_entries(&mut self, at: &JudgedMoment<'_>, name: &str, old: &ModelObject, new: &ModelObject) {
        let undated = |said: &ModelCondition| ModelCondition { since: 0, ..said.clone() };
        let all = |model: &ModelObject| -> Vec<(String, ModelCondition)> {
            model.ours.iter().map(|(kind, said)| (kind.clone(), undated(said))).collect()
        };
        if all(old) == all(new) && old.theirs == new.theirs {
            at.fail_invariant("no echo", format_args!("{name}: it said so already"));
        }
        for (kind, said) in &new.ours {
            let before = old.ours.get(kind);
            if before.is_some_and(|b| b.status == said.status && b.since != said.since) {
                at.fail_invariant("lastTransitionTime moves with the status", format_args!("{name}: {kind}"));
            }
            if said.message.len() > MAX_MESSAGE_BYTES {
                at.fail_invariant(
                    "messages are bounded",
                    format_args!("{name}: {} bytes", said.message.len()),
                );
            }
            if before != Some(said) && said.observed != new.generation {
                at.fail_invariant(
                    "observedGeneration always",
                    format_args!("{name}: {kind} {}", said.observed),
                );
            }
            self.trues += u64::from(said.status == "True" && before.is_none_or(|b| b.status != "True"));
        }
    }

    /// Notes for which generation the parent carries entries: a policy that was replaced meanwhile may have written them.
    fn note_announced(&mut self, at: &JudgedMoment<'_>, new: &ModelObject) {
        let known = at.scenario.first_policies.iter().chain(&self.former_policies);
        for policy in known.filter(|policy| policy.parent == new.kind) {
            if entry_of(policy, new).is_some_and(|said| said.observed == new.generation) {
                self.announced.insert((policy.number, new.uid.clone(), new.generation));
            }
        }
    }

    fn check_first_answer(
        &mut self,
        at: &JudgedMoment<'_>,
        policy: &PolicyDef,
        name: &str,
        (old, new): (&ModelObject, &ModelObject),
        sender: WriteSender,
        was_known_handled: bool,
    ) {
        let Some(said) = entry_of(policy, new) else { return };
        let key = (policy.number, new.uid.clone(), new.generation);
        let first = said.observed == new.generation && self.announced.insert(key);
        let may = match said.reason {
            ParentReason::ChildrenPending | ParentReason::PolicyRefused => true,
            ParentReason::Terminating => new.deleted.is_some(),
            ParentReason::AllChildrenReady => {
                // An operator may take its word back while the write is under way.
                (new.mark == ModelMark::Handled || was_known_handled)
                    && may_be_found_at_rest(at, policy, (old, new), sender)
            }
            _ => false,
        };
        // The first word of another release that had the policy, or its parents, before.
        let stood = old.theirs.get(policy.condition).is_some_and(|said| said.observed == new.generation);
        if first && !may && !stood {
            at.fail_invariant("first word is Unknown", format_args!("{name}: {:?}", said.reason));
        }
    }
}

/// Checks that a write takes no type of another manager, and none twice.
fn check_types(at: &JudgedMoment<'_>, name: &str, old: &ModelObject, new: &ModelObject) {
    if let Some(taken) = new.ours.keys().find(|kind| old.foreign.contains(*kind)) {
        at.fail_invariant("only our own entries", format_args!("{name}: took {taken} from another manager"));
    }
    if let Some(twice) = new.doubled.difference(&old.doubled).next() {
        at.fail_invariant("each type once", format_args!("{name}: {twice} stands there already"));
    }
    let both =
        |parent: &ModelObject, of: &str| parent.ours.contains_key(of) && parent.theirs.contains_key(of);
    if let Some(twice) = new.ours.keys().find(|of| both(new, of) && !both(old, of)) {
        at.fail_invariant("each type once", format_args!("{name}: {twice} is another release's"));
    }
}

/// Returns `true` if a list may have shown that parent at rest, so that its first word is that it is ready; whether it was, other
/// judges know. What a former process has listed is not known any more.
fn may_be_found_at_rest(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    (old, new): (&ModelObject, &ModelObject),
    sender: WriteSender,
) -> bool {
    let is_untold = entry_of(policy, old).is_none_or(|said| said.reason == ParentReason::ChildrenPending);
    let listed = at.plan_watch.all_listed_at(policy);
    let was_there = sender != WriteSender::Running || listed.is_some_and(|listed| new.created <= listed);
    is_untold && policy.hold.is_zero() && was_there
}
