//! A finding: object, severity, evidence and remedy.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DoctorSeverity {
    /// A problem now or inevitably later.
    Error,
    /// A possible problem.
    Warning,
    /// Information.
    Info,
}

impl DoctorSeverity {
    pub(super) const fn word(self) -> &'static str {
        match self {
            DoctorSeverity::Error => "error",
            DoctorSeverity::Warning => "warning",
            DoctorSeverity::Info => "info",
        }
    }
}

/// A finding. The same cluster yields the same findings in the same order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DoctorFinding {
    pub(super) severity: DoctorSeverity,
    /// Name of the check.
    pub(super) check: &'static str,
    /// The object, as `Database shop/orders`.
    pub(super) object: String,
    pub(super) evidence: String,
    pub(super) fix: String,
    /// A command that applies the remedy. Printed by `--fix`, never run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
}

impl DoctorFinding {
    pub(super) fn new(
        severity: DoctorSeverity,
        check: &'static str,
        object: impl Into<String>,
    ) -> DoctorFinding {
        let (object, evidence, fix) = (object.into(), String::new(), String::new());
        DoctorFinding { severity, check, object, evidence, fix, patch: None }
    }

    pub(super) fn with_evidence(mut self, evidence: impl Into<String>) -> DoctorFinding {
        self.evidence = evidence.into();
        self
    }

    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> DoctorFinding {
        self.fix = fix.into();
        self
    }

    pub(super) fn with_patch(mut self, patch: impl Into<String>) -> DoctorFinding {
        self.patch = Some(patch.into());
        self
    }
}
