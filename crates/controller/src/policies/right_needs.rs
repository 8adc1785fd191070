//! Rights that policies need, and those that they hold on to.

use std::collections::BTreeSet;

use aggregator::Acceptance;
use policy::rbac::{AccessNeed, CrdNames, PolicyRights, access_needs, policy_rights, release_rights};
use policy::{CompiledPolicy, PolicyBook, Released};

use crate::kind_tasks::KindContext;

/// Where rights are needed, and what the resources of kinds are called.
pub(super) struct NeedScope<'c> {
    names: CrdNames,
    /// Group and kind of what was discovered.
    resolved: BTreeSet<(String, String)>,
    /// Namespaces that Rollcall is restricted to; empty for all.
    namespaces: &'c [String],
    /// Namespace of ReadinessRecords.
    records_namespace: &'c str,
}

impl NeedScope<'_> {
    pub(super) fn of_context(context: &KindContext) -> NeedScope<'_> {
        let (mut names, mut resolved) = (CrdNames::default(), BTreeSet::new());
        for kind in context.resolved.iter() {
            names.add_kind(&kind.api.group, &kind.api.kind, &kind.api.plural, kind.api.has_status);
            resolved.insert((kind.api.group.clone(), kind.api.kind.clone()));
        }
        let records_namespace = &context.records.namespace;
        NeedScope { names, resolved, namespaces: &context.namespaces, records_namespace }
    }

    fn needs(&self, rights: &PolicyRights) -> Vec<AccessNeed> {
        access_needs(rights, self.namespaces, self.records_namespace)
    }
}

/// Rights, each with the name of the policy that it is for.
#[derive(Default)]
pub(super) struct RightNeeds {
    /// What the policies in force need.
    pub(super) needed: Vec<(String, AccessNeed)>,
    /// What is to be held on to, but is not asked for: it serves policies that are refused now, and the removal of entries that
    /// policies left.
    pub(super) held: Vec<(String, AccessNeed)>,
    /// API groups of their kinds that were not discovered yet.
    pub(super) unresolved_groups: BTreeSet<String>,
}

impl RightNeeds {
    /// A policy that is refused is granted nothing and loses nothing: neither what it was accepted with, nor, where nobody can
    /// read that any more, what it takes to take its Trues back.
    pub(super) fn of_policies(book: &PolicyBook, released: &Released, scope: &NeedScope<'_>) -> RightNeeds {
        let mut needs = RightNeeds::default();
        // Groups are written by whoever may: nothing is granted for them, and they say themselves which kind they may not see.
        for policy in book.in_use.iter().filter(|policy| policy.compiled.shape.is_none()) {
            let is_held = policy.acceptance != Acceptance::Accepted;
            needs.add_policy(&policy.name, &policy.compiled, is_held, scope);
        }
        for (name, compiled) in book.set_aside.iter().filter(|(_, compiled)| compiled.shape.is_none()) {
            needs.add_policy(name, compiled, true, scope);
        }
        for (group, kind) in released.keys() {
            needs.look_up(group, kind, scope);
            let of_kind = scope.needs(&release_rights(group, kind, &scope.names));
            needs.held.extend(of_kind.into_iter().map(|need| (String::new(), need)));
        }
        needs
    }

    fn add_policy(&mut self, name: &str, policy: &CompiledPolicy, is_held: bool, scope: &NeedScope<'_>) {
        self.look_up(&policy.parent.group, &policy.parent.kind, scope);
        policy.groups.iter().for_each(|group| self.look_up(&group.kind.group, &group.kind.kind, scope));
        let of_policy = scope.needs(&policy_rights(policy, &scope.names));
        let rights = if is_held { &mut self.held } else { &mut self.needed };
        rights.extend(of_policy.into_iter().map(|need| (name.to_owned(), need)));
    }

    fn look_up(&mut self, group: &str, kind: &str, scope: &NeedScope<'_>) {
        if !scope.resolved.contains(&(group.to_owned(), kind.to_owned())) {
            self.unresolved_groups.insert(group.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
