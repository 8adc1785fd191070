//! What becomes of each policy.

use policy::{FoundPolicy, GroupSelection, PolicyBook};
use serde::Serialize;

/// A policy that would be applied or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlannedPolicyChange {
    pub(super) name: String,
    pub(super) change: PolicyChangeKind,
    /// Why the service would refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// Generation of the accepted spec that would stay in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) in_force: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum PolicyChangeKind {
    New,
    Changed,
    Deleted,
    /// It gives way, or need not any more, because another one changes.
    Affected,
}

impl PlannedPolicyChange {
    /// One line for people.
    pub(super) fn to_line(&self) -> String {
        let change = match self.change {
            PolicyChangeKind::New => "new",
            PolicyChangeKind::Changed => "changed",
            PolicyChangeKind::Deleted => "deleted",
            PolicyChangeKind::Affected => "affected by another one",
        };
        let refused = self.refused.as_ref().map_or_else(String::new, |why| {
            let stays = self.in_force.map_or_else(
                || "nothing of it is in force".to_owned(),
                |generation| format!("generation {generation} stays in force"),
            );
            format!("; it would be refused: {why}; {stays}")
        });
        format!("policy {}: {change}{refused}", self.name)
    }
}

/// Returns what becomes of each policy that is not left as it is; each set with what was decided of it.
pub(super) fn list_changes(
    (before, now_decided): (&[FoundPolicy], &PolicyBook),
    (after, decided): (&[FoundPolicy], &PolicyBook),
) -> Vec<PlannedPolicyChange> {
    let refusal = |name: &str| decided.refused.get(name).map(|refused| refused.why.clone());
    let is_affected =
        |name: &str| decided.refused.contains_key(name) != now_decided.refused.contains_key(name);
    let change = |name: &str, change: PolicyChangeKind| PlannedPolicyChange {
        name: name.to_owned(),
        change,
        refused: refusal(name),
        in_force: decided.accepted.get(name).map(|accepted| accepted.generation),
    };
    // What stands for groups that cannot be judged is no policy to anybody: these groups say it themselves.
    let is_shown = |policy: &&FoundPolicy| !policy.groups.as_ref().is_some_and(GroupSelection::is_refused);
    let mut changes = Vec::new();
    for policy in after.iter().filter(is_shown) {
        let held = before.iter().find(|held| held.name == policy.name);
        let kind = match held {
            None => PolicyChangeKind::New,
            Some(held) if held.spec != policy.spec => PolicyChangeKind::Changed,
            Some(_) if is_affected(&policy.name) => PolicyChangeKind::Affected,
            Some(_) => continue,
        };
        changes.push(change(&policy.name, kind));
    }
    let gone =
        before.iter().filter(is_shown).filter(|held| !after.iter().any(|policy| policy.name == held.name));
    changes.extend(gone.map(|policy| change(&policy.name, PolicyChangeKind::Deleted)));
    changes.sort_by(|a, b| a.name.cmp(&b.name));
    changes
}
