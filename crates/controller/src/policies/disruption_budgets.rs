//! PodDisruptionBudgets: followed while a policy keeps parents True through disruptions that they allow.

use rollcall_core::ListedBudgets;
use tracing::warn;
use watcher::reflector::NamespaceBudgets;
use watcher::{FollowEvent, FollowFailure, ParentObject};

use super::scoped_lists::{ListedItems, ScopedListStep, ScopedLists};
use super::watched_kinds::budget_kind;
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;
use crate::own_watches::OwnWatchKind;

/// All budgets that can be seen.
#[derive(Default)]
pub(super) struct DisruptionBudgets {
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    lists: ScopedLists<ListedBudgets>,
}

impl ListedItems for ListedBudgets {
    /// `true` if other budgets are known now.
    type Change = bool;

    fn apply_event(&mut self, event: &FollowEvent<ParentObject>) -> bool {
        ListedBudgets::apply_event(self, event)
    }

    fn are_listed(&self) -> bool {
        ListedBudgets::are_listed(self)
    }
}

impl DisruptionBudgets {
    /// Follows them from now on.
    pub(super) fn follow(&mut self, context: &KindContext) {
        self.lists.follow(context, (OwnWatchKind::Budgets, budget_kind), || context.follow_options());
    }

    /// Returns `true` while nothing is to be judged, because the first list is not through: what a disruption has taken away would
    /// count as lost.
    pub(super) fn is_awaited(&self) -> bool {
        self.lists.is_awaited()
    }

    /// Waits until other budgets are known, or are not waited for any more. Never completes if none are followed.
    pub(super) async fn next_change(&mut self) -> NamespaceBudgets {
        loop {
            let was_awaited = self.is_awaited();
            let is_changed = match self.lists.next_step().await {
                ScopedListStep::Change(is_changed) => is_changed,
                ScopedListStep::Failed(failure) => {
                    self.report(failure);
                    false
                }
                ScopedListStep::GivenUp => true,
            };
            if is_changed || was_awaited && !self.is_awaited() {
                return self.known();
            }
        }
    }

    fn report(&self, FollowFailure { cause, detail }: FollowFailure) {
        let reason = cause.metric_label();
        self.failures.report("follow budgets", reason, move |failures| {
            warn!(
                cause = reason,
                detail,
                failures,
                "cannot watch PodDisruptionBudgets: a workload may lack no more pods than its own maxUnavailable says"
            );
        });
    }

    /// What is known of all of them, by namespace.
    fn known(&self) -> NamespaceBudgets {
        let mut known = NamespaceBudgets::new();
        for listed in self.lists.lists() {
            listed.add_known(&mut known);
        }
        known
    }
}
