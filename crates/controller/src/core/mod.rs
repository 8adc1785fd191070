//! The loop without the clock and the wire: what `drive` does in one turn, and what the simulator does as well.
//!
//! [`Core`] holds the engine and reads the reflector. It is told what moved and what time it is, and says what is to be
//! written. Nothing in here waits, and nothing in here knows kube.

pub mod below;
mod causes;
mod flaps;
mod health;
pub mod reads;
pub mod records;
mod render;
pub mod reply;
pub mod silent;
mod transition;
mod tree;
mod words;
mod world;
mod worst;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Decision, Draft, Engine, KindId, ObjectId, Outcome, Policy, PolicyId};
use readiness::Time;
use readiness::rollup::{ParentReason, Status};
use serde_json::Value;
use timer::Seed;
use watcher::reflector::{Reflector, Row};
use watcher::status::{Guarded, ListShape, ParentStatus, Wanted, guarded_patch};

/// What could not be sent is looked at again after so long.
const UNSENT: Duration = Duration::from_secs(1);

pub use below::Below;
pub use health::{Health, News};
pub use reads::{Ahead, Read};
pub use reply::Reply;
pub use transition::{Culprit, Place, Transition};
pub use tree::{Ages, TreeNode};
pub use words::{GroupWords, PolicyWords};
pub use world::{GroupNow, Standing, Words, World};
pub use worst::Worst;

/// The engine, the reflector that it is fed from, and the names of things.
pub struct Core {
    /// The engine.
    pub engine: Engine,
    /// What is known of the world.
    pub reflector: Arc<Reflector>,
    kinds: BTreeMap<KindId, (String, String)>,
    policies: BTreeMap<PolicyId, PolicyWords>,
    drafts: Vec<Draft>,
    flaps: flaps::Flaps,
    /// What turned in the last turn. Nobody has to take it.
    turned: Vec<Transition>,
}

/// One write to one parent.
#[derive(Clone, Debug)]
pub struct Write {
    /// The parent.
    pub parent: ObjectId,
    /// Its kind.
    pub kind: KindId,
    /// Its namespace; empty for cluster-scoped parents.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The policies whose answers are in it.
    pub policies: Vec<PolicyId>,
    /// The JSON Patch.
    pub patch: Value,
    /// What it makes the parent say.
    pub wanted: Wanted,
    /// The status that a condition turns to by it.
    pub turns_to: Option<Status>,
}

