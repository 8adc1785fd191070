//! A world of two kinds, and a reflector that sees it.

use std::time::Duration;

use aggregator::{KindId, PolicyId, Source};
use readiness::{Level, Limits, Time};
use serde_json::{Value, json};
use watcher::plan::{After, ChildRule, Find, Interest, Lens, ParentRule};
use watcher::reflector::{Memories, Outcome, Reflector};
use watcher::{Feed, Parent};

pub(crate) const NOW: Time = Time(1_800_000_000_000);
pub(crate) const JOBS: KindId = KindId(1);
pub(crate) const WIDGETS: KindId = KindId(2);
pub(crate) const POLICY: PolicyId = PolicyId(7);
pub(crate) const WIDGET: u32 = 1_000;

pub(crate) fn jobs(after: After) -> Interest {
    let find = Find::Owner { group: "example.com".into(), kind: "Widget".into() };
    let limits = Limits { pending: Duration::from_mins(10), terminating: Duration::from_mins(10) };
    Interest {
        lenses: vec![Lens { limits, rule: None, remembers: after != After::Forget }],
        child: vec![ChildRule { policy: POLICY, group: 0, lens: 0, find, ignore: None, after }],
        ..Interest::of(JOBS, "batch", "Job")
    }
}

pub(crate) fn widgets() -> Interest {
    let rule = ParentRule::of(POLICY);
    Interest { parent: vec![rule], ..Interest::of(WIDGETS, "example.com", "Widget") }
}

pub(crate) fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

pub(crate) fn job(n: u32, name: &str, version: u32, ended: &str) -> Value {
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

pub(crate) fn widget(version: u32, generation: u32) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": uid(WIDGET), "resourceVersion": version.to_string(),
            "generation": generation},
        "spec": {"size": generation}, "status": {}
    })
}

/// A reflector, as a watch of Jobs and one of parents feed it.
pub(crate) struct World {
    pub(crate) reflector: Reflector,
    pub(crate) jobs: Interest,
}

impl World {
    /// One that has seen nothing.
    pub(crate) fn blind(after: After) -> World {
        let world = World { reflector: Reflector::new(|| ()), jobs: jobs(after) };
        world.reflector.recollect(&world.jobs);
        world
    }

    pub(crate) fn new(after: After) -> World {
        let world = World::blind(after);
        world.list(&[]);
        world.widget(1, 1);
        world
    }

    pub(crate) fn list(&self, jobs: &[Value]) {
        self.reflector.begin(JOBS, None);
        for job in jobs {
            self.see(job);
        }
        self.reflector.finish(JOBS, None);
    }

    pub(crate) fn see(&self, job: &Value) {
        self.reflector.apply(&self.jobs, read(job).child(), None);
    }

    pub(crate) fn deleted(&self, job: &Value) {
        self.reflector.deleted(&self.jobs, read(job).child());
    }

    pub(crate) fn widget(&self, version: u32, generation: u32) {
        self.parent(&widget(version, generation), &widgets());
    }

    pub(crate) fn parent(&self, parent: &Value, interest: &Interest) {
        let parent = read(parent);
        self.reflector.apply(interest, parent.child(), parent.text());
    }

    /// Level and source of the one link by which it counts; `None` where it does not count.
    pub(crate) fn counts(&self, n: u32) -> Option<(Level, Source)> {
        let id = self.reflector.find(&uid(n))?;
        self.reflector.view(id, NOW, |view| {
            let view = view?;
            Some((view.weights[0].level, view.links.first()?.source()))
        })
    }

    pub(crate) fn memories(&self) -> Memories {
        self.reflector.memories(&uid(WIDGET)).unwrap_or_default()
    }

    /// Another process that knows what this one would have written down.
    pub(crate) fn restarted(&self) -> World {
        let next = World { reflector: Reflector::new(|| ()), jobs: self.jobs.clone() };
        next.reflector.recollect(&next.jobs);
        let Memories { whose, outcomes } = self.memories();
        // A record does not say which version of it was seen last.
        let outcomes = outcomes.into_iter().map(|o| Outcome { version: 0, ..o }).collect();
        next.reflector.recall(whose, outcomes);
        next
    }
}

pub(crate) fn read(object: &Value) -> Parent {
    serde_json::from_str(&object.to_string()).unwrap()
}

pub(crate) const READY: Option<(Level, Source)> = Some((Level::Ready, Source::Remembered));
pub(crate) const FAILED: Option<(Level, Source)> = Some((Level::Failed, Source::Remembered));
pub(crate) const UNSEEN: Option<(Level, Source)> = Some((Level::Unknown, Source::Remembered));
