//! The driver loop around the engine, and the server behind it: virtual time advances from deadline to deadline.

use std::time::Duration;

use aggregator::{DeliveryDecision, ParentDraft, PolicyId, ProofRequest, WriteTicket};
use readiness::rollup::ParentReason;

use crate::conditions::{ParentEntry, Status, digest, hash};
use crate::harness::EngineHarness;
use crate::naive;
use crate::render::{causes, render};
use crate::server::PendingWrite;

/// The driver loop around an engine.
pub(crate) trait EngineDriver {
    /// Advances virtual time by this many milliseconds.
    fn run(&mut self, millis: u64);
}

impl EngineDriver for EngineHarness {
    fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        let mut turns = 0;
        loop {
            land(self);
            drive(self);
            let flights = self.server.flights.iter().map(|f| f.lands).min();
            let next = [self.engine.next_deadline(), flights].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= until) else { break };
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < 1_000, "a deadline that never passes");
            self.now = self.now.max(next);
        }
        self.now = until;
    }
}

/// Runs one turn of the driver.
fn drive(harness: &mut EngineHarness) {
    while let Some(id) = harness.engine.take_due_recheck(harness.now) {
        if let Some(name) = harness.name(id) {
            harness.observe(&name);
        }
    }
    let mut drafts = Vec::new();
    harness.engine.poll(harness.now, &mut drafts);
    if give_proofs(harness) {
        harness.engine.poll(harness.now, &mut drafts);
        drafts.sort_unstable();
        drafts.dedup();
    }
    quote(harness, &drafts);
    for draft in drafts {
        let Some(name) = harness.name(draft.parent) else { continue };
        for (_, from, to) in harness.engine.take_changed_answers(draft.parent) {
            harness.turns.push((name.clone(), from, to.reason));
        }
        let Some(wanted) = render(harness, &name) else { continue };
        if let DeliveryDecision::Send(ticket) =
            harness.engine.offer_digest(draft.parent, digest(&wanted), harness.now)
        {
            harness.called.push(harness.engine.take_first_touch(draft.parent));
            send(harness, &name, ticket, wanted);
        }
    }
    while let Some(id) = harness.engine.take_due_resync(harness.now) {
        let name = harness.name(id).unwrap_or_default();
        harness.passes.push((harness.millis(), name));
    }
}

/// Gives each proof that is asked for and holds: every child that counts is of the parent's generation, or a later one.
/// Returns `true` if any was given.
fn give_proofs(harness: &mut EngineHarness) -> bool {
    let mut given = false;
    for request in harness.engine.pending_proofs().take_requests() {
        let name = harness.name(request.parent).unwrap_or_default();
        harness.asked.push((harness.millis(), name));
        let holds = is_proven(harness, request);
        if holds {
            harness.engine.pending_proofs().record_proof(request, harness.now);
            given = true;
        }
    }
    given
}

fn is_proven(harness: &EngineHarness, request: ProofRequest) -> bool {
    let generation = |id| harness.objects[&harness.name(id).unwrap()].generation;
    let mut children = harness.engine.reader().proof_children(request.parent, request.policy);
    children.all(|(_, child)| u64::from(generation(child)) >= request.generation)
}

/// Settles how these parents are quoted by those above them, until those agree with those below.
fn quote(harness: &mut EngineHarness, drafts: &[ParentDraft]) {
    loop {
        let mut moved = false;
        for draft in drafts {
            let policies = harness.engine.policies_of(draft.parent);
            let quote = policies.map(|p| causes(harness, draft.parent, p)).collect::<Vec<_>>().join(" ");
            let old = harness.quotes.insert(draft.parent, quote.clone());
            if old.unwrap_or_default() != quote {
                moved = true;
                harness.engine.requote(draft.parent, hash(&quote), harness.now);
            }
        }
        if !moved {
            return;
        }
    }
}

fn send(harness: &mut EngineHarness, name: &str, ticket: WriteTicket, wanted: Status) {
    assert!(!harness.standby, "a standby writes on {name}");
    let object = &harness.objects[name];
    let fate = harness.server.next_fate();
    let before = object.parent.as_ref().unwrap().status.clone();
    for (policy, entry) in &wanted {
        check(harness, name, *policy, before.get(policy), entry);
    }
    let (uid, generation, id) = (object.uid, object.generation, object.id);
    let lands = harness.now + harness.server.delay;
    let name = name.to_owned();
    harness.server.flights.push(PendingWrite {
        lands,
        name,
        id,
        ticket,
        uid,
        generation,
        before,
        wanted,
        fate,
    });
}

/// Checks the invariants that every write must satisfy.
fn check(
    harness: &EngineHarness,
    name: &str,
    policy: PolicyId,
    before: Option<&ParentEntry>,
    entry: &ParentEntry,
) {
    if before == Some(entry) {
        return;
    }
    if entry.reason == ParentReason::AllChildrenReady {
        let naive = naive::answer(harness, name, policy).reason;
        let told = before.is_some_and(|b| (b.reason, b.about) == (entry.reason, entry.about));
        let kept = told && naive::may_stay_ready(harness, name, policy);
        assert!(naive == entry.reason || kept, "{name} is told to be ready: {naive:?}");
    }
    // A condition that was removed is not announced again.
    let uid = harness.objects[name].uid;
    let mut told = harness.server.log.iter().filter(|w| w.uid == uid).filter_map(|w| w.after.get(&policy));
    let first = !told.any(|told| told.about == entry.about);
    let unsaid = matches!(
        entry.reason,
        ParentReason::ChildrenPending | ParentReason::Terminating | ParentReason::PolicyRefused
    );
    let may_be_first = unsaid || naive::is_found_at_rest(harness, name, policy, before);
    assert!(!first || may_be_first, "the first word about {name} is {}", entry.brief());
}

/// Delivers writes to the server and their responses to the engine.
fn land(harness: &mut EngineHarness) {
    let now = harness.now;
    let landing: Vec<PendingWrite> = harness.server.take_arrived(now);
    for flight in landing {
        let (at, life) = (harness.millis(), harness.life);
        let object = harness.objects.get_mut(&flight.name);
        let outcome = harness.server.accept(&flight, object, at, life);
        harness.observe(&flight.name);
        harness.engine.settle_write(flight.id, flight.ticket, outcome, now);
    }
}
