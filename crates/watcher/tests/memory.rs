//! What is remembered of Jobs that are gone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::time::Duration;

use aggregator::{KindId, PolicyId, Source};
use readiness::{Kind, Level, Limits, Time};
use serde_json::{Value, json};
use watcher::plan::{
    After, ChildRule, Find, Interest, Lens, ObservedGeneration, ParentRule, Requirement, Selector,
};
use watcher::reflector::{End, MOST_OUTCOMES, Memories, Reflector};
use watcher::{Feed, Parent};

const NOW: Time = Time(1_800_000_000_000);
const JOBS: KindId = KindId(1);
const WIDGETS: KindId = KindId(2);
const POLICY: PolicyId = PolicyId(7);
const WIDGET: u32 = 1_000;

fn jobs(after: After) -> Interest {
    let find = Find::Owner { group: "example.com".into(), kind: "Widget".into() };
    let limits = Limits { pending: Duration::from_mins(10), terminating: Duration::from_mins(10) };
    Interest {
        id: JOBS,
        judge: Kind::of("batch", "Job"),
        claims: vec![],
        lenses: vec![Lens { limits, rule: None, remembers: after != After::Forget }],
        child: vec![ChildRule { policy: POLICY, group: 0, lens: 0, find, ignore: None, after }],
        parent: vec![],
        release: false,
        counted: true,
    }
}

fn widgets() -> Interest {
    let rule = ParentRule {
        policy: POLICY,
        selector: Selector::default(),
        namespace_selector: None,
        namespaces: vec![],
        condition: "Ready".into(),
        fallback: None,
        takeover: false,
        observed_generation: ObservedGeneration::Auto,
        labels: vec![],
        names: vec![],
        references: vec![],
        counts: vec![],
    };
    let judge = Kind::of("example.com", "Widget");
    let (lenses, child, parent) = (vec![], vec![], vec![rule]);
    Interest { id: WIDGETS, judge, lenses, child, parent, claims: vec![], release: false, counted: true }
}

fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn job(n: u32, name: &str, version: u32, ended: &str) -> Value {
    let conditions = if ended.is_empty() {
        json!([])
    } else {
        json!([{"type": ended, "status": "True", "reason": "BackoffLimitExceeded"}])
    };
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "shop", "uid": uid(n), "resourceVersion": version.to_string(),
            "creationTimestamp": format!("2027-01-15T08:{:02}:00Z", n % 60), "generation": 1,
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid(WIDGET)}]},
        "spec": {"completions": 1},
        "status": {"startTime": "2027-01-15T08:00:00Z", "conditions": conditions}
    })
}

fn widget(version: u32, generation: u32) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": uid(WIDGET), "resourceVersion": version.to_string(),
            "generation": generation},
        "spec": {"size": generation}, "status": {}
    })
}

/// A reflector, as a watch of Jobs and one of parents feed it.
struct World {
    reflector: Reflector,
    jobs: Interest,
}

impl World {
    fn new(after: After) -> World {
        let world = World { reflector: Reflector::new(|| ()), jobs: jobs(after) };
        world.reflector.recollect(&world.jobs);
        world.list(&[]);
        world.widget(1, 1);
        world
    }

    fn list(&self, jobs: &[Value]) {
        self.reflector.begin(JOBS, None);
        for job in jobs {
            self.see(job);
        }
        self.reflector.finish(JOBS, None);
    }

    fn see(&self, job: &Value) {
        self.reflector.apply(&self.jobs, read(job).child(), None);
    }

    fn deleted(&self, job: &Value) {
        self.reflector.deleted(&self.jobs, read(job).child());
    }

    fn widget(&self, version: u32, generation: u32) {
        let widget = read(&widget(version, generation));
        self.reflector.apply(&widgets(), widget.child(), widget.text());
    }

