//! Events of Kopf operators: followed while a policy says that its operator is Kopf's.

use rollcall_core::ListedKopfLines;
use tracing::warn;
use watcher::reflector::{LoggedLine, Reflector};
use watcher::{FollowEvent, FollowFailure, FollowOptions, ParentObject};

use super::scoped_lists::{ListedItems, ScopedListStep, ScopedLists};
use super::watched_kinds::event_kind;
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;
use crate::own_watches::OwnWatchKind;

/// What selects the lines of Kopf's log among Events (kopf `_core/engines/posting.py`).
const LOG_FIELDS: &str = "reason=Logging";

/// The log of all Kopf operators, as far as they post it.
#[derive(Default)]
pub(super) struct KopfLog {
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    lists: ScopedLists<ListedKopfLines>,
}

impl ListedItems for ListedKopfLines {
    /// Lines that are to be told.
    type Change = Vec<LoggedLine>;

    fn apply_event(&mut self, event: &FollowEvent<ParentObject>) -> Vec<LoggedLine> {
        ListedKopfLines::apply_event(self, event)
    }

    fn are_listed(&self) -> bool {
        ListedKopfLines::are_listed(self)
    }
}

impl KopfLog {
    /// Follows it from now on.
    pub(super) fn follow(&mut self, context: &KindContext) {
        self.lists.follow(context, (OwnWatchKind::KopfEvents, event_kind), || FollowOptions {
            fields: Some(LOG_FIELDS.to_owned()),
            ..context.follow_options()
        });
    }

    /// Returns `true` while nothing is to be judged, because the first list is not through: a failure that it shows would not be
    /// known.
    pub(super) fn is_awaited(&self) -> bool {
        self.lists.is_awaited()
    }

    /// Tells the reflector what is logged, until the log is not waited for any more; goes on for ever after that.
    pub(super) async fn tell(&mut self, reflector: &Reflector) {
        loop {
            let was_awaited = self.is_awaited();
            match self.lists.next_step().await {
                ScopedListStep::Change(lines) => reflector.note_kopf_lines(lines),
                ScopedListStep::GivenUp => {}
                ScopedListStep::Failed(failure) => self.report(failure),
            }
            if was_awaited && !self.is_awaited() {
                return;
            }
        }
    }

    fn report(&self, FollowFailure { cause, detail }: FollowFailure) {
        let reason = cause.metric_label();
        self.failures.report("follow Kopf's Events", reason, move |failures| {
            warn!(
                cause = reason,
                detail,
                failures,
                "cannot watch Events: that a handler of a Kopf operator failed is known only where the parent shows it"
            );
        });
    }
}
