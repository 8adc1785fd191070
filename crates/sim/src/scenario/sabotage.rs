//! Faults injected at the product's border, to prove that the simulation detects them.

/// One kind of fault. None needs a hook in the product: each alters its input or its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Installs policies without their `settle`.
    NoSettle,
    /// Removes the operators' handled marks from parents.
    NoEvidence,
    /// Removes what parents say of their own failures.
    FailuresUnread,
    /// Makes repeated watch lines look newer than the held objects.
    StaleLooksNew,
    /// Reports a list as complete when it begins.
    SyncedEarly,
    /// A watch that stands again after blindness counts as a list.
    BlindnessForgiven,
    /// Keeps objects that are missing from a list.
    NoSweep,
    /// Removes the preconditions from every write.
    NoGuards,
    /// A process whose lease is lost does not look at what stands on a parent before it writes there.
    LostLeaseUnguarded,
    /// Writes conditions of other managers too.
    ForeignTouched,
    /// Drops writes by which nothing but the words of a parent above others changes.
    QuotesKept,
    /// Drops writes by which nothing but the words of a parent in deletion changes.
    DeletionWordsKept,
    /// Drops writes by which a parent says that a kind cannot be seen.
    BlindnessUnsaid,
    /// Drops writes over what stands of an earlier generation.
    OldAnswerKept,
    /// Installs policies in shadow mode as if they wrote.
    ShadowWrites,
    /// Drops all deletions from watches, and skips audits.
    DeletesLost,
    /// Never looks for Events about an outage.
    OutagesForgotten,
    /// Takes an Event about a Job of the same name as the outcome of the parent's Job.
    HearsayBelieved,
    /// A changed rule is planned, and its kind is not judged by it.
    OldRuleKept,
    /// A policy that does not compile counts as deleted.
    ReleasedOnRefusal,
    /// A plan is made from each page of a list of policies.
    HalfListPlanned,
    /// Policies are resolved by each page of a list of namespaces.
    HalfLabelsUsed,
    /// A ConfigMap of scripts that is being listed again counts as deleted.
    HalfScriptsUsed,
    /// What of the ReadinessGroups is listed so far counts as their whole list.
    HalfGroupsUsed,
    /// What of the records is listed so far counts as their whole list.
    HalfRecordsBelieved,
    /// What of the PodDisruptionBudgets is listed so far counts as their whole list.
    HalfBudgetsUsed,
    /// What of other releases' policies is listed so far counts as their whole list.
    HalfOthersUsed,
}

impl Sabotage {
    /// All kinds of faults.
    pub const ALL: [Sabotage; 27] = [
        Sabotage::NoSettle,
        Sabotage::NoEvidence,
        Sabotage::FailuresUnread,
        Sabotage::StaleLooksNew,
        Sabotage::SyncedEarly,
        Sabotage::BlindnessForgiven,
        Sabotage::NoSweep,
        Sabotage::NoGuards,
        Sabotage::LostLeaseUnguarded,
        Sabotage::ForeignTouched,
        Sabotage::QuotesKept,
        Sabotage::DeletionWordsKept,
        Sabotage::BlindnessUnsaid,
        Sabotage::OldAnswerKept,
        Sabotage::ShadowWrites,
        Sabotage::DeletesLost,
        Sabotage::OutagesForgotten,
        Sabotage::HearsayBelieved,
        Sabotage::OldRuleKept,
        Sabotage::ReleasedOnRefusal,
        Sabotage::HalfListPlanned,
        Sabotage::HalfLabelsUsed,
        Sabotage::HalfScriptsUsed,
        Sabotage::HalfGroupsUsed,
        Sabotage::HalfRecordsBelieved,
        Sabotage::HalfBudgetsUsed,
        Sabotage::HalfOthersUsed,
    ];

    /// Returns the invariant as whose violation it is to be noticed.
    pub fn violated_invariant(self) -> &'static str {
        match self {
            Sabotage::NoSettle | Sabotage::NoEvidence => "no false ready",
            Sabotage::FailuresUnread => "True is kept for no longer than its grace",
            Sabotage::StaleLooksNew | Sabotage::NoSweep | Sabotage::OldRuleKept => {
                "answers follow what was shown"
            }
            Sabotage::SyncedEarly => "nothing is said before everything was seen",
            Sabotage::BlindnessForgiven => "blindness is not readiness",
            Sabotage::NoGuards => "identity is the uid",
            Sabotage::LostLeaseUnguarded => "a lost lease overwrites nothing unknown",
            Sabotage::ForeignTouched | Sabotage::HalfOthersUsed => "only our own entries",
            Sabotage::QuotesKept | Sabotage::DeletionWordsKept => "words are as fresh as verdicts",
            Sabotage::BlindnessUnsaid | Sabotage::OldAnswerKept => "what is not ready does not read Current",
            Sabotage::ShadowWrites => "a shadow writes nothing",
            Sabotage::DeletesLost => "eventually exact",
            Sabotage::OutagesForgotten | Sabotage::HearsayBelieved => "a finished job stays finished",
            Sabotage::ReleasedOnRefusal | Sabotage::HalfListPlanned => {
                "entries leave for a confirmed deletion only"
            }
            Sabotage::HalfLabelsUsed
            | Sabotage::HalfScriptsUsed
            | Sabotage::HalfGroupsUsed
            | Sabotage::HalfRecordsBelieved => "no answer rests on half a list",
            Sabotage::HalfBudgetsUsed => "steady under churn",
        }
    }

    /// Returns the part of the simulation that this fault is injected into.
    pub fn part(self) -> SabotagedPart {
        match self {
            Sabotage::OutagesForgotten | Sabotage::HearsayBelieved | Sabotage::HalfRecordsBelieved => {
                SabotagedPart::Memory
            }
            Sabotage::OldRuleKept | Sabotage::ReleasedOnRefusal | Sabotage::HalfListPlanned => {
                SabotagedPart::Policies
            }
            Sabotage::HalfLabelsUsed | Sabotage::HalfScriptsUsed | Sabotage::HalfGroupsUsed => {
                SabotagedPart::Resolution
            }
            Sabotage::HalfOthersUsed => SabotagedPart::SharedCluster,
            _ => SabotagedPart::Cluster,
        }
    }
}

/// Part of the simulation that a fault is injected into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SabotagedPart {
    /// The history of the cluster, under policies that stay as they are.
    Cluster,
    /// The history in which policies change.
    Policies,
    /// The history in which labels of namespaces, scripts and ReadinessGroups change, too.
    Resolution,
    /// The history in which another release has policies, too.
    SharedCluster,
    /// The history of remembered Jobs.
    Memory,
}
