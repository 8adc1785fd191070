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
use policy::{ClaimChange, FoundPolicy, PolicyBook, PolicyInUse, ReleaseIdentity};
use readiness::Time;
use rustc_hash::FxHasher;
use serde_json::{Value, json};
use timer::{Backoff, Seed};
use tracing::{debug, warn};
use watcher::status::FIELD_MANAGER;

use super::acceptance_notices::acceptance_notice;
use super::conditions::{DecidedPolicy, MissingRights, policy_status};
use super::grants::GrantFindings;
use super::listing_grace::ListingGrace;
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

/// Time in which no claim is written after the server was seen to drop one. 10 min.
const CLAIMS_DROPPED_FOR: Duration = Duration::from_mins(10);

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
        found.version > self.version && without_claims(&found.status) != self.status
    }
}

/// A status but for who has the policy, which is written beside.
fn without_claims(status: &ReadinessPolicyStatus) -> ReadinessPolicyStatus {
    ReadinessPolicyStatus { accepted_by: BTreeMap::new(), ..status.clone() }
}

/// What this process last wrote of who has a policy.
#[derive(Clone, Debug)]
struct WrittenClaim {
    uid: String,
    /// resourceVersion that the policy got by it.
    version: u64,
    /// It said that this release has it.
    accepts: bool,
}

/// What a write says.
enum WrittenPart {
    /// Who has the policy.
    Claim { uid: String, accepts: bool },
    /// All else, with the Event that tells of it.
    Status { status: Box<ReadinessPolicyStatus>, notice: Option<EventNotice> },
}

/// Write that has ended.
struct SettledStatus {
    name: String,
    part: WrittenPart,
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
    claims: BTreeMap<String, WrittenClaim>,
    /// When the server was last seen to drop a claim: the definition of policies is of an older version.
    claims_dropped: Option<Time>,
    listing: ListingGrace,
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
            claims: BTreeMap::new(),
            claims_dropped: None,
            listing: ListingGrace::default(),
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

    /// All that is due is looked at again by what follows.
    pub(super) fn begin_pass(&mut self) {
        self.retry_at = None;
    }

    /// Begins writes that say who has policies.
    pub(super) fn write_claims<'f>(
        &mut self,
        changes: impl IntoIterator<Item = (&'f FoundPolicy, ClaimChange)>,
        release: &ReleaseIdentity,
    ) {
        if !self.leadership.may_write() {
            return;
        }
        let now = self.clock.now();
        for (found, change) in changes {
            let accepts = matches!(change, ClaimChange::Accept { .. });
            let written = self.claims.get(&found.name).filter(|written| written.uid == found.uid);
            if written.is_some_and(|written| written.version > found.version) {
                // The watch has not brought it yet.
                continue;
            }
            if accepts && written.is_some_and(|written| written.accepts && written.version == found.version) {
                self.claims_dropped = Some(now);
            }
            if accepts && self.claims_dropped.is_some_and(|at| at + CLAIMS_DROPPED_FOR > now) {
                continue;
            }
            let part = WrittenPart::Claim { uid: found.uid.clone(), accepts };
            self.write_when_due(&found.name, (change.patch(found, release, now), part), now, now);
        }
    }

    /// Begins the writes that are due. They go on while [`PolicyStatusWriter::wait_until_due`] is polled.
    pub(super) fn write_statuses(
        &mut self,
        found: Option<&BTreeMap<String, FoundPolicy>>,
        book: &PolicyBook,
        snapshot: &StatsSnapshot,
        troubles: &PolicyTroubles<'_>,
    ) {
        let Some(found) = found else { return };
        if !self.leadership.may_write() {
            // Another replica leads now: its writes are part of the policies as read.
            self.written.clear();
            self.listing = ListingGrace::default();
            return;
        }
        let now = self.clock.now();
        self.written.retain(|name, _| found.contains_key(name));
        self.claims.retain(|name, _| found.contains_key(name));
        self.listing.retain(|name| found.contains_key(name));
        self.failing.retain(|name, failing| found.contains_key(name) || failing.not_before > now);
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
                None => (without_claims(&policy.status), Time::default()),
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
            if let Some(until) = self.listing.held_until(&policy.name, (&old, &status), now) {
                self.look_again_at(until);
                continue;
            }
            if status == (if is_edited { without_claims(&policy.status) } else { old.clone() }) {
                continue;
            }
            let only_numbers =
                ReadinessPolicyStatus { parents: old.parents, ready: old.ready, ..status.clone() } == old;
            let earliest = if only_numbers || is_edited { at + STATUS_INTERVAL } else { now };
            let notice = acceptance_notice(policy, &old, &status);
            let part = WrittenPart::Status { status: Box::new(status.clone()), notice };
            self.write_when_due(&policy.name, (json!({ "status": status }), part), earliest, now);
        }
    }

    /// Begins a write, or remembers when to try it again.
    fn write_when_due(&mut self, name: &str, (body, part): (Value, WrittenPart), earliest: Time, now: Time) {
        let failing = self.failing.get(name).map_or(now, |failing| failing.not_before);
        let due = earliest.max(failing).max(self.not_before);
        if due > now {
            self.look_again_at(due);
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
            let patch = Patch::Merge(body);
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let write = api.patch_status(&name, &params, &patch);
            let answer = tokio::time::timeout(STATUS_WRITE_TIMEOUT, write).await.ok();
            SettledStatus { name, part, at: now, answer: answer.map(|a| a.map(|meta| version_of(&meta))) }
        }));
    }

    fn look_again_at(&mut self, at: Time) {
        self.retry_at = Some(self.retry_at.map_or(at, |held| held.min(at)));
    }

    fn settle(&mut self, settled: SettledStatus) {
        let SettledStatus { name, part, at, answer } = settled;
        self.writing.remove(&name);
        let (cause, error) = match answer {
            Some(Ok(version)) => {
                self.failures = 0;
                self.failing.remove(&name);
                self.note_written(name, part, at, version);
                return;
            }
            Some(Err(kube::Error::Api(error))) if error.code == 409 => {
                debug!(policy = name, "policy was changed; looking at it again");
                ("conflict".to_owned(), None)
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

impl PolicyStatusWriter {
    fn note_written(&mut self, name: String, part: WrittenPart, at: Time, version: u64) {
        match part {
            WrittenPart::Claim { uid, accepts } => {
                self.claims.insert(name, WrittenClaim { uid, version, accepts });
            }
            WrittenPart::Status { status, notice } => {
                if let (Some(notices), Some(notice)) = (&self.notices, notice) {
                    notices.send_notice(notice);
                }
                self.written.insert(name, WrittenStatus { status: *status, at, version });
            }
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
