//! What the task of policies waits for beside their own events.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use policy::{FoundPolicy, OtherReleases, PolicyBook, Released};
use readiness::Time;
use tokio::sync::watch;
use watcher::FollowEvent;
use watcher::reflector::{NamespaceBudgets, Reflector};
use watcher::wire::ChildObject;

use super::disruption_budgets::DisruptionBudgets;
use super::grants::{GrantResult, RightsGranter};
use super::kopf_log::KopfLog;
use super::namespace_selection::RelistSchedule;
use super::policy_task_state::REFUSED_FOR_LONG;
use super::rights::{ReviewResult, RightsReviewer};
use super::script_libraries::ScriptLibraries;
use super::status::PolicyStatusWriter;
use crate::clock::ServerClock;
use crate::kind_tasks::{KindContext, RecordsTrouble};
use crate::snapshot::StatsSnapshot;

/// What else is judged by than policies and objects has moved.
pub(super) enum RulesMove {
    /// Scripts are other ones.
    Scripts,
    /// Other budgets are known, or none are waited for any more.
    Budgets(NamespaceBudgets),
    /// The log of Kopf operators is not waited for any more.
    KopfLog,
}

/// Waits until scripts change, or until other budgets are known, and tells what Kopf operators log.
pub(super) async fn rules_move(
    libraries: &mut ScriptLibraries,
    budgets: &mut DisruptionBudgets,
    (kopf_log, reflector): (&mut KopfLog, &Reflector),
) -> RulesMove {
    tokio::select! {
        _ = libraries.next_change() => RulesMove::Scripts,
        known = budgets.next_change() => RulesMove::Budgets(known),
        () = kopf_log.tell(reflector) => RulesMove::KopfLog,
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

/// Waits until other rights lack than before, or some were granted or taken away.
pub(super) async fn rights_move(
    context: &KindContext,
    rights: &mut RightsReviewer,
    (book, released, found): (&PolicyBook, &Released, Option<&BTreeMap<String, FoundPolicy>>),
    granter: &mut RightsGranter,
) {
    loop {
        tokio::select! {
            result = rights.next_result(context, book, released) => {
                if result != ReviewResult::Unanswered {
                    granter.on_review(rights.demand(), found.into_iter().flat_map(BTreeMap::values));
                }
                if result == ReviewResult::Changed {
                    return;
                }
            }
            result = granter.next_result() => {
                if result == GrantResult::RightsMoved {
                    rights.expect_change();
                }
                return;
            }
        }
    }
}

/// Waits until a policy that was never accepted has been refused for [`REFUSED_FOR_LONG`], when its Trues are taken back, or
/// until something is to be decided of policies of other releases.
/// `decided_at`: what was due then was looked at.
pub(super) async fn next_in_time(
    clock: &ServerClock,
    refused_since: &BTreeMap<String, Time>,
    others: &OtherReleases,
    decided_at: Time,
) {
    let taken_back = refused_since.values().map(|since| *since + REFUSED_FOR_LONG);
    let next = taken_back.filter(|at| *at > decided_at).chain(others.next_step(decided_at)).min();
    match next {
        Some(at) => tokio::time::sleep(at - clock.now()).await,
        None => std::future::pending().await,
    }
}
