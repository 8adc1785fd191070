//! Records of what must outlive a restart: what each has to say, and what is to be done about it.
//!
//! The reflector's memory is the truth while the process lives; a record is believed once, when it is first read. What
//! somebody else makes of it later is set right, except where it knows an outcome that nobody saw.

mod events;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use aggregator::KindId;
use serde_json::{Value, json};
use watcher::reflector::{Reflector, Whose};

pub use events::Heard;

/// Group and kind of what records speak of, with the ids under which they are followed.
pub type SpokenOf = BTreeMap<(String, String), KindId>;

/// A record as it was last read.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    uid: String,
    version: String,
    spec: Value,
}

impl Held {
    /// Is it the same record at a later time? Since Kubernetes 1.35 versions of one kind may be compared as numbers.
    fn is_newer(&self, other: &Held) -> bool {
        let number = |held: &Held| held.version.parse::<u64>().ok();
        self.uid == other.uid && number(self).zip(number(other)).is_some_and(|(own, others)| own > others)
    }
}

/// Something to be done about one record.
#[derive(Clone, Debug, PartialEq)]
pub enum Errand {
    /// It is to be created.
    Create(Value),
    /// It is to be patched.
    Amend {
        /// By this JSON Patch.
        patch: Value,
        /// So often it was made to say the same before.
        again: u32,
    },
    /// It is to be deleted, if it is still this one.
    Remove {
        /// Its uid.
        uid: String,
        /// Its version.
        version: String,
    },
    /// Its parent is not among those that are followed: is it gone?
    Ask(Whose),
}

/// How an errand ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// This is what the record says now; `None` where there is none any more.
    Now(Option<Value>),
    /// The parent that was asked for is gone.
    ParentGone,
    /// The parent that was asked for is there.
    ParentThere,
    /// It has to be tried again.
    Failed,
}

/// A record of which nobody has use any more is kept for so many rounds: a policy may be about to come back.
const PATIENCE: u32 = 3;

/// Keeps the records of one process.
#[derive(Debug, Default)]
pub struct Keeper {
    spoken_of: SpokenOf,
    held: BTreeMap<String, Held>,
    listed: Option<BTreeSet<String>>,
    waiting: BTreeSet<String>,
    busy: BTreeSet<String>,
    /// Parents that have no row, and were seen to be there.
    there: BTreeSet<String>,
    /// Records that went while something was done about them: its answer may speak of the one that is gone.
    went: BTreeSet<String>,
    /// Parents that were seen to be gone.
    gone: BTreeSet<String>,
    /// Parents that were chosen by a policy that remembers. Of others this process may not be the one that keeps the record.
    chosen: BTreeSet<String>,
    /// Those of them that are not any more, and for how many rounds.
    unchosen: BTreeMap<String, u32>,
    /// What records were last made to say, and how often in a row.
    amended: BTreeMap<String, (Value, u32)>,
}

impl Keeper {
    /// One that speaks of these kinds.
    pub fn new(spoken_of: SpokenOf) -> Self {
        Keeper { spoken_of, ..Keeper::default() }
    }

