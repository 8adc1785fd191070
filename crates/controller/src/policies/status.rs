//! Status of policies: conditions `Accepted`, `Watching` and `Ready`, and the number of parents. Written at most every
//! ten seconds, except for changes of the conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::time::Duration;

use aggregator::Acceptance;
use api::ReadinessPolicyStatus;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use policy::{FoundPolicy, PolicyBook, PolicyInUse};
use readiness::Time;
use rustc_hash::FxHasher;
use timer::{Backoff, Seed};
use tracing::{debug, warn};
use watcher::status::FIELD_MANAGER;

use super::acceptance_notices::acceptance_notice;
use super::conditions::{DecidedPolicy, MissingRights, policy_status};
use super::grants::GrantFindings;
use super::rights::RightsFindings;
use crate::clock::ServerClock;
use crate::event_recorder::{EventNotice, NoticeSender};
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::{KindContext, RecordsTrouble};
use crate::lease::Leadership;
use crate::snapshot::StatsSnapshot;

/// Minimum interval between writes that only change numbers.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of writes under way.
const MAX_STATUS_WRITES: usize = 4;
/// Longest time that a write may take. 10 s.
const STATUS_WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after writes to one policy that failed.
const STATUS_BACKOFF: Backoff = Backoff { base: STATUS_INTERVAL, cap: Duration::from_mins(1) };
/// Number of failures in a row, of any policies, from which on one write is tried at a time, and one a second.
const PROBES_AFTER: u32 = 4;
/// Shortest interval between two of those. 1 s.
const STATUS_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Status as this process last wrote it.
#[derive(Clone, Debug)]
struct WrittenStatus {
    status: ReadinessPolicyStatus,
    /// When it was decided.
    at: Time,
    /// resourceVersion that the policy got by it.
    version: u64,
}

impl WrittenStatus {
    /// True if another writer has changed the status since.
    fn was_edited(&self, found: &FoundPolicy) -> bool {
        found.version > self.version && found.status != self.status
    }
}

/// Write that has ended.
struct SettledStatus {
    name: String,
    status: ReadinessPolicyStatus,
    /// The Event that tells of it.
    notice: Option<EventNotice>,
    /// When it was decided.
    at: Time,
    /// The resourceVersion of the server's answer; `None` if none came.
    answer: Option<Result<u64, kube::Error>>,
}

/// Policy whose last write failed.
#[derive(Clone, Copy, Default)]
struct FailingStatus {
    failures: u32,
    not_before: Time,
}

/// Writes the status of policies, beside everything else: a server that does not answer delays no plan.
pub(super) struct PolicyStatusWriter {
    /// Of an answer no more is read than its metadata: its spec may have fields of another version.
    api: Api<PartialObjectMeta<api::ReadinessPolicy>>,
    clock: ServerClock,
    leadership: Leadership,
    notices: Option<NoticeSender>,
    reporter: FailureReporter,
    seed: Seed,
    written: BTreeMap<String, WrittenStatus>,
    retry_at: Option<Time>,
    under_way: FuturesUnordered<BoxFuture<'static, SettledStatus>>,
    /// Policies that a write is under way for.
    writing: BTreeSet<String>,
    failing: BTreeMap<String, FailingStatus>,
    /// Failures in a row, of any policies.
    failures: u32,
    /// No write before this time.
    not_before: Time,
}

impl PolicyStatusWriter {
    pub(super) fn new(
        context: &KindContext,
        clock: ServerClock,
        leadership: Leadership,
        notices: Option<NoticeSender>,
    ) -> Self {
        PolicyStatusWriter {
            api: Api::all(context.client.clone()),
            clock,
            leadership,
            notices,
            reporter: context.failures.clone(),
            seed: context.seed,
            written: BTreeMap::new(),
            retry_at: None,
            under_way: FuturesUnordered::new(),
            writing: BTreeSet::new(),
            failing: BTreeMap::new(),
            failures: 0,
            not_before: Time::default(),
        }
    }

    /// Waits until a write has ended, or what was delayed may be written, or another replica leads.
    pub(super) async fn wait_until_due(&mut self) {
        let wait = self.retry_at.map(|at| at - self.clock.now());
        tokio::select! {
            Some(settled) = self.under_way.next(), if !self.under_way.is_empty() => self.settle(settled),
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            _ = self.leadership.wait_for_change() => {}
        }
    }

    /// True if another writer has changed the status of this policy since it was written.
    pub(super) fn was_edited(&self, found: &FoundPolicy) -> bool {
        self.written.get(&found.name).is_some_and(|written| written.was_edited(found))
    }

