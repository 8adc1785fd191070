//! Kinds of other aggregators whose objects say in a field of the status, and in no condition, whether they are ready.

/// A field of the status, and its value where the object is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldField {
    path: &'static str,
    ready: &'static str,
}

/// Group and kind, the field below `status`, and what it says of an object that is ready.
const KINDS: [(&str, &str, ToldField); 3] = [
    // github.com/argoproj/gitops-engine/pkg/health: HealthStatusHealthy.
    ("argoproj.io", "Application", ToldField { path: "health.status", ready: "Healthy" }),
    ("argoproj.io", "ApplicationSet", ToldField { path: "health.status", ready: "Healthy" }),
    // github.com/operator-framework/api/pkg/operators/v1alpha1: CSVPhaseSucceeded.
    ("operators.coreos.com", "ClusterServiceVersion", ToldField { path: "phase", ready: "Succeeded" }),
];

impl ToldField {
    /// Returns the field of a kind that has one.
    pub(crate) fn of_kind(group: &str, kind: &str) -> Option<ToldField> {
        KINDS.iter().find(|known| (known.0, known.1) == (group, kind)).map(|known| known.2)
    }

    /// Returns what an object with these fields, by path and value, says of itself; `None` if it says nothing.
    pub(crate) fn says_ready<'f>(self, fields: impl IntoIterator<Item = (&'f str, &'f str)>) -> Option<bool> {
        let told = fields.into_iter().find(|(path, value)| *path == self.path && !value.is_empty());
        told.map(|(_, value)| value == self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_tells_of_the_kinds_that_are_known_to_say_it_there() {
        let application = ToldField::of_kind("argoproj.io", "Application").expect("a field");
        assert_eq!(
            application.says_ready([("sync.status", "Synced"), ("health.status", "Healthy")]),
            Some(true)
        );
        assert_eq!(application.says_ready([("health.status", "Suspended")]), Some(false));
        assert_eq!(application.says_ready([("health.status", ""), ("phase", "Healthy")]), None);
        for (group, kind) in [("argoproj.io", "Rollout"), ("example.com", "Application"), ("", "Pod")] {
            assert_eq!(ToldField::of_kind(group, kind), None, "{group} {kind}");
        }
    }
}