    /// A list begins.
    pub fn begin(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// A list is through.
    pub fn finish(&mut self) {
        let listed = self.listed.take().unwrap_or_default();
        let gone: Vec<_> = self.held.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in gone {
            self.vanish(&name);
        }
    }

    /// A record was read. What in it cannot be understood is told.
    pub fn read(&mut self, reflector: &Reflector, object: &Value) -> Vec<String> {
        let word = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (name, version) = (word("name"), word("resourceVersion"));
        if let Some(listed) = &mut self.listed {
            listed.insert(name.clone());
        }
        let held = Held { uid: word("uid"), version, spec: object["spec"].clone() };
        // The answer to a write may come after what the watch has brought since.
        if self.held.get(&name).is_some_and(|known| known.is_newer(&held)) {
            return Vec::new();
        }
        let (whose, outcomes, complaints) = text::read(&name, &held.spec, &self.spoken_of);
        reflector.recall(whose, outcomes);
        self.held.insert(name.clone(), held);
        self.waiting.insert(name);
        complaints
    }

    /// A record is gone.
    pub fn vanish(&mut self, name: &str) {
        self.held.remove(name);
        self.waiting.insert(name.to_owned());
        if self.busy.contains(name) {
            self.went.insert(name.to_owned());
        }
    }

    /// What is to be done now. Of each record one thing at a time.
    pub fn errands(&mut self, reflector: &Reflector) -> Vec<(String, Errand)> {
        self.waiting.extend(reflector.take_remembered().into_iter().map(String::from));
        let free: Vec<_> = self.waiting.iter().filter(|name| !self.busy.contains(*name)).cloned().collect();
        let mut errands = Vec::new();
        for name in free {
            match self.errand(reflector, &name) {
                Next::Nothing => _ = self.waiting.remove(&name),
                Next::Later => {}
                Next::Do(errand) => {
                    self.waiting.remove(&name);
                    self.busy.insert(name.clone());
                    errands.push((name, errand));
                }
            }
        }
        errands
    }

    /// An errand ended.
    pub fn done(&mut self, reflector: &Reflector, name: &str, done: &Done) -> Vec<String> {
        self.busy.remove(name);
        self.waiting.insert(name.to_owned());
        let went = self.went.remove(name);
        match done {
            // If there is one all the same, it cannot be created a second time, and is read.
            Done::Now(Some(_)) if went => {}
            Done::Now(Some(object)) => return self.read(reflector, object),
            Done::Now(None) => _ = self.held.remove(name),
            Done::ParentGone => {
                reflector.forget_parent(name);
                self.forget(name);
                self.gone.insert(name.to_owned());
            }
            Done::ParentThere => _ = self.there.insert(name.to_owned()),
            Done::Failed => {}
        }
        Vec::new()
    }

    /// Some time has passed.
    pub fn tick(&mut self) {
        self.unchosen.values_mut().for_each(|rounds| *rounds = rounds.saturating_add(1));
    }

    /// Something waits for a parent's kind to be listed.
    pub fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|name| !self.busy.contains(name))
    }

    fn errand(&mut self, reflector: &Reflector, name: &str) -> Next {
        let memories = reflector.memories(name);
        if !reflector.remembers_for(name) {
            let row = reflector.find(name).and_then(|id| reflector.read(id, |row| row.parent.is_some()));
            if row == Some(true) || self.there.contains(name) {
                return self.leftover(reflector, name);
            }
            return self.orphan(reflector, name, memories.map(|m| m.whose));
        }
        self.there.remove(name);
        self.unchosen.remove(name);
        if memories.is_some() && !self.chosen.contains(name) {
            self.chosen.insert(name.to_owned());
        }
        let wanted = memories.filter(|m| !m.outcomes.is_empty());
        let wanted = wanted.map(|memories| text::write(&memories, &self.spoken_of));
        match (wanted, self.held.get(name)) {
            (Some(spec), None) => Next::Do(Errand::Create(created(name, &spec))),
            (Some(spec), Some(held)) if spec != held.spec => {
                let patch = json!([
                    { "op": "test", "path": "/metadata/uid", "value": held.uid },
                    { "op": "test", "path": "/metadata/resourceVersion", "value": held.version },
                    { "op": "add", "path": "/spec", "value": spec },
                ]);
                let before = self.amended.remove(name).filter(|(said, _)| *said == spec);
                let again = before.map_or(0, |(_, again)| again + 1);
                self.amended.insert(name.to_owned(), (spec, again));
                Next::Do(Errand::Amend { patch, again })
            }
            (None, Some(held)) => Next::Do(removal(held)),
            _ => Next::Nothing,
        }
    }

    /// The parent is there, and no policy that remembers chooses it.
    fn leftover(&mut self, reflector: &Reflector, name: &str) -> Next {
        if !self.chosen.contains(name) {
            return Next::Nothing;
        }
        if *self.unchosen.entry(name.to_owned()).or_default() < PATIENCE {
            return Next::Later;
        }
        reflector.forget_parent(name);
        if let Some(held) = self.held.get(name) {
            return Next::Do(removal(held));
        }
        self.forget(name);
        Next::Nothing
    }

    fn forget(&mut self, name: &str) {
        self.there.remove(name);
        self.chosen.remove(name);
        self.unchosen.remove(name);
        self.amended.remove(name);
    }

    /// A parent without a row: it may be gone, it may not be chosen by any policy, or not be listed yet.
    fn orphan(&self, reflector: &Reflector, name: &str, known: Option<Whose>) -> Next {
        let held = self.held.get(name);
        if self.gone.contains(name) {
            return held.map_or(Next::Nothing, |held| Next::Do(removal(held)));
        }
        let recorded = held.map(|held| text::read(name, &held.spec, &self.spoken_of).0);
        let Some(whose) = known.or(recorded) else {
            return held.map_or(Next::Nothing, |held| Next::Do(removal(held)));
        };
        if held.is_some() && whose.name.is_empty() {
            // Nobody knows any more whose it was.
            return held.map_or(Next::Nothing, |held| Next::Do(removal(held)));
        }
        let kind = self.spoken_of.get(&(whose.group.to_string(), whose.kind.to_string()));
        match kind {
            Some(kind) if reflector.was_listed(*kind) => Next::Do(Errand::Ask(whose)),
            Some(_) => Next::Later,
            None => Next::Nothing,
        }
    }
}

enum Next {
    Nothing,
    Later,
    Do(Errand),
}

fn removal(held: &Held) -> Errand {
    Errand::Remove { uid: held.uid.clone(), version: held.version.clone() }
}

fn created(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessRecord",
        "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "rollcall" } },
        "spec": spec,
    })
}
