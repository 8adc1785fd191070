//! Conditions `Accepted`, `Watching` and `Ready` of a policy: what became of it, and what keeps it from being carried
//! out, with the command that mends it.

use std::collections::BTreeMap;

use aggregator::KindState;
use api::ReadinessPolicyStatus;
use api::policy::PolicyCondition;
use policy::rbac::AccessNeed;
use policy::{
    AcceptedSpec, CompiledPolicy, FoundPolicy, PolicyInUse, PolicyReason, RECORD_KIND, RefusedPolicy,
    is_status_owned_by_others,
};
use readiness::Time;
use rollcall_core::FindingCounts;
use watcher::ApiFailureCause;
use watcher::reflector::RuleSuspension;
use watcher::status::time;

use super::grants::GrantFindings;
use super::rights::RightsFindings;
use super::rights_text::describe_rights;
use crate::kind_tasks::RecordsTrouble;
use crate::snapshot::{LeftParents, PolicyNumbers, StatsSnapshot};

/// Maximum number of lines about missing rights in the message of a condition.
const MAX_RIGHTS_IN_MESSAGE: usize = 6;

/// What was decided about a policy.
pub(super) struct DecidedPolicy<'b> {
    pub(super) refused: Option<&'b RefusedPolicy>,
    pub(super) accepted: Option<&'b AcceptedSpec>,
    pub(super) used: Option<&'b PolicyInUse>,
    pub(super) missing: MissingRights,
    pub(super) records: Option<&'b RecordsTrouble>,
}

/// Rights that a policy lacks, in words.
#[derive(Default)]
pub(super) struct MissingRights {
    /// Without which kinds cannot be watched.
    watch: RightsInWords,
    /// Without which answers cannot be written or outcomes not be kept.
    write: RightsInWords,
    /// Without which only explanations are missing.
    explain: RightsInWords,
    /// The command that grants them.
    command: String,
}

/// Some of them.
#[derive(Default)]
struct RightsInWords {
    lines: Vec<String>,
    /// Why the service does not grant them itself.
    ungranted: Option<String>,
}

impl MissingRights {
    pub(super) fn of_policy(policy: &str, rights: &RightsFindings, grants: &GrantFindings) -> MissingRights {
        let words = |chosen: fn(&AccessNeed) -> bool| {
            let needs: Vec<_> =
                rights.lacking_for(policy).iter().filter(|need| chosen(need)).cloned().collect();
            RightsInWords { lines: describe_rights(&needs), ungranted: grants.explain(policy, &needs) }
        };
        MissingRights {
            watch: words(|need| need.essential && is_read(need)),
            write: words(|need| need.essential && !is_read(need)),
            explain: words(|need| !need.essential),
            command: rights.granting_command(policy),
        }
    }

    fn all(&self) -> Vec<String> {
        let words = [&self.watch, &self.write, &self.explain];
        words.into_iter().flat_map(|words| &words.lines).cloned().collect()
    }

    /// Which rights lack, and what grants them.
    fn message(&self, rights: &RightsInWords) -> String {
        let shown: Vec<&str> = rights.lines.iter().take(MAX_RIGHTS_IN_MESSAGE).map(String::as_str).collect();
        let more = rights.lines.len().saturating_sub(shown.len());
        let more = if more > 0 { format!("; and {more} more (status.missingRights)") } else { String::new() };
        let ungranted = rights.ungranted.as_ref().map_or_else(String::new, |why| format!("; {why}"));
        format!("not permitted: {}{more}{ungranted}; grant it with `{}`", shown.join("; "), self.command)
    }
}

fn is_read(need: &AccessNeed) -> bool {
    matches!(need.verb, "get" | "list" | "watch")
}

/// What a condition says: whether it is true, why, and in words.
type ConditionOutcome = (bool, PolicyReason, String);

