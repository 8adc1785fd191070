//! Records while another process leads, and after a change of leaders.

use super::*;

/// A process that stands by, and has read the first version of its leader's record.
fn standby(record: &Value) -> RecordProcess {
    let mut process = RecordProcess::new();
    process.keeper.set_leading(false);
    process.keeper.observe_record(&process.reflector, record);
    process
}

#[test]
fn what_a_leader_wrote_of_what_a_standby_did_not_see_outlives_the_change() {
    let mut leader = RecordProcess::new();
    leader.see(&job(5, ""));
    let first = leader.written();
    let mut other = job(6, "Failed");
    (other["metadata"]["uid"], other["metadata"]["name"]) =
        (json!("00000000-0000-4000-8000-000000000003"), json!("seed"));
    leader.see(&other);
    let RecordOperation::Patch { patch, .. } = leader.errand() else { panic!("it is to be amended") };
    let mut second = first.clone();
    second["spec"] = patch[2]["value"].clone();
    second["metadata"]["resourceVersion"] = json!("11");

    let mut process = standby(&first);
    process.rests();
    process.keeper.observe_record(&process.reflector, &second);
    process.keeper.set_leading(true);
    process.see(&job(7, ""));
    process.rests();
    let known = process.reflector.outcomes().parent_outcomes(PARENT).unwrap().outcomes;
    assert!(
        known.iter().any(|run| &*run.name == "seed" && run.end != watcher::reflector::RunEnd::Open),
        "{known:?}"
    );

    // What its leader does not remember any more, it forgets, unless it saw it.
    let mut process = standby(&second);
    process.see(&job(7, ""));
    process.keeper.observe_deletion(&process.reflector, PARENT);
    let known = process.reflector.outcomes().parent_outcomes(PARENT).unwrap().outcomes;
    assert_eq!(known.iter().map(|run| &*run.name).collect::<Vec<_>>(), ["migrate"]);
}

#[test]
fn a_record_that_was_agreed_with_is_believed_no_more_until_another_leads() {
    let mut process = RecordProcess::new();
    process.see(&job(5, ""));
    let mut record = process.written();
    record["metadata"]["resourceVersion"] = json!("11");
    let mut other = record["spec"]["outcomes"][0].clone();
    (other["uid"], other["name"], other["slot"], other["outcome"]) =
        (json!("00000000-0000-4000-8000-000000000003"), json!("seed"), json!("seed"), json!("Complete"));
    record["spec"]["outcomes"].as_array_mut().unwrap().push(other);
    process.keeper.observe_record(&process.reflector, &record);
    assert!(matches!(process.errand(), RecordOperation::Patch { .. }), "it is to be set right");
    process.done(&RecordOperationResult::Failed);
    process.keeper.set_leading(false);
    record["metadata"]["resourceVersion"] = json!("12");
    process.keeper.observe_record(&process.reflector, &record);
    process.keeper.set_leading(true);
    process.rests();
}

#[test]
fn a_standby_forgets_parents_that_are_gone_and_writes_nothing() {
    let mut leader = RecordProcess::new();
    leader.see(&job(5, "Complete"));
    let mut process = standby(&leader.written());
    process.see(&job(5, "Complete"));
    process.rests();
    process.reflector.delete_object(PARENT, 9);
    assert!(matches!(process.errand(), RecordOperation::CheckParent(_)));
    process.done(&RecordOperationResult::ParentGone);
    process.rests();
    assert!(process.reflector.outcomes().parent_outcomes(PARENT).is_none());
    process.keeper.observe_deletion(&process.reflector, PARENT);
    // A late event of its child brings it back for as long as it takes to ask once more.
    process.reflector.on_deleted(KindId(1), parse(&job(12, "Complete")).as_child());
    process.see(&job(13, "Complete"));
    assert!(matches!(process.errand(), RecordOperation::CheckParent(_)));
    process.done(&RecordOperationResult::ParentGone);
    process.rests();
    assert!(process.reflector.outcomes().parent_outcomes(PARENT).is_none());
}

#[test]
fn a_record_that_stood_while_nobody_led_is_agreed_with_by_who_leads_again() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Failed"));
    let mut record = process.written();
    process.keeper.set_leading(false);
    process.keeper.set_leading(true);
    process.rests();
    record["metadata"]["resourceVersion"] = json!("11");
    let mut forged = record["spec"]["outcomes"][0].clone();
    (forged["uid"], forged["name"], forged["slot"], forged["outcome"]) =
        (json!("00000000-0000-4000-8000-000000000003"), json!("seed"), json!("seed"), json!("Complete"));
    record["spec"]["outcomes"].as_array_mut().unwrap().push(forged);
    process.keeper.observe_record(&process.reflector, &record);
    assert!(matches!(process.errand(), RecordOperation::Patch { .. }), "it is to be set right");
}
