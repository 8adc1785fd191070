//! What is listed and watched beside the kinds of policies, in the whole cluster or in each namespace that Rollcall is restricted
//! to, and awaited for a moment before anything is judged.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use tokio::time::{Instant, sleep_until};
use watcher::{ApiKind, FollowEvent, FollowFailure, FollowOptions, ParentObject, follow};

use crate::kind_tasks::KindContext;
use crate::own_watches::OwnWatchKind;

/// Longest time for which nothing is judged because the lists are not complete yet. 5 s.
pub(super) const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Where something is listed, and what came of it: the number of the namespace among those that Rollcall is restricted to.
type ScopedEvent = (usize, FollowEvent<ParentObject>);

/// What a list is made into.
pub(super) trait ListedItems: Default {
    /// What an event changes.
    type Change;

    fn apply_event(&mut self, event: &FollowEvent<ParentObject>) -> Self::Change;
    fn are_listed(&self) -> bool;
}

/// Lists of one kind.
pub(super) struct ScopedLists<L> {
    events: SelectAll<BoxStream<'static, ScopedEvent>>,
    scopes: Vec<ListScope<L>>,
    /// When those that are not complete yet are not waited for any more; `None` once they are not.
    awaited_until: Option<Instant>,
}

#[derive(Default)]
struct ListScope<L> {
    listed: L,
    /// It cannot be listed, as far as is known.
    has_failed: bool,
}

/// What has happened.
pub(super) enum ScopedListStep<C> {
    /// An event has changed this.
    Change(C),
    /// A list or a watch has failed.
    Failed(FollowFailure),
    /// The lists are not waited for any more.
    GivenUp,
}

impl<L> Default for ScopedLists<L> {
    fn default() -> Self {
        ScopedLists { events: SelectAll::new(), scopes: Vec::new(), awaited_until: None }
    }
}

impl<L: ListedItems> ScopedLists<L> {
    /// Follows the objects of this kind from now on, with these options.
    pub(super) fn follow(
        &mut self,
        context: &KindContext,
        (own, kind): (OwnWatchKind, fn() -> ApiKind),
        options: impl Fn() -> FollowOptions,
    ) {
        if !self.scopes.is_empty() {
            return;
        }
        self.awaited_until = Some(Instant::now() + FIRST_LIST_TIMEOUT);
        let all = [None].into_iter().take(usize::from(context.namespaces.is_empty()));
        for namespace in all.chain(context.namespaces.iter().cloned().map(Some)) {
            let (client, options) = (context.client.clone(), options());
            let place = namespace.clone().unwrap_or_default();
            let open = move || {
                follow::<ParentObject>(&client, &kind(), namespace.as_deref(), options.clone()).boxed()
            };
            let scope = self.scopes.len();
            let events = context.own_watches.observed(own, &place, context.breaks.reopened_after(open));
            self.follow_stream(events.map(move |event| (scope, event)).boxed());
        }
    }

    fn follow_stream(&mut self, events: BoxStream<'static, ScopedEvent>) {
        self.events.push(events);
        self.scopes.push(ListScope::default());
    }

    /// Returns `true` while nothing is to be judged, because the first lists are not through.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited_until.is_some()
    }

    /// Waits for the next step. Never completes if nothing is followed.
    pub(super) async fn next_step(&mut self) -> ScopedListStep<L::Change> {
        let awaited_until = self.awaited_until;
        let given_up = async {
            match awaited_until {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some((scope, event)) = self.events.next() => self.apply_event(scope, event),
            () = given_up => {
                self.awaited_until = None;
                ScopedListStep::GivenUp
            }
        }
    }

    fn apply_event(&mut self, scope: usize, event: FollowEvent<ParentObject>) -> ScopedListStep<L::Change> {
        let scope = &mut self.scopes[scope];
        let change = scope.listed.apply_event(&event);
        let failure = match event {
            FollowEvent::Failure(failure) => Some(failure),
            _ => None,
        };
        scope.has_failed |= failure.is_some();
        if self.scopes.iter().all(ListScope::is_settled) {
            self.awaited_until = None;
        }
        failure.map_or(ScopedListStep::Change(change), ScopedListStep::Failed)
    }

    /// All lists.
    pub(super) fn lists(&self) -> impl Iterator<Item = &L> {
        self.scopes.iter().map(|scope| &scope.listed)
    }
}

impl<L: ListedItems> ListScope<L> {
    fn is_settled(&self) -> bool {
        self.has_failed || self.listed.are_listed()
    }
}

#[cfg(test)]
mod tests {
    use watcher::ApiFailureCause;

    use super::*;

    #[derive(Default)]
    struct OneList(bool);

    impl ListedItems for OneList {
        type Change = ();

        fn apply_event(&mut self, event: &FollowEvent<ParentObject>) {
            self.0 |= matches!(event, FollowEvent::InitDone);
        }

        fn are_listed(&self) -> bool {
            self.0
        }
    }

    fn awaited() -> ScopedLists<OneList> {
        ScopedLists { awaited_until: Some(Instant::now() + FIRST_LIST_TIMEOUT), ..ScopedLists::default() }
    }

    /// Two namespaces that are followed, one of which has brought these events.
    async fn is_awaited_after(events: Vec<FollowEvent<ParentObject>>) -> bool {
        let mut lists = awaited();
        let count = events.len();
        lists.follow_stream(futures::stream::iter([(0, FollowEvent::InitDone)]).boxed());
        lists.follow_stream(
            futures::stream::iter(events).map(|event| (1, event)).chain(futures::stream::pending()).boxed(),
        );
        for _ in 0..=count {
            lists.next_step().await;
        }
        lists.is_awaited()
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_awaited_until_each_is_complete_or_has_failed() {
        let failure = || {
            FollowEvent::Failure(FollowFailure { cause: ApiFailureCause::Forbidden, detail: String::new() })
        };
        assert!(is_awaited_after(vec![]).await);
        assert!(is_awaited_after(vec![FollowEvent::Init]).await, "half a list");
        assert!(!is_awaited_after(vec![FollowEvent::Init, FollowEvent::InitDone]).await);
        assert!(!is_awaited_after(vec![failure()]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_does_not_come_is_waited_for_no_longer_than_that() {
        let mut lists = awaited();
        lists.follow_stream(futures::stream::pending().boxed());
        let begun = Instant::now();
        assert!(matches!(lists.next_step().await, ScopedListStep::GivenUp));
        assert!(!lists.is_awaited() && begun.elapsed() >= FIRST_LIST_TIMEOUT);
    }
}
