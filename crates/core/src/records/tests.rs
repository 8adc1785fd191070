//! Records as one process writes, amends and reads them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use aggregator::{KindId, PolicyId};
use readiness::StuckLimits;
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
    ParentRule,
};
use watcher::reflector::ListPass;
use watcher::{ParentObject, ReflectorObject};

use super::*;

mod leaders;
mod lists;
mod removal;

/// The store of a process that leads.
fn led(spoken_of: RecordedKinds) -> RecordStore {
    let mut keeper = RecordStore::new(spoken_of);
    keeper.set_leading(true);
    keeper
}

fn recorded_kinds() -> RecordedKinds {
    RecordedKinds::from([
        (("batch".to_owned(), "Job".to_owned()), KindId(1)),
        (("example.com".to_owned(), "Database".to_owned()), KindId(2)),
    ])
}

const PARENT: &str = "00000000-0000-4000-8000-000000000001";
const JOB: &str = "00000000-0000-4000-8000-000000000002";

fn jobs() -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Database".into() };
    Interest {
        assessment_rules: vec![AssessmentRule {
            limits: StuckLimits::default(),
            rule: None,
            remembers_outcome: true,
        }],
        child: vec![ChildRule {
            policy: PolicyId(1),
            group: 0,
            rule_index: 0,
            find,
            allowed: AllowedNamespaces::default(),
            ignore: None,
            made_by_none_of: [].into(),
            scope: NamespaceScope::default(),
            retention: OutcomeRetention::Remember,
        }],
        ..Interest::for_kind(KindId(1), "batch", "Job")
    }
}

fn databases() -> Interest {
    let rule = ParentRule::for_policy(PolicyId(1));
    Interest { parent: vec![rule], ..Interest::for_kind(KindId(2), "example.com", "Database") }
}

fn database() -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Database", "spec": {},
        "metadata": { "name": "orders", "namespace": "shop", "uid": PARENT, "resourceVersion": "1", "generation": 1 } })
}

fn job(version: u32, ended: &str) -> Value {
    let owner =
        json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": "orders", "uid": PARENT }]);
    json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": {},
        "metadata": { "name": "migrate", "namespace": "shop", "uid": JOB, "resourceVersion": version.to_string(),
            "ownerReferences": owner },
        "status": { "conditions": [{ "type": ended, "status": "True" }] } })
}

