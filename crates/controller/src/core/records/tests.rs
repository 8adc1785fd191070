#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use aggregator::PolicyId;
use readiness::Limits;
use watcher::plan::{After, ChildRule, Find, Interest, Lens, ParentRule, Requirement, Selector};
use watcher::{Feed, Parent};

use super::*;

const PARENT: &str = "00000000-0000-4000-8000-000000000001";
const JOB: &str = "00000000-0000-4000-8000-000000000002";

fn jobs() -> Interest {
    let find = Find::Owner { group: "example.com".into(), kind: "Database".into() };
    Interest {
        lenses: vec![Lens { limits: Limits::default(), rule: None, remembers: true }],
        child: vec![ChildRule {
            policy: PolicyId(1),
            group: 0,
            lens: 0,
            find,
            ignore: None,
            after: After::Remember,
        }],
        ..Interest::of(KindId(1), "batch", "Job")
    }
}

fn databases() -> Interest {
    let rule = ParentRule::of(PolicyId(1));
    Interest { parent: vec![rule], ..Interest::of(KindId(2), "example.com", "Database") }
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

fn parse(object: &Value) -> Parent {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// A process: what it sees, and what it keeps.
struct Process {
    reflector: Reflector,
    keeper: Keeper,
}

impl Process {
    /// Both kinds were listed, the parent was in the list.
    fn new() -> Process {
        let process = Process::blind();
        let parent = parse(&database());
        process.reflector.apply(&databases(), parent.child(), parent.text());
        process.list();
        process
    }

    fn blind() -> Process {
        let spoken_of = SpokenOf::from([
            (("batch".to_owned(), "Job".to_owned()), KindId(1)),
            (("example.com".to_owned(), "Database".to_owned()), KindId(2)),
        ]);
        let reflector = Reflector::new(|| ());
        reflector.recollect(&jobs());
        Process { reflector, keeper: Keeper::new(spoken_of) }
    }

    fn list(&self) {
        self.reflector.finish(KindId(1), None);
        self.reflector.finish(KindId(2), None);
    }

    fn see(&self, job: &Value) {
        self.reflector.apply(&jobs(), parse(job).child(), None);
    }

    /// The one thing to do.
    fn errand(&mut self) -> Errand {
        let mut errands = self.keeper.errands(&self.reflector);
        assert_eq!(errands.len(), 1, "{errands:?}");
        let (name, errand) = errands.pop().unwrap();
        assert_eq!(name, PARENT);
        errand
    }

    fn rests(&mut self) {
        assert_eq!(self.keeper.errands(&self.reflector), []);
    }

    fn done(&mut self, done: &Done) {
        assert_eq!(self.keeper.done(&self.reflector, PARENT, done), Vec::<String>::new());
    }

    /// Has a record written that says how the Job stands; the record.
    fn written(&mut self) -> Value {
        let Errand::Create(mut body) = self.errand() else { panic!("it is to be created") };
        body["metadata"]["uid"] = json!("r-1");
        body["metadata"]["resourceVersion"] = json!("10");
        self.done(&Done::Now(Some(body.clone())));
        self.rests();
        body
    }
}

fn outcome(record: &Value) -> &str {
    record["spec"]["outcomes"][0]["outcome"].as_str().unwrap()
}

#[test]
fn a_stub_is_written_at_first_sight_and_amended_at_the_end() {
    let mut process = Process::new();
    process.see(&job(5, ""));
    let record = process.written();
    assert_eq!((record["metadata"]["name"].as_str(), outcome(&record)), (Some(PARENT), "Running"));
    process.see(&job(6, ""));
    process.rests();
    process.see(&job(7, "Complete"));
    let Errand::Amend { patch, again: 0 } = process.errand() else { panic!("it is to be amended") };
    let tests = json!([
        { "op": "test", "path": "/metadata/uid", "value": "r-1" },
        { "op": "test", "path": "/metadata/resourceVersion", "value": "10" },
    ]);
    assert_eq!(json!([patch[0], patch[1]]), tests);
    assert_eq!(patch[2]["value"]["outcomes"][0]["outcome"], "Complete");
}

#[test]
fn of_one_record_one_thing_is_done_at_a_time() {
    let mut process = Process::new();
    process.see(&job(5, ""));
    assert!(matches!(process.errand(), Errand::Create(_)));
    process.see(&job(7, "Complete"));
    process.rests();
    process.done(&Done::Failed);
    let Errand::Create(body) = process.errand() else { panic!("it is tried again") };
    assert_eq!(outcome(&body), "Complete", "with what is known by then");
}

#[test]
fn a_record_that_somebody_deletes_is_written_again() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    process.written();
    process.keeper.vanish(PARENT);
    assert_eq!(outcome(&process.written()), "Complete");
    process.keeper.begin();
    process.keeper.finish();
    assert!(matches!(process.errand(), Errand::Create(_)), "a list does not have it");
}

#[test]
fn a_record_that_somebody_edits_is_set_right_and_more_slowly_each_time() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    let mut record = process.written();
    let right = record.clone();
    for round in 0..3 {
        record["spec"]["outcomes"][0]["outcome"] = json!("Failed");
        assert!(process.keeper.read(&process.reflector, &record).is_empty());
        let Errand::Amend { patch, again } = process.errand() else { panic!("it is to be set right") };
        assert_eq!((&patch[2]["value"], again), (&right["spec"], round));
        process.done(&Done::Now(Some(right.clone())));
        process.rests();
    }
}

