//! Numbers of all parents under all policies, kept up with every change: metrics, the status of policies, Events and the
//! page read them, and nobody walks all parents for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use aggregator::{Engine, ObjectId, PolicyId, UnwrittenBecause};
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use watcher::reflector::{Reflector, RulingPolicy};

use super::parent_findings::{FindingSources, ParentFindings};

/// One parent under one policy.
pub type ParentPolicy = (ObjectId, PolicyId);

/// Number of parents of one policy by what was found of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingCounts {
    /// Parents on which the API server prunes the condition.
    pub pruned: u64,
    /// Parents on which the API server, or an admission policy, refuses the condition.
    pub refused: u64,
    /// Parents to which writes keep failing.
    pub failing: u64,
    /// Parents whose CRD lacks the default status.
    pub undefaulted: u64,
    /// Parents with Kopf's mark, of which nothing shows whether their operator succeeded.
    pub hidden_outcomes: u64,
    /// Parents whose own condition differs from the answer of a policy in shadow mode.
    pub disagreeing: u64,
    /// Parents whose condition is owned by another writer, who says otherwise than the answer.
    pub owner_disagreeing: u64,
    /// Parents whose condition is owned by another writer, by its field managers.
    pub owned: BTreeMap<Box<str>, u64>,
    /// Parents whose condition is repeatedly overwritten, by the other writers of conditions there.
    pub yielding: BTreeMap<Box<str>, u64>,
}

impl FindingCounts {
    /// Adds the findings of one parent, or takes them out.
    fn count(&mut self, found: &ParentFindings, adds: bool) {
        let count = |number: &mut u64, one: bool| {
            let one = u64::from(one);
            *number = if adds { *number + one } else { *number - one };
        };
        match found.unwritten {
            Some(UnwrittenBecause::Pruned) => count(&mut self.pruned, true),
            Some(UnwrittenBecause::Refused) => count(&mut self.refused, true),
            Some(UnwrittenBecause::Failing) => count(&mut self.failing, true),
            None => {}
        }
        count(&mut self.undefaulted, found.undefaulted);
        count(&mut self.hidden_outcomes, found.hides_outcome);
        count(&mut self.disagreeing, found.disagrees);
        count(&mut self.owner_disagreeing, found.owner_disagrees);
        for (numbers, name) in [(&mut self.owned, &found.owner), (&mut self.yielding, &found.rivals)] {
            let Some(name) = name else { continue };
            let number = numbers.entry(name.clone()).or_default();
            count(number, true);
            if *number == 0 {
                numbers.remove(name);
            }
        }
    }
}

/// A parent that a policy selects and leaves to an older one, by name, with that one.
type LeftParent = (Box<str>, ObjectId, RulingPolicy);

/// What was found of one parent under each policy, and which leave it to an older one.
type HeldOfParent = (Vec<(PolicyId, ParentFindings)>, Vec<(PolicyId, LeftParent)>);

/// One of the parts in which parents are compared: all of them at once would keep the loop for too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberSlice(u32);

impl NumberSlice {
    /// Number of slices.
    const COUNT: u64 = 16;

    /// The slice whose turn it is in this round.
    pub(super) fn of_round(round: u64) -> NumberSlice {
        NumberSlice(u32::try_from(round % NumberSlice::COUNT).unwrap_or_default())
    }

    fn contains(self, parent: ObjectId) -> bool {
        u64::from(parent.0) % NumberSlice::COUNT == u64::from(self.0)
    }
}

/// Numbers of all parents under all policies, as of the last [`FleetNumbers::refresh`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetNumbers {
    /// Parents of which anything was found.
    found: BTreeMap<ParentPolicy, ParentFindings>,
    counts: BTreeMap<PolicyId, FindingCounts>,
    /// Parents that are not ready: worst first, and of equally bad ones those that have been so for longest.
    unready: BTreeSet<(Level, Time, ParentPolicy)>,
    yielding: BTreeSet<ParentPolicy>,
    kept_by_owner: BTreeSet<ParentPolicy>,
    /// Parents that a policy leaves to an older one, by name, with that one.
    left: BTreeMap<PolicyId, BTreeSet<LeftParent>>,
    /// The same by parent: the policies that leave it.
    left_by: BTreeMap<ObjectId, Vec<(PolicyId, LeftParent)>>,
}

impl FleetNumbers {
    /// Brings the numbers up to date. Costs what has changed since the last call; returns the parents of which something did
    /// that shows.
    pub fn refresh(&mut self, engine: &mut Engine, reflector: &Reflector, now: Time) -> Vec<ObjectId> {
        let changed = engine.take_changed_parents();
        let sources = FindingSources { engine, reflector };
        for parent in changed.iter().copied().chain(reflector.take_reread_parents()) {
            self.refresh_parent(sources, parent, now);
        }
        changed
    }

