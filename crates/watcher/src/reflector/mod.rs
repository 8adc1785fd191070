//! The in-memory state of the cluster: one row per relevant object, assessed on ingest.
//!
//! The reflector owns identity, versions, names, owners and verdicts. It has no clock: a verdict that changes with time
//! carries the moment. It does no I/O: watches, live reads and the simulator feed it in the same way. What it is composed of,
//! and in which order that is locked, is in [`parts`]; this file is what others may ask of it, with [`RuleWork`] for custom rules
//! and [`RememberedOutcomes`] for what outlives its object.

mod assess;
mod awaited;
mod deletion;
mod dirty;
mod disruption_budgets;
mod finalizers;
mod generation_marks;
mod generation_practice;
mod ingest;
mod interim;
mod judgement_queue;
mod kind_counts;
mod known_bounds;
mod kopf;
mod last_written;
mod links;
mod lists;
mod memory;
mod memory_account;
mod namespaces;
mod parent;
mod parts;
mod planned;
mod proof_work;
mod proofs;
mod reevaluation;
mod refinement;
mod remembered_outcomes;
mod row;
mod row_place;
mod row_store;
mod rows;
mod rule_breaker;
mod rule_overruns;
mod rule_work;
mod rules_of_parent;
mod scaled;
mod selector_interner;
mod slots;
mod status_owner;
mod succession;
mod tombstones;
mod uid_key;
mod unready_since;
mod view;
mod whole_workload;

use std::sync::Arc;

use aggregator::{KindId, ObjectId, ObjectView};
use readiness::Time;
use serde_json::value::RawValue;

use crate::plan::Interest;
use crate::status::{ConditionEntry, ParentStatus, StatusBounds};
use crate::wire::{ChildObject, WireMeta};
use kopf::logged_parents;
use parts::ReflectorParts;
use planned::BroughtBy;
use row_place::RowPlace;
use rows::Rows;
use slots::RowSlot;
use uid_key::UidKey;

pub use awaited::AwaitedVersion;
pub use disruption_budgets::NamespaceBudgets;
pub use finalizers::FinalizerChange;
pub use judgement_queue::Judgement;
pub use kopf::log::{KopfLogLine, LoggedLine};
pub use memory::{
    DroppedOutcomes, MAX_DISCARDED_RUNS, MAX_PARENT_OUTCOMES, NamespaceRuns, OutcomeParent, ParentOutcomes,
    RememberedOutcome, RunEnd, RunTrace, UnseenRun,
};
pub use parent::{AnswerTarget, ParentDeletion, ParentRow};
pub use planned::ListPass;
pub use proof_work::{EvaluatedProof, ProofOutcome, ProofTask, ProofVerdict};
pub use remembered_outcomes::RememberedOutcomes;
pub use row::{NamespaceName, ObjectRow, RefinedCause};
pub use row_store::ApplyOutcome;
pub use rule_breaker::RuleSuspension;
pub use rule_work::{RuleWork, RuleWorkMark};
pub use rules_of_parent::{OutrankedPolicy, RulingPolicy};
pub use selector_interner::name_hash;
pub use tombstones::ReadStart;
pub use uid_key::FullUid;
pub use view::UncountedChild;

/// The in-memory reflector.
pub struct Reflector(ReflectorParts);

