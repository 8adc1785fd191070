//! What takes whose place in the queue, and how much it holds.

use super::super::planned::Plans;
use super::*;
use crate::plan::{AssessmentRule, Interest, RuleSharing, UserRule};

const KIND: KindId = KindId(1);
const NOW: Time = Time(1_000_000);

/// Adds an object that has not come in an older version since.
fn push(queue: &JudgementQueue, judgement: Judgement) -> bool {
    queue.push(judgement, || false)
}

/// The first plan of a kind, and a later one.
fn plans() -> [Arc<PlannedInterest>; 2] {
    let plans = Plans::default();
    [(); 2].map(|()| {
        plans.set_interest(Interest::for_kind(KIND, "", "Pod"));
        plans.planned(KIND).unwrap()
    })
}

fn judgement(plan: &Arc<PlannedInterest>, uid: &str, version: u64, text: &Arc<str>) -> Judgement {
    judgement_in("shop", plan, uid, version, text)
}

fn judgement_in(
    namespace: &str,
    plan: &Arc<PlannedInterest>,
    uid: &str,
    version: u64,
    text: &Arc<str>,
) -> Judgement {
    Judgement::new((plan, 0), (ObjectId(1), (namespace, uid), version), Arc::clone(text), NOW)
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
            assert!(push(&queue, judgement(&plans[plan], "a", version, &text)));
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
        push(&queue, judgement(&plan, "a", 7, &text.into()));
    }
    assert_eq!(&*queue.take(NOW).unwrap().text, "later");
}

#[test]
fn one_rule_holds_half_of_the_room_at_most_and_leaves_the_rest_to_others() {
    let (queue, [plan, _]) = (JudgementQueue::default(), plans());
    let text: Arc<str> = "x".repeat((1 << 20) - JUDGEMENT_BYTES).into();
    assert!(queue.has_room(KIND, NOW));
    let held = (0..40).take_while(|n| push(&queue, judgement(&plan, &n.to_string(), 1, &text))).count();
    assert_eq!((held, queue.size()), (16, (16, 16 << 20)));
    assert!(!queue.has_room(KIND, NOW));
    assert!(queue.has_room(KIND, NOW + ROOM_WAIT_LIMIT), "nobody waits for a slow rule for long");
    let mut other = judgement(&plan, "other", 1, &text);
    other.rule_index = 1;
    assert!(push(&queue, other), "another rule has room");
    queue.forget_kind(KIND);
    assert_eq!(queue.size(), (0, 0));
}

#[test]
fn a_version_that_takes_the_place_of_a_smaller_one_needs_room_for_the_rest_of_it() {
    let (queue, [plan, _]) = (JudgementQueue::default(), plans());
    let text = |mib: usize| -> Arc<str> { "x".repeat((mib << 20) - JUDGEMENT_BYTES).into() };
    assert!(push(&queue, judgement(&plan, "0", 1, &text(1))));
    assert!(push(&queue, judgement(&plan, "0", 2, &text(40))), "what waits alone may be of any size");
    assert!(push(&queue, judgement(&plan, "0", 3, &text(1))));
    for n in 1..16 {
        assert!(push(&queue, judgement(&plan, &n.to_string(), 1, &text(1))));
    }
    for version in 4..100 {
        assert!(!push(&queue, judgement(&plan, "0", version, &text(2))));
        assert_eq!(queue.size(), (16, 16 << 20));
    }
    assert!(push(&queue, judgement(&plan, "1", 2, &text(1))), "as large as before");
    let taken = queue.take(NOW).unwrap();
    assert_eq!(taken.version, 3);
    assert!(push(&queue, judgement(&plan, "1", 3, &text(2))));
    assert_eq!(queue.size(), (15, 16 << 20));
}

#[test]
fn a_lower_version_takes_the_place_of_one_that_the_object_is_not_held_in_any_more() {
    let (queue, [plan, _]) = (JudgementQueue::default(), plans());
    push(&queue, judgement(&plan, "a", 50, &"before".into()));
    assert!(queue.push(judgement(&plan, "a", 30, &"restored".into()), || true));
    assert!(push(&queue, judgement(&plan, "a", 29, &"late".into())));
    assert_eq!(&*queue.take(NOW).unwrap().text, "restored");
    assert_eq!(queue.size(), (0, 0));
}