    /// Level and source of the one link by which it counts; `None` where it does not count.
    fn counts(&self, n: u32) -> Option<(Level, Source)> {
        let id = self.reflector.find(&uid(n))?;
        self.reflector.view(id, NOW, |view| {
            let view = view?;
            Some((view.weights[0].level, view.links.first()?.source()))
        })
    }

    fn memories(&self) -> Memories {
        self.reflector.memories(&uid(WIDGET)).unwrap_or_default()
    }

    /// Another process that knows what this one would have written down.
    fn restarted(&self) -> World {
        let next = World { reflector: Reflector::new(|| ()), jobs: self.jobs.clone() };
        next.reflector.recollect(&next.jobs);
        let Memories { whose, outcomes } = self.memories();
        next.reflector.recall(whose, outcomes);
        next
    }
}

fn read(object: &Value) -> Parent {
    serde_json::from_str(&object.to_string()).unwrap()
}

const READY: Option<(Level, Source)> = Some((Level::Ready, Source::Remembered));
const FAILED: Option<(Level, Source)> = Some((Level::Failed, Source::Remembered));
const UNSEEN: Option<(Level, Source)> = Some((Level::Unknown, Source::Remembered));

#[test]
fn a_job_that_ended_counts_as_it_ended_once_it_is_gone() {
    for (ended, expected) in [("Complete", READY), ("Failed", FAILED)] {
        let world = World::new(After::Remember);
        world.see(&job(1, "migrate", 5, ""));
        world.see(&job(1, "migrate", 6, ended));
        world.deleted(&job(1, "migrate", 7, ended));
        assert_eq!(world.counts(1), expected);
    }
}

#[test]
fn where_nobody_remembers_what_is_gone_is_gone() {
    let world = World::new(After::Forget);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    assert_eq!(world.counts(1), None);
    assert_eq!(world.memories(), Memories::default());
}

#[test]
fn the_deletion_itself_may_be_the_only_sight_of_its_end() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    assert_eq!(world.counts(1), READY);
    world.deleted(&job(2, "seed", 9, "Failed"));
    assert_eq!(world.counts(2), FAILED, "it was never seen alive");
}

#[test]
fn a_job_that_was_deleted_before_its_end_has_no_outcome() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.deleted(&job(1, "migrate", 7, ""));
    assert_eq!(world.counts(1), None);
    assert_eq!(world.memories().outcomes, []);
}

#[test]
fn what_a_list_does_not_have_any_more_ended_unseen_unless_its_end_was_seen() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.see(&job(2, "seed", 6, "Complete"));
    world.list(&[]);
    assert_eq!((world.counts(1), world.counts(2)), (UNSEEN, READY));
    let unseen = world.reflector.take_unseen();
    assert_eq!(unseen.iter().map(|u| &*u.name).collect::<Vec<_>>(), ["migrate"]);
}

#[test]
fn evidence_ends_the_doubt_and_changes_no_certainty() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.see(&job(2, "seed", 6, "Failed"));
    world.list(&[]);
    assert!(world.reflector.evidence(&uid(1), &End::Complete));
    assert!(!world.reflector.evidence(&uid(2), &End::Complete));
    assert_eq!((world.counts(1), world.counts(2)), (READY, FAILED));
}

#[test]
fn a_live_read_that_finds_it_gone_does_not_hide_the_end_that_the_watch_brings_later() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    let id = world.reflector.find(&uid(1)).unwrap();
    world.reflector.vanish(id);
    assert_eq!(world.counts(1), UNSEEN);
    world.see(&job(1, "migrate", 6, "Complete"));
    assert_eq!(world.counts(1), READY);
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.reflector.vanish(world.reflector.find(&uid(1)).unwrap());
    world.deleted(&job(1, "migrate", 7, ""));
    assert_eq!(world.counts(1), None, "the deletion knows that it had not ended");
}

