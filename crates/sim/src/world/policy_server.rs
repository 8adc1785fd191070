//! ReadinessPolicies as the API server holds them, and their authors.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::Quorum;

use serde_json::Value;
use watcher::status::written_types;

use super::object_model::ModelObject;
use super::policy_object::{OTHER_RELEASE, OWN_RELEASE, PolicyObject, SelectedBy, merge_patch};
use crate::scenario::{ChildRuleDef, Dice, DiceStream, PolicyDef, SeedStreams, draw_child_namespaces};

/// Number of kinds whose objects are no parents: only their groups get rules of their own.
const LEAF_KINDS: usize = 4;

/// Chance of an edit to turn shadow mode on or off, in per cent.
const MODE_EDIT_PERCENT: usize = 15;

/// Chance of an edit to give the condition another type, in per cent.
const TYPE_EDIT_PERCENT: usize = 12;

/// Creation time of the policies with which a history begins, in milliseconds since the Unix epoch.
pub(crate) const FIRST_POLICIES_MS: i64 = 1_799_990_000_000;

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
    pub(crate) object: PolicyObject,
}

impl StoredPolicy {
    /// Returns what its release says by it: the spec that was accepted last.
    pub(crate) fn said(&self) -> Option<&PolicyDef> {
        self.kept.as_ref().map(|(_, spec)| spec).filter(|spec| !spec.shadow)
    }

    /// Returns `true` if the other release has it.
    pub(crate) fn is_others(&self) -> bool {
        self.object.selected_by == SelectedBy::Theirs && self.object.is_claimed_by(OTHER_RELEASE)
    }

    /// Returns `true` if the release under test has it.
    pub(crate) fn is_own(&self) -> bool {
        self.object.selected_by == SelectedBy::Ours && self.object.is_claimed_by(OWN_RELEASE)
    }

