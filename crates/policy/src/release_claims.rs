//! Which releases of Rollcall have a policy, as the policy's own status says it.

use std::collections::BTreeSet;

use api::policy::{PolicyCondition, ReleaseClaim};

use super::found_policy::FoundPolicy;
use super::policy_reason::PolicyReason;

/// A release of Rollcall: all its replicas, and those that ran before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseIdentity {
    /// Namespace of its records and name of its lease, `rollcall-system/rollcall`: what no two releases may share.
    pub name: String,
    /// The only namespaces whose objects it follows; empty for all.
    pub namespaces: Vec<String>,
}

/// Namespaces in which a policy speaks for its parents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClaimedScope {
    /// None.
    #[default]
    Nowhere,
    /// These alone.
    Namespaces(BTreeSet<String>),
    /// All of them.
    Everywhere,
}

/// What a release says of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnClaim {
    /// Nothing.
    #[default]
    Absent,
    /// It accepted it.
    Standing,
    /// It accepted it once, and takes back what the policy says.
    Withdrawn,
}

/// Who has a policy, as a release that does not select it sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyClaims {
    /// What this release has said of it.
    pub own: OwnClaim,
    /// Where other releases have it.
    pub others: ClaimedScope,
    /// Names of those.
    pub releases: Vec<String>,
    /// It was accepted, and no release says that it was the one: one of a version that claims nothing may have it.
    pub is_unclaimed: bool,
    /// A release says that none has it.
    pub is_unselected: bool,
}

impl ReleaseIdentity {
    /// What it says of a policy that it has accepted.
    pub fn claim(&self) -> ReleaseClaim {
        ReleaseClaim { namespaces: self.namespaces.clone(), withdrawn: false }
    }

    /// Returns `true` if the policy's status says that it has it.
    pub fn has_claimed(&self, found: &FoundPolicy) -> bool {
        found.status.accepted_by.get(&self.name).is_some_and(|claim| !claim.withdrawn)
    }

    /// Returns `true` if both may have the same parents.
    pub fn meets(&self, claim: &ReleaseClaim) -> bool {
        let (own, theirs) = (&self.namespaces, &claim.namespaces);
        own.is_empty() || theirs.is_empty() || own.iter().any(|namespace| theirs.contains(namespace))
    }
}

impl ClaimedScope {
    fn add(&mut self, namespaces: &[String]) {
        match self {
            _ if namespaces.is_empty() => *self = ClaimedScope::Everywhere,
            ClaimedScope::Nowhere => *self = ClaimedScope::Namespaces(namespaces.iter().cloned().collect()),
            ClaimedScope::Namespaces(known) => known.extend(namespaces.iter().cloned()),
            ClaimedScope::Everywhere => {}
        }
    }

    /// Returns `true` if it has all parents that a release has which is restricted to these namespaces; to none, where there are no
    /// names.
    pub fn covers(&self, namespaces: &[String]) -> bool {
        match self {
            ClaimedScope::Nowhere => false,
            ClaimedScope::Namespaces(known) => {
                !namespaces.is_empty() && namespaces.iter().all(|namespace| known.contains(namespace))
            }
            ClaimedScope::Everywhere => true,
        }
    }
}

impl PolicyClaims {
    /// Who has this policy, which `release` does not select.
    pub fn of(found: &FoundPolicy, release: &ReleaseIdentity) -> PolicyClaims {
        let status = &found.status;
        let own = match status.accepted_by.get(&release.name) {
            None => OwnClaim::Absent,
            Some(claim) if claim.withdrawn => OwnClaim::Withdrawn,
            Some(_) => OwnClaim::Standing,
        };
        let is_unselected = is_said_unselected(&status.conditions);
        let mut claims = PolicyClaims { own, is_unselected, ..PolicyClaims::default() };
        let others =
            status.accepted_by.iter().filter(|(name, claim)| **name != release.name && !claim.withdrawn);
        for (name, claim) in others {
            claims.others.add(&claim.namespaces);
            claims.releases.push(name.clone());
        }
        let is_claimed = own == OwnClaim::Standing || !claims.releases.is_empty();
        claims.is_unclaimed = status.accepted.is_some() && !is_claimed && !is_unselected;
        claims
    }

