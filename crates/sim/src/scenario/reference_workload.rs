//! Reference workloads: small histories in which nothing is drawn, so that each of their points can be disturbed.

use std::time::Duration;

use aggregator::{Acceptance, Availability, PolicyId};
use readiness::StuckLimits;
use timer::DebounceConfig;

use super::group_def::GroupDef;
use super::kind_def::{CUSTOM_GROUP, KindDef, OperatorStyle, base_kinds, small_number};
use super::policy_def::{PolicyDef, other_type_of};
use super::{SIM_NAMESPACES, Scenario};

/// Index of a kind in every workload.
pub(crate) const DEPLOYMENT: usize = 0;
pub(crate) const STATEFUL_SET: usize = 1;
pub(crate) const JOB: usize = 2;
pub(crate) const WIDGET: usize = 3;
pub(crate) const DATABASE: usize = 4;
pub(crate) const PLATFORM: usize = 5;
pub(crate) const FLEET: usize = 6;

/// A reference workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceWorkload {
    /// A parent, its children, a new generation, a failure and its end.
    Rollout,
    /// The same of an operator that leaves the mark of Kopf.
    KopfRollout,
    /// The same of an operator that says nothing.
    SilentRollout,
    /// Four levels, a failure at the bottom, and a branch that is deleted and created again.
    Cascade,
    /// Parent and children are deleted and created again under their names.
    Recreation,
    /// A Job completes, is deleted, and runs again.
    FinishedJob,
    /// A child moves from one parent to another, and is orphaned.
    MovedChild,
    /// Children that labels select.
    SelectedChildren,
    /// An atomic list of conditions, to which others write.
    SharedConditions,
    /// A parent says of itself that it has failed, and takes that back, at rest and with a new generation.
    ReportedFailure,
    /// A child that hangs in deletion, and a parent too.
    HeldDeletion,
    /// A parent is deleted in the foreground, and waits for its children, one of which is held.
    ForegroundDeletion,
    /// The process ends at rest and in the middle of a rollout.
    NewLeaders,
    /// A policy is edited, refused, mended, deleted and created again, beside another one.
    PolicyEdits,
    /// A policy turns to shadow mode and back, below a policy that writes.
    ModeEdits,
}

impl ReferenceWorkload {
    /// All workloads.
    pub const ALL: [ReferenceWorkload; 15] = [
        ReferenceWorkload::Rollout,
        ReferenceWorkload::KopfRollout,
        ReferenceWorkload::SilentRollout,
        ReferenceWorkload::Cascade,
        ReferenceWorkload::Recreation,
        ReferenceWorkload::FinishedJob,
        ReferenceWorkload::MovedChild,
        ReferenceWorkload::SelectedChildren,
        ReferenceWorkload::SharedConditions,
        ReferenceWorkload::ReportedFailure,
        ReferenceWorkload::HeldDeletion,
        ReferenceWorkload::ForegroundDeletion,
        ReferenceWorkload::NewLeaders,
        ReferenceWorkload::PolicyEdits,
        ReferenceWorkload::ModeEdits,
    ];

    /// Returns `true` if policies change in it.
    pub(crate) fn changes_policies(self) -> bool {
        matches!(self, ReferenceWorkload::PolicyEdits | ReferenceWorkload::ModeEdits)
    }

    /// Returns its kinds and policies.
    pub(crate) fn scenario(self) -> Scenario {
        let mut kinds = base_kinds();
        if self == ReferenceWorkload::Cascade {
            kinds.push(KindDef::new(CUSTOM_GROUP, "Platform", "platforms", true));
            kinds.push(KindDef::new(CUSTOM_GROUP, "Fleet", "fleets", true));
        }
        if self == ReferenceWorkload::ModeEdits {
            kinds.push(KindDef::new(CUSTOM_GROUP, "Platform", "platforms", true));
        }
        for kind in &mut kinds[DATABASE..] {
            kind.style = match self {
                ReferenceWorkload::KopfRollout => OperatorStyle::Kopf,
                ReferenceWorkload::SilentRollout => OperatorStyle::Silent,
                _ => OperatorStyle::Status,
            };
            kind.atomic = self == ReferenceWorkload::SharedConditions;
        }
        let mut first_policies = vec![policy_of(1, DATABASE, self.database_groups())];
        if self == ReferenceWorkload::Cascade {
            first_policies.push(policy_of(
                2,
                PLATFORM,
                vec![at_least_one(DATABASE), at_least_one(DEPLOYMENT)],
            ));
            first_policies.push(policy_of(3, FLEET, vec![at_least_one(PLATFORM)]));
        }
        if self == ReferenceWorkload::ModeEdits {
            first_policies.push(policy_of(2, PLATFORM, vec![at_least_one(DATABASE)]));
        }
        if self == ReferenceWorkload::PolicyEdits {
            let beside = policy_of(2, DATABASE, vec![at_least_one(STATEFUL_SET)]);
            first_policies.push(PolicyDef {
                condition: "StorageReady",
                other_condition: other_type_of("StorageReady"),
                ..beside
            });
        }
        Scenario { kinds, first_policies }
    }

    fn database_groups(self) -> Vec<GroupDef> {
        match self {
            ReferenceWorkload::FinishedJob => vec![at_least_one(JOB), at_least_one(DEPLOYMENT)],
            ReferenceWorkload::SelectedChildren => vec![GroupDef { by_label: true, ..at_least_one(WIDGET) }],
            ReferenceWorkload::MovedChild => vec![at_least_one(DEPLOYMENT)],
            _ => vec![at_least_one(DEPLOYMENT), GroupDef::of_kind(STATEFUL_SET)],
        }
    }
}

fn at_least_one(kind: usize) -> GroupDef {
    GroupDef { min: 1, ..GroupDef::of_kind(kind) }
}

fn policy_of(number: usize, parent: usize, groups: Vec<GroupDef>) -> PolicyDef {
    PolicyDef {
        id: PolicyId(small_number(number)),
        number,
        parent,
        condition: "Ready",
        other_condition: other_type_of("Ready"),
        fallback: None,
        groups,
        child_namespaces: &SIM_NAMESPACES,
        debounce: DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::from_secs(1),
        hold: Duration::ZERO,
        availability: Availability::Strict,
        grace: Duration::ZERO,
        limits: StuckLimits {
            pending: Duration::from_secs(30),
            terminating: Duration::from_secs(20),
            progress: Duration::from_hours(1_000),
        },
        deadline: None,
        acceptance: Acceptance::Accepted,
        shadow: false,
    }
}