#[test]
fn a_complete_job_counts_while_it_is_deleted_until_that_takes_too_long() {
    let world = World::new(After::Remember);
    let mut held = job(1, "migrate", 6, "Complete");
    held["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:10:00Z");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.see(&held);
    let id = world.reflector.find(&uid(1)).unwrap();
    let at = |now: Time| world.reflector.read(id, |row| row.assessment.at(now).level).unwrap();
    let deleted = NOW + Duration::from_mins(10);
    assert_eq!(at(deleted + Duration::from_mins(9)), Level::Ready);
    assert_eq!(at(deleted + Duration::from_mins(10)), Level::Stuck);
}

#[test]
fn another_run_of_the_same_name_starts_afresh() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    world.see(&job(2, "migrate", 9, ""));
    assert_eq!(world.counts(1), None);
    assert_eq!(world.counts(2), Some((Level::Progressing, Source::Owner)));
    world.deleted(&job(2, "migrate", 11, "Failed"));
    assert_eq!((world.counts(1), world.counts(2)), (None, FAILED));
    assert_eq!(world.memories().outcomes.len(), 1);
}

#[test]
fn generated_names_are_runs_of_one_thing_and_the_newest_counts() {
    let run = |n: u32, version: u32, ended: &str| {
        let mut job = job(n, &format!("migrate-{n}"), version, ended);
        job["metadata"]["generateName"] = json!("migrate-");
        job
    };
    let world = World::new(After::Remember);
    world.see(&run(2, 5, "Complete"));
    world.see(&run(1, 6, "Failed"));
    world.deleted(&run(2, 7, "Complete"));
    world.deleted(&run(1, 8, "Failed"));
    assert_eq!((world.counts(2), world.counts(1)), (READY, None), "the older one came later");
    world.see(&run(3, 9, ""));
    assert_eq!(world.counts(2), None);
}

#[test]
fn an_old_complete_does_not_satisfy_a_new_generation_where_the_policy_says_so() {
    for (after, then) in [(After::Remember, READY), (After::RememberGeneration, None)] {
        let world = World::new(after);
        world.see(&job(1, "migrate", 5, "Complete"));
        world.deleted(&job(1, "migrate", 7, "Complete"));
        assert_eq!(world.counts(1), READY);
        _ = world.reflector.take_dirty(usize::MAX);
        world.widget(8, 2);
        assert_eq!(world.counts(1), then);
        let looked_at = world.reflector.take_dirty(usize::MAX);
        assert!(looked_at.contains(&world.reflector.find(&uid(1)).unwrap()), "{looked_at:?}");
        let next = world.restarted();
        next.list(&[]);
        assert_eq!(next.counts(1), READY, "nothing is known of its parent yet");
        _ = next.reflector.take_dirty(usize::MAX);
        next.widget(8, 2);
        assert_eq!(next.counts(1), then, "after a restart");
        let looked_at = next.reflector.take_dirty(usize::MAX);
        assert!(looked_at.contains(&next.reflector.find(&uid(1)).unwrap()), "{looked_at:?}");
    }
}

#[test]
fn what_was_written_down_outlives_a_restart_in_whatever_order_things_are_read() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    world.see(&job(2, "seed", 8, ""));
    let Memories { whose, outcomes } = world.memories();
    for records_first in [true, false] {
        let next = World { reflector: Reflector::new(|| ()), jobs: jobs(After::Remember) };
        if records_first {
            // Not even known where Jobs are served.
            next.reflector.recall(whose.clone(), outcomes.clone());
        }
        next.reflector.recollect(&next.jobs);
        next.list(&[]);
        next.reflector.recall(whose.clone(), outcomes.clone());
        next.widget(1, 1);
        assert_eq!((next.counts(1), next.counts(2)), (READY, UNSEEN), "{records_first}");
        assert_eq!(next.reflector.take_unseen().len(), 1, "{records_first}");
    }
}

