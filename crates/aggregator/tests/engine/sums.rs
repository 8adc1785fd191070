//! What the parents of each policy amount to is kept up with every change, and every parent that changed is named.

use std::collections::BTreeMap;

use aggregator::{ObjectId, PolicyAnswer, PolicyId, UnwrittenBecause};
use proptest::prelude::*;
use readiness::rollup::LevelTally;

use crate::driver::EngineDriver as _;
use crate::harness::EngineHarness;
use crate::histories;
use crate::steps::{HistoryStep, harness, step, take};

/// All that is counted of one parent under one policy.
type CountedState = (PolicyAnswer, bool, Option<UnwrittenBecause>, Vec<(u8, LevelTally)>);

/// What was counted of every parent when changes were last taken.
#[derive(Default)]
struct SumsOracle {
    seen: BTreeMap<(ObjectId, PolicyId), CountedState>,
}

impl SumsOracle {
    fn states(w: &EngineHarness) -> BTreeMap<(ObjectId, PolicyId), CountedState> {
        let state = |state: aggregator::EvaluationState<'_>| {
            let counted = (state.answer, state.yielding, state.unwritten, state.groups.to_vec());
            ((state.parent, state.policy), counted)
        };
        w.engine.evaluation_states().map(state).collect()
    }

    /// Takes the changed parents, and compares them and the sums with a walk over all evaluations.
    fn check(&mut self, w: &mut EngineHarness) {
        let changed = w.engine.take_changed_parents();
        assert!(changed.is_sorted_by(|a, b| a < b), "each once, in order: {changed:?}");
        let recounted = w.engine.reader().recount_sums();
        for policy in w.policies.keys() {
            assert_eq!(w.engine.reader().policy_sums(*policy), recounted.get(policy), "{policy:?}");
        }
        let now = Self::states(w);
        let keys = self.seen.keys().chain(now.keys());
        for key in keys.filter(|key| self.seen.get(key) != now.get(key)) {
            assert!(changed.contains(&key.0), "{key:?} changed and is not named");
        }
        self.seen = now;
    }
}

proptest! {
    #![proptest_config(histories::config())]

    #[test]
    fn sums_equal_a_recount_whatever_happened_and_whenever_they_are_read(
        steps in proptest::collection::vec((step(), any::<bool>()), 1..60)
    ) {
        let (mut w, mut oracle) = (harness(), SumsOracle::default());
        for (step, reads) in &steps {
            if matches!(step, HistoryStep::Restart(_)) {
                oracle = SumsOracle::default();
            }
            take(&mut w, step);
            if *reads {
                oracle.check(&mut w);
            }
        }
        w.run(25 * 60_000);
        oracle.check(&mut w);
        prop_assert_eq!(w.engine.take_changed_parents(), vec![], "nothing changed since");
    }
}
