//! What a policy that this release does not select says on parents that this release may have too.

use std::sync::Arc;

use watcher::plan::ElsewhereRule;
use watcher::status::written_types;

use super::accept::PolicyBook;
use super::compile::CompiledPolicy;
use super::found_policy::FoundPolicy;
use super::policy_claim::PolicyClaim;
use super::policy_in_use::{KindKey, PolicyInUse};
use super::policy_rank::PolicyRank;
use super::protected_kinds::PolicySettings;
use super::release_claims::ClaimedScope;
use super::stub;
use super::written_policy::WrittenPolicy;

/// The specs of a policy that this release does not select, compiled.
#[derive(Debug)]
pub struct OtherSpecs {
    /// What it may have written, by any spec of it that is known. It is not for this release to take away.
    written: Vec<CompiledPolicy>,
    /// What is in force of it, if some release has it.
    in_force: Option<CompiledPolicy>,
}

impl OtherSpecs {
    /// Compiles them, which takes as long as for a policy of one's own.
    pub fn compile(found: &FoundPolicy, settings: &PolicySettings) -> OtherSpecs {
        let written = WrittenPolicy::of(found, settings).compiled;
        OtherSpecs {
            written: written.into_iter().filter(may_write).collect(),
            in_force: in_force(found, settings).filter(may_write),
        }
    }
}

/// A policy of another release, or one that may be.
#[derive(Clone, Debug)]
pub struct OtherPolicy {
    /// Its name and its release, in words.
    words: String,
    rank: PolicyRank,
    /// Namespaces of the parents that it speaks for; empty for all.
    namespaces: Vec<Box<str>>,
    specs: Arc<OtherSpecs>,
    /// Some release judges by it: younger policies leave its parents to what is in force of it.
    is_judged: bool,
}

impl OtherPolicy {
    /// One that no release is known to judge by: what it may have said is left alone, and no policy gives way to it.
    pub fn left_alone(found: &FoundPolicy, specs: &Arc<OtherSpecs>) -> OtherPolicy {
        OtherPolicy {
            words: found.name.clone(),
            rank: PolicyRank::of(found, true),
            namespaces: Vec::new(),
            specs: Arc::clone(specs),
            is_judged: false,
        }
    }

    /// One that these releases have accepted, of which some may be of a version that does not say so; `None` where they have it
    /// nowhere.
    pub fn accepted(
        found: &FoundPolicy,
        specs: &Arc<OtherSpecs>,
        scope: &ClaimedScope,
        releases: &[String],
    ) -> Option<OtherPolicy> {
        let namespaces = match scope {
            ClaimedScope::Nowhere => return None,
            ClaimedScope::Everywhere => Vec::new(),
            ClaimedScope::Namespaces(names) => names.iter().map(|name| name.as_str().into()).collect(),
        };
        let whose = match releases {
            [] => "another release".to_owned(),
            [one] => format!("release {one}"),
            several => format!("releases {}", several.join(", ")),
        };
        Some(OtherPolicy {
            words: format!("{} of {whose}", found.name),
            rank: PolicyRank::of(found, false),
            namespaces,
            is_judged: true,
            ..OtherPolicy::left_alone(found, specs)
        })
    }

    /// What it says on parents, once for each spec of it that says it otherwise.
    pub fn specs(&self) -> impl Iterator<Item = &CompiledPolicy> {
        let of_ruling = self.ruling().map(said);
        let others = self.specs.written.iter().filter(move |written| Some(said(written)) != of_ruling);
        self.ruling().into_iter().chain(others)
    }

    fn ruling(&self) -> Option<&CompiledPolicy> {
        self.specs.in_force.as_ref().filter(|_| self.is_judged)
    }

    /// What it says, for the reading of parents, by the kind of these; `own` are the policies of this release.
    pub fn rules<'o>(&'o self, own: &'o PolicyBook) -> impl Iterator<Item = (KindKey, ElsewhereRule)> + 'o {
        self.specs().map(|spec| (kind_of(spec), self.rule(spec, own)))
    }

    fn rule(&self, spec: &CompiledPolicy, own: &PolicyBook) -> ElsewhereRule {
        let rules = self.ruling().is_some_and(|ruling| said(ruling) == said(spec));
        let gives_way = |policy: &&PolicyInUse| {
            let of = &policy.compiled;
            (kind_of(of), &of.condition) == (kind_of(spec), &spec.condition)
                && may_write(of)
                && own.ranks.get(&policy.id).is_some_and(|rank| *rank > self.rank)
        };
        let outranked = own.in_use.iter().filter(|_| rules).filter(gives_way);
        let outranks: Vec<_> = outranked.map(|policy| policy.id).collect();
        // Where none gives way, it is of no account whose it is: a kind is listed again when its rules change.
        let words = if outranks.is_empty() { "" } else { self.words.as_str() };
        ElsewhereRule {
            selector: spec.selector.clone(),
            namespace_selector: spec.namespace_selector.clone(),
            namespaces: self.namespaces.clone(),
            types: written_types(&spec.condition, spec.fallback.as_deref()).map(Into::into).collect(),
            policy: words.into(),
            outranks,
        }
    }
}

fn kind_of(spec: &CompiledPolicy) -> KindKey {
    (spec.parent.group.clone(), spec.parent.kind.clone())
}

/// What a spec says, and on which parents.
fn said(spec: &CompiledPolicy) -> (PolicyClaim, Option<String>) {
    (PolicyClaim::new(spec), spec.fallback.clone())
}

/// Groups are for one release each, by their labels, and what stands on them goes with them.
fn may_write(spec: &CompiledPolicy) -> bool {
    !spec.shadow && spec.shape.is_none()
}

