//! The one thing that holds a parent back most, in words from closed sets and the name of an object: for metrics.

use aggregator::{ObjectId, PolicyId, Role, Trouble};
use readiness::rollup::{ParentReason, Tally};
use readiness::{Level, Time};

use super::Core;
use super::transition::names_children;

/// A cause below a cause below a cause: no deeper than this.
const DEPTH: usize = 6;

/// What holds a parent back most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The object's kind, as metrics have it; empty where it is the parent itself, or where no child was created.
    pub kind: String,
    /// The object's name; empty where it is missing.
    pub child: String,
    /// How ready it is.
    pub level: Level,
    /// Why: of an object, of a parent, or `Missing`.
    pub reason: &'static str,
}

impl Core {
    /// What holds a parent back most, and that says `said`: the object at the bottom of it, where a child is a parent itself.
    pub fn worst(&self, parent: ObjectId, policy: PolicyId, said: ParentReason, now: Time) -> Worst {
        self.worst_below(parent, policy, said, now, 0)
    }

    fn worst_below(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        said: ParentReason,
        now: Time,
        depth: usize,
    ) -> Worst {
        let own = |level, reason| Worst { kind: String::new(), child: String::new(), level, reason };
        let first = names_children(said).then(|| self.engine.troubles(parent, policy, Role::Critical).next());
        let first = first.flatten();
        if let Some(trouble) = first.filter(|trouble| trouble.weight.level <= Level::Missing) {
            return self.worst_of(&trouble, now, depth);
        }
        // Before anything was created that is all there is to say.
        let expects = names_children(said) || said == ParentReason::ChildrenPending;
        let missing = expects.then(|| self.missing_lines(parent, policy).into_iter().min()).flatten();
        match (missing, first) {
            (Some((_, kind, _)), _) => {
                let surplus = said == ParentReason::TooManyChildren;
                let (level, reason) =
                    if surplus { (said.level(), said.word()) } else { (Level::Missing, "Missing") };
                Worst { kind: self.label_in(policy, &kind), ..own(level, reason) }
            }
            (None, Some(trouble)) => self.worst_of(&trouble, now, depth),
            (None, None) => own(said.level(), said.word()),
        }
    }

    fn worst_of(&self, trouble: &Trouble, now: Time, depth: usize) -> Worst {
        let level = trouble.weight.level;
        let (kind, child) = (self.kind_label(trouble.kind), trouble.child);
        let row = self
            .reflector
            .read(child, |row| (row.name.to_string(), row.through(trouble.lens).at(now).reason.label()));
        let (name, reason) = row.unwrap_or_default();
        let named = |reason| Worst { kind, child: name, level, reason };
        // What is being deleted is held by what it says itself, whatever is below it.
        if matches!(level, Level::Terminating | Level::Stuck) {
            return named(reason);
        }
        let answers = self.engine.policies_of(child).filter_map(|p| Some((p, self.engine.answer(child, p)?)));
        match answers.min_by_key(|(policy, answer)| (answer.reason.level(), *policy)) {
            None => named(reason),
            Some((_, answer)) if depth >= DEPTH => named(answer.reason.word()),
            Some((policy, answer)) => {
                let below = self.worst_below(child, policy, answer.reason, now, depth + 1);
                if below.kind.is_empty() { named(below.reason) } else { below }
            }
        }
    }

    /// How metrics call a kind that a policy names.
    fn label_in(&self, policy: PolicyId, kind: &str) -> String {
        let kinds = self.policies.get(&policy).map(|words| words.kinds.as_slice()).unwrap_or_default();
        let known = kinds.iter().find(|id| self.kind_name(**id) == kind);
        known.map_or_else(|| kind.to_owned(), |id| self.kind_label(*id))
    }

    /// How all children of a parent stand, optional ones included.
    pub fn family(&self, parent: ObjectId, policy: PolicyId) -> Tally {
        let groups = self.policies.get(&policy).map_or(0, |words| words.groups.len());
        let tallies = (0..groups).map(|group| self.engine.tally(parent, policy, group as u8));
        tallies.fold(Tally::default(), |sum, tally| sum.plus(&tally))
    }
}
