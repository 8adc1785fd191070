//! The loop: the only place that reads the clock, and the only owner of the engine.

mod notice;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aggregator::{KindId, KindState, ObjectId, Outcome, PolicyId};
use readiness::Time;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use watcher::Cause;

use crate::clock::ServerClock;
use crate::core::{Ages, Core, Health, Read, TreeNode, Write};
use crate::events::Notices;
use crate::kinds::News;
use crate::lease::Mandate;
use crate::metrics::Metrics;
use crate::page::Ask;
use crate::policies::Plan;
use crate::snapshot::{Since, Snapshot, Story};
use crate::transitions::Transitions;
use crate::writer::Settled;

/// Trees of all parents, for whoever draws them.
pub type Trees = watch::Sender<Arc<Vec<TreeNode>>>;

/// So many objects are taken from the dirty set in one turn, so that no direction waits long for another.
const TURN: usize = 256;
/// How often numbers for policies' status and metrics are gathered, where something moved.
const GATHER: Duration = Duration::from_secs(2);
/// The same where somebody draws trees and wants to see them move.
const DRAW: Duration = Duration::from_millis(100);

/// Everything that can happen to the loop.
enum Input {
    Stop,
    Wake,
    Settled(Settled),
    Leads(bool),
    Kind(KindId, News),
    Plan(Arc<Plan>),
    Children(Vec<ObjectId>),
    Ask(Ask),
}

/// The ends of the channels that the loop holds.
pub(crate) struct Wires {
    /// Objects moved.
    pub(crate) dirty: Arc<Notify>,
    /// Kinds' tasks say where they stand.
    pub(crate) news: UnboundedReceiver<(KindId, News)>,
    /// The plan changed.
    pub(crate) plans: UnboundedReceiver<Arc<Plan>>,
    /// To the writer.
    pub(crate) writes: UnboundedSender<Write>,
    /// Whether this replica writes.
    pub(crate) mandate: Mandate,
    /// From the writer.
    pub(crate) settled: UnboundedReceiver<Settled>,
    /// To the live reads of the pass.
    pub(crate) looks: UnboundedSender<Vec<Read>>,
    /// Numbers for policies' status, metrics and `/readyz`.
    pub(crate) snapshot: watch::Sender<Arc<Snapshot>>,
    /// Trees, where somebody draws them.
    pub(crate) trees: Option<Trees>,
    /// To Events, for what is no transition.
    pub(crate) notices: Option<Notices>,
    /// To Events, history and the live page.
    pub(crate) transitions: Arc<Transitions>,
    /// What the page wants to know: rarely, and never much at a time.
    pub(crate) asks: Receiver<Ask>,
}

/// The loop and what it owns.
pub(crate) struct Drive {
    core: Core,
    clock: ServerClock,
    wires: Wires,
    metrics: Arc<Metrics>,
    health: Health,
    plan: Option<Arc<Plan>>,
    /// Policies that became others, of which something still has to be taken back.
    superseded: Vec<(PolicyId, String)>,
    moved: bool,
    gather_at: Time,
    ages: Ages,
    /// Since when what was sent and is not settled was called for.
    called: BTreeMap<ObjectId, Time>,
    since: Since,
    /// Parents of which was told that we yield there.
    fights: BTreeSet<ObjectId>,
    /// Parents of which was told whose the condition is.
    owned: BTreeSet<(ObjectId, PolicyId, String)>,
}

impl Drive {
    /// A loop over this core.
    pub(crate) fn new(core: Core, clock: ServerClock, wires: Wires, metrics: Arc<Metrics>) -> Self {
        Drive {
            core,
            clock,
            wires,
            metrics,
            health: Health::default(),
            plan: None,
            superseded: Vec::new(),
            moved: true,
            gather_at: Time::default(),
            ages: Ages::default(),
            called: BTreeMap::new(),
            since: Since::default(),
            fights: BTreeSet::new(),
            owned: BTreeSet::new(),
        }
    }

