//! Rights that the policies need and that are lacking.

use super::super::finding::{Finding, Severity};
use super::super::world::World;

pub(super) const NAME: &str = "rights";

pub(super) fn check(world: &World) -> Vec<Finding> {
    // Whoever looks may well lack what the service has; a service account that was named is to have it.
    let severity = if world.subject.starts_with("ServiceAccount") { Severity::Error } else { Severity::Info };
    let lacking = |right: &String| {
        Finding::new(severity, NAME, world.subject.clone())
            .because(format!("may not {right}, which the policies need"))
            .fix("rollcall rbac -f POLICY | kubectl apply -f -; --service-account NAMESPACE/NAME asks for that of the service")
    };
    world.denied.iter().map(lacking).collect()
}

#[cfg(test)]
mod tests {
    use super::super::support::world;
    use super::*;

    #[test]
    fn what_the_service_may_not_do_is_an_error_and_what_you_may_not_do_a_note() {
        for (subject, severity) in [
            ("ServiceAccount rollcall-system/rollcall", Severity::Error),
            ("the identity of this kubeconfig", Severity::Info),
        ] {
            let mut world = world(&[]);
            world.subject = subject.to_owned();
            world.denied = vec!["patch databases/status.example.com".to_owned()];
            let found = check(&world);
            assert_eq!((found.len(), found[0].severity), (1, severity));
            assert!(found[0].evidence.contains("patch databases/status.example.com"));
        }
    }
}
