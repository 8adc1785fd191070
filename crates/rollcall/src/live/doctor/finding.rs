//! One thing that would hurt: where, how much, by which evidence, and what to do.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// It hurts now, or will.
    Error,
    /// It may hurt.
    Warning,
    /// Good to know.
    Info,
}

impl Severity {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// A finding. The same cluster gives the same findings in the same order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// Which check.
    pub(super) check: &'static str,
    /// As `Database shop/orders`.
    pub(super) object: String,
    pub(super) evidence: String,
    pub(super) fix: String,
    /// A command that would do it. Printed by `--fix`, never run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<String>,
}

impl Finding {
    pub(super) fn new(severity: Severity, check: &'static str, object: impl Into<String>) -> Finding {
        let (object, evidence, fix) = (object.into(), String::new(), String::new());
        Finding { severity, check, object, evidence, fix, patch: None }
    }

    pub(super) fn because(mut self, evidence: impl Into<String>) -> Finding {
        self.evidence = evidence.into();
        self
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = fix.into();
        self
    }

    pub(super) fn by(mut self, patch: impl Into<String>) -> Finding {
        self.patch = Some(patch.into());
        self
    }
}
