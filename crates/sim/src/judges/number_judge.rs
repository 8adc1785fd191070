//! The invariant of numbers: those that are kept equal those that a walk over all parents finds.

use readiness::Time;

use super::judged_moment::JudgedMoment;

/// Number of turns from one look to the next: what changes in between has to be seen then.
const TURNS_PER_LOOK: u64 = 3;

/// The judge of the numbers that the service keeps.
#[derive(Default)]
pub(crate) struct NumberJudge {
    turns: u64,
}

impl NumberJudge {
    /// Returns `true` if the service brings its numbers up to date after this turn, and they are judged.
    pub(crate) fn begin_turn(&mut self) -> bool {
        self.turns += 1;
        self.turns.is_multiple_of(TURNS_PER_LOOK)
    }

    /// Checks numbers that were brought up to date a moment ago.
    pub(crate) fn check_numbers(at: &JudgedMoment<'_>) {
        const INVARIANT: &str = "numbers equal a recount";
        let (core, reader) = (at.core, at.core.engine.reader());
        let sums = reader.recount_sums();
        for policy in at.policies {
            let (held, counted) = (reader.policy_sums(policy.id), sums.get(&policy.id));
            if held != counted {
                let what = format_args!("policy {:?}: {held:?}, and counted {counted:?}", policy.id);
                at.fail_invariant(INVARIANT, what);
            }
        }
        // What has not been observed yet shows in rows, and nowhere else.
        if core.reflector.dirty_len() > 0 {
            return;
        }
        let recounted = core.numbers.recount(&core.engine, &core.reflector, Time(at.now));
        if let Some((parent, difference)) = core.numbers.find_difference(&recounted) {
            at.fail_invariant(INVARIANT, format_args!("{parent:?}: held {difference} when counted"));
        }
    }
}
