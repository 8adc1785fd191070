//! The event loop without clock and network: the work of one turn, shared by the service and the simulator.
//!
//! [`Core`] holds the engine and reads the reflector. Its inputs are changed objects and the time; its outputs are
//! writes. Nothing in here waits, and nothing in here depends on kube.

mod causes;
mod cluster_snapshot;
pub mod event_causes;
mod finalizer_flaps;
mod kind_names;
pub mod live_reads;
mod parent_write;
pub mod pod_causes;
mod policy_summary;
mod quote_texts;
mod quotes;
pub mod records;
mod recount;
mod render;
mod rule_swaps;
mod top_cause;
mod transition;
mod tree;
mod watch_health;
mod write_breaker;
mod write_queue;
pub mod write_reply;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aggregator::{
    DeliveryDecision, DeliveryOutcome, Engine, EnginePolicy, KindId, ObjectId, ParentDraft, PolicyId,
    WriteTicket,
};
use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};
use timer::Seed;
use watcher::reflector::{ObjectRow, Reflector};
use watcher::status::{ListShape, ParentStatus, PatchGuard, WantedConditions, guarded_patch};

pub use cluster_snapshot::{ClusterSnapshot, GroupTally, ParentAnswer, ParentDetail};
pub use live_reads::{KnownObject, LiveRead, WatchLag};
pub use parent_write::ParentWrite;
pub use pod_causes::UnreadyWorkload;
pub use policy_summary::{GroupSummary, PolicySummary};
pub use recount::{RecountDrift, RecountSchedule};
pub use rule_swaps::RuleSwaps;
pub use top_cause::TopCause;
pub use transition::{MAX_ROOT_CAUSES, ObjectRef, RootCause, Transition};
pub use tree::{TreeNode, VerdictAges};
pub use watch_health::{BlindKind, KindEvent, WatchHealth};
pub use write_reply::WriteReply;

/// Largest number of changed objects observed at the start of a turn.
const MAX_OBJECTS_FIRST: usize = 256;

/// Engine, the reflector that feeds it, and the names of kinds and policies.
pub struct Core {
    /// The engine.
    pub engine: Engine,
    /// Cached objects and verdicts.
    pub reflector: Arc<Reflector>,
    kinds: kind_names::KindNames,
    policies: BTreeMap<PolicyId, PolicySummary>,
    drafts: Vec<ParentDraft>,
    flaps: finalizer_flaps::FinalizerFlaps,
    quotes: quotes::Quotes,
    queue: write_queue::WriteQueue,
    breakers: write_breaker::WriteBreakers,
    max_in_flight_writes: usize,
    /// Transitions of the last turn. They are discarded if nobody takes them.
    transitions: Vec<Transition>,
}