fn turns_to(status: &ParentStatus, wanted: &Wanted) -> Option<Status> {
    let main = wanted.entries.first()?;
    let before = status.ours(&main.r#type).map(|o| o.entry.status.as_str());
    (before != Some(&main.status)).then(|| main.reason().map(ParentReason::status)).flatten()
}

impl Core {
    /// A core over this reflector, with the periods of the pass and of the audit.
    pub fn new(reflector: Arc<Reflector>, resync: Duration, audit: Duration, seed: Seed) -> Self {
        Core {
            engine: Engine::new(resync, audit, seed),
            reflector,
            kinds: BTreeMap::new(),
            policies: BTreeMap::new(),
            drafts: Vec::new(),
            flaps: flaps::Flaps::default(),
            turned: Vec::new(),
        }
    }

    /// What people call a kind.
    pub fn name_kind(&mut self, kind: KindId, name: &str, group: &str) {
        let label = if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") };
        self.kinds.insert(kind, (name.to_owned(), label));
    }

    /// Kind and group, as metrics and logs have it: `Deployment.apps`.
    pub fn kind_label(&self, kind: KindId) -> String {
        self.kinds.get(&kind).map_or_else(|| "object".to_owned(), |(_, label)| label.clone())
    }

    /// A policy is new, changed, or (`None`) gone.
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<(Policy, PolicyWords)>) {
        let (policy, words) = policy.unzip();
        match words {
            Some(words) => _ = self.policies.insert(id, words),
            None => _ = self.policies.remove(&id),
        }
        self.engine.set_policy(now, id, policy);
    }

    /// These objects moved.
    pub fn take_in(&mut self, now: Time, moved: &[ObjectId]) {
        for id in moved {
            self.reflector.date(*id, now);
            let gone = self.reflector.view(*id, now, |view| {
                self.engine.observe(now, *id, view);
                view.is_none()
            });
            if gone {
                self.forget_finalizers(*id);
                self.reflector.recycle(*id);
            }
        }
    }

    /// Everything that is due: what is to be written now.
    pub fn turn(&mut self, now: Time) -> Vec<Write> {
        self.reflector.tell_time(now);
        self.turned.clear();
        self.watch_finalizers(now);
        while let Some(id) = self.engine.take_ripe(now) {
            self.take_in(now, &[id]);
        }
        let mut drafts = std::mem::take(&mut self.drafts);
        self.engine.poll(now, &mut drafts);
        let writes = drafts.drain(..).filter_map(|draft| self.write(now, draft.parent)).collect();
        self.drafts = drafts;
        writes
    }

    /// What is to be written on `parent`, if it does not say it already and its turn has come.
    fn write(&mut self, now: Time, parent: ObjectId) -> Option<Write> {
        // A watch feeds the reflector at any moment, and may have brought a newer generation than the one that was judged.
        let judged = self.engine.generation(parent);
        if !self.is_still(parent, judged) {
            self.take_in(now, &[parent]);
            return None;
        }
        if self.engine.is_fought_over(parent) {
            self.reflector.give_up(parent);
        }
        self.note_turns(now, parent);
        let wanted = self.render(parent, now)?;
        let digest = watcher::status::digest(&wanted.entries, wanted.observed_generation);
        if self.engine.offer(parent, digest, now) != Decision::Send {
            return None;
        }
        let policies = self.engine.answers(parent).into_iter().map(|(policy, _)| policy).collect();
        let write = self.reflector.read(parent, |row| {
            let row_parent = row.parent.as_ref()?;
            if judged.is_some_and(|generation| generation != row_parent.view.generation) {
                return None;
            }
            let guarded = Guarded {
                uid: &row_parent.uid,
                generation: row_parent.generation,
                status: &row_parent.status,
            };
            Some(guarded_patch(&guarded, &wanted).map(|patch| Write {
                parent,
                kind: row.kind,
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                uid: row_parent.uid.to_string(),
                policies,
                patch,
                turns_to: turns_to(&row_parent.status, &wanted),
                wanted,
            }))
        });
        match write.flatten() {
            Some(Some(write)) => Some(write),
            Some(None) => {
                self.engine.settle(parent, self.unsent(parent), now);
                None
            }
            // The newer generation came while this was rendered. Nothing was sent; it is judged anew.
            None => {
                self.settle(now, parent, Outcome::Conflict);
                None
            }
        }
    }

    /// What became of a write of which there is nothing to send.
    fn unsent(&self, parent: ObjectId) -> Outcome {
        let unwritable = |row: &Row| {
            row.parent.as_ref().is_some_and(|row| matches!(row.status.list, ListShape::Unwritable(_)))
        };
        match self.reflector.read(parent, unwritable) {
            // Its status has a shape that no entry can be written into: there is nothing to send until that changes.
            Some(true) => Outcome::Pruned,
            // It came to say so between two looks; whatever it is to say next must not wait for that.
            _ => Outcome::Retry(UNSENT),
        }
    }

    /// Is the parent's generation, as last read, the one that was judged? Where none was, entries are only taken away.
    fn is_still(&self, parent: ObjectId, judged: Option<u64>) -> bool {
        let read =
            self.reflector.read(parent, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
        judged.is_none() || read.is_none() || judged == read
    }

    /// A write ended so; what the parent says now was applied to the reflector before.
    pub fn settle(&mut self, now: Time, parent: ObjectId, outcome: Outcome) {
        // What was read on the way has to be known before the outcome is, or it would look like somebody else's doing.
        self.take_in(now, &[parent]);
        self.engine.settle(parent, outcome, now);
    }

    fn kind_group(&self, kind: KindId) -> &str {
        let group = self.kinds.get(&kind).and_then(|(name, label)| label.get(name.len() + 1..));
        group.unwrap_or_default()
    }

    pub(crate) fn kind_name(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(name, _)| name.as_str())
    }
}
