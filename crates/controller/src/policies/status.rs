//! Status of policies: conditions `Accepted`, `Watching` and `Ready`, and the number of parents. Written at most every
//! ten seconds, except for changes of the conditions.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::Acceptance;
use api::ReadinessPolicyStatus;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use policy::{FoundPolicy, PolicyBook, PolicyInUse};
use readiness::Time;
use tracing::{debug, warn};
use watcher::status::FIELD_MANAGER;

use super::conditions::{DecidedPolicy, MissingRights, policy_status};
use super::rights::RightsFindings;
use crate::clock::ServerClock;
use crate::kind_tasks::RecordsTrouble;
use crate::lease::Leadership;
use crate::snapshot::StatsSnapshot;

/// Minimum interval between writes that only change numbers.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Writes the status of policies.
pub(super) struct PolicyStatusWriter {
    /// Of an answer no more is read than its metadata: its spec may have fields of another version.
    api: Api<PartialObjectMeta<api::ReadinessPolicy>>,
    clock: ServerClock,
    written: BTreeMap<String, (ReadinessPolicyStatus, Time)>,
    retry_at: Option<Time>,
    leadership: Leadership,
}

impl PolicyStatusWriter {
    pub(super) fn new(client: &kube::Client, clock: ServerClock, leadership: Leadership) -> Self {
        PolicyStatusWriter {
            api: Api::all(client.clone()),
            clock,
            written: BTreeMap::new(),
            retry_at: None,
            leadership,
        }
    }

    /// Waits until delayed numbers may be written.
    pub(super) async fn wait_until_due(&self) {
        match self.retry_at {
            Some(at) => tokio::time::sleep(at - self.clock.now()).await,
            None => std::future::pending().await,
        }
    }

    pub(super) async fn write_statuses(
        &mut self,
        found: Option<&BTreeMap<String, FoundPolicy>>,
        book: &PolicyBook,
        snapshot: &StatsSnapshot,
        troubles: &PolicyTroubles<'_>,
    ) {
        self.retry_at = None;
        let Some(found) = found else { return };
        if !self.leadership.may_write() {
            // Another replica leads now: its writes are part of the policies as read.
            self.written.clear();
            return;
        }
        let now = self.clock.now();
        self.written.retain(|name, _| found.contains_key(name));
        for policy in found.values() {
            let accepted = |p: &&PolicyInUse| p.name == policy.name && p.acceptance == Acceptance::Accepted;
            let used = book.in_use.iter().find(accepted);
            // The loop has not processed the new plan yet: its numbers belong to the previous one.
            let numbers = snapshot.policies.get(&policy.name);
            if used.is_some() && numbers.is_none() {
                continue;
            }
            let (old, at) =
                self.written.get(&policy.name).cloned().unwrap_or((policy.status.clone(), Time::default()));
            let decided = DecidedPolicy {
                refused: book.refused.get(&policy.name),
                accepted: book.accepted.get(&policy.name),
                used,
                missing: MissingRights::of_policy(&policy.name, troubles.rights),
                records: troubles.records.filter(|_| used.is_some_and(|u| u.compiled.remembers_outcomes())),
            };
            let status = policy_status(policy, &decided, numbers, snapshot, &old, now);
            if status == old {
                continue;
            }
            let only_numbers =
                ReadinessPolicyStatus { parents: old.parents, ready: old.ready, ..status.clone() } == old;
            if only_numbers && at + STATUS_INTERVAL > now {
                self.retry_at =
                    Some(self.retry_at.map_or(at + STATUS_INTERVAL, |again| again.min(at + STATUS_INTERVAL)));
                continue;
            }
            self.patch_status(&policy.name, status, now).await;
        }
    }

    async fn patch_status(&mut self, name: &str, status: ReadinessPolicyStatus, now: Time) {
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match self.api.patch_status(name, &params, &patch).await {
            Ok(_) => _ = self.written.insert(name.to_owned(), (status, now)),
            Err(kube::Error::Api(error)) if error.code == 404 => debug!(policy = name, "policy was deleted"),
            Err(error) => {
                warn!(policy = name, %error, "failed to patch status of the policy");
                self.retry_at = Some(now + STATUS_INTERVAL);
            }
        }
    }
}

/// What keeps policies from being carried out, besides their kinds.
pub(super) struct PolicyTroubles<'t> {
    /// Rights that lack.
    pub(super) rights: &'t RightsFindings,
    /// Why outcomes of Jobs cannot be saved.
    pub(super) records: Option<&'t RecordsTrouble>,
}
