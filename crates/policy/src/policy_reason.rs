//! Why a condition of a policy says what it says.

use std::fmt;

/// Reason of a condition in a policy's own status. Part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyReason {
    /// Its spec is in force.
    Accepted,
    /// Its spec is in force, and nothing is written to parents.
    Shadow,
    /// Its spec does not compile.
    Invalid,
    /// An older policy writes the same condition to the same kind.
    Conflict,
    /// A ConfigMap with its rules is absent, or cannot be used.
    RulesUnavailable,
    /// It is not in force, so the other conditions have nothing to say.
    NotAccepted,
    /// No release of Rollcall selects it any more.
    NotSelected,
    /// All kinds that it names are watched.
    Watching,
    /// Rights are missing.
    Forbidden,
    /// Watch and list of a kind have failed for two minutes.
    Stale,
    /// A kind that it names is not installed.
    NotInstalled,
    /// A kind that it names is not watched.
    NotWatching,
    /// The initial lists are not complete.
    Listing,
    /// All parents that it selects are told.
    Synced,
    /// Another field manager owns the condition on some parents.
    ConditionOwned,
    /// The schema of some parents does not keep the condition.
    ConditionPruned,
    /// The condition is refused on some parents, by their schema or by an admission policy.
    ConditionRefused,
    /// Writes to some parents keep failing.
    WritesFailing,
    /// The condition is repeatedly overwritten on some parents.
    Yielding,
    /// A rule that exceeds its limits is not evaluated for a while.
    RuleTooSlow,
    /// Some parents that it selects are ruled by an older policy.
    RuledByOlderPolicy,
    /// Nothing shows whether the operator of some parents succeeded.
    NoOutcomeKept,
    /// The namespace in which outcomes of Jobs are saved does not exist.
    RecordsNamespaceMissing,
    /// Outcomes of Jobs cannot be saved.
    RecordsNotSaved,
}

impl PolicyReason {
    /// The reason as it stands in the condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            PolicyReason::Accepted => "Accepted",
            PolicyReason::Shadow => "Shadow",
            PolicyReason::Invalid => "Invalid",
            PolicyReason::Conflict => "Conflict",
            PolicyReason::RulesUnavailable => "RulesUnavailable",
            PolicyReason::NotAccepted => "NotAccepted",
            PolicyReason::NotSelected => "NotSelected",
            PolicyReason::Watching => "Watching",
            PolicyReason::Forbidden => "Forbidden",
            PolicyReason::Stale => "Stale",
            PolicyReason::NotInstalled => "NotInstalled",
            PolicyReason::NotWatching => "NotWatching",
            PolicyReason::Listing => "Listing",
            PolicyReason::Synced => "Synced",
            PolicyReason::ConditionOwned => "ConditionOwned",
            PolicyReason::ConditionPruned => "ConditionPruned",
            PolicyReason::ConditionRefused => "ConditionRefused",
            PolicyReason::WritesFailing => "WritesFailing",
            PolicyReason::Yielding => "Yielding",
            PolicyReason::RuleTooSlow => "RuleTooSlow",
            PolicyReason::RuledByOlderPolicy => "RuledByOlderPolicy",
            PolicyReason::NoOutcomeKept => "NoOutcomeKept",
            PolicyReason::RecordsNamespaceMissing => "RecordsNamespaceMissing",
            PolicyReason::RecordsNotSaved => "RecordsNotSaved",
        }
    }
}

impl fmt::Display for PolicyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
