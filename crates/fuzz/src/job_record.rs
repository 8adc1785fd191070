//! Records of Jobs' outcomes (`ReadinessRecord`), which who may write them writes.

use std::collections::BTreeMap;

use rollcall_core::records::{RecordOperation, RecordOperationResult, RecordStore, RecordedKinds};
use rollcall_record::{RecordContent, read_content};
use serde::Deserialize;
use serde_json::{Value, json};
use watcher::reflector::{MAX_PARENT_OUTCOMES, Reflector, RunEnd};

use crate::input_parts::split_parts;
use crate::remembered_job::{JOB, JOBS, PARENT, PARENTS, parent_outcomes, remembering_reflector};

pub(crate) const JOB_RECORD_WORDS: &[&str] = &[
    "\"parent\":{\"group\":\"example.com\",\"kind\":\"Database\",\"namespace\":\"shop\",\"name\":\"orders\"}",
    "\"outcomes\":[",
    "{\"group\":\"batch\",\"kind\":\"Job\",\"namespace\":\"shop\",\"name\":\"seed\",\"slot\":\"seed\",\"uid\":\"u-1\",\"outcome\":\"Complete\"},",
    "\"uid\":\"00000000-0000-4000-8000-000000000001\"",
    "\"uid\":\"00000000-0000-4000-8000-000000000002\"",
    "\"name\":\"migrate\"",
    "\"outcome\":\"Failed\"",
    "\"outcome\":\"Running\"",
    "\"outcome\":\"Unseen\"",
    "\"heard\":true",
    "\"discarded\":[\"v\"]",
    "\"generation\":-1",
    "\"resourceVersion\":\"9\"",
    "\"created\":\"2027-01-15T08:00:00Z\"",
    "\"labels\":{\"app\":\"db\"}",
    "null",
    "\n---\n",
];

/// The first part is a record as it is first read, the second one an edit. What is read of it is bounded, takes nothing from
/// a Job that is there, and is written back as a record that reads the same; what is known is changed by no edit.
pub(crate) fn run(data: &[u8]) {
    let Some((first, edit)) = split_parts(data) else { return };
    let Ok(first) = serde_json::from_str::<Value>(first) else { return };
    check_content(&first);
    let reflector = remembering_reflector();
    let mut store = RecordStore::new(recorded_kinds());
    store.set_leading(true);
    list_record(&mut store, &reflector, &record(&first, 10));
    check_memory(&reflector);
    let written = written_back(&mut store, &reflector);
    if let Some(written) = &written {
        check_written(written);
    }
    let Ok(edit) = serde_json::from_str::<Value>(edit) else { return };
    let before = known_ends(&reflector);
    store.observe_record(&reflector, &record(&edit, 100));
    check_memory(&reflector);
    let after = known_ends(&reflector);
    assert!(before.keys().eq(after.keys()), "an edit neither adds nor takes away: {before:?} {after:?}");
    for (uid, end) in before.iter().filter(|(_, end)| **end != RunEnd::Open) {
        assert_eq!(after.get(uid), Some(end), "an edit changes what is known of {uid}");
    }
}

fn recorded_kinds() -> RecordedKinds {
    let kind = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
    RecordedKinds::from([(kind("batch", "Job"), JOBS), (kind("example.com", "Database"), PARENTS)])
}

fn record(spec: &Value, version: u32) -> Value {
    json!({ "metadata": { "name": PARENT, "uid": "r-1", "resourceVersion": version.to_string() }, "spec": spec })
}

/// Lists this record, and no other. Complaints about its content.
fn list_record(store: &mut RecordStore, reflector: &Reflector, record: &Value) -> Vec<(String, Vec<String>)> {
    store.begin_list();
    store.stage_record(record);
    store.finish_list(reflector)
}

/// What is read leniently reads the same again, by the types themselves too; what fits the types loses nothing.
fn check_content(spec: &Value) {
    let (parent, outcomes) = read_content(spec);
    let listed = spec["outcomes"].as_array().map_or(0, Vec::len);
    assert_eq!(outcomes.len(), listed);
    if let Ok(strict) = RecordContent::deserialize(spec) {
        assert_eq!(parent, strict.parent);
        assert!(outcomes.iter().all(|read| read.left_out.is_empty()));
    }
    let content = RecordContent { parent, outcomes: outcomes.into_iter().map(|read| read.value).collect() };
    let again: RecordContent = serde_json::from_value(serde_json::to_value(&content).unwrap()).unwrap();
    assert_eq!(again, content);
}

fn check_memory(reflector: &Reflector) {
    let known = parent_outcomes(reflector);
    assert!(known.outcomes.len() <= MAX_PARENT_OUTCOMES, "{} outcomes", known.outcomes.len());
    for outcome in &known.outcomes {
        assert!(!outcome.uid.is_empty() && !outcome.name.is_empty(), "{outcome:?}");
    }
    let is_job = |outcome: &&watcher::reflector::RememberedOutcome| &*outcome.uid == JOB;
    if let Some(job) = known.outcomes.iter().find(is_job) {
        assert!(!job.deleted && job.end == RunEnd::Complete, "it is there, and says so: {job:?}");
    }
    assert!(reflector.find_object(JOB).is_some() && reflector.find_object(PARENT).is_some());
}

fn known_ends(reflector: &Reflector) -> BTreeMap<Box<str>, RunEnd> {
    parent_outcomes(reflector).outcomes.into_iter().map(|o| (o.uid, o.end)).collect()
}

/// The record as it is set right, if it is.
fn written_back(store: &mut RecordStore, reflector: &Reflector) -> Option<Value> {
    let mut written = None;
    for (name, operation) in store.take_operations(reflector) {
        let done = match operation {
            RecordOperation::Patch { patch, .. } if name == PARENT => {
                let spec = patch[2]["value"].clone();
                let done = RecordOperationResult::Current(Some(record(&spec, 11)));
                written = Some(spec);
                done
            }
            operation => panic!("{name}: the parent is there, and its record: {operation:?}"),
        };
        assert_eq!(store.settle_operation(reflector, &name, &done), Vec::<String>::new());
    }
    assert_eq!(store.take_operations(reflector), [], "a write brings about no other");
    written
}

/// What is written fits the schema's types, and another process reads of it what this one knew.
fn check_written(spec: &Value) {
    let content = RecordContent::deserialize(spec).unwrap();
    assert!(content.outcomes.len() <= MAX_PARENT_OUTCOMES);
    let next = remembering_reflector();
    let mut store = RecordStore::new(recorded_kinds());
    store.set_leading(true);
    assert_eq!(list_record(&mut store, &next, &record(spec, 11)), []);
    // Which names the parent of that uid has stands in the record as it was first read, until its Jobs are seen.
    let again = written_back(&mut store, &next);
    assert!(again.is_none_or(|again| again["outcomes"] == spec["outcomes"]), "it reads otherwise: {spec}");
}
