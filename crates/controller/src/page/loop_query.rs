//! What the page asks the event loop.

use aggregator::{ChildOf, ObjectId, PolicyId};
use readiness::Time;
use tokio::sync::oneshot;

use rollcall_core::{Core, ParentChanges, ParentDetail};

/// Query of the page to the event loop.
pub(crate) enum LoopQuery {
    /// What has changed of all parents after the changes of this number; everything if there is none.
    Changes(Option<u64>, oneshot::Sender<ParentChanges>),
    /// Nobody asks for changes any more.
    EndChanges,
    /// Edges from all parents to their children.
    Edges(oneshot::Sender<Vec<ChildOf>>),
    /// Details of these answers.
    Details(Vec<(ObjectId, PolicyId)>, oneshot::Sender<Vec<ParentDetail>>),
}

impl LoopQuery {
    /// Answers the query on the loop. The requester may be gone.
    pub(crate) fn answer_query(self, core: &mut Core, now: Time) {
        match self {
            LoopQuery::Changes(after, to) => _ = to.send(core.take_parent_changes(after, now)),
            LoopQuery::EndChanges => core.end_parent_feed(),
            LoopQuery::Edges(to) => _ = to.send(core.engine.counted_children().collect()),
            LoopQuery::Details(of, to) => {
                _ = to.send(
                    of.into_iter().map(|(parent, policy)| core.parent_detail(parent, policy, now)).collect(),
                );
            }
        }
    }
}
