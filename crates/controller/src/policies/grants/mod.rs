//! Grants what accepted policies need, within the ClusterRoles that the administrator lists by `--grant-roles`. Off by
//! default.
//!
//! The ceiling is the API server's: it lets the service bind no role without the right to `bind` that very role, whatever
//! this code decides.

mod findings;
mod grant_requests;
mod grant_round;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use policy::FoundPolicy;
use policy::rbac::{GrantDemand, RoleSubject};
use prometheus::IntCounterVec;
use timer::{Backoff, Seed};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::event_recorder::{EventNotice, NoticeSender};
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;
use crate::lease::Leadership;
use crate::transitions::ObjectRef;
pub(super) use findings::GrantFindings;
use grant_requests::FailedRequest;
use grant_round::{GrantEvent, GrantRound, SettledRound};

/// Wait after a round that failed.
const ROUND_BACKOFF: Backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_mins(1) };
/// Longest wait that a server may ask for. 5 min.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(5);
/// Interval between two requests of a round that no new decision called for. 200 ms.
const GRANT_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which a standby looks whether it leads. 1 s.
const STANDBY_INTERVAL: Duration = Duration::from_secs(1);

/// What the administrator allows.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrantSettings {
    /// ClusterRoles that may be bound; none: nothing is granted, nor taken away.
    pub(crate) roles: Vec<String>,
    /// Where Events about policies go.
    pub(crate) notices: Option<NoticeSender>,
}

