//! What a policy may have written, for those who remove it.

use super::compile::CompiledPolicy;
use super::found_policy::FoundPolicy;
use super::group_selection::GroupName;
use super::policy_claim::PolicyClaim;
use super::protected_kinds::PolicySettings;
use super::stub;

/// What a policy may have written on parents, by any spec of it that is known.
#[derive(Clone, Debug)]
pub struct WrittenPolicy {
    /// The spec as it is now and the one that was accepted last, as far as they can be compiled. Where neither can be: the
    /// parents and the condition that each of them names, if it names any.
    pub compiled: Vec<CompiledPolicy>,
    /// The only parent that is meant: a ReadinessGroup in a file.
    pub only: Option<GroupName>,
    /// Why it is not known what it wrote.
    pub unknown: Option<String>,
}

impl WrittenPolicy {
    /// A spec that is refused leaves in force what was accepted before it; one that was changed a moment ago may be in force
    /// already or not.
    pub fn of(found: &FoundPolicy, settings: &PolicySettings) -> WrittenPolicy {
        let now = found.compile_spec(settings);
        let accepted = found.accepted_spec().filter(|accepted| found.spec.as_ref() != Ok(accepted));
        let accepted = accepted.and_then(|spec| found.compile_as_own(&spec, settings).ok());
        let (compiled, unknown) = match (now, accepted) {
            (Err(why), None) => (known_claims(found), Some(why)),
            (now, accepted) => (now.ok().into_iter().chain(accepted).collect(), None),
        };
        let only = found.groups.as_ref().and_then(|groups| groups.group().cloned());
        WrittenPolicy { compiled, only, unknown }
    }
}

/// What is known of a policy no spec of which can be compiled.
fn known_claims(found: &FoundPolicy) -> Vec<CompiledPolicy> {
    let (now, kept) = (stub::compile(found), stub::compile_kept(found));
    let said = |stub: &CompiledPolicy| (PolicyClaim::new(stub), stub.fallback.clone());
    let is_same = now.as_ref().map(said) == kept.as_ref().map(said);
    now.into_iter().chain(kept.filter(|_| !is_same)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::found_policy::read_policy;

    /// The conditions that it may have written, and whether that is all.
    fn written(spec: &Value, accepted: Option<&Value>) -> (Vec<String>, bool) {
        let status =
            accepted.map(|spec| json!({ "accepted": { "generation": 1, "spec": spec.to_string() } }));
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": "a", "uid": "a", "resourceVersion": "2", "generation": 2 },
            "spec": spec, "status": status,
        });
        let found = read_policy(&serde_json::from_value(object).expect("a policy"));
        let written = WrittenPolicy::of(&found, &PolicySettings::with_stuck_after(Duration::from_mins(10)));
        let conditions = written.compiled.into_iter().map(|compiled| compiled.condition).collect();
        (conditions, written.unknown.is_none())
    }

    #[test]
    fn it_is_known_by_every_spec_that_can_be_used() {
        let saying = |condition| json!({ "parent": { "group": "example.com", "kind": "Database" }, "condition": { "type": condition } });
        let mut refused = saying("C");
        refused["settle"] = json!("soon");
        let mut newer = saying("D");
        newer["future"] = json!("on");
        let all = |conditions: &[&str]| conditions.iter().map(|&c| c.to_owned()).collect::<Vec<_>>();
        for (spec, accepted, conditions, is_known) in [
            (saying("A"), None, all(&["A"]), true),
            (saying("A"), Some(saying("A")), all(&["A"]), true),
            (saying("A"), Some(saying("B")), all(&["A", "B"]), true),
            (refused.clone(), Some(saying("B")), all(&["B"]), true),
            (saying("A"), Some(refused.clone()), all(&["A"]), true),
            (refused.clone(), Some(refused.clone()), all(&["C"]), false),
            (refused.clone(), Some(newer), all(&["C", "D"]), false),
            (refused.clone(), None, all(&["C"]), false),
            (json!({ "parent": {} }), None, all(&[]), false),
        ] {
            assert_eq!(written(&spec, accepted.as_ref()), (conditions, is_known), "{spec} {accepted:?}");
        }
    }
}
