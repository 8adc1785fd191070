//! Rights that the policies need and that are missing.

use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "rights";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    // The user may well lack the service's rights; a named service account is expected to have them.
    let severity = if world.subject.starts_with("ServiceAccount") {
        DoctorSeverity::Error
    } else {
        DoctorSeverity::Info
    };
    let lacking = |right: &String| {
        DoctorFinding::new(severity, CHECK_NAME, world.subject.clone())
            .with_evidence(format!("may not {right}, which the policies need"))
            .with_fix("rollcall rbac -f POLICY | kubectl apply -f -; --service-account NAMESPACE/NAME checks the rights of the service")
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
            ("ServiceAccount rollcall-system/rollcall", DoctorSeverity::Error),
            ("the identity of this kubeconfig", DoctorSeverity::Info),
        ] {
            let mut world = world(&[]);
            world.subject = subject.to_owned();
            world.denied = vec!["patch databases/status.example.com".to_owned()];
            let found = run_check(&world);
            assert_eq!((found.len(), found[0].severity), (1, severity));
            assert!(found[0].evidence.contains("patch databases/status.example.com"));
        }
    }
}