/// The whole status of a policy.
pub(super) fn policy_status(
    policy: &FoundPolicy,
    decided: &DecidedPolicy<'_>,
    numbers: Option<&PolicyNumbers>,
    snapshot: &StatsSnapshot,
    old: &ReadinessPolicyStatus,
    now: Time,
) -> ReadinessPolicyStatus {
    let condition = |kind: &str, (status, reason, message): ConditionOutcome| {
        let status = if status { "True" } else { "False" };
        let held = old.conditions.iter().find(|c| c.r#type == kind && c.status == status);
        PolicyCondition {
            r#type: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.as_str().to_owned(),
            message,
            last_transition_time: held
                .map_or_else(|| time::format_seconds(now), |c| c.last_transition_time.clone()),
            observed_generation: Some(policy.generation),
        }
    };
    let DecidedPolicy { used, .. } = *decided;
    let accepted = accepted_condition(policy, decided);
    let watching = used.map_or((false, PolicyReason::NotAccepted, String::new()), |used| {
        watching_condition(used, snapshot, &decided.missing)
    });
    let ready = match (accepted.0, watching.0, numbers) {
        (true, true, _) if !decided.missing.write.lines.is_empty() => {
            (false, PolicyReason::Forbidden, decided.missing.message(&decided.missing.write))
        }
        (true, true, Some(numbers)) if numbers.synced => {
            ready_condition(numbers, &decided.missing, decided.records)
        }
        (true, true, _) => (false, PolicyReason::Listing, listing_text(used, snapshot)),
        (true, false, _) => (false, PolicyReason::NotWatching, watching.2.clone()),
        (false, ..) => (false, PolicyReason::NotAccepted, accepted.2.clone()),
    };
    let mut conditions =
        vec![condition("Accepted", accepted), condition("Watching", watching), condition("Ready", ready)];
    let left = numbers.map(|numbers| &numbers.left).filter(|left| left.count > 0);
    conditions.extend(left.map(|left| condition("Conflicted", conflicted_condition(left))));
    let hidden = numbers.map_or(0, |numbers| numbers.findings.hidden_outcomes);
    if hidden > 0 && used.is_some_and(|used| used.compiled.proof.is_none()) {
        conditions.push(condition("OutcomesHidden", hidden_outcomes_condition(hidden)));
    }
    ReadinessPolicyStatus {
        conditions,
        observed_generation: Some(policy.generation),
        // What is not understood here may be by another release: it is not taken away.
        accepted_generation: decided.accepted.map(|a| a.generation).or(old.accepted_generation),
        accepted: decided.accepted.map(|a| (*a.kept).clone()).or_else(|| old.accepted.clone()),
        // Who has the policy is said beside.
        accepted_by: BTreeMap::new(),
        missing_rights: decided.missing.all(),
        parents: numbers.map(|n| i64::try_from(n.parents).unwrap_or(i64::MAX)),
        ready: numbers.map(|n| i64::try_from(n.ready).unwrap_or(i64::MAX)),
    }
}

/// Which of the policy's kinds are not listed yet.
fn listing_text(used: Option<&PolicyInUse>, snapshot: &StatsSnapshot) -> String {
    let wanted = used.into_iter().flat_map(|used| watched_kinds(&used.compiled));
    let mut listing: Vec<String> = wanted.map(|(group, kind)| kind_label(group, kind)).collect();
    listing.retain(|label| {
        snapshot.kinds.values().any(|kind| kind.label == *label && kind.state == KindState::Listing)
    });
    match listing.join(", ") {
        none if none.is_empty() => "the initial lists are not complete".to_owned(),
        kinds => format!("the initial lists are not complete: {kinds}; /readyz says more"),
    }
}

/// Parents that the policy selects and leaves to an older one; there only where there are such.
fn conflicted_condition(left: &LeftParents) -> ConditionOutcome {
    let named = left.named.iter().map(|(parent, ruling)| format!("{parent} (by {ruling})"));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = left.count.saturating_sub(left.named.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "{} parents are ruled by an older policy that selects them too: {named}{more}; choose others by spec.parent.selector",
        left.count
    );
    (true, PolicyReason::RuledByOlderPolicy, message)
}

/// Parents of whose operator no failure can be seen; there only where there are such, and the policy asks for no proof.
fn hidden_outcomes_condition(parents: u64) -> ConditionOutcome {
    let message = format!(
        "the failures of this operator are invisible: Kopf leaves the same mark on a parent whether its handlers succeeded or \
         failed for good, and nothing beside it shows which on {parents} of them; keep outcomes with rollcall_kopf.py \
         (deploy/examples/kopf), or set spec.proof"
    );
    (true, PolicyReason::NoOutcomeKept, message)
}

fn accepted_condition(policy: &FoundPolicy, decided: &DecidedPolicy<'_>) -> ConditionOutcome {
    match (decided.refused, decided.used) {
        (Some(RefusedPolicy { reason, why }), Some(_)) => {
            let older = decided.accepted.filter(|accepted| accepted.generation != policy.generation);
            let stays = older.map(|a| format!("; generation {} stays in force", a.generation));
            (false, *reason, format!("{why}{}", stays.unwrap_or_default()))
        }
        (Some(RefusedPolicy { reason, why }), None) => (false, *reason, why.clone()),
        (None, Some(used)) if used.compiled.shadow => {
            let parent = &used.compiled.parent;
            let whose = if is_status_owned_by_others(&parent.group) {
                format!("the status of {} objects is not for others to write: ", parent.kind)
            } else {
                String::new()
            };
            (true, PolicyReason::Shadow, format!("{whose}computed and exported, nothing is written"))
        }
        (None, _) => (true, PolicyReason::Accepted, String::new()),
    }
}

/// Groups and kinds that a policy needs, each once.
fn watched_kinds(compiled: &CompiledPolicy) -> Vec<(&str, &str)> {
    let mut wanted: Vec<(&str, &str)> = vec![(&compiled.parent.group, &compiled.parent.kind)];
    wanted.extend(compiled.groups.iter().map(|g| (g.kind.group.as_str(), g.kind.kind.as_str())));
    wanted.extend(compiled.remembers_outcomes().then_some(RECORD_KIND));
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// `Deployment.apps`, or `Pod`.
fn kind_label(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// Kinds that cannot be watched, with a remedy for each.
fn watching_condition(
    used: &PolicyInUse,
    snapshot: &StatsSnapshot,
    missing: &MissingRights,
) -> ConditionOutcome {
    let compiled = &used.compiled;
    let (mut absent, mut forbidden, mut stale) = (Vec::new(), Vec::new(), Vec::new());
    for (group, kind) in watched_kinds(compiled) {
        let label = kind_label(group, kind);
        let Some(numbers) = snapshot.kinds.values().find(|kind| kind.label == label) else { continue };
        match numbers.state {
            KindState::Absent => absent.push(label),
            KindState::Forbidden => forbidden.push(label),
            KindState::Stale => stale.push(stale_words(&label, numbers.trouble.as_deref())),
            _ => {}
        }
    }
    if !missing.watch.lines.is_empty() {
        return (false, PolicyReason::Forbidden, missing.message(&missing.watch));
    }
    if !forbidden.is_empty() {
        // The server has not said yet which right it is.
        let kinds = forbidden.join(", ");
        let what = format!("not permitted to list and watch {kinds}; grant it with `{}`", missing.command);
        return (false, PolicyReason::Forbidden, what);
    }
    if !stale.is_empty() {
        return (
            false,
            PolicyReason::Stale,
            format!("watch and list have failed for two minutes: {}", stale.join(", ")),
        );
    }
    if !absent.is_empty() {
        return (
            false,
            PolicyReason::NotInstalled,
            format!("waiting for kinds that are not installed: {}", absent.join(", ")),
        );
    }
    (true, PolicyReason::Watching, String::new())
}

/// A kind that is stale. Where it is not served as it should be, that is what there is to mend; the words of a failure change too
/// often for a status.
fn stale_words(label: &str, trouble: Option<&str>) -> String {
    let is_elsewhere = ApiFailureCause::NotInstalled.metric_label();
    let why = trouble.and_then(|trouble| trouble.strip_prefix(is_elsewhere)?.strip_prefix(": "));
    why.map_or_else(|| label.to_owned(), |why| format!("{label} ({why})"))
}

/// A rule that is not evaluated for a while. How many objects, and when it is over, is left out: a status that
/// ticks is written again and again.
fn slow_rule_words(group: u8, suspension: RuleSuspension) -> String {
    let on = match suspension {
        RuleSuspension { entirely: true, .. } => String::new(),
        RuleSuspension { objects: 0, .. } => {
            return format!(
                "the rule of spec.children[{group}].ready does not keep up with its objects, some of which have waited for \
                 it for more than half a minute: let it do less"
            );
        }
        RuleSuspension { objects: 1, .. } => " on one object".to_owned(),
        _ => " on some objects".to_owned(),
    };
    format!(
        "the rule of spec.children[{group}].ready exceeded its limits several times in a row and is not evaluated for a \
         while{on}: let it do less"
    )
}

/// What keeps parents from being told, or told undisturbed, each with what mends it.
fn finding_words(findings: &FindingCounts) -> Vec<String> {
    let mut words = Vec::new();
    if !findings.owned.is_empty() {
        let owners = findings.owned.iter().map(|(owner, n)| match &**owner {
            "" => format!("{n} parents"),
            owner => format!("{n} parents by {owner}"),
        });
        let owners = owners.collect::<Vec<_>>().join(", ");
        let otherwise = match findings.owner_disagreeing {
            0 => String::new(),
            some => format!(" ({some} of them say otherwise than their children)"),
        };
        words.push(format!(
            "the condition is owned by another field manager on {owners}{otherwise}: set spec.condition.fallback or takeover"
        ));
    }
    if !findings.yielding.is_empty() {
        let rivals = findings.yielding.iter().map(|(rivals, n)| match &**rivals {
            "" => format!("{n} parents"),
            rivals => format!("{n} parents where {rivals} writes conditions too"),
        });
        let rivals = rivals.collect::<Vec<_>>().join(", ");
        words.push(format!(
            "the condition is repeatedly overwritten on {rivals}: Rollcall backs off to one write \
             a minute; set spec.condition.fallback to use another type"
        ));
    }
    if findings.pruned > 0 {
        words.push(format!(
            "{} parents cannot store the condition: their CRD's schema prunes status.conditions (declare the field there), an \
             admission webhook takes them away, or what stands there is no list of conditions (rollcall doctor names it)",
            findings.pruned
        ));
    }
    if findings.refused > 0 {
        words.push(format!(
            "{} parents cannot be told: the API server, or an admission policy or webhook, refuses the condition, for the reason \
             that the log quotes; a CRD's schema has to have status.conditions as a list of conditions",
            findings.refused
        ));
    }
    if findings.failing > 0 {
        words.push(format!(
            "{} parents cannot be told: writes to them keep failing, for the reason that the log quotes",
            findings.failing
        ));
    }
    words
}

fn ready_condition(
    numbers: &PolicyNumbers,
    missing: &MissingRights,
    records: Option<&RecordsTrouble>,
) -> ConditionOutcome {
    if let Some(RecordsTrouble { reason, message }) = records {
        return (false, *reason, message.clone());
    }
    let mut words = Vec::new();
    if !missing.explain.lines.is_empty() {
        words.push(format!("explanations are incomplete: {}", missing.message(&missing.explain)));
    }
    words.extend(finding_words(&numbers.findings));
    words.extend(
        numbers.suspended_rules.iter().map(|(group, suspension)| slow_rule_words(*group, *suspension)),
    );
    if numbers.suspended_rules.values().any(|suspension| suspension.entirely) {
        return (false, PolicyReason::RuleTooSlow, words.join("; "));
    }
    let findings = &numbers.findings;
    let reason = match () {
        () if !findings.owned.is_empty() => PolicyReason::ConditionOwned,
        () if findings.refused > 0 => PolicyReason::ConditionRefused,
        () if findings.pruned > 0 => PolicyReason::ConditionPruned,
        () if findings.failing > 0 => PolicyReason::WritesFailing,
        () if !findings.yielding.is_empty() => PolicyReason::Yielding,
        () if !numbers.suspended_rules.is_empty() => PolicyReason::RuleTooSlow,
        () => PolicyReason::Synced,
    };
    (true, reason, words.join("; "))
}

#[cfg(test)]
mod tests;
