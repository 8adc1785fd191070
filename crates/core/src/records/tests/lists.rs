//! Records that are listed: never half a list.

use super::*;

/// Names of the Jobs whose outcomes are known.
fn known_jobs(process: &RecordProcess) -> Vec<String> {
    let known = process.reflector.outcomes().parent_outcomes(PARENT).unwrap_or_default().outcomes;
    known.iter().map(|run| run.name.to_string()).collect()
}

/// The record of a Job that has failed, as another process wrote it.
fn recorded() -> Value {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Failed"));
    process.written()
}

/// The same record later: it tells of another Job, too.
fn amended(record: &Value, version: &str) -> Value {
    let mut record = record.clone();
    record["metadata"]["resourceVersion"] = json!(version);
    let mut other = record["spec"]["outcomes"][0].clone();
    (other["uid"], other["name"], other["slot"]) =
        (json!("00000000-0000-4000-8000-000000000003"), json!("seed"), json!("seed"));
    record["spec"]["outcomes"].as_array_mut().unwrap().push(other);
    record
}

/// A process that stands by and has read this record.
fn standby(record: &Value) -> RecordProcess {
    let mut process = RecordProcess::new();
    process.keeper.set_leading(false);
    process.keeper.begin_list();
    process.keeper.stage_record(record);
    process.keeper.finish_list(&process.reflector);
    process
}

#[test]
fn no_outcome_of_half_a_first_list_counts_and_all_of_a_complete_one_do() {
    let record = recorded();
    let mut process = RecordProcess { keeper: led(recorded_kinds()), ..RecordProcess::new() };
    process.keeper.begin_list();
    process.keeper.stage_record(&record);
    assert_eq!(known_jobs(&process), [""; 0], "half a list");
    assert!(!process.reflector.outcomes().is_unseen(JOB));
    process.rests();
    process.keeper.begin_list();
    assert_eq!(known_jobs(&process), [""; 0], "it broke off, and another begins");
    process.keeper.stage_record(&record);
    process.keeper.finish_list(&process.reflector);
    assert_eq!(known_jobs(&process), ["migrate"]);
    process.rests();
}

#[test]
fn what_a_list_that_broke_off_has_brought_counts_for_nothing_in_the_next_one() {
    let mut process = RecordProcess::new();
    process.keeper.begin_list();
    process.keeper.stage_record(&recorded());
    process.keeper.begin_list();
    process.keeper.finish_list(&process.reflector);
    assert_eq!(known_jobs(&process), [""; 0]);
    process.rests();
}

#[test]
fn a_relist_that_breaks_off_changes_nothing_and_what_was_known_counts_until_one_is_complete() {
    let record = recorded();
    let mut process = standby(&record);
    assert_eq!(known_jobs(&process), ["migrate"]);
    for _ in 0..2 {
        process.keeper.begin_list();
        process.keeper.stage_record(&amended(&record, "11"));
        assert_eq!(known_jobs(&process), ["migrate"], "half a list");
    }
    process.keeper.finish_list(&process.reflector);
    assert_eq!(known_jobs(&process), ["migrate", "seed"]);
    process.keeper.begin_list();
    assert_eq!(known_jobs(&process), ["migrate", "seed"], "an empty half");
    process.keeper.finish_list(&process.reflector);
    assert_eq!(known_jobs(&process), [""; 0], "its leader has deleted it");
}

#[test]
fn what_is_wrong_in_a_record_is_named_when_its_list_is_complete() {
    let mut record = recorded();
    record["spec"]["outcomes"][0]["outcome"] = json!("Splendid");
    let mut process = RecordProcess::new();
    process.keeper.begin_list();
    process.keeper.stage_record(&record);
    let complaints = process.keeper.finish_list(&process.reflector);
    let (name, what) = &complaints[0];
    assert!(name == PARENT && what[0].contains("migrate"), "{complaints:?}");
}

#[test]
fn records_are_written_while_they_are_listed_again() {
    let mut process = RecordProcess::new();
    process.see(&job(5, ""));
    let record = process.written();
    process.keeper.begin_list();
    process.keeper.stage_record(&record);
    process.see(&job(7, "Complete"));
    let RecordOperation::Patch { patch, .. } = process.errand() else { panic!("it is to be amended") };
    let mut written = record.clone();
    written["metadata"]["resourceVersion"] = json!("11");
    written["spec"] = patch[2]["value"].clone();
    process.done(&RecordOperationResult::Current(Some(written)));
    process.keeper.finish_list(&process.reflector);
    process.rests();
}

#[test]
fn neither_a_list_nor_an_answer_during_it_takes_back_what_the_other_has_of_a_later_version() {
    for answer_is_last in [false, true] {
        let mut process = RecordProcess::new();
        process.see(&job(5, ""));
        let record = process.written();
        process.see(&job(7, "Complete"));
        let RecordOperation::Patch { patch, .. } = process.errand() else { panic!("it is to be amended") };
        let mut written = record.clone();
        written["metadata"]["resourceVersion"] = json!("11");
        written["spec"] = patch[2]["value"].clone();
        let answer = RecordOperationResult::Current(Some(written.clone()));
        process.keeper.begin_list();
        if answer_is_last {
            // Somebody has edited it since.
            let mut edited = record.clone();
            edited["metadata"]["resourceVersion"] = json!("12");
            process.keeper.stage_record(&edited);
            process.done(&answer);
            process.keeper.finish_list(&process.reflector);
            let RecordOperation::Patch { patch, .. } = process.errand() else {
                panic!("it is to be set right")
            };
            assert_eq!(patch[1]["value"], "12");
        } else {
            process.done(&answer);
            process.keeper.stage_record(&record);
            process.keeper.finish_list(&process.reflector);
            process.rests();
        }
    }
}

#[test]
fn a_record_that_is_created_while_records_are_listed_is_not_missing_in_the_list() {
    let mut process = RecordProcess::new();
    process.keeper.begin_list();
    process.see(&job(5, "Complete"));
    process.written();
    process.keeper.finish_list(&process.reflector);
    process.rests();
}
