//! Flags of `rollcall rbac`, in commands that are printed for people.

use std::fmt::Write;

use super::role_subject::RoleSubject;

/// Name of the service account, of the aggregated role and of the lease, unless a release has others.
pub const DEFAULT_NAME: &str = "rollcall";
/// Namespace that Rollcall lives in, unless a release has another.
pub const DEFAULT_NAMESPACE: &str = "rollcall-system";

/// Flags by which `rollcall rbac` prints roles for this service account that are aggregated into this role, with the rights to
/// keep records in this namespace: those that differ from the defaults, each after a space.
pub fn role_flags(subject: &RoleSubject, records_namespace: &str, aggregate_to: &str) -> String {
    let mut flags = String::new();
    for (flag, value, default) in [
        ("-n", subject.namespace.as_str(), DEFAULT_NAMESPACE),
        ("--service-account", &subject.name, DEFAULT_NAME),
        ("--records-namespace", records_namespace, &subject.namespace),
        ("--aggregate-to", aggregate_to, DEFAULT_NAME),
    ] {
        if value != default {
            _ = write!(flags, " {flag} {value}");
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_default_is_said() {
        let flags = |namespace: &str, name: &str, records_namespace, aggregate_to| {
            let subject = RoleSubject { name: name.to_owned(), namespace: namespace.to_owned() };
            role_flags(&subject, records_namespace, aggregate_to)
        };
        assert_eq!(flags("rollcall-system", "rollcall", "rollcall-system", "rollcall"), "");
        assert_eq!(
            flags("home", "watcher", "home", "team-a"),
            " -n home --service-account watcher --aggregate-to team-a"
        );
        assert_eq!(
            flags("home", "rollcall", "rollcall-system", "rollcall"),
            " -n home --records-namespace rollcall-system",
            "the default is the account's own namespace"
        );
        assert_eq!(
            flags("rollcall-system", "rollcall", "records", "rollcall"),
            " --records-namespace records"
        );
    }
}
