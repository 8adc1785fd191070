//! Names of the roles of policies.

use crate::fnv::fnv1a;
use crate::group_selection::GROUP_KIND;

/// Longest name of an object.
const MAX_NAME_LENGTH: usize = 253;
const ROLE_NAME_PREFIX: &str = "rollcall-policy-";
/// That of what stands for ReadinessGroups.
const GROUP_ROLE_PREFIX: &str = "rollcall-group-";
/// A dash and the hash in hexadecimal digits.
const HASH_LENGTH: usize = 17;

/// Name of the roles that hold the rights of this policy. Other policies have other names; a name that would be too
/// long is cut and ends in a hash of the whole.
pub fn policy_role_name(policy: &str) -> String {
    if let Some((_, shape)) =
        policy.split_once(&format!("{}/", GROUP_KIND.1)).filter(|(before, _)| before.is_empty())
    {
        return format!("{GROUP_ROLE_PREFIX}{shape}");
    }
    let name = format!("{ROLE_NAME_PREFIX}{policy}");
    if name.len() <= MAX_NAME_LENGTH {
        return name;
    }
    let mut end = MAX_NAME_LENGTH - HASH_LENGTH;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let kept = name[..end].trim_end_matches(['-', '.']);
    format!("{kept}-{:016x}", fnv1a(policy.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_role_name_of_its_own_that_the_server_takes() {
        assert_eq!(policy_role_name("databases"), "rollcall-policy-databases");
        assert_eq!(policy_role_name("team.databases"), "rollcall-policy-team.databases");
        assert_eq!(policy_role_name("ReadinessGroup/0123456789abcdef"), "rollcall-group-0123456789abcdef");
        let long = |last: &str| format!("{}.{}.{last}", "a".repeat(220), "b".repeat(20));
        let (one, two) = (policy_role_name(&long("x")), policy_role_name(&long("y")));
        assert_ne!(one, two);
        for name in [one, two, policy_role_name(&"ä".repeat(200))] {
            assert!(name.len() <= MAX_NAME_LENGTH, "{name}");
            assert!(name.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric()), "{name}");
        }
    }
}
