//! The work of one turn of the event loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aggregator::{
    DeliveryDecision, DeliveryOutcome, Engine, EnginePolicy, KindId, KindState, ObjectId, ParentDraft,
    PolicyAnswer, PolicyId, WriteTicket,
};
use readiness::Time;
use readiness::rollup::{LevelTally, ParentReason};
use timer::Seed;
use watcher::reflector::{ObjectRow, Reflector};
use watcher::status::WantedConditions;

use super::causes::CauseFinder;
use super::finalizer_flaps::FinalizerFlaps;
use super::fleet_numbers::FleetNumbers;
use super::kind_names::KindNames;
use super::live_reads::{self, LiveRead};
use super::parent_detail::ParentDetail;
use super::parent_feed::{FeedSources, ParentChanges, ParentFeed};
use super::parent_write::{AddressedWrite, ParentWrite, PlannedWrite, is_told_of_generation, says_true};
use super::policy_summary::PolicySummary;
use super::proof_queue::ProofQueue;
use super::quotes::{QuoteSources, Quotes};
use super::render::ConditionRenderer;
use super::top_cause::{TopCause, TopCauseFinder};
use super::transition::{ObjectRef, Transition, TransitionBuilder};
use super::tree::{TreeBuilder, TreeNode, VerdictAges};
use super::write_queue::WriteRank;
use super::write_schedule::{ReleaseProgress, WriteSchedule, WriteTurn};

/// Largest number of changed objects observed at the start of a turn.
const MAX_OBJECTS_FIRST: usize = 256;

/// Engine, the reflector that feeds it, and the names of kinds and policies.
pub struct Core {
    /// The engine.
    pub engine: Engine,
    /// Cached objects and verdicts.
    pub reflector: Arc<Reflector>,
    /// Numbers of all parents, as of their last refresh.
    pub numbers: FleetNumbers,
    feed: ParentFeed,
    kinds: KindNames,
    policies: BTreeMap<PolicyId, PolicySummary>,
    drafts: Vec<ParentDraft>,
    flaps: FinalizerFlaps,
    quotes: Quotes,
    proofs: ProofQueue,
    schedule: WriteSchedule,
    /// Transitions of the last turn. They are discarded if they are not taken.
    transitions: Vec<Transition>,
    /// Objects whose rule reads the clock and that were due in the last turn. They are discarded if they are not taken.
    reevaluations: Vec<ObjectId>,
}

impl Core {
    /// Creates a core over this reflector, with the intervals of resync and audit.
    pub fn new(reflector: Arc<Reflector>, resync: Duration, audit: Duration, seed: Seed) -> Self {
        Core {
            engine: Engine::new(resync, audit, seed),
            reflector,
            numbers: FleetNumbers::default(),
            feed: ParentFeed::default(),
            kinds: KindNames::default(),
            policies: BTreeMap::new(),
            drafts: Vec::new(),
            flaps: FinalizerFlaps::default(),
            quotes: Quotes::default(),
            proofs: ProofQueue::default(),
            schedule: WriteSchedule::default(),
            transitions: Vec::new(),
            reevaluations: Vec::new(),
        }
    }

    /// Limits the writes that are handed out and not settled, to as many as the writer has room for. No limit by default.
    pub fn set_max_in_flight_writes(&mut self, most: usize) {
        self.schedule.set_max_in_flight(most);
    }

    /// Number of parents with something to say that are not written yet.
    pub fn write_queue_len(&self) -> usize {
        self.schedule.len()
    }

    /// Sets the display name of a kind.
    pub fn set_kind_name(&mut self, kind: KindId, name: &str, group: &str) {
        if self.kinds.insert(kind, name, group) {
            self.feed.forget_names();
        }
    }

    /// Kind and group as in metrics and logs: `Deployment.apps`.
    pub fn kind_label(&self, kind: KindId) -> String {
        self.kinds.label(kind)
    }

