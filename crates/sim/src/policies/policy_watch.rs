//! The policies of a history: their server, the service's knowledge of them, and the plan on its way to the loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aggregator::PolicyId;
use rollcall_core::RuleSwaps;

use super::policy_follower::PolicyFollower;
use super::policy_plan::PolicyPlan;
use super::policy_server::{PolicyServer, StoredPolicy};
use crate::dice::Dice;
use crate::scenario::PolicyDef;

/// Part of the randomness that belongs to policies.
const POLICY_DICE: u64 = 6;

/// An event of the policies' part of the simulation.
#[derive(Debug)]
pub(crate) enum PolicyEvent {
    /// An author takes the next action.
    Act,
    /// The service's list of policies begins.
    List,
    /// The next page of that list arrives, or its end.
    Page,
    /// The watch of policies delivers the available changes.
    Deliver,
    /// The server answers whether a policy that is said to be gone is there.
    Confirm(Box<PolicyToConfirm>),
    /// The status of a policy is written, which keeps the spec that was accepted.
    Keep(Box<PolicyToConfirm>),
    /// Policies have been refused for long.
    Redecide,
    /// A kind is followed under the plan that holds.
    Follow(usize),
}

/// A policy as the service knows it.
#[derive(Debug)]
pub(crate) struct PolicyToConfirm(pub(super) StoredPolicy);

/// The list or watch of policies.
#[derive(Default)]
pub(super) enum PolicyWire {
    #[default]
    Down,
    /// Policies that are still to be delivered, and the position from which the watch goes on.
    Listing(VecDeque<StoredPolicy>, usize),
    /// Position among the server's changes.
    Watching(usize),
}

/// Everything about policies in one history.
pub(crate) struct PolicyWatch {
    pub(super) dice: Dice,
    /// Policies change in this history.
    pub(crate) is_changing: bool,
    pub(super) server: PolicyServer,
    pub(super) follower: PolicyFollower,
    pub(super) wire: PolicyWire,
    /// Position from which a broken watch can go on.
    pub(super) resume_from: Option<usize>,
    /// Plans on their way to the loop.
    pub(super) plans: VecDeque<PolicyPlan>,
    pub(super) swaps: RuleSwaps,
    /// Time at which the loop heard of a changed rule, by kind and policy, until the kind is listed.
    pub(super) swapped_at: BTreeMap<(usize, String), i64>,
    /// Kinds that were started anew and are not listed yet, as the loop knows.
    pub(crate) unlisted: BTreeSet<usize>,
    /// Policies whose parents were not listed for them yet, with the time of their plan.
    pub(crate) unseen: BTreeMap<PolicyId, i64>,
    /// By policy and parent: a generation, and since when it was not ready at the latest when another plan came.
    pub(crate) former_unready: BTreeMap<(usize, String), (i64, i64)>,
    /// Time of the last start of the process.
    pub(super) started_at: i64,
}

impl PolicyWatch {
    pub(crate) fn new(seed: u64, first: &[PolicyDef], is_changing: bool) -> PolicyWatch {
        PolicyWatch {
            is_changing,
            server: PolicyServer::new(Dice::new(seed, POLICY_DICE + 1), first),
            dice: Dice::new(seed, POLICY_DICE),
            follower: PolicyFollower::default(),
            wire: PolicyWire::Down,
            resume_from: None,
            plans: VecDeque::new(),
            swaps: RuleSwaps::default(),
            swapped_at: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            unseen: BTreeMap::new(),
            former_unready: BTreeMap::new(),
            started_at: 0,
        }
    }

    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self, now: i64) {
        self.follower = PolicyFollower::default();
        self.wire = PolicyWire::Down;
        self.resume_from = None;
        self.plans.clear();
        self.swaps = RuleSwaps::default();
        self.swapped_at.clear();
        self.unlisted.clear();
        self.unseen.clear();
        self.former_unready.clear();
        self.started_at = now;
    }

    /// Returns `true` if a kind that the policy rests on was not listed since it is followed for the policy.
    pub(crate) fn awaits_list(&self, policy: &PolicyDef) -> bool {
        policy.involved_kinds().iter().any(|kind| self.unlisted.contains(kind))
    }

    /// Returns the specs by which answers may be right now: those of the loop's plan, and those of plans on their way to
    /// it.
    pub(crate) fn coming_specs(&self, number: usize) -> Vec<&PolicyDef> {
        let plans = self.plans.iter().chain(std::iter::once(&self.follower.plan));
        plans.flat_map(|plan| plan.policies.iter().filter(|p| p.number == number)).collect()
    }
}