fn parse(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// One process: its reflector and its record store.
struct RecordProcess {
    reflector: Reflector,
    keeper: RecordStore,
    passes: [ListPass; 2],
}

impl RecordProcess {
    /// Both kinds were listed, and the parent was in the list.
    fn new() -> RecordProcess {
        let process = RecordProcess::blind();
        let parent = parse(&database());
        process.reflector.apply_object(KindId(2), parent.as_child(), parent.raw_text());
        process.list();
        process
    }

    /// Neither kind was listed yet, and there was no record.
    fn blind() -> RecordProcess {
        let reflector = Reflector::new(|| ());
        reflector.set_interest(jobs());
        reflector.set_interest(databases());
        let passes = [KindId(1), KindId(2)].map(|kind| reflector.begin_list(kind, None));
        let mut keeper = led(recorded_kinds());
        keeper.begin_list();
        keeper.finish_list(&reflector);
        RecordProcess { reflector, keeper, passes }
    }

    fn list(&self) {
        for pass in &self.passes {
            assert!(self.reflector.finish_list(pass).is_some());
        }
    }

    fn see(&self, job: &Value) {
        self.reflector.apply_object(KindId(1), parse(job).as_child(), None);
    }

    /// The only operation that is due.
    fn errand(&mut self) -> RecordOperation {
        let mut errands = self.keeper.take_operations(&self.reflector);
        assert_eq!(errands.len(), 1, "{errands:?}");
        let (name, errand) = errands.pop().unwrap();
        assert_eq!(name, PARENT);
        errand
    }

    fn rests(&mut self) {
        assert_eq!(self.keeper.take_operations(&self.reflector), []);
    }

    fn done(&mut self, done: &RecordOperationResult) {
        assert_eq!(self.keeper.settle_operation(&self.reflector, PARENT, done), Vec::<String>::new());
    }

    /// Writes a record with the Job's current outcome, and returns it.
    fn written(&mut self) -> Value {
        let RecordOperation::Create(mut body) = self.errand() else { panic!("it is to be created") };
        body["metadata"]["uid"] = json!("r-1");
        body["metadata"]["resourceVersion"] = json!("10");
        self.done(&RecordOperationResult::Current(Some(body.clone())));
        self.rests();
        body
    }
}

fn outcome(record: &Value) -> &str {
    record["spec"]["outcomes"][0]["outcome"].as_str().unwrap()
}

#[test]
fn a_stub_is_written_at_first_sight_and_amended_at_the_end() {
    let mut process = RecordProcess::new();
    process.see(&job(5, ""));
    let record = process.written();
    assert_eq!((record["metadata"]["name"].as_str(), outcome(&record)), (Some(PARENT), "Running"));
    process.see(&job(6, ""));
    process.rests();
    process.see(&job(7, "Complete"));
    let RecordOperation::Patch { patch, again: 0 } = process.errand() else { panic!("it is to be amended") };
    let tests = json!([
        { "op": "test", "path": "/metadata/uid", "value": "r-1" },
        { "op": "test", "path": "/metadata/resourceVersion", "value": "10" },
    ]);
    assert_eq!(json!([patch[0], patch[1]]), tests);
    assert_eq!(patch[2]["value"]["outcomes"][0]["outcome"], "Complete");
}

#[test]
fn of_one_record_one_thing_is_done_at_a_time() {
    let mut process = RecordProcess::new();
    process.see(&job(5, ""));
    assert!(matches!(process.errand(), RecordOperation::Create(_)));
    process.see(&job(7, "Complete"));
    process.rests();
    process.done(&RecordOperationResult::Failed);
    let RecordOperation::Create(body) = process.errand() else { panic!("it is tried again") };
    assert_eq!(outcome(&body), "Complete", "with what is known by then");
}

#[test]
fn a_record_that_somebody_deletes_is_written_again() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    process.written();
    process.keeper.observe_deletion(&process.reflector, PARENT);
    assert_eq!(outcome(&process.written()), "Complete");
    process.keeper.begin_list();
    process.keeper.finish_list(&process.reflector);
    assert!(matches!(process.errand(), RecordOperation::Create(_)), "a list does not have it");
}

#[test]
fn what_a_store_could_not_write_is_written_by_the_next_one_of_the_same_process() {
    for was_taken in [false, true] {
        let mut process = RecordProcess::new();
        process.see(&job(5, "Complete"));
        if was_taken {
            process.written();
        } else {
            assert!(matches!(process.errand(), RecordOperation::Create(_)), "under way, and never answered");
        }
        // The definition of records is gone with them, and comes back; or a plan changes the kinds that they name.
        process.keeper = led(recorded_kinds());
        process.keeper.begin_list();
        process.keeper.finish_list(&process.reflector);
        assert_eq!(outcome(&process.written()), "Complete");
    }
}

#[test]
fn a_record_that_a_restored_server_lists_is_patched_though_its_version_is_older_than_what_was_known() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    let mut record = process.written();
    process.rests();
    record["metadata"]["resourceVersion"] = json!("1");
    record["spec"]["outcomes"][0]["outcome"] = json!("Failed");
    process.keeper.observe_record(&process.reflector, &record);
    process.rests();
    process.keeper.begin_list();
    process.keeper.stage_record(&record);
    process.keeper.finish_list(&process.reflector);
    assert!(matches!(process.errand(), RecordOperation::Patch { .. }), "it is to be set right");
}

#[test]
fn a_record_that_somebody_edits_is_set_right_and_more_slowly_each_time() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    let mut record = process.written();
    let right = record.clone();
    for round in 0..3 {
        record["spec"]["outcomes"][0]["outcome"] = json!("Failed");
        assert!(process.keeper.observe_record(&process.reflector, &record).is_empty());
        let RecordOperation::Patch { patch, again } = process.errand() else {
            panic!("it is to be set right")
        };
        assert_eq!((&patch[2]["value"], again), (&right["spec"], round));
        process.done(&RecordOperationResult::Current(Some(right.clone())));
        process.rests();
    }
}