fn status_transition(status: &ParentStatus, wanted: &WantedConditions) -> Option<ConditionStatus> {
    let main = wanted.entries.first()?;
    let before = status.our_entry(&main.r#type).map(|o| o.entry.status.as_str());
    (before != Some(&main.status)).then(|| main.parent_reason().map(ParentReason::condition_status)).flatten()
}

impl Core {
    /// Creates a core over this reflector, with the intervals of resync and audit.
    pub fn new(reflector: Arc<Reflector>, resync: Duration, audit: Duration, seed: Seed) -> Self {
        Core {
            engine: Engine::new(resync, audit, seed),
            reflector,
            kinds: kind_names::KindNames::default(),
            policies: BTreeMap::new(),
            drafts: Vec::new(),
            flaps: finalizer_flaps::FinalizerFlaps::default(),
            quotes: quotes::Quotes::default(),
            queue: write_queue::WriteQueue::default(),
            breakers: write_breaker::WriteBreakers::default(),
            max_in_flight_writes: usize::MAX,
            transitions: Vec::new(),
        }
    }

    /// Limits the writes that are handed out and not settled, to as many as the writer has room for. No limit by default.
    pub fn set_max_in_flight_writes(&mut self, most: usize) {
        self.max_in_flight_writes = most;
    }

    /// Number of parents with something to say that are not written yet.
    pub fn write_queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Sets the display name of a kind.
    pub fn set_kind_name(&mut self, kind: KindId, name: &str, group: &str) {
        self.kinds.insert(kind, name, group);
    }

    /// Kind and group as in metrics and logs: `Deployment.apps`.
    pub fn kind_label(&self, kind: KindId) -> String {
        self.kinds.label(kind)
    }

    /// Adds, changes, or (`None`) removes a policy.
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<(EnginePolicy, PolicySummary)>) {
        let (policy, words) = policy.unzip();
        match words {
            Some(words) => _ = self.policies.insert(id, words),
            None => _ = self.policies.remove(&id),
        }
        self.engine.set_policy(now, id, policy);
    }

    /// Observes changed objects.
    pub fn observe_objects(&mut self, now: Time, moved: &[ObjectId]) {
        for id in moved {
            self.reflector.date_unready(*id, now);
            let gone = self.reflector.with_view(*id, now, |view| {
                self.engine.observe_object(now, *id, view);
                view.is_none()
            });
            if gone {
                self.flaps.forget(*id);
                self.quotes.texts.forget(*id);
                self.queue.remove_parent(*id);
                self.reflector.recycle_slot(*id);
            }
        }
    }

    /// Runs everything that is due. Returns the writes to send: no more than there is room for. Each of them has to be
    /// settled by [`Core::settle_write`], after which the next turn hands out others.
    pub fn run_turn(&mut self, now: Time) -> Vec<ParentWrite> {
        self.reflector.set_now(now);
        self.transitions.clear();
        self.observe_brought(now);
        self.flaps.process_changes(&mut self.engine, &self.reflector, now);
        while let Some(id) = self.engine.take_due_recheck(now) {
            self.observe_objects(now, &[id]);
        }
        let mut drafts = std::mem::take(&mut self.drafts);
        self.engine.poll(now, &mut drafts);
        self.quote_drafts(&drafts, now);
        let first_new = self.queue.next_number();
        for draft in drafts.drain(..) {
            self.enqueue_draft(now, draft.parent);
        }
        self.drafts = drafts;
        self.take_writes(now, first_new)
    }

    /// Observes what the watches have brought before anything is judged: a turn that comes late must not take for quiet what
    /// was not. Where that is too much for one turn, the engine knows that it is behind.
    fn observe_brought(&mut self, now: Time) {
        let moved = self.reflector.take_dirty(MAX_OBJECTS_FIRST);
        self.observe_objects(now, &moved);
        self.engine.set_behind(self.reflector.dirty_len() > 0);
    }

    /// Records what `parent` turned to, and puts it into the queue of those to be written.
    fn enqueue_draft(&mut self, now: Time, parent: ObjectId) {
        // A watch feeds the reflector at any moment, and may have delivered a newer generation than the one evaluated.
        if !self.is_generation_current(parent, self.engine.parent_generation(parent)) {
            return self.observe_objects(now, &[parent]);
        }
        self.record_transitions(now, parent);
        if let Some(kind) = self.reflector.read_row(parent, |row| row.kind) {
            self.queue.enqueue_parent(parent, kind, self.engine.is_write_failing(parent));
        }
    }

    /// Renders the parents whose turn has come, while there is room. Those that waited, from before `first_new`, may have
    /// nothing to say any more, or something else.
    fn take_writes(&mut self, now: Time, first_new: u64) -> Vec<ParentWrite> {
        let mut writes = Vec::new();
        while self.breakers.in_flight_count() < self.max_in_flight_writes {
            let breakers = &self.breakers;
            let next = self.queue.take_next(|kind| breakers.may_write(kind, now));
            let Some((parent, number)) = next else { break };
            if !self.engine.confirm_draft(parent, now) {
                continue;
            }
            if number < first_new {
                self.quote_drafts(&[ParentDraft { parent }], now);
            }
            if let Some(write) = self.prepare_write(now, parent) {
                self.breakers.begin_write(write.kind, write.ticket, now);
                writes.push(write);
            }
        }
        writes
    }

    /// Finds the causes for which parents are not ready.
    fn causes(&self) -> causes::CauseFinder<'_> {
        let Core { engine, reflector, kinds, policies, quotes, .. } = self;
        causes::CauseFinder { engine, reflector, kinds, policies, quotes: &quotes.texts }
    }

    fn quote_drafts(&mut self, drafts: &[ParentDraft], now: Time) {
        let Core { engine, reflector, kinds, policies, quotes, .. } = self;
        let mut sources = quotes::QuoteSources { engine, reflector, kinds, policies };
        quotes.quote_drafts(&mut sources, drafts, now);
    }

    /// Number of restorations of finalizers since the last call, by policy.
    pub fn take_flap_counts(&mut self) -> BTreeMap<PolicyId, u64> {
        self.flaps.take_counts()
    }

    /// At most `most` parents with a report about their own finalizers or their children's, with the policy.
    pub fn flapping_parents(&self, most: usize) -> BTreeSet<(ObjectId, PolicyId)> {
        self.flaps.parents(&self.engine, most)
    }

    /// Parents with their first report about their own finalizers or their children's, and its text.
    pub fn take_new_flaps(&mut self) -> Vec<(ObjectId, String)> {
        let reported = self.flaps.take_newly_reported();
        self.flaps.describe(&self.causes(), reported)
    }

    /// Time of the next work of the core if nothing changes before.
    pub fn next_deadline(&self) -> Option<Time> {
        let deadlines = [self.engine.next_deadline(), self.flaps.next_deadline(), self.next_write_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Time at which a waiting write may be sent though nothing else happens: the next probe of a kind that failed.
    fn next_write_deadline(&self) -> Option<Time> {
        let room = self.breakers.in_flight_count() < self.max_in_flight_writes;
        let kinds = self.queue.waiting_kinds().filter(|_| room);
        kinds.filter_map(|kind| self.breakers.next_probe(kind)).min()
    }

    /// Prepares the write to `parent`, if its entries differ from those wanted and its turn has come.
    fn prepare_write(&mut self, now: Time, parent: ObjectId) -> Option<ParentWrite> {
        let judged = self.engine.parent_generation(parent);
        if !self.is_generation_current(parent, judged) {
            self.observe_objects(now, &[parent]);
            return None;
        }
        if self.engine.is_repeatedly_overwritten(parent) {
            self.reflector.use_fallback_type(parent);
        }
        let wanted = self.render_conditions(parent, now)?;
        let digest = watcher::status::conditions_digest(&wanted.entries, wanted.observed_generation);
        let DeliveryDecision::Send(ticket) = self.engine.offer_digest(parent, digest, now) else {
            return None;
        };
        let policies = self.engine.answers_to_write(parent).into_iter().map(|(policy, _)| policy).collect();
        let write = self.reflector.read_row(parent, |row| {
            let row_parent = row.parent.as_ref()?;
            if judged.is_some_and(|generation| generation != row_parent.view.generation) {
                return None;
            }
            let guarded = PatchGuard {
                uid: &row_parent.uid,
                generation: row_parent.generation,
                status: &row_parent.status,
            };
            Some(guarded_patch(&guarded, &wanted).map(|patch| ParentWrite {
                parent,
                ticket,
                kind: row.kind,
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                uid: row_parent.uid.to_string(),
                policies,
                patch,
                status_transition: status_transition(&row_parent.status, &wanted),
                wanted,
            }))
        });
        match write.flatten() {
            Some(Some(write)) => Some(write),
            Some(None) => {
                self.engine.settle_write(parent, ticket, self.unsent_outcome(parent), now);
                None
            }
            // A newer generation arrived during rendering. Nothing was sent; the parent is evaluated again.
            None => {
                self.settle_write(now, parent, ticket, DeliveryOutcome::Conflict);
                None
            }
        }
    }

    /// Outcome of a write that has nothing to send.
    fn unsent_outcome(&self, parent: ObjectId) -> DeliveryOutcome {
        let unwritable = |row: &ObjectRow| {
            row.parent.as_ref().is_some_and(|row| matches!(row.status.list, ListShape::Unwritable(_)))
        };
        match self.reflector.read_row(parent, unwritable) {
            // The status has a shape that cannot hold an entry: there is nothing to send until that changes.
            Some(true) => DeliveryOutcome::Pruned,
            // The parent changed to the wanted state in between; the next change must not wait for that.
            _ => DeliveryOutcome::Unsent,
        }
    }

    /// True if the parent's generation, as last read, is the one that was evaluated. Without an evaluated one, entries
    /// are only removed.
    fn is_generation_current(&self, parent: ObjectId, judged: Option<u64>) -> bool {
        let read =
            self.reflector.read_row(parent, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
        judged.is_none() || read.is_none() || judged == read
    }

    /// The write of this ticket ended so; what the parent says now was applied to the reflector before.
    pub fn settle_write(
        &mut self,
        now: Time,
        parent: ObjectId,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
    ) {
        // Changes read in between have to be observed before the outcome, or they would look like another writer's.
        self.observe_objects(now, &[parent]);
        self.breakers.end_write(ticket, outcome, now);
        self.engine.settle_write(parent, ticket, outcome, now);
    }

    /// The name of a kind, for messages; `object` where it is not known.
    pub fn kind_name(&self, kind: KindId) -> &str {
        self.kinds.name(kind)
    }
}
