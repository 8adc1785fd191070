//! Policies of which it was decided, as the service does it, what of them is in force.

use aggregator::Acceptance;
use policy::offline::OfflineRollup;
use policy::{
    CompiledPolicy, FoundPolicy, GroupRule, IdRegistry, LibraryRules, PolicyBook, PolicyInUse,
    PolicySettings, WrittenPolicy,
};
use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::{NodeReason, StagedList, TreeNode};

use super::cluster_libraries::ClusterLibraries;
use crate::limits::STUCK_AFTER;

/// Policies, and what of them is in force.
#[derive(Default)]
pub(super) struct DecidedPolicies {
    pub(super) book: PolicyBook,
    registry: IdRegistry,
    /// A policy that is refused and does not even tell which objects it is about, with the reason.
    pub(super) nameless: Option<String>,
}

impl DecidedPolicies {
    /// Decides on what was found by lists that are complete; `book` knows what was accepted before.
    pub(super) fn decide(found: &[FoundPolicy], mut book: PolicyBook, libraries: &ClusterLibraries) -> Self {
        let (mut registry, settings) = (IdRegistry::default(), PolicySettings::with_stuck_after(STUCK_AFTER));
        let listed = StagedList::of_complete(found.iter().cloned().enumerate());
        if let Some(listed) = listed.complete_list() {
            book.decide(listed, std::iter::empty(), &settings, libraries, &mut registry);
        }
        let is_nameless = |policy: &&FoundPolicy| {
            book.refused.contains_key(&policy.name)
                && !book.in_use.iter().any(|used| used.name == policy.name)
                && WrittenPolicy::of(policy, &settings).compiled.is_empty()
        };
        let nameless = found.iter().find(is_nameless).map(|policy| {
            format!("policy {} is refused, and it is not known which objects it is about", policy.name)
        });
        DecidedPolicies { book, registry, nameless }
    }

    /// Policies that are in force as they are given.
    pub(super) fn as_given(policies: Vec<(String, CompiledPolicy)>) -> Self {
        let mut decided = DecidedPolicies::default();
        decided.book.in_use =
            policies.into_iter().map(|policy| accepted(policy, &mut decided.registry)).collect();
        decided
    }

    /// Gives each policy that is judged by health scripts of a ConfigMap these scripts as its own rule.
    pub(super) fn read_scripts(&mut self, libraries: &ClusterLibraries) {
        for group in self.book.in_use.iter_mut().flat_map(|policy| &mut policy.compiled.groups) {
            if let Some(GroupRule::Library(name)) = &group.rule {
                let (rule, source) = libraries.library_rule(name);
                group.rule = Some(GroupRule::Own { rule, source });
            }
        }
    }

    /// Those in force, by name.
    pub(super) fn in_force(&self) -> impl Iterator<Item = (&str, &CompiledPolicy)> {
        let in_force = self.book.in_use.iter().filter(|policy| policy.acceptance == Acceptance::Accepted);
        in_force.map(|policy| (policy.name.as_str(), &policy.compiled))
    }

    /// Those in force, and what is known of refused ones of which nothing is: whose parents and conditions they are.
    pub(super) fn in_use(&self) -> impl Iterator<Item = (&str, &CompiledPolicy)> {
        self.book.in_use.iter().map(|policy| (policy.name.as_str(), &policy.compiled))
    }

    /// Returns an empty state for these policies and `more`, whose objects have been as they are since then, and no longer.
    pub(super) fn begin_rollup(
        &self,
        more: &[(String, CompiledPolicy)],
        libraries: &dyn LibraryRules,
        times: (Time, Time),
    ) -> OfflineRollup {
        let (mut in_use, mut registry) = (self.book.in_use.clone(), self.registry.clone());
        in_use.extend(more.iter().map(|policy| accepted(policy.clone(), &mut registry)));
        OfflineRollup::of_policies_in_use(in_use, registry, libraries, times)
    }

    /// Why policies are not in force as they are, each with its name.
    pub(super) fn refusal_texts(&self) -> impl Iterator<Item = (String, String)> {
        self.book.refused.iter().map(|(name, refused)| {
            let is_in_force = self.in_force().any(|(held, _)| held == name);
            let accepted = self.book.accepted.get(name).filter(|_| is_in_force);
            let then = accepted.map(|spec| format!("; generation {} stays in force", spec.generation));
            (format!("policy {name}"), refused.why.clone() + &then.unwrap_or_default())
        })
    }

    /// The parents of policies of which nothing is in force are Unknown.
    pub(super) fn hide_refused(&self, rollup: &mut OfflineRollup) {
        for name in self.refused_names() {
            rollup.hide_policy(name, &unseen_name(name));
        }
    }

    /// Says of the parents of refused policies that these are refused.
    pub(super) fn word_refusals(&self, trees: &mut [TreeNode]) {
        let refused: Vec<RefusalWording<'_>> = self.refused_names().map(|name| self.words_of(name)).collect();
        for tree in trees.iter_mut().filter(|_| !refused.is_empty()) {
            word_refusals_of(tree, &refused);
        }
    }

    fn refused_names(&self) -> impl Iterator<Item = &str> {
        let refused = self.book.in_use.iter().filter(|policy| policy.acceptance != Acceptance::Accepted);
        refused.map(|policy| policy.name.as_str())
    }

    fn words_of<'p>(&self, name: &'p str) -> RefusalWording<'p> {
        let why = self.book.refused.get(name).map(|refused| format!(": {}", refused.why));
        RefusalWording {
            name,
            rendered: format!("not permitted to list and watch {}", unseen_name(name)),
            told: format!("policy {name} is refused{}", why.unwrap_or_default()),
        }
    }
}

/// How it is said that a policy is refused.
struct RefusalWording<'p> {
    name: &'p str,
    /// What is rendered where it is not known what the policy asks for.
    rendered: String,
    told: String,
}

/// Name for what a refused policy asks for.
fn unseen_name(policy: &str) -> String {
    format!("what policy {policy} asks for")
}

/// Returns what is said of the objects whose reason has changed in the messages of others.
fn word_refusals_of(node: &mut TreeNode, refused: &[RefusalWording<'_>]) -> Vec<String> {
    let mut quotes: Vec<String> =
        node.children.iter_mut().flat_map(|child| word_refusals_of(child, refused)).collect();
    for quote in &quotes {
        node.detail =
            node.detail.replace(&format!("{quote} (KindNotVisible)"), &format!("{quote} (PolicyRefused)"));
    }
    let own = refused.iter().find(|words| node.policy == words.name && node.detail.contains(&words.rendered));
    if let Some(RefusalWording { rendered, told, .. }) = own {
        node.detail = node.detail.replace(rendered, told);
        node.reason = NodeReason::Parent(ParentReason::PolicyRefused);
        quotes.push(format!("{} {}", node.name, node.verdict.to_lowercase()));
    }
    quotes
}

fn accepted((name, compiled): (String, CompiledPolicy), registry: &mut IdRegistry) -> PolicyInUse {
    PolicyInUse { id: registry.new_policy_id(), name, compiled, acceptance: Acceptance::Accepted }
}