#[test]
fn a_job_that_is_still_there_after_a_restart_counts_as_it_is() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    let next = world.restarted();
    assert_eq!(next.counts(1), UNSEEN, "nothing is said before Jobs were listed");
    next.list(&[job(1, "migrate", 5, "")]);
    assert_eq!(next.counts(1), Some((Level::Progressing, Source::Owner)));
    next.deleted(&job(1, "migrate", 6, "Complete"));
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_record_is_believed_once_and_later_only_where_nobody_saw() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.see(&job(2, "seed", 5, "Failed"));
    let (known, next) = (world.memories(), world.restarted());
    next.list(&[]);
    assert_eq!((next.counts(1), next.counts(2)), (UNSEEN, FAILED));
    let mut changed = known.outcomes;
    for outcome in &mut changed {
        outcome.end = End::Complete;
    }
    next.reflector.recall(known.whose, changed);
    assert_eq!((next.counts(1), next.counts(2)), (READY, FAILED));
}

#[test]
fn what_a_schedule_runs_is_never_remembered() {
    let world = World::new(After::Remember);
    let mut run = job(1, "nightly", 5, "Complete");
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": uid(9)});
    run["metadata"]["ownerReferences"].as_array_mut().unwrap().push(owner);
    world.see(&run);
    run["metadata"]["resourceVersion"] = json!("6");
    world.deleted(&run);
    assert_eq!((world.counts(1), world.memories().outcomes.len()), (None, 0));
}

#[test]
fn what_a_policy_passes_over_is_not_remembered_by_it() {
    let mut world = World::new(After::Remember);
    let hook = Requirement::In("hook".into(), vec!["yes".into()]);
    world.jobs.child[0].ignore = Some(Selector { requirements: vec![hook] });
    world.reflector.recollect(&world.jobs);
    let mut hook = job(1, "hook", 5, "Complete");
    hook["metadata"]["labels"] = json!({"hook": "yes"});
    world.see(&job(1, "hook", 4, "Complete"));
    world.see(&hook);
    hook["metadata"]["resourceVersion"] = json!("6");
    world.deleted(&hook);
    assert_eq!((world.counts(1), world.memories().outcomes.len()), (None, 0));
}

#[test]
fn only_so_many_are_remembered_and_what_failed_comes_first() {
    let world = World::new(After::Remember);
    world.see(&job(0, "first", 1, "Failed"));
    world.deleted(&job(0, "first", 2, "Failed"));
    for n in 1..40 {
        world.see(&job(n, &format!("job-{n}"), 10 * n, "Complete"));
        world.deleted(&job(n, &format!("job-{n}"), 10 * n + 1, "Complete"));
    }
    let counted = (0..40).filter(|n| world.counts(*n).is_some()).count();
    assert_eq!((counted, world.memories().outcomes.len()), (MOST_OUTCOMES, MOST_OUTCOMES));
    assert_eq!((world.counts(0), world.counts(39), world.counts(1)), (FAILED, READY, None));
}

#[test]
fn with_its_parent_an_outcome_is_forgotten() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    _ = world.reflector.take_remembered();
    world.reflector.delete(&uid(WIDGET), 9);
    let moved: Vec<String> = world.reflector.take_remembered().into_iter().map(String::from).collect();
    assert_eq!(moved, [uid(WIDGET)], "somebody has to look");
    world.reflector.forget_parent(&uid(WIDGET));
    assert_eq!((world.counts(1), world.memories()), (None, Memories::default()));
    for gone in world.reflector.take_dirty(usize::MAX) {
        world.reflector.recycle(gone);
    }
    assert!(world.reflector.is_empty());
}

#[test]
fn a_policy_that_does_not_remember_any_more_counts_nothing_that_is_gone() {
    let mut world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    for (after, counts) in [(After::Forget, None), (After::Remember, READY)] {
        world.jobs = jobs(after);
        world.reflector.recollect(&world.jobs);
        world.list(&[]);
        assert_eq!(world.counts(1), counts, "{after:?}");
    }
    assert_eq!(world.reflector.forget(JOBS), 1);
    assert_eq!(world.counts(1), None);
}
