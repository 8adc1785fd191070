//! What takes whose place in the queue, and how much it holds.

use super::super::planned::Plans;
use super::*;
use crate::plan::Interest;

const KIND: KindId = KindId(1);
const NOW: Time = Time(1_000_000);

/// The first plan of a kind, and a later one.
fn plans() -> [Arc<PlannedInterest>; 2] {
    let plans = Plans::default();
    [(); 2].map(|()| {
        plans.set_interest(Interest::for_kind(KIND, "", "Pod"));
        plans.planned(KIND).unwrap()
    })
}

fn judgement(plan: &Arc<PlannedInterest>, uid: &str, version: u64, text: &Arc<str>) -> Judgement {
    Judgement::new((plan, 0), (ObjectId(1), uid, version), Arc::clone(text), NOW)
}

#[test]
fn a_newer_version_takes_the_place_of_an_older_one_and_a_newer_plan_that_of_any() {
    let plans = plans();
    // Plan and version of what waits, of what comes, and which of them is evaluated.
    for (waits, comes, evaluated) in [
        ((0, 7), (0, 8), (0, 8)),
        ((0, 7), (0, 7), (0, 7)),
        ((0, 7), (0, 6), (0, 7)),
        ((0, 7), (1, 6), (1, 6)),
        ((1, 6), (0, 7), (1, 6)),
    ] {
        let queue = JudgementQueue::default();
        for (plan, version) in [waits, comes] {
            let text = format!("plan {plan}, version {version}").into();
            assert!(queue.push(judgement(&plans[plan], "a", version, &text)));
        }
        let taken = queue.take(NOW).unwrap();
        let (plan, version) = evaluated;
        assert_eq!(
            (taken.plan.epoch(), taken.version),
            (plans[plan].epoch(), version),
            "{waits:?} {comes:?}"
        );
        assert_eq!(*taken.text, *format!("plan {plan}, version {version}"));
        assert_eq!(queue.size(), (0, 0));
    }
}

#[test]
fn of_two_that_are_equal_the_one_that_comes_later_is_evaluated() {
    let (queue, [plan, _]) = (JudgementQueue::default(), plans());
    for text in ["before", "later"] {
        queue.push(judgement(&plan, "a", 7, &text.into()));
    }
    assert_eq!(&*queue.take(NOW).unwrap().text, "later");
}

#[test]
fn one_rule_holds_half_of_the_room_at_most_and_leaves_the_rest_to_others() {
    let (queue, [plan, _]) = (JudgementQueue::default(), plans());
    let text: Arc<str> = "x".repeat((1 << 20) - JUDGEMENT_BYTES).into();
    assert!(queue.has_room(KIND, NOW));
    let held = (0..40).take_while(|n| queue.push(judgement(&plan, &n.to_string(), 1, &text))).count();
    assert_eq!((held, queue.size()), (16, (16, 16 << 20)));
    assert!(!queue.has_room(KIND, NOW));
    assert!(queue.has_room(KIND, NOW + ROOM_WAIT_LIMIT), "nobody waits for a slow rule for long");
    let mut other = judgement(&plan, "other", 1, &text);
    other.rule_index = 1;
    assert!(queue.push(other), "another rule has room");
    queue.forget_kind(KIND);
    assert_eq!(queue.size(), (0, 0));
}
