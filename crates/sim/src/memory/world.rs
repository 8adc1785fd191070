//! What really happens: Jobs, their parents, the records as the server holds them, and what is told of all that.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Value, json};

use super::events::Told;
use super::service::{JOBS, PARENTS, Service};
use crate::dice::Dice;
use crate::sabotage::Sabotage;

/// When every world begins.
const START: i64 = 1_800_000_000_000;
/// Of these the server makes names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// One Job, alive or not.
pub(super) struct Job {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) slot: String,
    pub(super) parent: usize,
    /// It only has the name of one that the parent owns.
    pub(super) stranger: bool,
    pub(super) created: i64,
    /// Well, or not.
    pub(super) end: Option<bool>,
    pub(super) gone: bool,
    pub(super) deleting: bool,
    pub(super) version: u64,
    /// Its first version.
    pub(super) born: u64,
}

/// One parent.
pub(super) struct Parent {
    pub(super) uid: String,
    pub(super) generation: u64,
    pub(super) gone: bool,
    pub(super) version: u64,
}

/// Something that a watch brings.
#[derive(Clone)]
pub(super) enum Line {
    There(Value),
    Gone(Value),
}

/// Everything.
pub(super) struct World {
    dice: Dice,
    strict: bool,
    pub(super) sabotage: Option<Sabotage>,
    pub(super) now: i64,
    pub(super) version: u64,
    pub(super) jobs: Vec<Job>,
    pub(super) parents: Vec<Parent>,
    /// By kind: what was told since the beginning.
    pub(super) lines: BTreeMap<u16, Vec<Line>>,
    /// As the server holds them.
    pub(super) records: BTreeMap<String, Value>,
    /// Writes to records by the service.
    pub(super) written: usize,
    pub(super) restarts: u64,
    pub(super) outages: u64,
    /// Runs that nobody saw, that Events told of.
    pub(super) superseded: u64,
    /// Events about Jobs.
    pub(super) told: Vec<Told>,
    pub(super) log: Vec<String>,
    failure: OnceCell<String>,
}

pub(super) fn uid(class: u32, n: usize) -> String {
    format!("{class:08}-0000-4000-8000-{n:012}")
}

/// What the server adds to a prefix.
fn made_up(mut number: usize) -> String {
    let mut letter = || {
        let at = number % LETTERS.len();
        number /= LETTERS.len();
        char::from(LETTERS[at])
    };
    (0..5).map(|_| letter()).collect()
}

impl World {
    pub(super) fn new(seed: u64, sabotage: Option<Sabotage>) -> World {
        let mut world = World {
            dice: Dice::new(seed, 3),
            strict: seed % 2 == 1,
            sabotage,
            now: START,
            version: 10,
            jobs: Vec::new(),
            parents: Vec::new(),
            lines: BTreeMap::from([(JOBS.0, Vec::new()), (PARENTS.0, Vec::new())]),
            records: BTreeMap::new(),
            written: 0,
            restarts: 0,
            outages: 0,
            superseded: 0,
            told: Vec::new(),
            log: vec!["of what is remembered:".to_owned()],
            failure: OnceCell::new(),
        };
        for n in 0..3 {
            world.parents.push(Parent { uid: uid(1, n), generation: 1, gone: false, version: 0 });
            world.tell_parent(n);
        }
        world
    }

    /// Half of all policies say `rememberGeneration`.
    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.dice.below(n)
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.dice.chance(percent)
    }

    pub(super) fn say(&mut self, what: impl Display) {
        self.log.push(format!("{:>8.3} {what}", (self.now - START) as f64 / 1_000.0));
    }

    /// Something has to be so; the first that is not ends the history.
    pub(super) fn demand(&self, holds: bool, what: impl Display) {
        if !holds {
            let at = (self.now - START) as f64 / 1_000.0;
            _ = self.failure.set(format!("at {at:.3} s: {what}"));
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    /// Somebody does something, or the service does.
    pub(super) fn step(&mut self, service: &mut Service) {
        self.now += self.below(1_500) as i64;
        match self.below(100) {
            0..12 => _ = self.create(),
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
            98 => self.restart(service),
            _ => self.outage(service),
        }
        service.turn(self);
    }

    /// The process is away for a while, in which Jobs are run, also once more, and vanish.
    fn outage(&mut self, service: &mut Service) {
        self.say("outage");
        self.outages += 1;
        service.die(self);
        for _ in 0..5 + self.below(30) {
            self.now += self.below(1_500) as i64;
            match self.below(10) {
                0..4 => self.run(),
                4 => _ = self.create(),
                5..7 => self.end(),
                7..9 => self.delete(),
                _ => self.respecify(),
            }
        }
        if self.chance(20) {
            self.now += 3_600_000;
            self.expire();
        }
        self.restart(service);
    }

    /// Nothing happens any more, and everything gets through.
    pub(super) fn calm(&mut self, service: &mut Service) {
        self.say("calm");
        for _ in 0..40 {
            self.now += 500;
            service.calm(self);
            service.turn(self);
        }
    }

    /// The process dies at any moment, and another one starts.
    pub(super) fn restart(&mut self, service: &mut Service) {
        self.say("restart");
        self.restarts += 1;
        service.die(self);
        *service = Service::new(self);
    }

    /// A Job from its beginning to its end and deletion.
    fn run(&mut self) {
        if let Some(n) = self.create() {
            self.now += self.below(1_500) as i64;
            self.finish(n);
            self.now += self.below(1_500) as i64;
            self.take_away(n);
        }
    }

    fn create(&mut self) -> Option<usize> {
        let parent = self.below(self.parents.len());
        if self.parents[parent].gone {
            return None;
        }
        let (slot, generated) = [("migrate", false), ("seed", false), ("backup", true)][self.below(3)];
        let number = self.jobs.len();
        let name = format!("{slot}{parent}");
        let (slot, name) = if generated {
            (format!("{name}-"), format!("{name}-{}", made_up(number)))
        } else {
            (name.clone(), name)
        };
        if self.jobs.iter().any(|job| !job.gone && job.name == name) {
            return None;
        }
        let (uid, created, stranger) = (uid(2, number), self.now, self.chance(15));
        self.jobs.push(Job {
            uid,
            name,
            slot,
            parent,
            stranger,
            created,
            end: None,
            gone: false,
            deleting: false,
            version: 0,
            born: self.version + 1,
        });
        self.tell_job(number);
        self.tell(number, "SuccessfulCreate");
        Some(number)
    }

    fn some(&mut self, which: impl Fn(&Job) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.jobs.len()).filter(|n| which(&self.jobs[*n])).collect();
        let at = self.below(all.len());
        all.get(at).copied()
    }

    fn end(&mut self) {
        if let Some(n) = self.some(|job| !job.gone && job.end.is_none()) {
            self.finish(n);
        }
    }

    fn finish(&mut self, n: usize) {
        let well = self.chance(65);
        self.jobs[n].end = Some(well);
        self.tell_job(n);
        self.tell(n, if well { "Completed" } else { "BackoffLimitExceeded" });
    }

    fn delete(&mut self) {
        let early = self.chance(8);
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
        if self.chance(80) || self.parents.len() > 5 {
            return;
        }
        let n = self.below(self.parents.len());
        if !self.parents[n].gone {
            self.parents[n].gone = true;
            self.tell_parent(n);
            for job in 0..self.jobs.len() {
                let of = &self.jobs[job];
                if of.parent == n && !of.stranger && !of.gone {
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
}
