//! PodDisruptionBudgets: followed while a policy keeps parents True through disruptions that they allow.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use rollcall_core::ListedBudgets;
use tokio::time::{Instant, sleep_until};
use tracing::warn;
use watcher::reflector::NamespaceBudgets;
use watcher::{FollowEvent, FollowFailure, ParentObject, follow};

use super::watched_kinds::budget_kind;
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;
use crate::own_watches::OwnWatchKind;

/// Longest time for which nothing is judged because the budgets are not listed yet. 5 s.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Where budgets are listed, and what came of it: the number of the namespace among those that Rollcall is restricted to.
type ScopedEvent = (usize, FollowEvent<ParentObject>);

/// All budgets that can be seen.
#[derive(Default)]
pub(super) struct DisruptionBudgets {
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    events: SelectAll<BoxStream<'static, ScopedEvent>>,
    /// In the whole cluster, or in each namespace that Rollcall is restricted to.
    scopes: Vec<BudgetScope>,
    /// When those that are not listed yet are not waited for any more; `None` once they are not.
    awaited_until: Option<Instant>,
}

#[derive(Default)]
struct BudgetScope {
    listed: ListedBudgets,
    /// They cannot be listed, as far as is known.
    has_failed: bool,
}

impl DisruptionBudgets {
    /// Follows them from now on.
    pub(super) fn follow(&mut self, context: &KindContext) {
        if !self.scopes.is_empty() {
            return;
        }
        self.awaited_until = Some(Instant::now() + FIRST_LIST_TIMEOUT);
        let all = [None].into_iter().take(usize::from(context.namespaces.is_empty()));
        for namespace in all.chain(context.namespaces.iter().cloned().map(Some)) {
            let (client, options) = (context.client.clone(), context.follow_options());
            let place = namespace.clone().unwrap_or_default();
            let open = move || {
                follow::<ParentObject>(&client, &budget_kind(), namespace.as_deref(), options.clone()).boxed()
            };
            let scope = self.scopes.len();
            let events = context.own_watches.observed(
                OwnWatchKind::Budgets,
                &place,
                context.breaks.reopened_after(open),
            );
            self.events.push(events.map(move |event| (scope, event)).boxed());
            self.scopes.push(BudgetScope::default());
        }
    }

    /// Returns `true` while nothing is to be judged, because the first list is not through: what a disruption has taken away would
    /// count as lost.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited_until.is_some()
    }

    /// Waits until other budgets are known, or are not waited for any more. Never completes if none are followed.
    pub(super) async fn next_change(&mut self) -> NamespaceBudgets {
        loop {
            let awaited_until = self.awaited_until;
            let given_up = async {
                match awaited_until {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((scope, event)) = self.events.next() => {
                    let was_awaited = self.is_awaited();
                    let is_changed = self.apply_event(scope, &event);
                    if self.scopes.iter().all(BudgetScope::is_settled) {
                        self.awaited_until = None;
                    }
                    if is_changed || was_awaited && !self.is_awaited() {
                        return self.known();
                    }
                }
                () = given_up => {
                    self.awaited_until = None;
                    return self.known();
                }
            }
        }
    }

    /// Applies an event; returns `true` if other budgets are known now.
    fn apply_event(&mut self, scope: usize, event: &FollowEvent<ParentObject>) -> bool {
        let Some(BudgetScope { listed, has_failed }) = self.scopes.get_mut(scope) else { return false };
        if let FollowEvent::Failure(FollowFailure { cause, detail }) = event {
            *has_failed = true;
            let (reason, detail) = (cause.metric_label(), detail.clone());
            self.failures.report("follow budgets", reason, move |failures| {
                warn!(
                    cause = reason,
                    detail,
                    failures,
                    "cannot watch PodDisruptionBudgets: a workload may lack no more pods than its own maxUnavailable says"
                );
            });
        }
        listed.apply_event(event)
    }

    /// What is known of all of them, by namespace.
    fn known(&self) -> NamespaceBudgets {
        let mut known = NamespaceBudgets::new();
        for scope in &self.scopes {
            scope.listed.add_known(&mut known);
        }
        known
    }
}

impl BudgetScope {
    fn is_settled(&self) -> bool {
        self.has_failed || self.listed.are_listed()
    }
}

#[cfg(test)]
mod tests {
    use watcher::ApiFailureCause;

    use super::*;

    fn followed() -> DisruptionBudgets {
        DisruptionBudgets {
            scopes: vec![BudgetScope::default()],
            awaited_until: Some(Instant::now()),
            ..DisruptionBudgets::default()
        }
    }

    #[tokio::test]
    async fn budgets_that_cannot_be_listed_are_not_waited_for() {
        let mut budgets = followed();
        let failure = FollowFailure { cause: ApiFailureCause::Forbidden, detail: "no".to_owned() };
        assert!(!budgets.apply_event(0, &FollowEvent::Failure(failure)));
        assert!(budgets.scopes[0].is_settled());
    }

    #[tokio::test]
    async fn half_a_list_of_budgets_is_waited_for() {
        let mut budgets = followed();
        assert!(!budgets.apply_event(0, &FollowEvent::Init));
        assert!(!budgets.scopes[0].is_settled());
        budgets.apply_event(0, &FollowEvent::InitDone);
        assert!(budgets.scopes[0].is_settled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_does_not_come_is_waited_for_no_longer_than_its_time() {
        let mut budgets = followed();
        budgets.awaited_until = Some(Instant::now() + FIRST_LIST_TIMEOUT);
        budgets.events.push(futures::stream::pending().boxed());
        let begun = Instant::now();
        assert!(budgets.next_change().await.is_empty());
        assert!(!budgets.is_awaited() && begun.elapsed() >= FIRST_LIST_TIMEOUT);
    }
}
