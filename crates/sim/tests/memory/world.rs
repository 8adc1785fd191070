//! What really happens: Jobs, their parents, the records as the server holds them, and what is told of all that.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Value, json};
use timer::Seed;

use crate::service::{JOBS, PARENTS, Service};

/// When every world begins.
const START: i64 = 1_800_000_000_000;

/// One Job, alive or not.
pub(crate) struct Job {
    pub(crate) uid: String,
    name: String,
    pub(crate) slot: String,
    pub(crate) parent: usize,
    created: i64,
    /// Well, or not.
    pub(crate) end: Option<bool>,
    pub(crate) gone: bool,
    deleting: bool,
    version: u64,
}

/// One parent.
pub(crate) struct Parent {
    pub(crate) uid: String,
    pub(crate) generation: u64,
    pub(crate) gone: bool,
    version: u64,
}

/// Something that a watch brings.
#[derive(Clone)]
pub(crate) enum Line {
    There(Value),
    Gone(Value),
}

/// Everything.
pub(crate) struct World {
    seed: Seed,
    drawn: u64,
    pub(crate) now: i64,
    pub(crate) version: u64,
    pub(crate) jobs: Vec<Job>,
    pub(crate) parents: Vec<Parent>,
    /// By kind: what was told since the beginning.
    pub(crate) lines: BTreeMap<u16, Vec<Line>>,
    /// As the server holds them.
    pub(crate) records: BTreeMap<String, Value>,
    /// Writes to records by the service.
    pub(crate) written: usize,
    pub(crate) restarts: usize,
    log: Vec<String>,
}

