//! The tasks of all kinds of a plan, one per kind: started, restarted and stopped as the plan asks for.

mod absence;
mod failure_log;
mod feed_gate;
mod history_breaks;
mod history_watch;
mod kind_context;
mod kind_event_sender;
mod kind_request;
mod kind_task;
mod reappearance;
mod relist_pace;
mod rule_wait;
mod run_durations;
mod scopes;
mod watch_doubts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::KindId;
use tokio::task::JoinSet;

use feed_gate::FeedGate;
use kind_task::KindTask;

pub(crate) use failure_log::report_trouble;
pub(crate) use history_breaks::HistoryBreaks;
pub(crate) use history_watch::HistoryWatch;
pub(crate) use kind_context::{
    KindContext, MAX_EVENT_SEARCHES, RecordsContext, RecordsTrouble, ResolvedKind, ResolvedKinds,
};
pub(crate) use kind_event_sender::KindEventSender;
pub(crate) use kind_request::KindRequest;

use policy::{KindPlan, WatchPlan};
pub(crate) use rollcall_core::KindEvent;
use watcher::ApiFailureCause;

/// A running task that follows a kind, with what is needed to stop it.
struct RunningTask {
    plan: Arc<KindPlan>,
    event_sender: KindEventSender,
    gate: FeedGate,
}

/// Tasks of all kinds of the current plan.
pub(crate) struct KindTasks {
    context: KindContext,
    running: BTreeMap<KindId, RunningTask>,
    /// Kinds that are not followed any more. Their objects are still cached, because the event loop may judge by an earlier plan.
    left: BTreeSet<KindId>,
    plan: Arc<WatchPlan>,
    tasks: JoinSet<KindId>,
}

impl KindTasks {
    /// Creates the collection without tasks.
    pub(crate) fn new(setting: KindContext) -> Self {
        KindTasks {
            context: setting,
            running: BTreeMap::new(),
            left: BTreeSet::new(),
            plan: Arc::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Applies the plan: starts new kinds, restarts kinds whose interest changed, and stops the others.
    pub(crate) fn follow_plan(&mut self, plan: &Arc<WatchPlan>) {
        let before = std::mem::replace(&mut self.plan, Arc::clone(plan));
        let gone: Vec<_> = self.running.keys().copied().filter(|id| !plan.kinds.contains_key(id)).collect();
        for id in gone {
            self.stop_kind(id);
            self.context.resolved.remove(&id);
            self.left.insert(id);
            _ = self.context.kind_events.send((id, KindEvent::Stopped));
        }
        for (id, plan) in &plan.kinds {
            let same = |task: &RunningTask| *task.plan == *plan;
            if !self.running.get(id).is_some_and(same) {
                let changed = policy::changed_rules(&before, &self.plan, *id);
                if !changed.is_empty() {
                    _ = self.context.kind_events.send((*id, KindEvent::RuleChanged(changed)));
                }
                self.stop_kind(*id);
                self.start_kind(plan.clone());
            }
        }
    }

    /// Does what the event loop asks for.
    pub(crate) fn handle_request(&mut self, request: KindRequest) {
        match request {
            KindRequest::Relist(kind) => self.restart_kind(kind),
            KindRequest::ForgetUnplanned(in_force) => self.forget_unplanned(&in_force),
        }
    }

    /// Forgets the objects of kinds that are not followed any more, now that the event loop judges by this plan.
    fn forget_unplanned(&mut self, in_force: &WatchPlan) {
        for id in self.left.extract_if(.., |id| !in_force.kinds.contains_key(id)) {
            self.context.reflector.forget_kind(id);
        }
    }

    /// Returns `true` if any kind is followed.
    pub(crate) fn follows_any(&self) -> bool {
        !self.running.is_empty()
    }

    /// Relists one kind, because its interest changed in a way that the plan does not show.
    pub(crate) fn restart_kind(&mut self, id: KindId) {
        if let Some(plan) = self.running.get(&id).map(|task| (*task.plan).clone()) {
            self.stop_kind(id);
            self.start_kind(plan);
        }
    }

    fn start_kind(&mut self, plan: KindPlan) {
        let gate = FeedGate::default();
        let (id, plan) = (plan.id, Arc::new(plan));
        let event_sender =
            KindEventSender::new(id, self.context.kind_events.clone(), self.context.refusals.clone());
        event_sender.send(KindEvent::Starting);
        self.left.remove(&id);
        if plan.awaits.is_some() {
            // Its rule, or which of its objects are chosen, is not known yet: none is observed, so no condition rests on them.
            self.running.insert(id, RunningTask { plan, event_sender, gate });
            return;
        }
        let task = KindTask {
            context: self.context.clone(),
            plan: plan.clone(),
            event_sender: event_sender.clone(),
            gate: gate.clone(),
        };
        self.tasks.spawn(async move {
            task.run().await;
            id
        });
        self.running.insert(id, RunningTask { plan, event_sender, gate });
    }

    /// Says of the kinds that wait for the labels of namespaces that these cannot be read: parents do not say True for ever by
    /// what is not looked at. It is not the kind that is forbidden, whose parents would be told so in a moment.
    pub(crate) fn fail_awaiting_namespaces(&self, detail: &str) {
        let detail =
            format!("namespaces, by whose labels a policy selects parents, cannot be watched: {detail}");
        for task in self.running.values() {
            let chooses = task.plan.interest.parent.iter().any(|rule| rule.namespace_selector.is_some());
            if task.plan.awaits.is_some() && chooses {
                task.event_sender.send(KindEvent::Failure(ApiFailureCause::Refused, detail.clone()));
            }
        }
    }

    /// Stops a kind's task. By what the kind is judged is not known from then on, until its successor has found it: what was
    /// asked for meanwhile is refused.
    fn stop_kind(&mut self, id: KindId) {
        if let Some(task) = self.running.remove(&id) {
            task.event_sender.cancel();
            task.gate.close();
            self.context.reflector.remove_interest(id);
        }
    }

    /// Ends all tasks: none may be interrupted by the end of the runtime.
    pub(crate) async fn shut_down(mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits for a task that ended by itself, which is an error. Tasks that were stopped are only removed.
    pub(crate) async fn next_failure(&mut self) -> anyhow::Error {
        loop {
            match self.tasks.join_next().await {
                None => std::future::pending().await,
                Some(Ok(_)) => {}
                Some(Err(error)) => return anyhow::Error::new(error).context("a kind's task failed"),
            }
        }
    }
}