/// The spec that was accepted last, or as much of it as can be told.
fn in_force(found: &FoundPolicy, settings: &PolicySettings) -> Option<CompiledPolicy> {
    if let Some(spec) = found.accepted_spec() {
        return found.compile_as_own(&spec, settings).ok().or_else(|| stub::compile_kept(found));
    }
    let is_current = found.accepted_generation() == Some(found.generation);
    let current = || found.compile_spec(settings).ok().or_else(|| stub::compile(found));
    is_current.then(current).flatten().or_else(|| stub::compile_kept(found))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rollcall_core::StagedList;
    use serde_json::{Value, json};

    use super::*;
    use crate::found_policy::read_policy;
    use crate::library_rules::UnreadLibraries;
    use crate::plan::IdRegistry;

    /// A policy of this age, in hours, whose spec has these fields.
    fn found(name: &str, hour: u32, spec: &Value, accepted: Option<&Value>) -> FoundPolicy {
        let whole = |fields: &Value| {
            let mut spec = json!({ "parent": { "group": "example.com", "kind": "Database" } });
            for (key, value) in fields.as_object().expect("fields") {
                spec[key] = value.clone();
            }
            spec
        };
        let kept = accepted.map(|spec| json!({ "generation": 1, "spec": whole(spec).to_string() }));
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "spec": whole(spec),
            "metadata": { "name": name, "uid": name, "resourceVersion": "1", "generation": 2,
                "creationTimestamp": format!("2026-01-01T{hour:02}:00:00Z") },
            "status": { "accepted": kept },
        });
        read_policy(&serde_json::from_value(object).expect("a policy"))
    }

    fn settings() -> PolicySettings {
        PolicySettings::with_stuck_after(Duration::from_mins(10))
    }

    /// Of this release.
    fn own_policies() -> [FoundPolicy; 6] {
        let other_kind = json!({ "parent": { "group": "example.com", "kind": "Cache" } });
        [
            found(
                "old",
                1,
                &json!({ "parent": { "group": "example.com", "kind": "Database",
                "selector": { "matchLabels": { "a": "b" } } } }),
                None,
            ),
            found("young", 3, &json!({}), None),
            found("healthy", 3, &json!({ "condition": { "type": "Healthy" } }), None),
            found(
                "shadow",
                3,
                &json!({ "mode": "shadow", "parent": { "group": "example.com", "kind": "Database",
                "selector": { "matchLabels": { "c": "d" } } } }),
                None,
            ),
            found("cache", 3, &other_kind, None),
            found(
                "never-accepted",
                0,
                &json!({ "frobnicate": 1, "parent": { "group": "example.com", "kind": "Database",
                "selector": { "matchLabels": { "e": "f" } } } }),
                None,
            ),
        ]
    }

    #[test]
    fn younger_policies_that_write_the_same_condition_give_way_to_the_spec_that_is_in_force() {
        let (ready, healthy) = (json!({}), json!({ "condition": { "type": "Healthy" } }));
        let (shadow, broken) = (json!({ "mode": "shadow" }), json!({ "frobnicate": 1 }));
        let own = own_policies();
        let mut book = PolicyBook::default();
        let listed = StagedList::of_complete(own.iter().cloned().enumerate());
        let listed = listed.complete_list().expect("a complete list");
        let mut registry = IdRegistry::default();
        book.decide(listed, std::iter::empty(), &settings(), &UnreadLibraries, &mut registry);
        assert_eq!(book.in_use.len(), own.len());
        // (its spec, that which was accepted, types that are left alone, policies that give way)
        for (spec, accepted, left, given_way) in [
            (&ready, Some(&ready), vec!["Ready"], vec!["never-accepted", "young"]),
            (&healthy, Some(&healthy), vec!["Healthy"], vec!["healthy"]),
            (&healthy, Some(&ready), vec!["Ready", "Healthy"], vec!["never-accepted", "young"]),
            (&broken, Some(&healthy), vec!["Healthy"], vec!["healthy"]),
            (&shadow, Some(&shadow), vec![], vec![]),
            (&shadow, Some(&ready), vec!["Ready"], vec!["never-accepted", "young"]),
            (&ready, None, vec!["Ready"], vec![]),
        ] {
            let other = found("other", 2, spec, accepted);
            let specs = Arc::new(OtherSpecs::compile(&other, &settings()));
            let other =
                OtherPolicy::accepted(&other, &specs, &ClaimedScope::Everywhere, &["ns/x".to_owned()]);
            let rules: Vec<_> =
                other.iter().flat_map(|other| other.rules(&book)).map(|(_, rule)| rule).collect();
            let types: Vec<&str> = rules.iter().map(|rule| &*rule.types[0]).collect();
            let yields = |used: &&PolicyInUse| rules.iter().any(|rule| rule.outranks.contains(&used.id));
            let mut names: Vec<&str> =
                book.in_use.iter().filter(yields).map(|used| used.name.as_str()).collect();
            names.sort_unstable();
            assert_eq!((types, names), (left, given_way), "{spec} {accepted:?}");
            assert!(
                rules.iter().all(|rule| rule.outranks.is_empty() || rule.policy == "other of release ns/x")
            );
        }
        let alone = found("other", 2, &ready, Some(&ready));
        let alone = OtherPolicy::left_alone(&alone, &Arc::new(OtherSpecs::compile(&alone, &settings())));
        assert!(
            alone.rules(&book).all(|(_, rule)| rule.outranks.is_empty()),
            "nobody is known to judge by it"
        );
    }

    #[test]
    fn of_two_policies_of_the_same_age_the_first_by_name_rules_in_every_release() {
        let rank = |name: &str, hour: u32| PolicyRank::of(&found(name, hour, &json!({}), None), false);
        assert!(rank("a", 1) < rank("b", 1) && rank("b", 1) < rank("a", 2));
    }
}
