//! The conditions that policies write, by the kind of their parents, as other tools have to read them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::ensure;
use api::ReadinessGroup;
use kube::Resource;
use policy::{CompiledPolicy, FoundPolicy, is_status_owned_by_others};
use readiness::rollup::ParentReason;

use crate::eval;
use crate::limits::STUCK_AFTER;
use crate::text::print_error_line;

/// Reason of an answer that is True.
pub(super) const READY_REASON: &str = ParentReason::AllChildrenReady.as_str();
/// Reasons that stay until someone acts. Beside `Ready` the condition `Stalled` says so; beside other types the reason has to.
pub(super) const TERMINAL_REASONS: [&str; 6] = [
    ParentReason::ChildrenFailed.as_str(),
    ParentReason::ChildrenStuck.as_str(),
    ParentReason::DeadlineExceeded.as_str(),
    ParentReason::DeletionStuck.as_str(),
    ParentReason::OperatorFailed.as_str(),
    ParentReason::OperatorSilent.as_str(),
];

/// A condition that Rollcall may write on a kind of parent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConditionAnswer {
    pub(super) condition: String,
    pub(super) fallback: Option<String>,
    /// The policy applies to every parent of the kind: without its condition the health is unknown.
    pub(super) always: bool,
}

impl ConditionAnswer {
    /// The types of which one carries the answer.
    pub(super) fn types(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.condition).chain(self.fallback.as_deref())
    }
}

/// A policy, or a group, that answers for parents of a kind.
#[derive(Debug)]
pub(super) struct AnsweringPolicy {
    /// Its name in metrics: groups that select alike share one.
    pub(super) label: String,
    /// The name of the object.
    pub(super) name: String,
    /// The namespace of a group; empty where its manifest names none.
    pub(super) group_namespace: Option<String>,
}

impl AnsweringPolicy {
    fn of(found: FoundPolicy) -> AnsweringPolicy {
        let group = found.groups.as_ref().and_then(|groups| groups.group());
        AnsweringPolicy {
            group_namespace: found
                .groups
                .is_some()
                .then(|| group.and_then(|group| group.namespace.as_deref()).unwrap_or_default().to_owned()),
            name: group.map_or_else(|| found.name.clone(), |group| group.name.to_string()),
            label: found.name,
        }
    }
}

/// What policies write on the parents of one kind.
#[derive(Debug, Default)]
pub(super) struct KindAnswers {
    /// The version that a policy asks for, or in which Rollcall serves its own kind.
    pub(super) version: Option<String>,
    pub(super) policies: Vec<AnsweringPolicy>,
    pub(super) conditions: Vec<ConditionAnswer>,
}

/// Returns the kinds (group and kind) on which these policies write, with their conditions. Reports policies that write
/// nothing.
pub(super) fn answers_by_kind(files: &[PathBuf]) -> anyhow::Result<BTreeMap<(String, String), KindAnswers>> {
    answers_of_policies(eval::read_policies(files, STUCK_AFTER)?)
}

/// The same of policies that were compiled already.
pub(super) fn answers_of_policies(
    policies: Vec<(FoundPolicy, CompiledPolicy)>,
) -> anyhow::Result<BTreeMap<(String, String), KindAnswers>> {
    let mut kinds: BTreeMap<_, KindAnswers> = BTreeMap::new();
    for (found, policy) in policies {
        let name = &found.name;
        let (group, kind) = (&policy.parent.group, &policy.parent.kind);
        if policy.shadow {
            let why = if is_status_owned_by_others(group) {
                "Rollcall never writes to such parents"
            } else {
                "it is in `mode: shadow`"
            };
            print_error_line(&format!("policy {name}: nothing to read, because {why}"));
            continue;
        }
        let plain =
            |text: &str, also: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c));
        ensure!(plain(group, ".-") && plain(kind, ""), "policy {name}: {kind}.{group} is not a kind");
        let answers = kinds.entry((group.clone(), kind.clone())).or_default();
        let own_version = || policy.shape.is_some().then(|| ReadinessGroup::version(&()).into_owned());
        let version = answers.version.take().or_else(|| policy.parent.version.clone());
        answers.version = version.or_else(own_version);
        add_condition(&mut answers.conditions, &policy);
        answers.policies.push(AnsweringPolicy::of(found));
    }
    Ok(kinds)
}

fn add_condition(conditions: &mut Vec<ConditionAnswer>, policy: &CompiledPolicy) {
    let always = policy.selector.requirements.is_empty() && policy.namespace_selector.is_none();
    let (condition, fallback) = (&policy.condition, &policy.fallback);
    if let Some(same) = conditions.iter_mut().find(|a| a.condition == *condition && a.fallback == *fallback) {
        same.always |= always;
        return;
    }
    let (condition, fallback) = (condition.clone(), fallback.clone());
    conditions.push(ConditionAnswer { condition, fallback, always });
}