/// Objects that come and go.
impl Reflector {
    /// Creates an empty reflector; `wake` is called when the dirty set becomes non-empty.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Reflector(ReflectorParts::new(Rows::new(wake)))
    }

    fn rows(&self) -> &Rows {
        &self.0.store.rows
    }

    /// Returns `true` if an object with this metadata would get a row.
    pub fn wants_object(&self, kind: KindId, meta: &WireMeta) -> bool {
        ingest::wants_object(&self.0, kind, meta)
    }

    /// Takes in an object that came over the watch. It is judged by the interest that holds now, whichever held when it was
    /// asked for. `object` is its whole text where its kind may be a parent.
    pub fn apply_object(&self, kind: KindId, child: &ChildObject, object: Option<&RawValue>) -> ApplyOutcome {
        self.0.awaited.on_version(UidKey::from_text(&child.meta.uid), child.meta.resource_version);
        ingest::ingest_object(&self.0, kind, child, object, BroughtBy::Watch)
    }

    /// Ingests an object of a list. A page of a list of an older plan, or of one that was begun again, is refused.
    pub fn apply_listed(
        &self,
        pass: &ListPass,
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> ApplyOutcome {
        if !self.0.store.plans.is_current(pass) {
            return ApplyOutcome::Refused;
        }
        self.0.awaited.on_version(UidKey::from_text(&child.meta.uid), child.meta.resource_version);
        ingest::ingest_listed(&self.0, pass, child, object)
    }

    /// Takes in the answer to a write of an object that is held. What is not held any more is not brought back by it.
    pub fn apply_answer(&self, kind: KindId, child: &ChildObject, object: Option<&RawValue>) -> ApplyOutcome {
        ingest::ingest_object(&self.0, kind, child, object, BroughtBy::LiveRead(ReadStart::default()))
    }

    /// Applies an object that was read live, by a read that began then: it is there, whatever another read did not find
    /// before. If it is newer, the watch is expected to deliver it too. An object that is not held is refused where a list is under
    /// way, or was finished since the read began: that list tells whether it is there, and no event does.
    pub fn apply_live(
        &self,
        kind: KindId,
        start: ReadStart,
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> (ApplyOutcome, Option<AwaitedVersion>) {
        let (uid, version) = (UidKey::from_text(&child.meta.uid), child.meta.resource_version);
        self.0.store.tombstones.exhume(uid, version, start);
        let held = self.find_object(&child.meta.uid).and_then(|id| self.read_row(id, |row| row.version));
        // The watch may deliver it while it is applied here.
        let awaited = self.0.awaited.expect_version(uid, kind, version);
        let applied = ingest::ingest_object(&self.0, kind, child, object, BroughtBy::LiveRead(start));
        if matches!(applied, ApplyOutcome::Moved(_)) && held.unwrap_or(0) < version {
            return (applied, Some(awaited.0));
        }
        self.0.awaited.withdraw(awaited);
        (applied, None)
    }

    /// A live read found that an object is gone that was held at `version` when it was sent; the watch is awaited to say so.
    pub fn apply_live_absence(&self, id: ObjectId, version: u64) -> Option<AwaitedVersion> {
        deletion::apply_live_absence(&self.0, id, version)
    }

    /// The watch is expected to deliver this version of an object, or a newer one.
    pub fn expect_version(&self, kind: KindId, uid: &str, version: u64) -> AwaitedVersion {
        self.0.awaited.expect_version(UidKey::from_text(uid), kind, version).0
    }

    /// Returns `true` if the watch has not delivered the version yet.
    pub fn is_still_awaited(&self, awaited: &AwaitedVersion) -> bool {
        self.0.awaited.is_awaited(*awaited)
    }

    /// Awaits the version no longer; returns `true` if the watch has not delivered it.
    pub fn give_up_awaiting(&self, awaited: &AwaitedVersion) -> bool {
        self.0.awaited.give_up(*awaited)
    }

    /// Must be asked for before a live read is sent, and given with what it brings.
    pub fn start_read(&self) -> ReadStart {
        let store = &self.0.store;
        store.tombstones.start_read(store.plans.lists_finished())
    }

    /// Handles a DELETE event, which contains the final state and may be the only observation of the object.
    pub fn on_deleted(&self, kind: KindId, child: &ChildObject) {
        deletion::on_deleted(&self.0, kind, child);
    }

    /// An object is gone. `version` is that of the deletion; where it is not known (0), the one that is held.
    pub fn delete_object(&self, uid: &str, version: u64) {
        deletion::delete_object(&self.0, uid, version);
    }

    /// Begins a list of this kind, in one namespace or in all. A kind is listed either way, never both.
    pub fn begin_list(&self, kind: KindId, scope: Option<&str>) -> ListPass {
        let store = &self.0.store;
        let scope = scope.map(|scope| store.namespaces.intern(scope));
        store.plans.begin_list(kind, scope, self.start_read())
    }

    /// Ends a list: what it did not have is gone. How many objects that were; `None` where the list is void.
    pub fn finish_list(&self, pass: &ListPass) -> Option<usize> {
        deletion::finish_list(&self.0, pass)
    }

    /// Forgets a kind that is not followed any more, or whose API is gone: it has no objects, and nothing of it is taken in.
    pub fn forget_kind(&self, kind: KindId) -> usize {
        self.0.known_bounds.forget_kind(kind);
        deletion::forget_kind(&self.0, kind)
    }

    /// Records an accepted write and its response. Must be called before the response is applied.
    pub fn on_write_accepted(&self, uid: &str, sent: &[ConditionEntry], answer: &ParentStatus) {
        self.0.last_written.on_accepted(UidKey::from_text(uid), sent, answer);
        // The answer may come after the parent has gone: then nobody else would forget it.
        if self.rows().find(uid).is_none() {
            self.0.last_written.forget(UidKey::from_text(uid));
        }
    }

    /// The server refused what goes beyond this in the status of a parent of this kind. Returns all bounds that are known.
    pub fn learn_bounds(&self, kind: KindId, bounds: StatusBounds) -> StatusBounds {
        self.0.known_bounds.learn(kind, bounds)
    }

    /// What the server was heard to refuse in the status of parents of this kind.
    pub fn status_bounds(&self, kind: KindId) -> StatusBounds {
        self.0.known_bounds.of(kind)
    }

    /// Switches a parent to the fallback condition type because the current type keeps being overwritten. Applies from
    /// the next time the parent is read, for policies that have a fallback, as long as this reflector knows the parent.
    pub fn use_fallback_type(&self, id: ObjectId) {
        let row =
            |slot: &mut RowSlot| slot.row.as_mut()?.parent.as_mut().map(|parent| parent.use_fallback_type());
        _ = self.rows().change_slot(id, row);
    }

    /// Applies the causes found below an object, or their absence, for each rule of `interest`.
    pub fn refine(
        &self,
        id: ObjectId,
        interest: &Arc<Interest>,
        found: Vec<Option<RefinedCause>>,
    ) -> ApplyOutcome {
        self.0.store.refine(id, interest, found)
    }
}

/// By what objects are judged.
impl Reflector {
    /// Sets by what objects of a kind are judged from now on. Lists that have begun earlier are void.
    pub fn set_interest(&self, interest: Interest) {
        let interest = self.0.store.plans.set_interest(interest);
        self.0.kopf_marks.retain_policies(&self.0.store.plans.ruling_policies());
        self.0.judgements.forget_kind(interest.id);
        memory::set_memory_interest(&self.0.memory, &self.0.store, &interest);
    }

    /// Takes the interest in a kind away: until another is set, nothing of it is taken in. Its rows stay as they are.
    pub fn remove_interest(&self, kind: KindId) {
        self.0.store.plans.remove_interest(kind);
        self.0.judgements.forget_kind(kind);
    }

    /// Lets the policies that hold follow those of older plans on the parents of a kind that cannot be listed: what stands there
    /// is theirs to take back. Returns on how many parents one does.
    pub fn succeed_policies(&self, kind: KindId) -> usize {
        succession::succeed_policies(&self.0.store, kind)
    }

    /// By what objects of a kind are judged now; `None` where they are not.
    pub fn interest(&self, kind: KindId) -> Option<Arc<Interest>> {
        self.0.store.plans.planned(kind).map(|planned| planned.interest.clone())
    }

    /// The custom rules, and the objects that await them. They are evaluated on ingest unless that has a waker.
    pub fn rule_work(&self) -> RuleWork<'_> {
        RuleWork::new(&self.0)
    }

    /// The outcomes of objects that are remembered after these are gone.
    pub fn outcomes(&self) -> RememberedOutcomes<'_> {
        RememberedOutcomes::new(&self.0)
    }

    /// Sets the current time for custom rules.
    pub fn set_now(&self, now: Time) {
        self.0.assessor.set_now(now);
    }

    /// Sets all PodDisruptionBudgets. A StatefulSet or DaemonSet that lacks no more pods than that of its pods allows is available.
    pub fn set_disruption_budgets(&self, budgets: NamespaceBudgets) {
        self.0.budgets.replace(budgets);
    }

    /// Adds lines that Kopf operators have logged as Events, in their order; none is needed again. Only policies heed them that say that
    /// their operator is Kopf's.
    pub fn note_kopf_lines(&self, lines: impl IntoIterator<Item = LoggedLine>) {
        logged_parents::note_lines(&self.0.kopf_logs, self.rows(), lines);
    }

    /// Sets the labels of a namespace; returns `true` if they changed. Parents selected by them have to be relisted.
    pub fn set_namespace_labels(&self, name: &str, labels: Option<&[(Box<str>, Box<str>)]>) -> bool {
        self.0.store.namespaces.set_labels(name, labels)
    }
}