#[test]
fn an_answer_that_comes_after_what_the_watch_has_brought_since_hides_nothing() {
    let written = |process: &mut RecordProcess| {
        process.see(&job(5, "Complete"));
        let RecordOperation::Create(mut body) = process.errand() else { panic!("it is to be created") };
        body["metadata"]["uid"] = json!("r-1");
        body["metadata"]["resourceVersion"] = json!("10");
        body
    };
    let mut edited = RecordProcess::new();
    let record = written(&mut edited);
    let mut wrong = record.clone();
    wrong["spec"]["outcomes"][0]["outcome"] = json!("Failed");
    wrong["metadata"]["resourceVersion"] = json!("11");
    edited.keeper.observe_record(&edited.reflector, &wrong);
    edited.done(&RecordOperationResult::Current(Some(record)));
    let RecordOperation::Patch { patch, .. } = edited.errand() else { panic!("it is to be set right") };
    assert_eq!(patch[1]["value"], "11");

    let mut deleted = RecordProcess::new();
    let record = written(&mut deleted);
    deleted.keeper.observe_deletion(&deleted.reflector, PARENT);
    deleted.done(&RecordOperationResult::Current(Some(record)));
    assert!(matches!(deleted.errand(), RecordOperation::Create(_)), "it is to be written again");
}

#[test]
fn a_record_with_garbage_is_survived_and_named() {
    let mut process = RecordProcess::new();
    process.see(&job(5, "Complete"));
    let mut record = process.written();
    record["spec"]["outcomes"][0]["outcome"] = json!("Splendid");
    let complaints = process.keeper.observe_record(&process.reflector, &record);
    assert!(complaints[0].contains("migrate"), "{complaints:?}");
    assert!(matches!(process.errand(), RecordOperation::Patch { .. }));

    let mut next = RecordProcess::blind();
    next.keeper.observe_record(&next.reflector, &record);
    next.list();
    assert!(next.reflector.outcomes().is_unseen(JOB), "what cannot be read was not seen");
    let mut next = RecordProcess::blind();
    record["spec"] = json!("garbage");
    next.keeper.observe_record(&next.reflector, &record);
    next.list();
    assert!(matches!(next.errand(), RecordOperation::Delete { .. }), "nobody knows whose it was");
}

#[test]
fn what_was_sent_brings_nothing_back_that_was_superseded_meanwhile() {
    for answered in [true, false] {
        let mut process = RecordProcess::new();
        process.see(&job(5, ""));
        let RecordOperation::Create(mut body) = process.errand() else { panic!("it is to be created") };
        process.reflector.on_deleted(KindId(1), parse(&job(6, "")).as_child());
        body["metadata"]["uid"] = json!("r-1");
        body["metadata"]["resourceVersion"] = json!("10");
        if answered {
            process.done(&RecordOperationResult::Current(Some(body)));
        } else {
            process.done(&RecordOperationResult::Failed);
            process.keeper.observe_record(&process.reflector, &body);
        }
        let known = process.reflector.outcomes().parent_outcomes(PARENT).unwrap_or_default();
        assert_eq!(known.outcomes, [], "it was deleted before its end");
        assert!(matches!(process.errand(), RecordOperation::Delete { .. }));
    }
}

#[test]
fn an_owner_that_cannot_exist_is_not_remembered() {
    let mut process = RecordProcess::new();
    for (field, length) in [("uid", 129), ("name", 254)] {
        let mut job = job(5, "Failed");
        job["metadata"]["ownerReferences"][0][field] = json!("a".repeat(length));
        if field == "name" {
            job["metadata"]["ownerReferences"][0]["uid"] = json!("00000000-0000-4000-8000-000000000009");
        }
        process.see(&job);
        process.rests();
    }
}