    /// Returns `true` if no release has accepted it.
    pub fn is_unaccepted(&self) -> bool {
        self.own == OwnClaim::Absent && self.releases.is_empty() && !self.is_unclaimed
    }
}

/// Returns `true` if a release says that none selects the policy.
fn is_said_unselected(conditions: &[PolicyCondition]) -> bool {
    let of_reason = |said: &PolicyCondition| said.reason == PolicyReason::NotSelected.as_str();
    conditions.iter().any(|said| said.r#type == "Accepted" && of_reason(said))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::found_policy::read_policy;

    fn claims(status: &Value) -> PolicyClaims {
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "1", "generation": 1 },
            "spec": { "parent": { "group": "example.com", "kind": "Database" } }, "status": status,
        });
        let found = read_policy(&serde_json::from_value(object).expect("a policy"));
        PolicyClaims::of(&found, &ReleaseIdentity { name: "ns/me".to_owned(), namespaces: Vec::new() })
    }

    fn within(namespaces: &[&str]) -> ClaimedScope {
        ClaimedScope::Namespaces(namespaces.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn who_has_a_policy_is_told_by_its_status_alone() {
        use ClaimedScope::{Everywhere, Nowhere};
        use OwnClaim::{Absent, Standing, Withdrawn};
        let said = |reason: &str| json!([{ "type": "Accepted", "status": "False", "reason": reason, "lastTransitionTime": "" }]);
        let (unselected, invalid) = (said("NotSelected"), said("Invalid"));
        let (a, b) = (json!({ "namespaces": ["a"] }), json!({ "namespaces": ["b"] }));
        let withdrawn = json!({ "withdrawn": true });
        // (acceptedBy, conditions, this release, the others, their names, nobody claims what was accepted)
        for (accepted_by, conditions, own, others, releases, is_unclaimed) in [
            (json!({}), json!([]), Absent, Nowhere, "", true),
            (json!({ "ns/me": {} }), json!([]), Standing, Nowhere, "", false),
            (json!({ "ns/x": {} }), json!([]), Absent, Everywhere, "ns/x", false),
            (json!({ "ns/me": {}, "ns/x": {} }), json!([]), Standing, Everywhere, "ns/x", false),
            (json!({ "ns/x": a, "ns/y": b }), json!([]), Absent, within(&["a", "b"]), "ns/x ns/y", false),
            (json!({ "ns/me": withdrawn }), unselected.clone(), Withdrawn, Nowhere, "", false),
            (json!({ "ns/x": withdrawn }), unselected.clone(), Absent, Nowhere, "", false),
            // It was said that nobody has it, and a release that claims nothing has said otherwise.
            (json!({ "ns/me": withdrawn }), invalid.clone(), Withdrawn, Nowhere, "", true),
        ] {
            let is_unselected = conditions == unselected;
            let status = json!({ "accepted": { "generation": 1, "spec": "{}" }, "acceptedBy": accepted_by,
                "conditions": conditions });
            let releases = releases.split_whitespace().map(str::to_owned).collect();
            let expected = PolicyClaims { own, others, releases, is_unclaimed, is_unselected };
            assert_eq!(claims(&status), expected, "{status}");
            assert!(!expected.is_unaccepted() || is_unselected, "{status}");
        }
        assert!(claims(&json!({})).is_unaccepted());
    }

    #[test]
    fn a_release_of_some_namespaces_has_the_parents_of_these() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (scope, namespaces, covered) in [
            (ClaimedScope::Nowhere, names(&["a"]), false),
            (ClaimedScope::Everywhere, names(&[]), true),
            (within(&["a", "b"]), names(&["a"]), true),
            (within(&["a"]), names(&["a", "b"]), false),
            (within(&["a"]), names(&[]), false),
        ] {
            assert_eq!(scope.covers(&namespaces), covered, "{scope:?} {namespaces:?}");
        }
        let release = |own: &[&str]| ReleaseIdentity { name: String::new(), namespaces: names(own) };
        let claim = |of: &[&str]| ReleaseClaim { namespaces: names(of), withdrawn: false };
        assert!(release(&["a"]).meets(&claim(&["a", "b"])) && release(&[]).meets(&claim(&["b"])));
        assert!(release(&["a"]).meets(&claim(&[])) && !release(&["a"]).meets(&claim(&["b"])));
    }
}
