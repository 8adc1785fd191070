//! Records that go: with their parent, or once nobody asks for what they remember, and not before.

use watcher::plan::{LabelMatchTerm, LabelMatcher, ShapeMatcher};

use super::*;

#[test]
fn a_record_is_swept_once_a_live_read_says_that_its_parent_is_gone() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    let record = process.written();
    let mut next = RecordProcess::blind();
    next.keeper.observe_record(&next.reflector, &record);
    next.rests();
    assert!(next.keeper.has_pending(), "its kind is not listed yet");
    next.list();
    let RecordOperation::CheckParent(whose) = next.errand() else { panic!("it is to be asked for") };
    assert_eq!((&*whose.kind, &*whose.namespace, &*whose.name), ("Database", "shop", "orders"));
    next.done(&RecordOperationResult::ParentExists);
    next.rests();

    process.reflector.delete_object(PARENT, 9);
    assert!(matches!(process.errand(), RecordOperation::CheckParent(_)));
    process.done(&RecordOperationResult::ParentGone);
    let removal = RecordOperation::Delete { uid: "r-1".to_owned(), version: "10".to_owned() };
    assert_eq!(process.errand(), removal);
    process.done(&RecordOperationResult::Current(None));
    process.rests();
    assert!(process.reflector.outcomes().parent_outcomes(PARENT).is_none());
}

#[test]
fn where_nothing_is_left_to_remember_the_record_goes() {
    let mut process = RecordProcess::new();
    process.see(&job(5, ""));
    process.written();
    process.reflector.on_deleted(KindId(1), parse(&job(6, "")).as_child());
    assert!(matches!(process.errand(), RecordOperation::Delete { .. }));
}

fn unchosen() -> Interest {
    let mut interest = databases();
    interest.parent[0].selector = LabelMatcher { requirements: vec![LabelMatchTerm::Exists("team".into())] };
    interest
}

#[test]
fn a_record_goes_some_time_after_no_policy_chooses_its_parent_any_more() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    process.written();
    let mut parent = database();
    for (version, interest) in [("2", unchosen()), ("3", databases()), ("4", unchosen())] {
        parent["metadata"]["resourceVersion"] = json!(version);
        let parent = parse(&parent);
        process.reflector.set_interest(interest);
        process.reflector.apply_object(KindId(2), parent.as_child(), parent.raw_text());
        if version == "3" {
            process.rests();
            continue;
        }
        assert!(matches!(process.errand(), RecordOperation::CheckParent(_)), "it may be gone");
        process.done(&RecordOperationResult::ParentExists);
        for _ in 0..DESELECTED_ROUNDS - 1 {
            process.rests();
            process.keeper.count_round();
        }
        process.rests();
    }
    process.keeper.count_round();
    assert!(matches!(process.errand(), RecordOperation::Delete { .. }));
    process.done(&RecordOperationResult::Current(None));
    process.rests();
    assert_eq!(process.reflector.outcomes().parent_outcomes(PARENT), None);
    parent["metadata"]["resourceVersion"] = json!("5");
    let parent = parse(&parent);
    process.reflector.set_interest(databases());
    process.reflector.apply_object(KindId(2), parent.as_child(), parent.raw_text());
    process.rests();
    process.see(&job(9, "Failed"));
    assert_eq!(outcome(&process.written()), "Failed", "it begins anew");
}

#[test]
fn a_record_goes_some_time_after_no_policy_remembers_any_more() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    process.written();
    let mut forgetful = jobs();
    forgetful.child[0].retention = OutcomeRetention::Forget;
    forgetful.assessment_rules[0].remembers_outcome = false;
    process.reflector.set_interest(forgetful);
    process.rests();
    (0..DESELECTED_ROUNDS).for_each(|_| process.keeper.count_round());
    assert!(matches!(process.errand(), RecordOperation::Delete { .. }));
}

#[test]
fn an_edit_of_a_policy_forgets_nothing_before_its_parents_are_read_again() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    process.written();
    // Every edit gives a policy another id; the list of its parents does not come.
    let (mut edited_jobs, mut edited_databases) = (jobs(), databases());
    (edited_jobs.child[0].policy, edited_databases.parent[0].policy) = (PolicyId(2), PolicyId(2));
    process.reflector.set_interest(edited_jobs);
    process.reflector.set_interest(edited_databases);
    for _ in 0..10 * DESELECTED_ROUNDS {
        process.rests();
        process.keeper.count_round();
    }
    assert!(process.reflector.outcomes().parent_outcomes(PARENT).is_some());
    let mut parent = database();
    parent["metadata"]["resourceVersion"] = json!("2");
    let parent = parse(&parent);
    process.reflector.apply_object(KindId(2), parent.as_child(), parent.raw_text());
    process.rests();
    assert!(process.reflector.outcomes().parent_outcomes(PARENT).is_some());
}

#[test]
fn while_nobody_knows_what_a_parent_asks_for_nothing_of_it_is_forgotten() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    process.written();
    let mut refusing = databases();
    refusing.parent[0].policy = PolicyId(2);
    refusing.parent[0].shape =
        Some(ShapeMatcher::refusing_others("it was asked for a moment ago".into(), |_| Err(String::new())));
    process.reflector.set_interest(refusing);
    let mut parent = database();
    parent["metadata"]["resourceVersion"] = json!("2");
    let parent = parse(&parent);
    process.reflector.apply_object(KindId(2), parent.as_child(), parent.raw_text());
    for _ in 0..10 * DESELECTED_ROUNDS {
        process.rests();
        process.keeper.count_round();
    }
    assert!(process.reflector.outcomes().parent_outcomes(PARENT).is_some());
}

#[test]
fn the_record_of_a_parent_that_was_never_chosen_here_is_somebody_elses() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    let record = process.written();
    let mut other = RecordProcess::blind();
    other.keeper.observe_record(&other.reflector, &record);
    let parent = parse(&database());
    other.reflector.set_interest(unchosen());
    other.passes[1] = other.reflector.begin_list(KindId(2), None);
    other.reflector.apply_object(KindId(2), parent.as_child(), parent.raw_text());
    other.list();
    assert!(matches!(other.errand(), RecordOperation::CheckParent(_)));
    other.done(&RecordOperationResult::ParentExists);
    (0..10 * DESELECTED_ROUNDS).for_each(|_| other.keeper.count_round());
    other.rests();
}
