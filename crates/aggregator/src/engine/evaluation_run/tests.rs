use timer::{DebounceConfig, Seed};

use super::*;
use crate::answer_view::AnswerView;
use crate::engine::Engine;
use crate::ids::{KindId, PolicyId};
use crate::types::{Acceptance, EnginePolicy, KindState, ObjectView, ParentView};

const KIND: KindId = KindId(0);
const POLICY: PolicyId = PolicyId(1);
const PARENT: ObjectId = ObjectId(0);
const NOW: Time = Time(1_000);

/// An engine with one parent that was not evaluated yet.
fn observed() -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_secs(600), Seed(1));
    let policy = EnginePolicy {
        groups: Vec::new(),
        min: 0,
        joint: Vec::new(),
        kinds: vec![KIND],
        debounce: DebounceConfig { quiet: Duration::ZERO, cap: Duration::ZERO },
        settle: Duration::ZERO,
        hold: Duration::ZERO,
        availability: crate::Availability::Strict,
        grace: Duration::ZERO,
        pending: Duration::from_secs(600),
        deadline: None,
        shadow: false,
        expects_names: false,
        requires_proof: false,
        acceptance: Acceptance::Accepted,
    };
    engine.set_policy(NOW, POLICY, Some(policy));
    engine.set_kind_state(NOW, KIND, KindState::Synced);
    let answers = [AnswerView { policy: POLICY, ..AnswerView::default() }].into();
    let parent = ParentView { generation: 1, answers, ..ParentView::default() };
    let shown = ObjectView { kind: KIND, parent: Some(&parent), ..ObjectView::default() };
    engine.observe_object(NOW, PARENT, Some(&shown));
    engine
}

#[test]
fn what_was_evaluated_too_often_in_one_poll_goes_on_in_a_later_one() {
    for (evaluations, goes_on) in [(0, true), (63, true), (64, false)] {
        let mut engine = observed();
        let poll = engine.polls + 1;
        let id = engine.scheduler.graph.find_evaluation_for(PARENT, POLICY).unwrap();
        let held = engine.scheduler.graph.evaluation_mut(id).unwrap();
        (held.last_poll, held.poll_evaluations) = (poll, evaluations);
        engine.poll(NOW, &mut Vec::new());
        let is_evaluated = |engine: &Engine| engine.answer_of(PARENT, POLICY).is_some();
        assert_eq!(is_evaluated(&engine), goes_on, "{evaluations}");
        let later = NOW + EVALUATION_LOOP_DELAY;
        assert!(goes_on || engine.next_deadline() == Some(later));
        engine.poll(later, &mut Vec::new());
        assert!(is_evaluated(&engine), "{evaluations}");
    }
}
