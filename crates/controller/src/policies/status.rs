//! What a policy is told: `Accepted`, `Watching`, `Ready`, and how many parents it has. At most every ten seconds,
//! except where the answer itself moves.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::KindState;
use api::ReadinessPolicyStatus;
use api::policy::PolicyCondition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use readiness::Time;
use tracing::{debug, warn};
use watcher::status::{MANAGER, time};

use super::{Found, InUse, Refused, belongs_to_others};
use crate::clock::ServerClock;
use crate::lease::Mandate;
use crate::snapshot::{PolicyNumbers, Snapshot};

/// Numbers go out at most so often.
const EVERY: Duration = Duration::from_secs(10);

/// Writes the status of policies.
pub(super) struct StatusWriter {
    api: Api<api::ReadinessPolicy>,
    clock: ServerClock,
    written: BTreeMap<String, (ReadinessPolicyStatus, Time)>,
    again: Option<Time>,
    mandate: Mandate,
}

impl StatusWriter {
    pub(super) fn new(client: &kube::Client, clock: ServerClock, mandate: Mandate) -> Self {
        StatusWriter { api: Api::all(client.clone()), clock, written: BTreeMap::new(), again: None, mandate }
    }

    /// When numbers that were held back may go out.
    pub(super) async fn due(&self) {
        match self.again {
            Some(at) => tokio::time::sleep(at - self.clock.now()).await,
            None => std::future::pending().await,
        }
    }

    pub(super) async fn write(
        &mut self,
        found: &BTreeMap<String, Found>,
        refused: &BTreeMap<String, Refused>,
        in_use: &[InUse],
        snapshot: &Snapshot,
    ) {
        self.again = None;
        if !self.mandate.holds() {
            // Whoever writes now: what it wrote is in what was found.
            self.written.clear();
            return;
        }
        let now = self.clock.now();
        self.written.retain(|name, _| found.contains_key(name));
        for policy in found.values() {
            let used = in_use.iter().find(|p| p.name == policy.name);
            // The loop has not heard of the plan yet: its numbers are of the one before.
            let numbers = snapshot.policies.get(&policy.name);
            if used.is_some() && numbers.is_none() {
                continue;
            }
            let (old, at) =
                self.written.get(&policy.name).cloned().unwrap_or((policy.status.clone(), Time::default()));
            let status = status(policy, refused.get(&policy.name), used, numbers, snapshot, &old, now);
            if status == old {
                continue;
            }
            let only_numbers =
                ReadinessPolicyStatus { parents: old.parents, ready: old.ready, ..status.clone() } == old;
            if only_numbers && at + EVERY > now {
                self.again = Some(self.again.map_or(at + EVERY, |again| again.min(at + EVERY)));
                continue;
            }
            self.send(&policy.name, status, now).await;
        }
    }

    async fn send(&mut self, name: &str, status: ReadinessPolicyStatus, now: Time) {
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match self.api.patch_status(name, &params, &patch).await {
            Ok(_) => _ = self.written.insert(name.to_owned(), (status, now)),
            Err(kube::Error::Api(error)) if error.code == 404 => debug!(policy = name, "gone"),
            Err(error) => {
                warn!(policy = name, %error, "failed to patch status of the policy");
                self.again = Some(now + EVERY);
            }
        }
    }
}