    /// Begins the writes that are due. They go on while [`PolicyStatusWriter::wait_until_due`] is polled.
    pub(super) fn write_statuses(
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
        self.failing.retain(|name, _| found.contains_key(name));
        for policy in found.values() {
            let accepted = |p: &&PolicyInUse| p.name == policy.name && p.acceptance == Acceptance::Accepted;
            let used = book.in_use.iter().find(accepted);
            // The loop has not processed the new plan yet: its numbers belong to the previous one.
            let numbers = snapshot.policies.get(&policy.name);
            if used.is_some() && numbers.is_none() {
                continue;
            }
            let is_edited = self.was_edited(policy);
            let (old, at) = match self.written.get(&policy.name) {
                Some(written) => (written.status.clone(), written.at),
                None => (policy.status.clone(), Time::default()),
            };
            // As long as its rules are not read, what is said of them stands.
            let is_refused =
                old.conditions.iter().any(|held| held.r#type == "Accepted" && held.status == "False");
            if is_refused && book.undecided.contains(&policy.name) {
                continue;
            }
            let decided = DecidedPolicy {
                refused: book.refused.get(&policy.name),
                accepted: book.accepted.get(&policy.name),
                used,
                missing: MissingRights::of_policy(&policy.name, troubles.rights, troubles.grants),
                records: troubles.records.filter(|_| used.is_some_and(|u| u.compiled.remembers_outcomes())),
            };
            let status = policy_status(policy, &decided, numbers, snapshot, &old, now);
            if status == *(if is_edited { &policy.status } else { &old }) {
                continue;
            }
            let only_numbers =
                ReadinessPolicyStatus { parents: old.parents, ready: old.ready, ..status.clone() } == old;
            let earliest = if only_numbers || is_edited { at + STATUS_INTERVAL } else { now };
            let notice = acceptance_notice(policy, &old, &status);
            self.write_when_due(&policy.name, (status, notice), earliest, now);
        }
    }

    /// Begins a write, or remembers when to try it again.
    fn write_when_due(
        &mut self,
        name: &str,
        (status, notice): (ReadinessPolicyStatus, Option<EventNotice>),
        earliest: Time,
        now: Time,
    ) {
        let failing = self.failing.get(name).map_or(now, |failing| failing.not_before);
        let due = earliest.max(failing).max(self.not_before);
        if due > now {
            self.retry_at = Some(self.retry_at.map_or(due, |at| at.min(due)));
            return;
        }
        let most = if self.failures >= PROBES_AFTER { 1 } else { MAX_STATUS_WRITES };
        // Whatever ends makes room, and everything is compared again then.
        if self.writing.contains(name) || self.under_way.len() >= most {
            return;
        }
        let (api, name) = (self.api.clone(), name.to_owned());
        self.writing.insert(name.clone());
        self.under_way.push(Box::pin(async move {
            let patch = Patch::Merge(serde_json::json!({ "status": status }));
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let write = api.patch_status(&name, &params, &patch);
            let answer = tokio::time::timeout(STATUS_WRITE_TIMEOUT, write).await.ok();
            SettledStatus {
                name,
                status,
                notice,
                at: now,
                answer: answer.map(|a| a.map(|meta| version_of(&meta))),
            }
        }));
    }

    fn settle(&mut self, settled: SettledStatus) {
        let SettledStatus { name, status, notice, at, answer } = settled;
        self.writing.remove(&name);
        let (cause, error) = match answer {
            Some(Ok(version)) => {
                self.failures = 0;
                self.failing.remove(&name);
                if let (Some(notices), Some(notice)) = (&self.notices, notice) {
                    notices.send_notice(notice);
                }
                self.written.insert(name, WrittenStatus { status, at, version });
                return;
            }
            Some(Err(kube::Error::Api(error))) if error.code == 404 => {
                debug!(policy = name, "policy was deleted");
                ("not found".to_owned(), None)
            }
            Some(Err(kube::Error::Api(error))) => (error.code.to_string(), Some(watcher::error_text(&error))),
            Some(Err(error)) => ("no response".to_owned(), Some(watcher::error_text(&error))),
            None => ("timeout".to_owned(), Some("request timed out".to_owned())),
        };
        let now = self.clock.now();
        self.failures = self.failures.saturating_add(1);
        if self.failures >= PROBES_AFTER {
            self.not_before = now + STATUS_PROBE_INTERVAL;
        }
        let failing = self.failing.entry(name.clone()).or_default();
        failing.failures = failing.failures.saturating_add(1);
        failing.not_before = now + STATUS_BACKOFF.delay_after(failing.failures, self.seed, name_key(&name));
        if let Some(error) = error {
            self.reporter.report("write policy status", cause, move |failures| {
                warn!(policy = name, error, failures, "failed to patch status of the policy");
            });
        }
    }
}

fn version_of(policy: &PartialObjectMeta<api::ReadinessPolicy>) -> u64 {
    policy.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Spreads the delays of policies by their names.
fn name_key(name: &str) -> u64 {
    let mut hash = FxHasher::default();
    hash.write(name.as_bytes());
    hash.finish()
}

/// What keeps policies from being carried out, besides their kinds.
pub(super) struct PolicyTroubles<'t> {
    /// Rights that lack.
    pub(super) rights: &'t RightsFindings,
    /// Why the service does not grant them itself.
    pub(super) grants: &'t GrantFindings,
    /// Why outcomes of Jobs cannot be saved.
    pub(super) records: Option<&'t RecordsTrouble>,
}

#[cfg(test)]
mod tests {
    use policy::read_policy;
    use serde_json::json;

    use super::*;

    fn found(version: u64, parents: i64) -> FoundPolicy {
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": version.to_string(), "generation": 1 },
            "spec": { "parent": { "group": "example.com", "kind": "Database" } },
            "status": { "parents": parents },
        });
        read_policy(&serde_json::from_value(object).expect("a policy"))
    }

    #[test]
    fn a_status_was_edited_where_a_later_version_says_something_else() {
        let written = WrittenStatus { status: found(7, 3).status, at: Time(0), version: 7 };
        let edited = |version: u64, parents: i64| written.was_edited(&found(version, parents));
        assert!(edited(8, 4));
        assert!(!edited(8, 3), "something else of it was changed");
        assert!(!edited(7, 4) && !edited(6, 4), "the watch has not seen the write yet");
    }
}
