//! When is a kind gone for good, and when is it only not served for a moment?

use std::time::Duration;

use watcher::{ApiFailureCause, Discovered, LiveReadError};

use super::KindEvent;

/// Time after which a kind that discovery lacks counts as absent although objects of it are held. 2 min.
const ABSENT_AFTER: Duration = Duration::from_mins(2);

/// Decides which event is sent while a kind is looked for, and whether its objects are forgotten.
///
/// A 404 of its list or watch alone is trouble, as any other. Parents are told:
///
/// - Discovery could not be asked, or some version of the group still has the kind (another than the one that is asked
///   for, or one whose resources cannot be read): it is blind. What is known holds for two minutes, then whatever rests
///   on it is Unknown.
/// - No version has it, and no object of it is held: it is absent at once. That is how the deletion of a definition
///   looks: the server deletes the objects, and says so, before it stops to serve them.
/// - No version has it, and objects are held: their deletion was missed, or the definition stopped to be served for a
///   moment and they are all still there. It is blind until nothing was found for two minutes; only then are they gone.
///
/// In no case does a True stand for longer than those two minutes on objects of a kind that vanished. When it comes back,
/// what parents say stays until its list is through.
#[derive(Debug, Default)]
pub(crate) struct AbsenceProof {
    lacked_for: Duration,
}

impl AbsenceProof {
    /// Discovery did not find it, where `holds` says whether objects of it are held. `None`: it is absent, and they are
    /// to be forgotten.
    pub(crate) fn judge(&self, found: &Result<Discovered, LiveReadError>, holds: bool) -> Option<KindEvent> {
        let (cause, detail) = match found {
            Ok(Discovered::Absent) if !holds || self.lacked_for >= ABSENT_AFTER => return None,
            Ok(Discovered::Absent) => {
                (ApiFailureCause::NotInstalled, "discovery does not list it any more".to_owned())
            }
            Ok(Discovered::Unserved { why, .. }) => (ApiFailureCause::NotInstalled, why.clone()),
            Ok(Discovered::Served(api)) => (ApiFailureCause::NotInstalled, format!("{api} is served again")),
            Err(error) => (error.cause, error.to_string()),
        };
        Some(KindEvent::Failure(cause, detail))
    }

    /// Counts the wait until discovery is asked again.
    pub(crate) fn wait(&mut self, found: &Result<Discovered, LiveReadError>, wait: Duration) {
        self.lacked_for = match found {
            Ok(Discovered::Absent) => self.lacked_for + wait,
            _ => Duration::ZERO,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIRMATION_WAIT: Duration = Duration::from_secs(15);

    fn is_trouble(event: Option<&KindEvent>) -> bool {
        matches!(event, Some(KindEvent::Failure(ApiFailureCause::NotInstalled, _)))
    }

    #[test]
    fn a_kind_that_discovery_lacks_and_of_which_nothing_is_held_is_absent_at_once() {
        assert_eq!(AbsenceProof::default().judge(&Ok(Discovered::Absent), false), None);
    }

    #[test]
    fn a_kind_that_vanished_with_its_objects_is_blind_before_it_is_absent() {
        let mut proof = AbsenceProof::default();
        for _ in 0..8 {
            assert!(is_trouble(proof.judge(&Ok(Discovered::Absent), true).as_ref()));
            proof.wait(&Ok(Discovered::Absent), CONFIRMATION_WAIT);
        }
        assert_eq!(proof.judge(&Ok(Discovered::Absent), true), None, "two minutes later");
    }

    #[test]
    fn a_kind_that_some_version_still_has_is_never_absent() {
        let mut proof = AbsenceProof::default();
        let why = "v1 does not serve it".to_owned();
        let unserved = || Ok(Discovered::Unserved { why: why.clone(), elsewhere: None });
        for _ in 0..20 {
            assert!(is_trouble(proof.judge(&unserved(), false).as_ref()));
            proof.wait(&unserved(), CONFIRMATION_WAIT);
        }
        assert!(
            is_trouble(proof.judge(&Ok(Discovered::Absent), true).as_ref()),
            "the two minutes begin only now"
        );
    }
}