    /// Runs until `stop`. Ends early, with an error, only where a channel's other end is gone.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        // Until the server has answered, nobody knows what time it is there, and there is nothing to judge.
        while !self.clock.is_known() {
            tokio::select! { biased;
                () = stop.cancelled() => return Ok(()),
                () = self.clock.known() => {}
                Some(ask) = self.wires.asks.recv() => ask.answer(&self.core, self.clock.now()),
            }
        }
        self.set_leads(self.wires.mandate.leads());
        loop {
            let now = self.clock.now();
            self.metrics.turn(self.core.reflector.dirty());
            for write in self.core.turn(now) {
                if let Some(since) = self.core.engine.take_touched(write.parent) {
                    self.called.insert(write.parent, since);
                }
                self.wires.writes.send(write)?;
            }
            self.wires.transitions.tell(self.core.take_transitions());
            self.tell_flaps();
            self.pass(now)?;
            self.gather(now);
            match self.next(&stop).await? {
                Input::Stop => return Ok(()),
                Input::Wake => self.wake(),
                Input::Settled(settled) => self.settled(&settled),
                Input::Leads(leads) => self.set_leads(leads),
                Input::Kind(kind, news) => self.kind(kind, &news),
                Input::Plan(plan) => self.set_plan(plan),
                Input::Ask(ask) => ask.answer(&self.core, now),
                Input::Children(moved) => {
                    self.moved = true;
                    self.core.take_in(self.clock.now(), &moved);
                }
            }
        }
    }

    /// The deadline comes before the dirty set: a full set must not keep what is due from being said.
    async fn next(&mut self, stop: &CancellationToken) -> anyhow::Result<Input> {
        let gather = self.moved.then_some(self.gather_at);
        let deadline =
            [self.core.next_deadline(), self.health.next_deadline(), gather].into_iter().flatten().min();
        let wires = &mut self.wires;
        let gone = || anyhow::anyhow!("a part of the program ended");
        Ok(tokio::select! { biased;
            () = stop.cancelled() => Input::Stop,
            () = self.clock.until(deadline) => Input::Wake,
            leads = wires.mandate.changed() => Input::Leads(leads),
            settled = wires.settled.recv() => Input::Settled(settled.ok_or_else(gone)?),
            news = wires.news.recv() => news.map(|(kind, news)| Input::Kind(kind, news)).ok_or_else(gone)?,
            plan = wires.plans.recv() => Input::Plan(plan.ok_or_else(gone)?),
            // Before the dirty set, which may be full for long; whoever asks waits between two questions.
            Some(ask) = wires.asks.recv() => Input::Ask(ask),
            () = wires.dirty.notified() => {
                let moved = self.core.reflector.take_dirty(TURN);
                if self.core.reflector.dirty() > 0 {
                    wires.dirty.notify_one();
                }
                Input::Children(moved)
            }
        })
    }

    fn wake(&mut self) {
        let now = self.clock.now();
        self.moved = true;
        while let Some((kind, state)) = self.health.overdue(now) {
            warn!(kind = %self.core.kind_label(kind), ?state, "neither watched nor listed for too long");
            self.set_kind(kind, state);
        }
    }

    /// Everything goes on but the writing; numbers are shown by whoever writes.
    fn set_leads(&mut self, leads: bool) {
        let now = self.clock.now();
        self.metrics.leads(leads);
        self.core.engine.set_standby(now, !leads);
        (self.moved, self.gather_at) = (true, now);
    }

    fn settled(&mut self, settled: &Settled) {
        let now = self.clock.now();
        let called = self.called.remove(&settled.parent).map(|since| now - since);
        if let Some(plan) = &self.plan {
            self.metrics.settled(settled, called, plan);
        }
        self.core.settle(now, settled.parent, settled.outcome);
        self.moved = true;
        for policy in settled.policies.iter().filter(|_| settled.outcome == Outcome::Written) {
            let since = self.core.engine.take_first_ready(settled.parent, *policy);
            let plan = self.plan.as_ref().and_then(|plan| plan.policies.get(policy));
            if let Some((since, (_, words))) = since.zip(plan) {
                self.metrics.first_ready(&words.name, now - since);
            }
        }
    }

    fn kind(&mut self, kind: KindId, news: &News) {
        if let News::RuleChanged(policies) = news {
            for (policy, groups) in policies {
                self.core.engine.withdraw(self.clock.now(), *policy, *groups);
            }
        }
        if *news == News::Synced {
            // Everything that the list brought has to be known before it counts as seen.
            let moved = self.core.reflector.take_dirty(usize::MAX);
            self.core.take_in(self.clock.now(), &moved);
            for (child, owner) in self.core.reflector.strangers(20) {
                warn!(
                    child,
                    owner,
                    "an ownerReference to another namespace is not counted: the API treats such an owner as absent"
                );
            }
        }
        let now = self.clock.now();
        if self.is_followed(kind) {
            self.metrics.news(&self.core.kind_label(kind), news, now);
        }
        if let News::Trouble(Cause::Forbidden, _) = news {
            debug!(kind = %self.core.kind_label(kind), "forbidden");
        }
        if let Some(state) = self.health.hear(kind, news, now) {
            self.set_kind(kind, state);
        }
    }

    /// What a kind's task says before it is known who it is, or after nobody wants it any more, is not exported.
    fn is_followed(&self, kind: KindId) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.kinds.contains_key(&kind))
    }

    fn set_kind(&mut self, kind: KindId, state: KindState) {
        if self.is_followed(kind) {
            self.metrics.kind_state(&self.core.kind_label(kind), state);
        }
        self.core.engine.set_kind(self.clock.now(), kind, state);
        self.bury_superseded();
        self.moved = true;
    }

    fn set_plan(&mut self, plan: Arc<Plan>) {
        let now = self.clock.now();
        for (id, kind) in &plan.kinds {
            self.core.name_kind(*id, &kind.key.1, &kind.key.0);
        }
        self.show(&plan, now);
        let before = self.plan.take().unwrap_or_default();
        for (id, (_, words)) in before.policies.iter().filter(|(id, _)| !plan.policies.contains_key(id)) {
            self.superseded.push((*id, words.name.clone()));
        }
        for (id, policy) in plan.policies.iter().filter(|(id, _)| !before.policies.contains_key(id)) {
            self.core.set_policy(now, *id, Some(policy.clone()));
        }
        info!(policies = plan.policies.len(), kinds = plan.kinds.len(), "plan");
        self.plan = Some(plan);
        self.bury_superseded();
        self.moved = true;
    }

    /// A policy that is gone is forgotten at once. One that became another, with other rules, is first to take back what
    /// rested on the old ones, until the other can speak.
    fn bury_superseded(&mut self) {
        let now = self.clock.now();
        let Drive { core, plan, superseded, .. } = self;
        superseded.retain(|(id, name)| {
            let policies = plan.iter().flat_map(|plan| &plan.policies);
            let successor = policies.filter(|(_, (_, words))| words.name == *name).map(|(id, _)| *id).next();
            let speaks = successor.is_none_or(|successor| core.engine.is_open(successor));
            let buried = speaks || !core.engine.is_withdrawn(*id);
            if buried {
                core.set_policy(now, *id, None);
            }
            !buried
        });
    }

    /// Gives what is planned its series.
    fn show(&self, plan: &Plan, now: Time) {
        let label = |id: &KindId| self.core.kind_label(*id);
        let policies = plan.policies.values().map(|(policy, words)| {
            (words.name.clone(), policy.groups.iter().map(|group| label(&group.kind)).collect())
        });
        self.metrics.planned(policies.collect(), plan.kinds.keys().map(label).collect());
        let names = plan.policies.iter().map(|(id, (_, words))| (*id, words.name.clone()));
        self.metrics.named(names.collect());
        // A kind's task may have spoken before the plan that it follows was heard of.
        for id in plan.kinds.keys().filter(|id| !self.is_followed(**id)) {
            let (state, _) = self.health.of(*id);
            self.metrics.kind_state(&self.core.kind_label(*id), state);
            if state == KindState::Synced {
                self.metrics.news(&self.core.kind_label(*id), &News::Alive, now);
            }
        }
    }

    /// Orders live reads for the parents whose periodic pass is due.
    fn pass(&mut self, now: Time) -> anyhow::Result<()> {
        while let Some(parent) = self.core.engine.take_pass(now) {
            self.wires.looks.send(self.core.reads(parent))?;
        }
        Ok(())
    }

    fn gather(&mut self, now: Time) {
        if !self.moved || now < self.gather_at {
            return;
        }
        let pause = if self.wires.trees.is_some() { DRAW } else { GATHER };
        (self.moved, self.gather_at) = (false, now + pause);
        if let Some(trees) = &self.wires.trees {
            trees.send_replace(Arc::new(self.core.trees(now, &mut self.ages)));
        }
        let snapshot = Snapshot::take(&self.core, self.plan.as_deref(), &self.health, &mut self.since, now);
        self.tell_fights(&snapshot.fights);
        self.tell_owners(&snapshot.owned);
        self.metrics.clock_offset(self.clock.ahead());
        let counts = self.core.engine.take_counts();
        self.metrics.gathered(&snapshot, counts, |parent| Story::of(&self.core, parent, now));
        self.wires.snapshot.send_replace(Arc::new(snapshot));
    }
}