/// The plan of a kind whose objects are judged by a rule that groups have brought, and by one of a policy.
fn plan_of_groups() -> Arc<PlannedInterest> {
    let definition = rules::RuleDefinition::Cel { current: "true", in_progress: None, failed: None };
    let rule = Arc::new(rules::CompiledRule::compile(&definition).unwrap());
    let of = ("v1".into(), "Pod".into());
    let rule = UserRule { rule, source: "true".into(), shared_by: RuleSharing::Namespace, of };
    let limits = readiness::StuckLimits::default();
    let by_policy = UserRule { shared_by: RuleSharing::Kind, ..rule.clone() };
    let judged_by = |rule| AssessmentRule { limits, rule: Some(rule), remembers_outcome: false };
    let plans = Plans::default();
    let interest = Interest::for_kind(KIND, "", "Pod");
    plans
        .set_interest(Interest { assessment_rules: vec![judged_by(rule), judged_by(by_policy)], ..interest });
    plans.planned(KIND).unwrap()
}

#[test]
fn objects_of_one_namespace_delay_those_of_another_by_a_turn_where_groups_have_brought_the_rule() {
    let (queue, plan) = (JudgementQueue::default(), plan_of_groups());
    for n in 0..100 {
        push(&queue, judgement_in("mallory", &plan, &format!("slow-{n}"), 1, &"{}".into()));
    }
    push(&queue, judgement_in("shop", &plan, "a", 1, &"{}".into()));
    for uid in ["slow-0", "a"] {
        let taken = queue.take(NOW).unwrap();
        assert_eq!(&*taken.uid, uid);
        assert!(queue.take(NOW).is_none(), "a rule has one object evaluated at a time");
        queue.finish(taken);
    }
    assert_eq!(&*queue.take(NOW).unwrap().uid, "slow-1");
    let late = NOW + Duration::from_secs(60);
    assert_eq!(queue.count_overdue((KIND, 0), Duration::from_secs(1), late), 98, "of all namespaces");
}

#[test]
fn one_namespace_leaves_room_for_another_and_however_many_there_are_the_queue_is_bounded() {
    let (queue, plan) = (JudgementQueue::default(), plan_of_groups());
    let text: Arc<str> = "x".repeat(1 << 20).into();
    let mut held = 0;
    while push(&queue, judgement_in("mallory", &plan, &format!("large-{held}"), 1, &text)) {
        held += 1;
    }
    assert!((10..=16).contains(&held), "{held}");
    assert!(push(&queue, judgement_in("shop", &plan, "a", 1, &text)));
    for n in 0..1_000 {
        push(&queue, judgement_in(&format!("ns-{n}"), &plan, &format!("b-{n}"), 1, &text));
    }
    assert!(queue.size().1 <= MAX_WAITING_BYTES, "{:?}", queue.size());
}

#[test]
fn a_rule_of_many_namespaces_has_no_more_turns_than_that_of_a_policy() {
    let (queue, plan) = (JudgementQueue::default(), plan_of_groups());
    for n in 0..1_000 {
        let namespace = format!("ns-{}", n % 500);
        push(&queue, judgement_in(&namespace, &plan, &format!("many-{n}"), 1, &"{}".into()));
    }
    for n in 0..100 {
        let of_groups = judgement_in("shop", &plan, &format!("one-{n}"), 1, &"{}".into());
        push(&queue, Judgement { rule_index: 1, ..of_groups });
    }
    let (mut turns, mut done) = (0, 0);
    while done < 100 {
        let taken = queue.take(NOW).unwrap();
        (turns, done) = (turns + 1, done + u32::from(taken.rule_index == 1));
        queue.finish(taken);
    }
    assert!(turns <= 200, "{turns}");
    while let Some(taken) = queue.take(NOW) {
        queue.finish(taken);
        turns += 1;
    }
    assert_eq!(turns, 1_100, "nothing is forgotten");
    assert_eq!(queue.size(), (0, 0));
}