    /// Returns the types that it writes on parents of this kind.
    pub(crate) fn said_types(&self, kind: usize) -> Vec<&'static str> {
        let said = self.said().filter(|spec| spec.parent == kind);
        said.map(|spec| written_types(spec.condition, spec.fallback).collect()).unwrap_or_default()
    }

    /// Returns its rank: of those that choose a parent for one condition, the least rules.
    pub(crate) fn rank(&self) -> (i64, String) {
        (self.object.created / 1_000, self.stub.name())
    }
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
    /// Last time at which labels, spec or claims of a policy of this number changed, by which releases know whose it is.
    pub(crate) touched_at: BTreeMap<usize, i64>,
    /// Last time at which a policy of this parent kind changed that is not ours, or was ours before.
    pub(crate) unsettled_at: BTreeMap<usize, i64>,
    /// Last time at which a release wrote the status of a policy.
    pub(crate) status_written_at: i64,
    /// Namespaces to which the other release is restricted; empty for all.
    pub(crate) other_namespaces: Vec<String>,
    first: Vec<PolicyDef>,
    uids: u64,
    /// The last version of any policy: none comes twice.
    versions: u64,
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
            touched_at: BTreeMap::new(),
            unsettled_at: BTreeMap::new(),
            status_written_at: 0,
            other_namespaces: Vec::new(),
            first: first.to_vec(),
            uids: 0,
            versions: 0,
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
        let object = PolicyObject::new(SelectedBy::Ours, now.max(FIRST_POLICIES_MS));
        let policy = StoredPolicy { number, uid: self.uids, generation: 1, spec, stub, kept: None, object };
        self.store_policy(policy, now);
    }

    /// Creates a policy of the other release.
    pub(crate) fn create_other(&mut self, spec: PolicyDef, created: i64, now: i64) {
        self.uids += 1;
        let stub = PolicyDef { groups: Vec::new(), ..spec.clone() };
        let object = PolicyObject::new(SelectedBy::Theirs, created);
        let (number, uid) = (spec.number, self.uids);
        self.store_policy(
            StoredPolicy { number, uid, generation: 1, spec: Some(spec), stub, kept: None, object },
            now,
        );
    }

    /// Edits the spec of a policy of the other release.
    pub(crate) fn edit_other(&mut self, number: usize, edit: impl FnOnce(&mut PolicyDef), now: i64) {
        let Some(mut policy) = self.stored.get(&number).cloned() else { return };
        if let Some(spec) = &mut policy.spec {
            edit(spec);
            policy.generation += 1;
            self.store_policy(policy, now);
        }
    }

    /// Gives a policy other labels.
    pub(crate) fn relabel_policy(&mut self, number: usize, selected_by: SelectedBy, now: i64) {
        let Some(mut policy) = self.stored.get(&number).cloned() else { return };
        self.note_touch(&policy, now);
        if policy.object.selected_by == SelectedBy::Ours {
            self.absent_at.insert(number, now);
        }
        policy.object.selected_by = selected_by;
        if selected_by == SelectedBy::Ours {
            self.absent_at.insert(number, now);
        }
        self.store_policy(policy, now);
    }

    /// Merges a patch into the status of a policy, if it is still the same one, and of this version where the patch names one.
    pub(crate) fn patch_status(&mut self, (number, uid): (usize, u64), patch: &Value, now: i64) -> bool {
        let Some(mut policy) = self.stored.get(&number).filter(|policy| policy.uid == uid).cloned() else {
            return false;
        };
        let expected = patch["metadata"]["resourceVersion"].as_str();
        if expected.is_some_and(|version| version != policy.object.version.to_string()) {
            return false;
        }
        merge_patch(&mut policy.object.status, &patch["status"]);
        self.status_written_at = now;
        self.store_policy(policy, now);
        true
    }

    /// Policies whose labels are for the release under test.
    pub(crate) fn selected(&self) -> impl Iterator<Item = &StoredPolicy> {
        self.stored.values().filter(|policy| policy.object.selected_by == SelectedBy::Ours)
    }

    /// Returns `true` if the other release has the parents of this namespace.
    pub(crate) fn other_has(&self, namespace: &str) -> bool {
        let names = &self.other_namespaces;
        names.is_empty() || namespace.is_empty() || names.iter().any(|name| name == namespace)
    }

    /// Returns `true` if no older policy, of any release that has it there, chooses this parent for the same condition.
    pub(crate) fn rules(&self, policy: &StoredPolicy, parent: &ModelObject) -> bool {
        let condition = policy.said().map(|spec| spec.condition);
        let chooses = |other: &&StoredPolicy| {
            let is_there = other.is_own() || (other.is_others() && self.other_has(&parent.namespace));
            is_there
                && other
                    .said()
                    .is_some_and(|spec| spec.parent == parent.kind && Some(spec.condition) == condition)
        };
        self.stored.values().filter(chooses).all(|other| other.rank() >= policy.rank())
    }

    fn note_touch(&mut self, policy: &StoredPolicy, now: i64) {
        self.touched_at.insert(policy.number, now);
        if policy.object.selected_by != SelectedBy::Ours {
            self.unsettled_at.insert(policy.stub.parent, now);
        }
    }

    fn store_policy(&mut self, mut policy: StoredPolicy, now: i64) {
        self.versions += 1;
        policy.object.version = self.versions;
        self.note_touch(&policy, now);
        if self.is_in_shadow(policy.number) {
            self.left_shadow_at.insert(policy.number, now);
        }
        self.specs_by_uid.entry(policy.uid).or_default().extend(policy.spec.clone());
        self.changes.push(PolicyChange::Applied(policy.clone()));
        self.stored.insert(policy.number, policy);
    }

    /// Keeps an accepted spec in the status of its policy, if that is still the same one, and has kept no later one: the writes of
    /// a process arrive in their order.
    pub(crate) fn keep_accepted(&mut self, number: usize, uid: u64, accepted: (i64, PolicyDef), now: i64) {
        let is_news = |policy: &&mut StoredPolicy| {
            policy.uid == uid && policy.kept.as_ref().is_none_or(|(generation, _)| *generation <= accepted.0)
        };
        if let Some(policy) = self.stored.get_mut(&number).filter(is_news) {
            policy.kept = Some(accepted);
            self.versions += 1;
            policy.object.version = self.versions;
            self.status_written_at = now;
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
            self.note_touch(&policy, now);
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
    pub(crate) fn is_deletable(&self, number: usize) -> bool {
        let kind = self.first[number - 1].parent;
        let of_kind = self.selected().filter(|policy| policy.stub.parent == kind).count();
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
