//! Plan for following one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::KindId;
use tracing::warn;
use watcher::plan::{AssessmentRule, ChildRule, FindChildrenBy, Interest, OutcomeRetention, UserRule};

use super::groups::CompiledGroup;
use super::library_rules::LibraryRules;
use super::policy_in_use::{KindKey, PolicyInUse};
use super::ready_rule::GroupRule;

/// What has to be read before the objects of a kind are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedInput {
    /// A script library that judges the kind.
    Scripts,
    /// The labels of namespaces, by which parents of the kind are chosen.
    NamespaceLabels,
}

/// Plan for following one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindPlan {
    /// Its id.
    pub id: KindId,
    /// Group and kind.
    pub key: KindKey,
    /// Version to follow; `None` for the preferred one.
    pub version: Option<String>,
    /// What has to be read before the kind is followed, if anything.
    pub awaits: Option<AwaitedInput>,
    /// Interest of the reflector in the kind; `counted` is set once the kind was resolved.
    pub interest: Interest,
    /// Kinds named in records, if this is the kind of Rollcall's own records.
    pub records: Option<BTreeMap<KindKey, KindId>>,
}

impl KindPlan {
    pub(super) fn add_child(
        &mut self,
        policy: &PolicyInUse,
        group: &CompiledGroup,
        libraries: &dyn LibraryRules,
    ) {
        if let Some(GroupRule::Library(name)) = &group.rule
            && !libraries.is_read(name)
        {
            self.awaits.get_or_insert(AwaitedInput::Scripts);
        }
        let rule = group.rule.as_ref().map(|rule| {
            let (rule, source) = match rule {
                GroupRule::Own { rule, source } => (Arc::clone(rule), Arc::clone(source)),
                GroupRule::Library(name) => libraries.library_rule(name),
            };
            let version = group.kind.version.as_deref().unwrap_or_default();
            let of = (version.into(), group.kind.kind.as_str().into());
            UserRule { rule, source, shared_by: policy.compiled.rule_sharing(), of }
        });
        let judged_by = AssessmentRule {
            limits: policy.compiled.limits,
            rule,
            remembers_outcome: group.after != OutcomeRetention::Forget,
        };
        let known = self.interest.assessment_rules.iter().position(|l| *l == judged_by);
        let Ok(at) = u16::try_from(known.unwrap_or(self.interest.assessment_rules.len())) else {
            // It is refused before it comes here.
            warn!(policy = policy.name, "children left out: more rules for one kind than can be numbered");
            return;
        };
        if known.is_none() {
            self.interest.assessment_rules.push(judged_by);
        }
        let parent = &policy.compiled.parent;
        let find = if group.references.is_some() {
            FindChildrenBy::References { of: (parent.group.as_str().into(), parent.kind.as_str().into()) }
        } else if group.labels.is_empty() {
            FindChildrenBy::Owner { group: parent.group.as_str().into(), kind: parent.kind.as_str().into() }
        } else {
            FindChildrenBy::Labels {
                keys: group.labels.iter().map(|(key, _)| key.as_str().into()).collect(),
                of: (parent.group.as_str().into(), parent.kind.as_str().into()),
            }
        };
        let ignore = group.ignore.clone();
        let rule = ChildRule {
            policy: policy.id,
            group: group.at,
            rule_index: at,
            find,
            allowed: group.allowed.clone(),
            ignore,
            made_by_none_of: group.made_by_none_of.clone(),
            scope: group.scope.clone(),
            retention: group.after,
        };
        self.interest.child.push(rule);
    }
}