/// What is held, and what of it has changed.
impl Reflector {
    /// Takes at most `most` changed objects.
    pub fn take_dirty(&self, most: usize) -> Vec<ObjectId> {
        self.rows().take_dirty(most)
    }

    /// Number of changed objects that wait to be taken.
    pub fn dirty_len(&self) -> usize {
        self.rows().dirty_len()
    }

    /// Takes the parents that were read again since the last call and show nothing else than before: what nobody waits for, a
    /// number may show.
    pub fn take_reread_parents(&self) -> Vec<ObjectId> {
        self.rows().take_reread()
    }

    /// Takes the changes of finalizers since the last call, of objects that still exist.
    pub fn take_finalizer_changes(&self) -> Vec<FinalizerChange> {
        self.0.finalizers.take_changes(self.rows())
    }

    /// Passes the view of an object at `now` to `show`; `None` if the object is gone.
    pub fn with_view<R>(
        &self,
        id: ObjectId,
        now: Time,
        show: impl FnOnce(Option<&ObjectView<'_>>) -> R,
    ) -> R {
        view::with_view(self.rows(), id, now, show)
    }

    /// Dates an object: if it has stopped being ready, it did so at `now`; if it is ready again, the time is removed.
    pub fn date_unready(&self, id: ObjectId, now: Time) {
        self.rows().date_unready(id, now);
    }

    /// Recycles the slot of a deleted object after the driver has removed it from the engine.
    pub fn recycle_slot(&self, id: ObjectId) {
        if let Some(uid) = self.rows().recycle_slot(id) {
            self.0.last_written.forget(uid);
        }
    }

    /// Reads the row of an object.
    pub fn read_row<R>(&self, id: ObjectId, f: impl FnOnce(&ObjectRow) -> R) -> Option<R> {
        self.rows().read(id, f)
    }

    /// Returns the object with this uid.
    pub fn find_object(&self, uid: &str) -> Option<ObjectId> {
        self.rows().find(uid)
    }

    /// Calls `f` on every row, for pages and tests.
    pub fn for_each_row(&self, f: impl FnMut(ObjectId, &ObjectRow)) {
        self.rows().for_each_row(f);
    }

    /// Calls `f` on every row of a kind, in one namespace or in all. It passes by most of the rows of other places.
    pub fn for_each_row_in(
        &self,
        kind: KindId,
        namespace: Option<&str>,
        mut f: impl FnMut(ObjectId, &ObjectRow),
    ) {
        self.rows().for_each_row_in(RowPlace { kind, namespace }, |id, row| f(id, row));
    }

    /// How many objects of a kind are held that have not been seen to go.
    pub fn count_held(&self, kind: KindId) -> usize {
        self.rows().count_there(kind)
    }

    /// Counts them again. Returns `true` if their number was wrong, and has been put right.
    pub fn correct_count(&self, kind: KindId) -> bool {
        self.rows().correct_count(kind)
    }

    /// Objects that do not count for an owner that they name, because of their namespaces.
    pub fn uncounted_children(&self, most: usize) -> Vec<UncountedChild> {
        view::uncounted_children(self.rows(), most)
    }

    /// Number of objects with a slot, including those known only as owners.
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// Returns `true` if no object has a slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of interned selections: labels, references and claims.
    pub fn count_selections(&self) -> usize {
        self.0.store.selectors.lock().len()
    }

    /// Approximate memory held by all objects, in bytes. Costs nothing to query.
    pub fn held_bytes(&self) -> usize {
        self.rows().held_bytes()
    }
}
