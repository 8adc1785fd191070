//! The driver loop around the engine, and the server behind it: virtual time advances from deadline to deadline.

use std::time::Duration;

use aggregator::{DeliveryDecision, DeliveryOutcome, ParentDraft, PolicyId, WriteTicket};
use readiness::rollup::ParentReason;

use crate::harness::{AcceptedWrite, EngineHarness, hash};
use crate::naive;
use crate::server::{ParentEntry, PendingWrite, Status, WriteFate, digest};

impl EngineHarness {
    /// Advances virtual time by this many milliseconds.
    pub(crate) fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        let mut turns = 0;
        loop {
            self.land();
            self.drive();
            let flights = self.flights.iter().map(|f| f.lands).min();
            let next = [self.engine.next_deadline(), flights].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= until) else { break };
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < 1_000, "a deadline that never passes");
            self.now = self.now.max(next);
        }
        self.now = until;
    }

    /// Runs one turn of the driver.
    fn drive(&mut self) {
        while let Some(id) = self.engine.take_due_recheck(self.now) {
            if let Some(name) = self.name(id) {
                self.observe(&name);
            }
        }
        let mut drafts = Vec::new();
        self.engine.poll(self.now, &mut drafts);
        self.quote(&drafts);
        for draft in drafts {
            let Some(name) = self.name(draft.parent) else { continue };
            for (_, from, to) in self.engine.take_changed_answers(draft.parent) {
                self.turns.push((name.clone(), from, to.reason));
            }
            let Some(wanted) = self.render(&name) else { continue };
            if let DeliveryDecision::Send(ticket) =
                self.engine.offer_digest(draft.parent, digest(&wanted), self.now)
            {
                self.called.push(self.engine.take_first_touch(draft.parent));
                self.send(&name, ticket, wanted);
            }
        }
        while let Some(id) = self.engine.take_due_resync(self.now) {
            let name = self.name(id).unwrap_or_default();
            self.passes.push((self.millis(), name));
        }
    }

    /// Settles how these parents are quoted by those above them, until those agree with those below.
    fn quote(&mut self, drafts: &[ParentDraft]) {
        loop {
            let mut moved = false;
            for draft in drafts {
                let policies = self.engine.policies_of(draft.parent);
                let quote = policies.map(|p| self.causes(draft.parent, p)).collect::<Vec<_>>().join(" ");
                let old = self.quotes.insert(draft.parent, quote.clone());
                if old.unwrap_or_default() != quote {
                    moved = true;
                    self.engine.requote(draft.parent, hash(&quote), self.now);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn send(&mut self, name: &str, ticket: WriteTicket, wanted: Status) {
        assert!(!self.standby, "a standby writes on {name}");
        let object = &self.objects[name];
        let fate = if self.fates.is_empty() { WriteFate::Lands } else { self.fates.remove(0) };
        let before = object.parent.as_ref().unwrap().status.clone();
        for (policy, entry) in &wanted {
            self.check(name, *policy, before.get(policy), entry);
        }
        let (uid, generation, id) = (object.uid, object.generation, object.id);
        let lands = self.now + self.delay;
        let name = name.to_owned();
        self.flights.push(PendingWrite { lands, name, id, ticket, uid, generation, before, wanted, fate });
    }

    /// Checks the invariants that every write must satisfy.
    fn check(&self, name: &str, policy: PolicyId, before: Option<&ParentEntry>, entry: &ParentEntry) {
        if before == Some(entry) {
            return;
        }
        if entry.reason == ParentReason::AllChildrenReady {
            let naive = naive::answer(self, name, policy).reason;
            let told = before.is_some_and(|b| (b.reason, b.about) == (entry.reason, entry.about));
            let kept = told && naive::may_stay_ready(self, name, policy);
            assert!(naive == entry.reason || kept, "{name} is told to be ready: {naive:?}");
        }
        // A condition that was removed is not announced again.
        let uid = self.objects[name].uid;
        let mut told = self.log.iter().filter(|w| w.uid == uid).filter_map(|w| w.after.get(&policy));
        let first = !told.any(|told| told.about == entry.about);
        let unsaid = matches!(entry.reason, ParentReason::ChildrenPending | ParentReason::Terminating);
        assert!(!first || unsaid, "the first word about {name} is {}", entry.brief());
    }

    /// Delivers writes to the server and their responses to the engine.
    fn land(&mut self) {
        let now = self.now;
        let landing: Vec<PendingWrite> = self.flights.extract_if(.., |f| f.lands <= now).collect();
        for flight in landing {
            let outcome = self.accept(&flight);
            self.observe(&flight.name);
            self.engine.settle_write(flight.id, flight.ticket, outcome, now);
        }
    }

    fn accept(&mut self, flight: &PendingWrite) -> DeliveryOutcome {
        let at = self.millis();
        let object = self.objects.get_mut(&flight.name).filter(|o| o.uid == flight.uid);
        let Some(object) = object else { return DeliveryOutcome::Gone };
        let generation = object.generation;
        let Some(parent) = &mut object.parent else { return DeliveryOutcome::Gone };
        match flight.fate {
            WriteFate::Retry(after) => return DeliveryOutcome::Retry(after),
            WriteFate::Conflict => return DeliveryOutcome::Conflict,
            WriteFate::Pruned => return DeliveryOutcome::Pruned,
            WriteFate::Lands | WriteFate::Unheard(_) => {}
        }
        if generation != flight.generation || parent.status != flight.before {
            return DeliveryOutcome::Conflict;
        }
        assert_ne!(parent.status, flight.wanted, "{} says so already", flight.name);
        parent.status = flight.wanted.clone();
        object.generation += u32::from(self.moved_by_writes);
        let (parent, uid, life) = (flight.name.clone(), flight.uid, self.life);
        self.log.push(AcceptedWrite { at, parent, uid, life, after: flight.wanted.clone() });
        match flight.fate {
            WriteFate::Unheard(after) => DeliveryOutcome::Retry(after),
            _ => DeliveryOutcome::Written,
        }
    }
}