fn status(
    policy: &Found,
    refused: Option<&Refused>,
    used: Option<&InUse>,
    numbers: Option<&PolicyNumbers>,
    snapshot: &Snapshot,
    old: &ReadinessPolicyStatus,
    now: Time,
) -> ReadinessPolicyStatus {
    let condition = |kind: &str, (status, reason, message): (bool, &str, String)| {
        let status = if status { "True" } else { "False" };
        let held = old.conditions.iter().find(|c| c.r#type == kind && c.status == status);
        PolicyCondition {
            r#type: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: held.map_or_else(|| time::format(now), |c| c.last_transition_time.clone()),
            observed_generation: Some(policy.generation),
        }
    };
    let accepted = accepted(refused, used);
    let watching = used.map_or((false, "NotAccepted", String::new()), |used| watching(used, snapshot));
    let ready = match (accepted.0, watching.0, numbers) {
        (true, true, Some(numbers)) if numbers.synced => ready(numbers),
        (true, true, _) => (false, "Listing", "the initial lists are not through".to_owned()),
        (true, false, _) => (false, "NotWatching", watching.2.clone()),
        (false, ..) => (false, "NotAccepted", accepted.2.clone()),
    };
    ReadinessPolicyStatus {
        conditions: vec![
            condition("Accepted", accepted),
            condition("Watching", watching),
            condition("Ready", ready),
        ],
        observed_generation: Some(policy.generation),
        parents: numbers.map(|n| n.parents as i64),
        ready: numbers.map(|n| n.ready as i64),
    }
}

fn accepted(refused: Option<&Refused>, used: Option<&InUse>) -> (bool, &'static str, String) {
    match (refused, used) {
        (Some(Refused { reason, why }), _) => (false, reason, why.clone()),
        (None, Some(used)) if used.compiled.shadow => {
            let parent = &used.compiled.parent;
            let whose = if belongs_to_others(&parent.group) {
                format!("the status of a {} is not for others to write: ", parent.kind)
            } else {
                String::new()
            };
            (true, "Shadow", format!("{whose}computed and exported, nothing is written"))
        }
        (None, _) => (true, "Accepted", String::new()),
    }
}

/// Which of its kinds are not seen, and what to do about each.
fn watching(used: &InUse, snapshot: &Snapshot) -> (bool, &'static str, String) {
    let compiled = &used.compiled;
    let mut wanted: Vec<(&str, &str)> = vec![(&compiled.parent.group, &compiled.parent.kind)];
    wanted.extend(compiled.groups.iter().map(|g| (g.kind.group.as_str(), g.kind.kind.as_str())));
    wanted.extend(compiled.remembers().then_some(super::plan::RECORDS));
    wanted.sort_unstable();
    wanted.dedup();
    let (mut absent, mut forbidden, mut stale) = (Vec::new(), Vec::new(), Vec::new());
    for (group, kind) in wanted {
        let label = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        match snapshot.kinds.values().find(|k| k.label == label).map(|k| k.state) {
            Some(KindState::Absent) => absent.push(label),
            Some(KindState::Forbidden) => forbidden.push((group, kind)),
            Some(KindState::Stale) => stale.push(label),
            _ => {}
        }
    }
    if !forbidden.is_empty() {
        let rules = forbidden.iter().map(|(group, kind)| {
            let plural = crate::rbac::plural(kind);
            let writes = if (*group, *kind) == super::plan::RECORDS { ", \"create\", \"patch\", \"delete\"" } else { "" };
            format!("{{apiGroups: [\"{group}\"], resources: [\"{plural}\"], verbs: [\"get\", \"list\", \"watch\"{writes}]}}")
        });
        let rules = rules.collect::<Vec<_>>().join(", ");
        return (false, "Forbidden", format!("add to Rollcall's role: {rules}"));
    }
    if !stale.is_empty() {
        return (false, "Stale", format!("neither watched nor listed for two minutes: {}", stale.join(", ")));
    }
    if !absent.is_empty() {
        return (
            false,
            "NotInstalled",
            format!("waiting for kinds that are not installed: {}", absent.join(", ")),
        );
    }
    (true, "Watching", String::new())
}

fn ready(numbers: &PolicyNumbers) -> (bool, &'static str, String) {
    let mut words = Vec::new();
    if !numbers.owned.is_empty() {
        let owners = numbers.owned.iter().map(|(owner, n)| match owner.as_str() {
            "" => format!("{n} parents"),
            owner => format!("{n} parents by {owner}"),
        });
        let owners = owners.collect::<Vec<_>>().join(", ");
        words.push(format!(
            "the condition belongs to somebody else on {owners}: set spec.condition.fallback or takeover"
        ));
    }
    if !numbers.yielding.is_empty() {
        let rivals = numbers.yielding.iter().map(|(rivals, n)| match rivals.as_str() {
            "" => format!("{n} parents"),
            rivals => format!("{n} parents where {rivals} writes conditions too"),
        });
        let rivals = rivals.collect::<Vec<_>>().join(", ");
        words.push(format!(
            "the condition keeps being overwritten on {rivals}: it is written ever more rarely, in the end once a minute, or under spec.condition.fallback"
        ));
    }
    if numbers.pruned > 0 {
        words.push(format!(
            "{} parents cannot hold the condition: the schema of their CRD drops status.conditions; it has to declare them",
            numbers.pruned
        ));
    }
    let reason = match (numbers.owned.is_empty(), numbers.pruned, numbers.yielding.values().sum::<u64>()) {
        (false, ..) => "ConditionOwned",
        (true, 1.., _) => "ConditionPruned",
        (true, 0, 1..) => "Yielding",
        (true, 0, 0) => "Synced",
    };
    (true, reason, words.join("; "))
}
