//! ReadinessPolicies as the API server holds them, and their authors.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::Quorum;

use crate::scenario::{ChildRuleDef, Dice, DiceStream, PolicyDef, SeedStreams, draw_child_namespaces};

/// Number of kinds whose objects are no parents: only their groups get rules of their own.
const LEAF_KINDS: usize = 4;

/// Chance of an edit to turn shadow mode on or off, in per cent.
const MODE_EDIT_PERCENT: usize = 15;

/// Chance of an edit to give the condition another type, in per cent.
const TYPE_EDIT_PERCENT: usize = 12;

/// One ReadinessPolicy.
#[derive(Clone, Debug)]
pub(crate) struct StoredPolicy {
    /// Number in its name.
    pub(crate) number: usize,
    pub(crate) uid: u64,
    pub(crate) generation: i64,
    /// The spec; `None` if it does not compile.
    pub(crate) spec: Option<PolicyDef>,
    /// The policy without its children, which can be read even if it does not compile.
    pub(crate) stub: PolicyDef,
    /// Generation and spec that were last accepted, as its status keeps them.
    pub(crate) kept: Option<(i64, PolicyDef)>,
}

/// A change that a watch of policies delivers.
#[derive(Clone, Debug)]
pub(crate) enum PolicyChange {
    Applied(StoredPolicy),
    Deleted(StoredPolicy),
}

/// The server's policies, with all changes since the beginning.
pub(crate) struct PolicyServer {
    pub(crate) dice: Dice,
    namespace_dice: Dice,
    /// When modes change; `None` where they do not.
    mode_dice: Option<Dice>,
    /// When types of conditions change; `None` where they do not.
    type_dice: Option<Dice>,
    pub(crate) stored: BTreeMap<usize, StoredPolicy>,
    pub(crate) changes: Vec<PolicyChange>,
    /// Valid specs that each UID has had.
    pub(crate) specs_by_uid: BTreeMap<u64, Vec<PolicyDef>>,
    /// Last time at which a policy of this number did not exist.
    pub(crate) absent_at: BTreeMap<usize, i64>,
    /// Last time at which a policy of this number left shadow mode.
    left_shadow_at: BTreeMap<usize, i64>,
    first: Vec<PolicyDef>,
    uids: u64,
}

impl PolicyServer {
    pub(crate) fn new(streams: SeedStreams, first: &[PolicyDef]) -> PolicyServer {
        let mut server = PolicyServer {
            dice: DiceStream::Authors.dice(streams.seed),
            namespace_dice: DiceStream::NamespaceEdits.dice(streams.seed),
            mode_dice: streams.widened_by(DiceStream::ModeEdits),
            type_dice: streams.widened_by(DiceStream::TypeEdits),
            stored: BTreeMap::new(),
            changes: Vec::new(),
            specs_by_uid: BTreeMap::new(),
            absent_at: BTreeMap::new(),
            left_shadow_at: BTreeMap::new(),
            first: first.to_vec(),
            uids: 0,
        };
        for policy in first {
            server.create_policy(policy.number, Some(policy.clone()), 0);
        }
        server
    }

    fn first_spec(&self, number: usize) -> PolicyDef {
        self.first[number - 1].clone()
    }

    fn create_policy(&mut self, number: usize, spec: Option<PolicyDef>, now: i64) {
        self.uids += 1;
        let stub = PolicyDef { groups: Vec::new(), ..self.first_spec(number) };
        let policy = StoredPolicy { number, uid: self.uids, generation: 1, spec, stub, kept: None };
        self.store_policy(policy, now);
    }

    fn store_policy(&mut self, policy: StoredPolicy, now: i64) {
        if self.is_in_shadow(policy.number) {
            self.left_shadow_at.insert(policy.number, now);
        }
        self.specs_by_uid.entry(policy.uid).or_default().extend(policy.spec.clone());
        self.changes.push(PolicyChange::Applied(policy.clone()));
        self.stored.insert(policy.number, policy);
    }

    /// Keeps an accepted spec in the status of its policy, if that is still the same one.
    pub(crate) fn keep_accepted(&mut self, number: usize, uid: u64, accepted: (i64, PolicyDef)) {
        if let Some(policy) = self.stored.get_mut(&number).filter(|policy| policy.uid == uid) {
            policy.kept = Some(accepted);
            let policy = policy.clone();
            self.changes.push(PolicyChange::Applied(policy));
        }
    }

    /// Returns `true` if the policy of this number, as it is or was accepted last, is in shadow mode.
    fn is_in_shadow(&self, number: usize) -> bool {
        let kept = |policy: &StoredPolicy| policy.kept.as_ref().is_some_and(|(_, spec)| spec.shadow);
        let is_shadow = |policy: &StoredPolicy| policy.spec.as_ref().map_or(kept(policy), |spec| spec.shadow);
        self.stored.get(&number).is_some_and(is_shadow)
    }