/// Binds listed roles to the own service account while policies need them.
pub(super) struct RightsGranter {
    settings: GrantSettings,
    client: kube::Client,
    leadership: Leadership,
    failures: FailureReporter,
    outcomes: IntCounterVec,
    seed: Seed,
    account: Option<RoleSubject>,
    /// What the next round is about.
    next: Option<GrantDemand>,
    /// What the last round was about, if all of it was done.
    settled: Option<GrantDemand>,
    under_way: Option<(GrantDemand, BoxFuture<'static, SettledRound>)>,
    findings: GrantFindings,
    /// Roles that were bound, with the policies to tell of it when the server knows of it: what they are told by may be
    /// among what was granted.
    untold: Vec<(String, BTreeSet<String>)>,
    /// Policies that each role was last bound for, or was needed by.
    needed_by: BTreeMap<String, BTreeSet<String>>,
    /// Uids of policies by name; of those that are gone as long as a role is bound for them.
    policies: BTreeMap<String, String>,
    /// Rounds in a row that failed.
    failed_rounds: u32,
    not_before: Instant,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrantResult {
    /// What the status of policies says of grants may have changed.
    Explained,
    /// The service has other rights now.
    RightsMoved,
}

impl RightsGranter {
    pub(super) fn new(
        context: &KindContext,
        settings: GrantSettings,
        leadership: Leadership,
    ) -> RightsGranter {
        RightsGranter {
            settings,
            client: context.client.clone(),
            leadership,
            failures: context.failures.clone(),
            outcomes: context.metrics.role_bindings.clone(),
            seed: context.seed,
            account: None,
            next: None,
            settled: None,
            under_way: None,
            findings: GrantFindings::default(),
            untold: Vec::new(),
            needed_by: BTreeMap::new(),
            policies: BTreeMap::new(),
            failed_rounds: 0,
            not_before: Instant::now(),
        }
    }

    /// What the last round found.
    pub(super) fn findings(&self) -> &GrantFindings {
        &self.findings
    }

    /// The rights of these policies have been reviewed. At rest that calls for nothing.
    pub(super) fn on_review<'p>(
        &mut self,
        demand: GrantDemand,
        policies: impl Iterator<Item = &'p FoundPolicy>,
    ) {
        if self.settings.roles.is_empty() {
            return;
        }
        let named = policies.map(|policy| (policy.name.clone(), policy.uid.clone()));
        let gone = std::mem::replace(&mut self.policies, named.collect());
        let bound_for: BTreeSet<&String> = self.needed_by.values().flatten().collect();
        for (name, uid) in gone.into_iter().filter(|(name, _)| bound_for.contains(name)) {
            self.policies.entry(name).or_insert(uid);
        }
        for (role, policies) in std::mem::take(&mut self.untold) {
            let note =
                format!("bound ClusterRole {role}, which --grant-roles lists, to Rollcall's service account");
            self.notify("RightsGranted", &note, &policies);
        }
        if demand.lacks_any() || self.settled.as_ref() != Some(&demand) {
            self.next = Some(demand);
        }
    }

    /// Waits for the end of a round. Never completes while there is nothing to be done, or another replica leads.
    pub(super) async fn next_result(&mut self) -> GrantResult {
        loop {
            if let Some((_, round)) = &mut self.under_way {
                let settled = round.await;
                return self.settle(settled);
            }
            if self.next.is_none() {
                return std::future::pending().await;
            }
            tokio::time::sleep_until(self.not_before).await;
            if !self.leadership.may_write() {
                // The next leader begins with what the cluster has then.
                tokio::time::sleep(STANDBY_INTERVAL).await;
                continue;
            }
            let again = self.failed_rounds > 0 || self.settled == self.next;
            let Some(demand) = self.next.take() else { continue };
            let round = GrantRound {
                client: self.client.clone(),
                leadership: self.leadership.clone(),
                roles: self.settings.roles.clone(),
                demand: demand.clone(),
                account: self.account.clone(),
                interval: if again { GRANT_INTERVAL } else { Duration::ZERO },
            };
            self.under_way = Some((demand, round.run().boxed()));
        }
    }

    fn settle(&mut self, round: SettledRound) -> GrantResult {
        let demand = self.under_way.take().map(|(demand, _)| demand);
        let moved = round.events.iter().any(|event| !matches!(event, GrantEvent::Failed { .. }));
        let retry_after = round.events.iter().filter_map(|event| match event {
            GrantEvent::Failed { failure, .. } => failure.retry_after,
            _ => None,
        });
        let retry_after = retry_after.max().unwrap_or_default().min(LONGEST_RETRY_AFTER);
        if round.events.iter().any(|event| matches!(event, GrantEvent::Failed { .. })) {
            self.failed_rounds = self.failed_rounds.saturating_add(1);
            let wait = ROUND_BACKOFF.delay_after(self.failed_rounds, self.seed, 0).max(retry_after);
            self.not_before = Instant::now() + wait;
        } else {
            self.failed_rounds = 0;
        }
        if round.complete {
            self.settled = demand;
        } else {
            self.next = self.next.take().or(demand);
        }
        self.account = round.account.or(self.account.take());
        for event in round.events {
            self.report(event);
        }
        if round.complete {
            // What a role is kept for that no policy needs any more is told to those that did.
            let before = std::mem::replace(&mut self.needed_by, round.roles);
            for (role, policies) in before {
                self.needed_by.entry(role).and_modify(|now| {
                    if now.is_empty() {
                        *now = policies;
                    }
                });
            }
        }
        self.findings.obstacles = round.obstacles;
        self.findings.ungranted = round.ungranted.or(self.findings.ungranted.take());
        if moved { GrantResult::RightsMoved } else { GrantResult::Explained }
    }

    /// Tells of it: a log line, an Event about each policy that it is for, and a metric.
    fn report(&mut self, event: GrantEvent) {
        match event {
            GrantEvent::Bound { role, policies } => {
                self.count("created");
                info!(role, policies = names_of(&policies), "bound a listed ClusterRole that policies need");
                self.untold.push((role, policies));
            }
            GrantEvent::Unbound { role } => {
                self.count("deleted");
                let policies = self.needed_by.remove(&role).unwrap_or_default();
                info!(
                    role,
                    bound_for = names_of(&policies),
                    "deleted the binding of a ClusterRole that no policy needs any more"
                );
                let note = format!(
                    "deleted the binding of ClusterRole {role}: no accepted policy needs it any more"
                );
                self.notify("RightsWithdrawn", &note, &policies);
            }
            GrantEvent::Failed { role, request, failure } => {
                self.count(if failure.status == Some(403) { "forbidden" } else { "failed" });
                let cause = format!("{request} {}", failure.cause());
                let FailedRequest { error, .. } = failure;
                self.failures.report("grant rights", cause, move |failures| {
                    warn!(
                        role,
                        request, error, failures, "cannot grant what policies need by a listed ClusterRole"
                    );
                });
            }
        }
    }

    /// Counts one of [`ROLE_BINDING_OUTCOMES`](crate::metrics::ROLE_BINDING_OUTCOMES).
    fn count(&self, outcome: &str) {
        self.outcomes.with_label_values(&[outcome]).inc();
    }

    fn notify(&self, reason: &'static str, note: &str, policies: &BTreeSet<String>) {
        let Some(notices) = &self.settings.notices else { return };
        for (name, uid) in policies.iter().filter_map(|name| self.policies.get_key_value(name)) {
            notices.send_notice(EventNotice {
                about: ObjectRef {
                    group: "rollcall.dev".to_owned(),
                    kind: "ReadinessPolicy".to_owned(),
                    namespace: String::new(),
                    name: name.clone(),
                },
                version: "v1alpha1".to_owned(),
                uid: uid.clone(),
                reason,
                note: note.to_owned(),
                warning: false,
            });
        }
    }
}

fn names_of(policies: &BTreeSet<String>) -> String {
    policies.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