pub(crate) fn uid(class: u32, n: usize) -> String {
    format!("{class:08}-0000-4000-8000-{n:012}")
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut world = World {
            seed: Seed(seed),
            drawn: 0,
            now: START,
            version: 10,
            jobs: Vec::new(),
            parents: Vec::new(),
            lines: BTreeMap::from([(JOBS.0, Vec::new()), (PARENTS.0, Vec::new())]),
            records: BTreeMap::new(),
            written: 0,
            restarts: 0,
            log: vec![format!("seed {seed}")],
        };
        for n in 0..2 {
            world.parents.push(Parent { uid: uid(1, n), generation: 1, gone: false, version: 0 });
            world.tell_parent(n);
        }
        world
    }

    /// Half of all policies say `rememberGeneration`.
    pub(crate) fn is_strict(&self) -> bool {
        self.seed.0 % 2 == 1
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        let drawn = self.seed.number(self.drawn);
        if n == 0 { 0 } else { (drawn % n as u64) as usize }
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn say(&mut self, what: impl Display) {
        self.log.push(format!("{:>8.3} {what}", (self.now - START) as f64 / 1_000.0));
    }

    pub(crate) fn story(&self) -> String {
        self.log.join("\n")
    }

    /// Somebody does something, or the service does.
    pub(crate) fn step(&mut self, service: &mut Service) {
        self.now += self.below(1_500) as i64;
        match self.below(100) {
            0..12 => self.create(),
            12..24 => self.end(),
            24..34 => self.delete(),
            34..36 => self.respecify(),
            36..66 => service.watch(self, JOBS),
            66..74 => service.watch(self, PARENTS),
            74..76 => service.lose_place(self),
            76..80 => service.look(self),
            80..92 => service.keep(self),
            92..95 => service.seek(self),
            95..97 => self.spoil(service),
            97 => self.delete_parent(),
            _ => self.restart(service),
        }
        service.turn(self);
    }

    /// Nothing happens any more, and everything gets through.
    pub(crate) fn calm(&mut self, service: &mut Service) {
        self.say("calm");
        for _ in 0..40 {
            self.now += 500;
            service.calm(self);
            service.turn(self);
        }
    }

    /// The process dies at any moment, and another one starts.
    pub(crate) fn restart(&mut self, service: &mut Service) {
        self.say("restart");
        self.restarts += 1;
        service.die(self);
        *service = Service::new(self);
    }

    fn create(&mut self) {
        let parent = self.below(self.parents.len());
        if self.parents[parent].gone {
            return;
        }
        let (slot, generated) = [("migrate", false), ("seed", false), ("backup-", true)][self.below(3)];
        let number = self.jobs.len();
        let name = if generated { format!("{slot}{number}") } else { format!("{slot}{parent}") };
        let slot = if generated { slot.to_owned() } else { name.clone() };
        if self.jobs.iter().any(|job| !job.gone && job.name == name) {
            return;
        }
        let (uid, created) = (uid(2, number), self.now);
        self.jobs.push(Job {
            uid,
            name,
            slot,
            parent,
            created,
            end: None,
            gone: false,
            deleting: false,
            version: 0,
        });
        self.tell_job(number);
    }

    fn some(&mut self, which: impl Fn(&Job) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.jobs.len()).filter(|n| which(&self.jobs[*n])).collect();
        let at = self.below(all.len());
        all.get(at).copied()
    }

    fn end(&mut self) {
        let Some(n) = self.some(|job| !job.gone && job.end.is_none()) else { return };
        self.jobs[n].end = Some(self.chance(65));
        self.tell_job(n);
    }

    fn delete(&mut self) {
        let early = self.chance(15);
        let Some(n) = self.some(|job| !job.gone && (early || job.end.is_some())) else { return };
        if !self.jobs[n].deleting && self.chance(40) {
            self.jobs[n].deleting = true;
            return self.tell_job(n);
        }
        self.take_away(n);
    }

    fn take_away(&mut self, n: usize) {
        self.jobs[n].gone = true;
        self.tell_job(n);
    }

    fn respecify(&mut self) {
        let n = self.below(self.parents.len());
        if !self.parents[n].gone {
            self.parents[n].generation += 1;
            self.tell_parent(n);
        }
    }

    fn delete_parent(&mut self) {
        if self.chance(80) || self.parents.len() > 4 {
            return;
        }
        let n = self.below(self.parents.len());
        if !self.parents[n].gone {
            self.parents[n].gone = true;
            self.tell_parent(n);
            for job in 0..self.jobs.len() {
                if self.jobs[job].parent == n && !self.jobs[job].gone {
                    self.take_away(job);
                }
            }
            let uid = uid(1, self.parents.len());
            self.parents.push(Parent { uid, generation: 1, gone: false, version: 0 });
            self.tell_parent(self.parents.len() - 1);
        }
    }

    /// People delete a record, or write nonsense into it.
    fn spoil(&mut self, service: &mut Service) {
        let at = self.below(self.records.len());
        let Some(name) = self.records.keys().nth(at).cloned() else { return };
        if self.chance(50) {
            self.say(format_args!("record {name} deleted by hand"));
            self.records.remove(&name);
            return service.record_gone(&name);
        }
        self.say(format_args!("record {name} spoiled by hand"));
        self.version += 1;
        let version = self.version;
        if let Some(record) = self.records.get_mut(&name) {
            record["metadata"]["resourceVersion"] = json!(version.to_string());
            record["spec"]["outcomes"][0]["outcome"] = json!("Splendid");
            service.record(&record.clone());
        }
    }

    fn tell_job(&mut self, n: usize) {
        self.version += 1;
        self.jobs[n].version = self.version;
        let job = &self.jobs[n];
        let what = format!(
            "{} {} ended {:?} gone {} deleting {}",
            job.uid, job.name, job.end, job.gone, job.deleting
        );
        let (object, gone) = (self.job(n), job.gone);
        self.say(what);
        let line = if gone { Line::Gone(object) } else { Line::There(object) };
        self.lines.entry(JOBS.0).or_default().push(line);
    }

    fn tell_parent(&mut self, n: usize) {
        self.version += 1;
        self.parents[n].version = self.version;
        let what = format!(
            "{} generation {} gone {}",
            self.parents[n].uid, self.parents[n].generation, self.parents[n].gone
        );
        let (object, gone) = (self.parent(n), self.parents[n].gone);
        self.say(what);
        let line = if gone { Line::Gone(object) } else { Line::There(object) };
        self.lines.entry(PARENTS.0).or_default().push(line);
    }

    /// A Job as it is.
    pub(crate) fn job(&self, n: usize) -> Value {
        let job = &self.jobs[n];
        let owner = &self.parents[job.parent].uid;
        let moment = |at: i64| watcher::status::time::format(readiness::Time(at));
        let mut object = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": job.name, "namespace": "shop", "uid": job.uid, "generation": 1,
                "resourceVersion": job.version.to_string(), "creationTimestamp": moment(job.created),
                "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": owner, "uid": owner}]},
            "spec": {"completions": 1}, "status": {"startTime": moment(job.created)},
        });
        if job.slot != job.name {
            object["metadata"]["generateName"] = json!(job.slot);
        }
        if job.deleting {
            object["metadata"]["deletionTimestamp"] = json!(moment(job.created + 1_000));
            object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        }
        if let Some(well) = job.end {
            let kind = if well { "Complete" } else { "Failed" };
            object["status"]["conditions"] = json!([{"type": kind, "status": "True", "reason": "Because"}]);
        }
        object
    }

    fn parent(&self, n: usize) -> Value {
        let Parent { uid, generation, version, .. } = &self.parents[n];
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": uid, "namespace": "shop", "uid": uid, "generation": generation,
                "resourceVersion": version.to_string()},
            "spec": {}, "status": {"observedGeneration": generation},
        })
    }

    /// Everything of a kind that there is.
    pub(crate) fn list(&self, kind: u16) -> Vec<Value> {
        if kind == JOBS.0 {
            (0..self.jobs.len()).filter(|n| !self.jobs[*n].gone).map(|n| self.job(n)).collect()
        } else {
            (0..self.parents.len()).filter(|n| !self.parents[*n].gone).map(|n| self.parent(n)).collect()
        }
    }
}