    /// Returns `true` if the policy of this number is in shadow mode, or has been since.
    pub(crate) fn has_been_in_shadow(&self, number: usize, since: i64) -> bool {
        self.is_in_shadow(number) || self.left_shadow_at.get(&number).is_some_and(|at| *at >= since)
    }

    /// Writes a policy, or creates it; without a spec it does not compile. Returns a description.
    pub(crate) fn put_spec(&mut self, number: usize, spec: Option<PolicyDef>, now: i64) -> String {
        if let Some(policy) = self.stored.get(&number).cloned() {
            return self.edit_policy(policy, spec, now);
        }
        self.create_policy(number, spec, now);
        format!("policy-{number} created")
    }

    /// Deletes a policy; returns a description.
    pub(crate) fn delete_policy(&mut self, number: usize, now: i64) -> String {
        if let Some(policy) = self.stored.remove(&number) {
            self.absent_at.insert(number, now);
            self.changes.push(PolicyChange::Deleted(policy));
        }
        format!("policy-{number} deleted")
    }

    /// Lets an author take the next random action; returns its description.
    pub(crate) fn act(&mut self, now: i64) -> String {
        let number = 1 + self.dice.below(self.first.len());
        let Some(policy) = self.stored.get(&number).cloned() else {
            let first = self.first_spec(number);
            let is_valid = self.dice.chance(75);
            self.create_policy(number, is_valid.then_some(first), now);
            return format!("policy-{number} created, valid: {is_valid}");
        };
        match self.dice.below(100) {
            0..14 if self.is_deletable(number) => self.delete_policy(number, now),
            14..28 => self.edit_policy(policy, None, now),
            28..36 => {
                let first = self.first_spec(number);
                self.edit_policy(policy, Some(first), now)
            }
            _ => {
                let mut spec = policy.spec.clone().unwrap_or_else(|| self.first_spec(number));
                self.draw_edit(&mut spec);
                self.edit_policy(policy, Some(spec), now)
            }
        }
    }

    fn edit_policy(&mut self, policy: StoredPolicy, spec: Option<PolicyDef>, now: i64) -> String {
        let number = policy.number;
        if policy.spec == spec {
            return format!("policy-{number} stays as it is");
        }
        let said = spec.as_ref().map(|spec| {
            let rules: Vec<_> = spec.groups.iter().map(|group| (group.kind, group.rule)).collect();
            let mode = if spec.shadow { ", in shadow mode" } else { "" };
            let (of, settle, namespaces) = (spec.condition, spec.settle, spec.child_namespaces);
            format!("{of} by rules {rules:?}, settle {settle:?}, namespaces {namespaces:?}{mode}")
        });
        self.store_policy(StoredPolicy { generation: policy.generation + 1, spec, ..policy }, now);
        format!("policy-{number} edited: {}", said.unwrap_or_else(|| "it does not compile".to_owned()))
    }

    /// Returns `true` if no other policy has parents above this one's: those would go on to judge its parents by what
    /// stands on them.
    fn is_deletable(&self, number: usize) -> bool {
        let kind = self.first[number - 1].parent;
        let of_kind = self.stored.values().filter(|policy| policy.stub.parent == kind).count();
        of_kind > 1 || self.first.iter().all(|policy| policy.groups.iter().all(|group| group.kind != kind))
    }

    fn draw_edit(&mut self, spec: &mut PolicyDef) {
        if self.mode_dice.as_mut().is_some_and(|dice| dice.chance(MODE_EDIT_PERCENT)) {
            spec.shadow = !spec.shadow;
        }
        if self.type_dice.as_mut().is_some_and(|dice| dice.chance(TYPE_EDIT_PERCENT)) {
            spec.rename_condition();
        }
        if self.namespace_dice.chance(15) {
            spec.child_namespaces = draw_child_namespaces(&mut self.namespace_dice);
        }
        let dice = &mut self.dice;
        let at = dice.below(spec.groups.len());
        let group = &mut spec.groups[at];
        match dice.below(10) {
            0..6 if group.kind < LEAF_KINDS => {
                group.rule = *dice.pick(&ChildRuleDef::ALL).unwrap_or(&ChildRuleDef::Native);
            }
            0..7 => {
                let quorums = [Quorum::All, Quorum::Count(1), Quorum::Percent(50)];
                group.quorum = *dice.pick(&quorums).unwrap_or(&Quorum::All);
            }
            7 => group.critical = at == 0 || !group.critical,
            8 => group.min = 1 - group.min.min(1),
            _ => spec.settle = Duration::from_millis(dice.between(500, 5_000).unsigned_abs()),
        }
    }
}