    /// Adds, changes, or (`None`) removes a policy.
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<(EnginePolicy, PolicySummary)>) {
        let (policy, words) = policy.unzip();
        self.feed.forget_names();
        if let Some(words) = words {
            self.policies.insert(id, words);
        } else {
            self.policies.remove(&id);
            self.proofs.forget_policy(id);
        }
        self.engine.set_policy(now, id, policy);
    }

    /// Sets the list and watch state of a kind. While it cannot be seen, policies that were changed speak for what stands on its
    /// parents, though these cannot be listed for them.
    pub fn set_kind_state(&mut self, now: Time, kind: KindId, state: KindState) {
        if matches!(state, KindState::Forbidden | KindState::Stale) {
            self.reflector.succeed_policies(kind);
        }
        self.engine.set_kind_state(now, kind, state);
    }

    /// Observes changed objects.
    pub fn observe_objects(&mut self, now: Time, moved: &[ObjectId]) {
        if moved.is_empty() {
            return;
        }
        for id in moved {
            self.reflector.date_unready(*id, now);
            let gone = self.reflector.with_view(*id, now, |view| {
                self.engine.observe_one_of_many(now, *id, view);
                view.is_none()
            });
            if gone {
                self.flaps.forget(*id);
                self.quotes.texts.forget(*id);
                self.proofs.forget_parent(*id);
                self.schedule.remove_parent(*id);
                self.reflector.recycle_slot(*id);
            }
        }
        self.engine.end_observation(now);
    }

    /// Runs everything that is due. Returns the writes to send: no more than there is room for. Each of them has to be
    /// settled by [`Core::settle_write`], after which the next turn hands out others.
    pub fn run_turn(&mut self, now: Time) -> Vec<ParentWrite> {
        self.reflector.set_now(now);
        self.transitions.clear();
        self.reevaluations.clear();
        self.observe_brought(now);
        self.flaps.process_changes(&mut self.engine, &self.reflector, now);
        while let Some(id) = self.engine.take_due_recheck(now) {
            if self.reflector.read_row(id, |row| row.is_reevaluation_due(now)) == Some(true) {
                self.reevaluations.push(id);
            }
            self.observe_objects(now, &[id]);
        }
        let mut drafts = std::mem::take(&mut self.drafts);
        self.engine.poll(now, &mut drafts);
        self.proofs.settle_proofs(&mut self.engine, &self.reflector, now, &mut drafts);
        self.quote_drafts(&drafts, now);
        let first_new = self.schedule.next_number();
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
        for (policy, from, answer) in self.engine.take_changed_answers(parent) {
            // After a restart the previous answers in shadow mode are unknown; being ready is no news then.
            if from.is_some() || answer.reason != ParentReason::AllChildrenReady {
                let builder = TransitionBuilder { renderer: self.renderer() };
                let turned = builder.build_transition(now, parent, policy, from, answer);
                self.transitions.extend(turned);
            }
        }
        if let Some((kind, says_true)) = self.reflector.read_row(parent, |row| (row.kind, says_true(row))) {
            let is_ready =
                |(_, answer): &(PolicyId, PolicyAnswer)| answer.reason == ParentReason::AllChildrenReady;
            let withdraws = says_true && !self.engine.answers_to_write(parent).iter().all(is_ready);
            let rank = WriteRank::of(withdraws, self.engine.write_failures(parent));
            self.schedule.enqueue_parent(parent, kind, rank);
        }
    }

    /// Returns `true` once after each outage in which no write was answered: kinds that are not seen can be listed again.
    pub fn take_outage_end(&mut self) -> bool {
        self.schedule.take_outage_end()
    }

    /// Finds the causes for which parents are not ready.
    fn causes(&self) -> CauseFinder<'_> {
        let Core { engine, reflector, kinds, policies, quotes, .. } = self;
        CauseFinder { engine, reflector, kinds, policies, quotes: &quotes.texts }
    }

    fn renderer(&self) -> ConditionRenderer<'_> {
        ConditionRenderer { causes: self.causes(), flaps: &self.flaps, proofs: &self.proofs }
    }

    /// All entries that `parent` is to have; `None` if it is no longer a parent.
    pub fn render_conditions(&self, parent: ObjectId, now: Time) -> Option<WantedConditions> {
        self.renderer().render_conditions(parent, now)
    }

    /// Transitions of the last turn.
    pub fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.transitions)
    }

    /// Reference, uid and kind of a parent.
    pub fn parent_ref(&self, parent: ObjectId) -> Option<(ObjectRef, String, KindId)> {
        TransitionBuilder { renderer: self.renderer() }.parent_ref(parent)
    }

    /// Worst cause of a parent with the reason `said`: the object at the bottom, if a child is itself a parent.
    pub fn top_cause(&self, parent: ObjectId, policy: PolicyId, said: ParentReason, now: Time) -> TopCause {
        TopCauseFinder { causes: self.causes() }.top_cause(parent, policy, said, now)
    }

    /// Verdicts of all children of a parent, optional ones included.
    pub fn children_tally(&self, parent: ObjectId, policy: PolicyId) -> LevelTally {
        let groups = self.policies.get(&policy).map_or(0, |summary| summary.groups.len());
        let tallies = (0..=u8::MAX).take(groups).map(|group| self.engine.group_tally(parent, policy, group));
        tallies.fold(LevelTally::default(), |sum, tally| sum.sum_with(&tally))
    }

    /// Brings the numbers of all parents up to date.
    pub fn refresh_numbers(&mut self, now: Time) {
        let changed = self.numbers.refresh(&mut self.engine, &self.reflector, now);
        self.feed.record_changed(&changed);
    }

    /// Takes what has changed of all parents after the changes of this number; everything if there is none.
    pub fn take_parent_changes(&mut self, after: Option<u64>, now: Time) -> ParentChanges {
        self.refresh_numbers(now);
        let Core { engine, numbers, kinds, policies, feed, .. } = self;
        feed.take_changes(after, FeedSources { engine, numbers, kinds, policies }, now)
    }

    /// Nobody asks for what has changed any more.
    pub fn end_parent_feed(&mut self) {
        self.feed.end();
    }

    /// Collects the details of one answer; empty if it no longer exists.
    pub fn parent_detail(&self, parent: ObjectId, policy: PolicyId, now: Time) -> ParentDetail {
        ParentDetail::collect(self.renderer(), parent, policy, now)
    }

    /// All parents that are not a child of another one, with their descendants.
    pub fn parent_trees(&self, now: Time, ages: &mut VerdictAges) -> Vec<TreeNode> {
        TreeBuilder::new(self.renderer(), ages, now).parent_trees()
    }

    /// Reads of a parent's resync: the parent, the children that hold it back, and kinds of which an expected child is
    /// missing.
    pub fn resync_reads(&self, parent: ObjectId) -> Vec<LiveRead> {
        live_reads::resync_reads(&self.engine, &self.reflector, parent)
    }

    /// Reads of the objects that are to be evaluated again because their rule reads the clock, as of the last turn.
    pub fn take_reevaluation_reads(&mut self) -> Vec<LiveRead> {
        live_reads::reevaluation_reads(&self.reflector, std::mem::take(&mut self.reevaluations))
    }

    fn quote_drafts(&mut self, drafts: &[ParentDraft], now: Time) {
        let Core { engine, reflector, kinds, policies, quotes, .. } = self;
        let mut sources = QuoteSources { engine, reflector, kinds, policies };
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
        let deadlines = [
            self.engine.next_deadline(),
            self.flaps.next_deadline(),
            self.schedule.next_deadline(),
            self.proofs.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// The release of many parents that no policy chooses any more, where it begins and where it ends.
    pub fn take_release_progress(&mut self) -> Option<ReleaseProgress> {
        self.schedule.take_release_progress()
    }

    /// Renders the parents whose turn has come, while there is room. Those that waited, from before `first_new`, may have
    /// nothing to say any more, or something else.
    fn take_writes(&mut self, now: Time, first_new: u64) -> Vec<ParentWrite> {
        let mut writes = Vec::new();
        while let Some(turn) = self.schedule.take_next(first_new, now) {
            if !self.engine.confirm_draft(turn.parent, now) || self.defer_blindness(turn.parent, now) {
                continue;
            }
            if turn.waited {
                self.quote_drafts(&[ParentDraft { parent: turn.parent }], now);
            }
            if let Some(write) = self.prepare_write(now, turn) {
                self.schedule.begin_write(turn, &write, now);
                writes.push(write);
            }
        }
        writes
    }

    /// Puts off what is to be said of a blindness while its end is near, and returns `true` if it did. A new generation is
    /// told at once.
    fn defer_blindness(&mut self, parent: ObjectId, now: Time) -> bool {
        let Some(until) = self.schedule.blindness_waits_until(now) else { return false };
        let answers = self.engine.answers_to_write(parent);
        let is_blind = answers.iter().any(|(_, answer)| answer.reason == ParentReason::WatchStale);
        let defers = is_blind && self.reflector.read_row(parent, is_told_of_generation).unwrap_or(false);
        if defers {
            self.engine.defer_draft(parent, until);
        }
        defers
    }

    /// Moves a parent that conditions only leave to those that are released at a pace, and returns `true` if it did.
    fn defer_release(&mut self, turn: WriteTurn, wanted: &WantedConditions) -> bool {
        let releases = |row: &ObjectRow| row.parent.as_ref().is_some_and(|row| row.status.only_loses(wanted));
        let kind = |row: &ObjectRow| releases(row).then_some(row.kind);
        let Some(kind) = self.reflector.read_row(turn.parent, kind).flatten() else { return false };
        self.schedule.enqueue_release(turn.parent, kind, turn.rank);
        // How long it waits for its pace is no latency.
        self.engine.take_first_touch(turn.parent);
        true
    }

    /// Prepares the write to a parent, if its entries differ from those wanted and its turn has come.
    fn prepare_write(&mut self, now: Time, turn: WriteTurn) -> Option<ParentWrite> {
        let parent = turn.parent;
        let judged = self.engine.parent_generation(parent);
        if !self.is_generation_current(parent, judged) {
            self.observe_objects(now, &[parent]);
            return None;
        }
        if self.engine.is_repeatedly_overwritten(parent) {
            self.reflector.use_fallback_type(parent);
        }
        let wanted = self.render_conditions(parent, now)?;
        if !turn.is_release && self.defer_release(turn, &wanted) {
            return None;
        }
        let digest = watcher::status::conditions_digest(&wanted.entries, wanted.observed_generation);
        let DeliveryDecision::Send(ticket) = self.engine.offer_digest(parent, digest, now) else {
            return None;
        };
        let policies = self.engine.answers_to_write(parent).into_iter().map(|(policy, _)| policy).collect();
        let kind = self.reflector.read_row(parent, |row| row.kind);
        let requires_list = kind.is_some_and(|kind| self.reflector.status_bounds(kind).requires_list);
        let brevity = self.engine.brevity(parent, now);
        let plan = PlannedWrite { parent, ticket, policies, wanted, digest, judged, requires_list, brevity };
        let write = self.reflector.read_row(parent, |row| plan.address_to(row));
        match write.unwrap_or(AddressedWrite::Outdated) {
            AddressedWrite::Send(write) => Some(*write),
            AddressedWrite::Unsent(outcome) => {
                self.engine.settle_write(parent, ticket, outcome, now);
                None
            }
            // A newer generation arrived during rendering. Nothing was sent; the parent is evaluated again.
            AddressedWrite::Outdated => {
                self.settle_write(now, parent, ticket, DeliveryOutcome::Conflict);
                None
            }
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
        let shown = self.reflector.read_row(parent, |row| row.parent.as_ref().map(|p| p.view.digest));
        self.schedule.end_write(ticket, outcome, shown.flatten(), now);
        self.engine.settle_write(parent, ticket, outcome, now);
    }
}