    /// Compares what is held of a slice of the parents with what is found now, and all counts with what is held; puts right what
    /// differs. To be called when the numbers are up to date. Returns the parents of which something differed, and the policies
    /// of which a count did.
    pub(super) fn mend_slice(
        &mut self,
        sources: FindingSources<'_>,
        slice: NumberSlice,
        now: Time,
    ) -> (Vec<ObjectId>, Vec<PolicyId>) {
        let policies = self.correct_counts();
        let evaluated = sources.engine.evaluation_states().map(|state| state.parent);
        let held = self.found.keys().map(|(parent, _)| *parent).chain(self.left_by.keys().copied());
        let parents: BTreeSet<_> = evaluated.chain(held).filter(|parent| slice.contains(*parent)).collect();
        let is_wrong = |parent: &ObjectId| {
            let before = self.held_of(*parent);
            self.refresh_parent(sources, *parent, now);
            self.held_of(*parent) != before
        };
        (parents.into_iter().filter(is_wrong).collect(), policies)
    }

    /// What is held of one parent.
    fn held_of(&self, parent: ObjectId) -> HeldOfParent {
        let range = (parent, PolicyId(0))..=(parent, PolicyId(u32::MAX));
        let found = self.found.range(range).map(|((_, policy), found)| (*policy, found.clone()));
        (found.collect(), self.left_by.get(&parent).cloned().unwrap_or_default())
    }

    /// Counts anew what was found of all parents. Returns the policies of which a count was wrong.
    fn correct_counts(&mut self) -> Vec<PolicyId> {
        let mut counted = BTreeMap::<PolicyId, FindingCounts>::new();
        let mut wrong = BTreeSet::new();
        let (mut unready, mut yielding, mut kept) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (key, found) in &self.found {
            counted.entry(key.1).or_default().count(found, true);
            unready.extend(found.unready.map(|(reason, since)| (reason.child_level(), since, *key)));
            yielding.extend(found.rivals.as_ref().map(|_| *key));
            kept.extend(found.is_kept_by_owner.then_some(*key));
        }
        counted.retain(|_, counts| *counts != FindingCounts::default());
        let policies = counted.keys().chain(self.counts.keys());
        wrong.extend(policies.filter(|policy| counted.get(policy) != self.counts.get(policy)));
        wrong.extend(unready.symmetric_difference(&self.unready).map(|(_, _, (_, policy))| *policy));
        wrong.extend(yielding.symmetric_difference(&self.yielding).map(|(_, policy)| *policy));
        wrong.extend(kept.symmetric_difference(&self.kept_by_owner).map(|(_, policy)| *policy));
        if !wrong.is_empty() {
            (self.counts, self.unready) = (counted, unready);
            (self.yielding, self.kept_by_owner) = (yielding, kept);
        }
        wrong.into_iter().collect()
    }

    /// Numbers made from all parents anew, for tests and the simulator. What is known of when parents stopped being ready is
    /// that of `self`.
    #[must_use]
    pub fn recount(&self, engine: &Engine, reflector: &Reflector, now: Time) -> FleetNumbers {
        let mut anew = FleetNumbers::default();
        let sources = FindingSources { engine, reflector };
        let parents: BTreeSet<ObjectId> = engine.evaluation_states().map(|state| state.parent).collect();
        for parent in parents {
            for state in engine.reader().states_of(parent) {
                let key = (parent, state.policy);
                let known = self.not_ready_since(key).unwrap_or(now);
                anew.insert(key, sources.find(&state, known));
            }
        }
        // Also one that no policy rules, or that none has evaluated yet.
        let mut outranked = Vec::new();
        reflector.for_each_row(|id, row| {
            let parent = row.parent.as_ref().filter(|parent| !parent.outranked().is_empty());
            outranked.extend(parent.map(|_| id));
        });
        for parent in outranked {
            anew.set_left(reflector, parent);
        }
        anew
    }

    /// The first parent of which others hold something else; `None` where all is equal. For tests and the simulator.
    pub fn find_difference(&self, other: &FleetNumbers) -> Option<(ParentPolicy, String)> {
        let all: BTreeSet<_> = self.found.keys().chain(other.found.keys()).copied().collect();
        let differs = all.into_iter().find(|key| self.found.get(key) != other.found.get(key));
        let words = |key| (key, format!("{:?}, and {:?}", self.found.get(&key), other.found.get(&key)));
        let sums = || (ParentPolicy::default(), format!("{:?}, and {:?}", self.counts, other.counts));
        differs.map(words).or_else(|| (self != other).then(sums))
    }

    fn refresh_parent(&mut self, sources: FindingSources<'_>, parent: ObjectId, now: Time) {
        let range = (parent, PolicyId(0))..=(parent, PolicyId(u32::MAX));
        let held: Vec<PolicyId> = self.found.range(range).map(|((_, policy), _)| *policy).collect();
        let before: Vec<_> = held.into_iter().map(|policy| (policy, self.remove((parent, policy)))).collect();
        for state in sources.engine.reader().states_of(parent) {
            let known = before.iter().find(|(policy, _)| *policy == state.policy);
            let since = known.and_then(|(_, found)| Some(found.as_ref()?.unready?.1));
            self.insert((parent, state.policy), sources.find(&state, since.unwrap_or(now)));
        }
        self.set_left(sources.reflector, parent);
    }

