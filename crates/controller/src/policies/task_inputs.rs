//! What the task of policies waits for beside their own events.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::watch;
use watcher::FollowEvent;
use watcher::reflector::NamespaceBudgets;
use watcher::wire::ChildObject;

use super::disruption_budgets::DisruptionBudgets;
use super::namespace_selection::RelistSchedule;
use super::script_libraries::ScriptLibraries;
use super::status::PolicyStatusWriter;
use crate::kind_tasks::RecordsTrouble;
use crate::snapshot::StatsSnapshot;

/// Waits until scripts change, or until other budgets are known, which are returned.
pub(super) async fn rules_move(
    libraries: &mut ScriptLibraries,
    budgets: &mut DisruptionBudgets,
) -> Option<NamespaceBudgets> {
    tokio::select! {
        _ = libraries.next_change() => None,
        known = budgets.next_change() => Some(known),
    }
}

/// Waits until the status of a policy may say something else.
pub(super) async fn status_is_due(
    snapshot: &mut watch::Receiver<Arc<StatsSnapshot>>,
    records: &mut watch::Receiver<Option<RecordsTrouble>>,
    statuses: &mut PolicyStatusWriter,
) {
    tokio::select! {
        Ok(()) = snapshot.changed() => {}
        Ok(()) = records.changed() => {}
        () = statuses.wait_until_due() => {}
    }
}

/// Waits for an event of the namespaces' watch, or, without one, until a kind is to be listed again because of another.
pub(super) async fn namespaces_move(
    events: &mut Option<BoxStream<'static, FollowEvent<ChildObject>>>,
    relists: &RelistSchedule,
) -> Option<FollowEvent<ChildObject>> {
    let next = async {
        match events {
            Some(events) => events.next().await,
            None => None,
        }
    };
    tokio::select! {
        Some(event) = next => Some(event),
        () = relists.wait_until_due() => None,
    }
}