#[test]
fn an_answer_that_comes_after_what_the_watch_has_brought_since_hides_nothing() {
    let written = |process: &mut Process| {
        process.see(&job(5, "Complete"));
        let Errand::Create(mut body) = process.errand() else { panic!("it is to be created") };
        body["metadata"]["uid"] = json!("r-1");
        body["metadata"]["resourceVersion"] = json!("10");
        body
    };
    let mut edited = Process::new();
    let record = written(&mut edited);
    let mut wrong = record.clone();
    wrong["spec"]["outcomes"][0]["outcome"] = json!("Failed");
    wrong["metadata"]["resourceVersion"] = json!("11");
    edited.keeper.read(&edited.reflector, &wrong);
    edited.done(&Done::Now(Some(record)));
    let Errand::Amend { patch, .. } = edited.errand() else { panic!("it is to be set right") };
    assert_eq!(patch[1]["value"], "11");

    let mut deleted = Process::new();
    let record = written(&mut deleted);
    deleted.keeper.vanish(PARENT);
    deleted.done(&Done::Now(Some(record)));
    assert!(matches!(deleted.errand(), Errand::Create(_)), "it is to be written again");
}

#[test]
fn a_record_with_garbage_is_survived_and_named() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    let mut record = process.written();
    record["spec"]["outcomes"][0]["outcome"] = json!("Splendid");
    let complaints = process.keeper.read(&process.reflector, &record);
    assert!(complaints[0].contains("migrate"), "{complaints:?}");
    assert!(matches!(process.errand(), Errand::Amend { .. }));

    let mut next = Process::blind();
    next.keeper.read(&next.reflector, &record);
    next.list();
    assert!(next.reflector.is_unseen(JOB), "what cannot be read was not seen");
    let mut next = Process::blind();
    record["spec"] = json!("garbage");
    next.keeper.read(&next.reflector, &record);
    next.list();
    assert!(matches!(next.errand(), Errand::Remove { .. }), "nobody knows whose it was");
}

#[test]
fn a_record_is_swept_once_a_live_read_says_that_its_parent_is_gone() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    let record = process.written();
    let mut next = Process::blind();
    next.keeper.read(&next.reflector, &record);
    next.rests();
    assert!(next.keeper.is_waiting(), "its kind is not listed yet");
    next.list();
    let Errand::Ask(whose) = next.errand() else { panic!("it is to be asked for") };
    assert_eq!((&*whose.kind, &*whose.namespace, &*whose.name), ("Database", "shop", "orders"));
    next.done(&Done::ParentThere);
    next.rests();

    process.reflector.delete(PARENT, 9);
    assert!(matches!(process.errand(), Errand::Ask(_)));
    process.done(&Done::ParentGone);
    let removal = Errand::Remove { uid: "r-1".to_owned(), version: "10".to_owned() };
    assert_eq!(process.errand(), removal);
    process.done(&Done::Now(None));
    process.rests();
    assert!(process.reflector.memories(PARENT).is_none());
}

#[test]
fn where_nothing_is_left_to_remember_the_record_goes() {
    let mut process = Process::new();
    process.see(&job(5, ""));
    process.written();
    process.reflector.deleted(&jobs(), parse(&job(6, "")).child());
    assert!(matches!(process.errand(), Errand::Remove { .. }));
}

fn unchosen() -> Interest {
    let mut interest = databases();
    interest.parent[0].selector = Selector { requirements: vec![Requirement::Exists("team".into())] };
    interest
}

#[test]
fn a_record_goes_some_time_after_no_policy_chooses_its_parent_any_more() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    process.written();
    let mut parent = database();
    for (version, interest) in [("2", unchosen()), ("3", databases()), ("4", unchosen())] {
        parent["metadata"]["resourceVersion"] = json!(version);
        let parent = parse(&parent);
        process.reflector.apply(&interest, parent.child(), parent.text());
        if version == "3" {
            process.rests();
            continue;
        }
        assert!(matches!(process.errand(), Errand::Ask(_)), "it may be gone");
        process.done(&Done::ParentThere);
        for _ in 0..PATIENCE - 1 {
            process.rests();
            process.keeper.tick();
        }
        process.rests();
    }
    process.keeper.tick();
    assert!(matches!(process.errand(), Errand::Remove { .. }));
    process.done(&Done::Now(None));
    process.rests();
    assert_eq!(process.reflector.memories(PARENT), None);
    parent["metadata"]["resourceVersion"] = json!("5");
    let parent = parse(&parent);
    process.reflector.apply(&databases(), parent.child(), parent.text());
    process.rests();
    process.see(&job(9, "Failed"));
    assert_eq!(outcome(&process.written()), "Failed", "it begins anew");
}

#[test]
fn a_record_goes_some_time_after_no_policy_remembers_any_more() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    process.written();
    let mut forgetful = jobs();
    forgetful.child[0].after = After::Forget;
    forgetful.lenses[0].remembers = false;
    process.reflector.recollect(&forgetful);
    process.rests();
    (0..PATIENCE).for_each(|_| process.keeper.tick());
    assert!(matches!(process.errand(), Errand::Remove { .. }));
}

#[test]
fn the_record_of_a_parent_that_was_never_chosen_here_is_somebody_elses() {
    let mut process = Process::new();
    process.see(&job(5, "Complete"));
    let record = process.written();
    let mut other = Process::blind();
    other.keeper.read(&other.reflector, &record);
    let parent = parse(&database());
    other.reflector.apply(&unchosen(), parent.child(), parent.text());
    other.list();
    assert!(matches!(other.errand(), Errand::Ask(_)));
    other.done(&Done::ParentThere);
    (0..10 * PATIENCE).for_each(|_| other.keeper.tick());
    other.rests();
}