    fn insert(&mut self, key: ParentPolicy, found: ParentFindings) {
        if found == ParentFindings::default() {
            return;
        }
        self.count(key.1, &found, true);
        if let Some((reason, since)) = found.unready {
            self.unready.insert((reason.child_level(), since, key));
        }
        if found.rivals.is_some() {
            self.yielding.insert(key);
        }
        if found.is_kept_by_owner {
            self.kept_by_owner.insert(key);
        }
        self.found.insert(key, found);
    }

    /// Adds the findings of one parent to those of its policy, or takes them out.
    fn count(&mut self, policy: PolicyId, found: &ParentFindings, adds: bool) {
        let counts = self.counts.entry(policy).or_default();
        counts.count(found, adds);
        if *counts == FindingCounts::default() {
            self.counts.remove(&policy);
        }
    }

    fn remove(&mut self, key: ParentPolicy) -> Option<ParentFindings> {
        let found = self.found.remove(&key)?;
        self.count(key.1, &found, false);
        if let Some((reason, since)) = found.unready {
            self.unready.remove(&(reason.child_level(), since, key));
        }
        self.yielding.remove(&key);
        self.kept_by_owner.remove(&key);
        Some(found)
    }

    /// Sets which policies leave a parent to an older one.
    fn set_left(&mut self, reflector: &Reflector, parent: ObjectId) {
        for (policy, left) in self.left_by.remove(&parent).into_iter().flatten() {
            if let Entry::Occupied(mut parents) = self.left.entry(policy) {
                parents.get_mut().remove(&left);
                if parents.get().is_empty() {
                    parents.remove();
                }
            }
        }
        let left = reflector.read_row(parent, |row| {
            let outranked = row.parent.as_ref().map(|of| of.outranked()).filter(|left| !left.is_empty())?;
            let name: Box<str> = match &*row.namespace {
                "" => row.name.clone(),
                namespace => format!("{namespace}/{}", row.name).into(),
            };
            Some(
                outranked.iter().map(|left| (left.policy, (name.clone(), parent, left.by.clone()))).collect(),
            )
        });
        let Some(left): Option<Vec<(PolicyId, LeftParent)>> = left.flatten() else { return };
        for (policy, of) in &left {
            self.left.entry(*policy).or_default().insert(of.clone());
        }
        self.left_by.insert(parent, left);
    }

    /// Number of parents of a policy by what was found of them.
    pub fn counts_of(&self, policy: PolicyId) -> Option<&FindingCounts> {
        self.counts.get(&policy)
    }

    /// Parents that are not ready, with the reason and the time since which they are not: worst first, and of equally bad
    /// ones those that have been so for longest.
    pub fn unready(&self) -> impl Iterator<Item = (ParentPolicy, ParentReason, Time)> + '_ {
        self.unready.iter().filter_map(|(_, _, key)| {
            let (reason, since) = self.found.get(key)?.unready?;
            Some((*key, reason, since))
        })
    }

    /// Time since which a parent has not been ready, regardless of its conditions in between: `lastTransitionTime` also
    /// changes between False and Unknown. After a restart, and in shadow mode, as far back as is known.
    pub fn not_ready_since(&self, key: ParentPolicy) -> Option<Time> {
        self.found.get(&key)?.unready.map(|(_, since)| since)
    }

    /// Parents whose condition is repeatedly overwritten.
    pub fn yielding(&self) -> impl Iterator<Item = ParentPolicy> + '_ {
        self.yielding.iter().copied()
    }

    /// Parents on which nothing is written because another writer owns the condition, with that owner.
    pub fn kept_by_owner(&self) -> impl Iterator<Item = (ParentPolicy, &str)> + '_ {
        self.kept_by_owner.iter().filter_map(|key| Some((*key, self.found.get(key)?.owner.as_deref()?)))
    }

    /// Parents that a policy leaves to an older one, in the order of their names, with that one; and how many they are.
    pub fn left_by(&self, policy: PolicyId) -> (usize, impl Iterator<Item = (&str, &RulingPolicy)> + '_) {
        let left = self.left.get(&policy);
        let named = left.into_iter().flatten().map(|(name, _, by)| (&**name, by));
        (left.map_or(0, BTreeSet::len), named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_not_what_was_found_is_put_right_and_its_policy_named() {
        let (policy, other) = (PolicyId(1), PolicyId(2));
        let mut numbers = FleetNumbers::default();
        for id in 1..=3 {
            let unready = Some((ParentReason::ChildrenProgressing, Time(id.into())));
            let found = ParentFindings { unready, undefaulted: true, ..ParentFindings::default() };
            numbers.insert((ObjectId(id), policy), found);
        }
        let right = numbers.clone();
        assert_eq!(numbers.correct_counts(), []);
        numbers.counts.entry(policy).or_default().undefaulted += 1;
        numbers.counts.entry(other).or_default().pruned = 1;
        assert_eq!(numbers.correct_counts(), [policy, other]);
        numbers.unready.pop_first();
        numbers.yielding.insert((ObjectId(7), other));
        assert_eq!(numbers.correct_counts(), [policy, other]);
        assert_eq!(numbers, right);
    }
}
