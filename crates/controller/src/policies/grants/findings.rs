//! What is known of the rights that the service does not grant itself.

use std::collections::{BTreeMap, BTreeSet};

use policy::rbac::AccessNeed;

use crate::policies::rights_text::name_rights;

/// Most rights of a policy that no listed role grants and that are named, where some are granted.
const MAX_NAMED_RIGHTS: usize = 3;

/// Why a listed role is not bound, or none is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GrantObstacle {
    /// Policies that it concerns; empty for all.
    pub(super) policies: BTreeSet<String>,
    /// What is wrong, in words that do not change while it is.
    pub(super) what: String,
}

/// What the last round found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::policies) struct GrantFindings {
    /// Rights that lack and that no listed role grants, by policy; `None` before the first decision.
    pub(super) ungranted: Option<BTreeMap<String, Vec<AccessNeed>>>,
    pub(super) obstacles: Vec<GrantObstacle>,
}

impl GrantFindings {
    /// Why these rights, which the policy lacks, are not granted by the service itself; `None` where it grants none to any
    /// policy, or is about to.
    pub(in crate::policies) fn explain(&self, policy: &str, lacking: &[AccessNeed]) -> Option<String> {
        let concerns =
            |obstacle: &&GrantObstacle| obstacle.policies.is_empty() || obstacle.policies.contains(policy);
        let mut words: Vec<String> =
            self.obstacles.iter().filter(concerns).map(|obstacle| obstacle.what.clone()).collect();
        let ungranted = self.ungranted.as_ref().and_then(|ungranted| ungranted.get(policy));
        let ungranted: Vec<AccessNeed> =
            lacking.iter().filter(|need| ungranted.is_some_and(|all| all.contains(need))).cloned().collect();
        if !ungranted.is_empty() {
            let all = name_rights(&ungranted);
            let named = all.iter().map(|(right, _)| right.as_str());
            let rights: Vec<&str> = named.take(MAX_NAMED_RIGHTS).collect();
            let more = all.len() - rights.len();
            words.push(match more {
                _ if ungranted.len() == lacking.len() => "no listed role grants it".to_owned(),
                0 => format!("no listed role grants {}", rights.join(", ")),
                more => format!("no listed role grants {}, and {more} more", rights.join(", ")),
            });
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::rights_text::tests::need;

    #[test]
    fn it_says_of_each_policy_what_no_listed_role_grants_and_what_stands_in_the_way() {
        let lacking: Vec<_> = ["a", "b", "c", "d", "e"].map(|resource| need("get", resource)).into();
        let refused = "the API server refused to bind ClusterRole view (403)";
        let all = |count: usize| Some(BTreeMap::from([("db".to_owned(), lacking[..count].to_vec())]));
        let on = |policies: &[&str]| GrantObstacle {
            policies: policies.iter().map(|&policy| policy.to_owned()).collect(),
            what: refused.to_owned(),
        };
        for (ungranted, obstacles, expected) in [
            (None, vec![], None),
            (all(0), vec![], None),
            (all(5), vec![], Some("no listed role grants it".to_owned())),
            (all(2), vec![], Some("no listed role grants get a.example.com, get b.example.com".to_owned())),
            (
                all(4),
                vec![],
                Some("no listed role grants get a.example.com, get b.example.com, get c.example.com, and 1 more".into()),
            ),
            (all(0), vec![on(&["web"])], None),
            (all(0), vec![on(&["db", "web"])], Some(refused.to_owned())),
            (all(5), vec![on(&[])], Some(format!("{refused}; no listed role grants it"))),
        ] {
            let findings = GrantFindings { ungranted, obstacles };
            assert_eq!(findings.explain("db", &lacking), expected);
        }
    }
}
