//! One row: everything known about one object.

use aggregator::{ChildLink, KindId, PolicyId, SelectorId};
use readiness::{Assessment, FinalizerHold, Level, Reason, Time, UnreadySince};

use super::lists::ListEpoch;
use super::parent::ParentRow;
use super::reevaluation::{is_reevaluation_due, next_reevaluation};
use super::uid_key::UidKey;
use super::whole_workload::WholeWorkload;
use crate::wire::{SpecVersion, WireMeta};

/// One object that a parent owns or selects, or that is a parent.
#[derive(Clone, Debug)]
pub struct ObjectRow {
    /// Its kind.
    pub kind: KindId,
    /// Fingerprint of its finalizers.
    pub(super) finalizers: u16,
    /// Its name.
    pub name: Box<str>,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: NamespaceName,
    /// Its resourceVersion: an older one is never applied.
    pub version: u64,
    /// Tells whether it is wanted to be something else than before.
    pub spec_version: SpecVersion,
    /// Creation time in seconds.
    pub(super) created: u32,
    /// By which list of its kind it is known to be there.
    pub(super) epoch: ListEpoch,
    /// Its verdict by the built-in rules or, with several rules, by the first.
    pub assessment: Assessment,
    /// Data that few rows have, behind a thin pointer.
    pub(super) extras: Option<Box<RowExtras>>,
    /// Links to the parents for which it counts.
    pub(super) links: RowLinks,
    /// Its data as a parent.
    pub parent: Option<Box<ParentRow>>,
}

/// An owned object that explains why its owner is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefinedCause {
    /// Such as `Pod web-0`.
    pub name: Box<str>,
    /// Assessment of that object by its own rule.
    pub assessment: Assessment,
}

/// Marks the row of a deleted object: its links count for one generation of the parent only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RememberedLinks {
    pub(super) only: Box<[(ChildLink, u64)]>,
}

/// Not dated by the loop yet.
pub(super) const SINCE_NOT_DATED: Time = Time(i64::MAX);

/// A rule that the newest version of an object awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AwaitedRule {
    /// Index of the rule.
    pub(super) rule_index: u16,
    /// Since when what is known of the object is about an older version.
    pub(super) since: Time,
}

/// Data that few rows have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowExtras {
    /// Verdicts of further rules.
    pub(super) further_assessments: Vec<Assessment>,
    /// Causes found below it, and its verdicts without them, both by rule index.
    pub(super) refined: Option<(Vec<Option<RefinedCause>>, Vec<Assessment>)>,
    /// Selectors lent to its owners because it claims volumes.
    pub(super) lent_selectors: Box<[(PolicyId, SelectorId)]>,
    /// The object is gone; these are its remembered links.
    pub(super) remembered: Option<RememberedLinks>,
    /// Time since which it has not been ready, by rule index; empty if it is ready under all rules.
    pub(super) since: Vec<Option<UnreadySince>>,
    /// Rules that its newest version awaits.
    pub(super) awaited: Vec<AwaitedRule>,
    /// What proofs read of it.
    pub(super) excerpt: Option<ObjectExcerpt>,
    /// A workload as it was rolled out whole last, while only the number of its replicas moves.
    pub(super) whole: Option<WholeWorkload>,
    /// The owners whose deletion in the foreground waits for it; `None` unless it is being deleted itself.
    pub(super) blocked_owners: Option<Box<[UidKey]>>,
}

/// The owners whose deletion in the foreground waits for an object that is being deleted itself; `None` for any other object.
pub(super) fn find_blocked_owners(meta: &WireMeta) -> Option<Box<[UidKey]>> {
    meta.deleted?;
    let blocked = meta.owners.iter().filter(|owner| owner.blocks_deletion);
    Some(blocked.map(|owner| UidKey::from_text(&owner.uid)).collect())
}

/// The fields of an object that proofs read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObjectExcerpt {
    /// As JSON.
    Fields(Box<str>),
    /// They are too large, or nested too deeply.
    TooLarge,
}

impl ObjectExcerpt {
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            ObjectExcerpt::Fields(text) => text.len(),
            ObjectExcerpt::TooLarge => 0,
        }
    }
}

impl RowExtras {
    /// Boxes the data; `None` if all of it is empty.
    pub(super) fn into_boxed(self) -> Option<Box<RowExtras>> {
        (self != RowExtras::default()).then(|| Box::new(self))
    }
}

/// A namespace name, shared by all rows in the namespace; half as wide as an `Arc<str>`.
pub type NamespaceName = arcstr::ArcStr;

/// Links with up to one inline, more behind a thin pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum RowLinks {
    #[default]
    None,
    One(ChildLink),
    Many(Box<Box<[ChildLink]>>),
}

// What is rarer than one link lies behind a pointer, so that a row is no wider for it.
const _: () = assert!(size_of::<RowLinks>() == 16);

impl RowLinks {
    pub(super) fn from_vec(links: Vec<ChildLink>) -> RowLinks {
        match links.as_slice() {
            [] => RowLinks::None,
            [one] => RowLinks::One(*one),
            _ => RowLinks::Many(Box::new(links.into())),
        }
    }

    pub(super) fn as_slice(&self) -> &[ChildLink] {
        match self {
            RowLinks::None => &[],
            RowLinks::One(one) => std::slice::from_ref(one),
            RowLinks::Many(many) => many,
        }
    }
}

impl ObjectRow {
    /// Returns the creation time.
    pub fn created_at(&self) -> Time {
        Time(i64::from(self.created) * 1_000)
    }

    /// Returns `true` if the object is gone and its outcome is remembered.
    pub fn is_remembered(&self) -> bool {
        self.remembered_links().is_some()
    }

    pub(super) fn remembered_links(&self) -> Option<&RememberedLinks> {
        self.extras.as_ref()?.remembered.as_ref()
    }

    /// Returns `true` if the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.extras.as_ref().is_some_and(|aside| aside.blocked_owners.is_some())
    }

    /// Returns `true` if the object is being deleted, and a deletion of the owner with this uid in the foreground waits for that.
    pub fn blocks_deletion_of(&self, owner: &str) -> bool {
        let blocked = self.extras.as_ref().and_then(|aside| aside.blocked_owners.as_deref());
        blocked.is_some_and(|blocked| blocked.contains(&UidKey::from_text(owner)))
    }

    /// Returns the finalizers that block the deletion of the object, if it is being deleted and has some. A finished object keeps
    /// its outcome for as long as its deletion is not stuck: there the verdict to come has them.
    pub fn finalizer_hold(&self) -> Option<&FinalizerHold> {
        let plain = self.extras.as_ref().and_then(|aside| aside.refined.as_ref()).map(|(_, plain)| plain);
        let own = plain.into_iter().flatten().chain(self.all_assessments());
        let mut verdicts =
            own.flat_map(|own| std::iter::once(&own.verdict).chain(own.then.as_ref().map(|then| &then.1)));
        verdicts.find_map(|verdict| match &verdict.reason {
            Reason::Finalizers(hold) => Some(&**hold),
            _ => None,
        })
    }

    /// Returns `true` if causes found below the object refine its verdict.
    pub fn has_causes_below(&self) -> bool {
        self.extras.as_ref().is_some_and(|aside| aside.refined.is_some())
    }

    /// Returns the verdict for a rule index.
    pub fn assessment_for(&self, rule_index: u16) -> &Assessment {
        match (rule_index, &self.extras) {
            (0, _) | (_, None) => &self.assessment,
            (rule_index, Some(aside)) => {
                aside.further_assessments.get(usize::from(rule_index) - 1).unwrap_or(&self.assessment)
            }
        }
    }

    /// Returns since when the object has not been ready under a rule; `None` if it is ready or the loop has not dated
    /// it yet.
    pub fn unready_since(&self, rule_index: u16) -> Option<&UnreadySince> {
        self.stored_since(usize::from(rule_index)).filter(|since| since.at != SINCE_NOT_DATED)
    }

    /// Returns since when the verdict for a rule index has been about an older version, because this one awaits its rule;
    /// `None` if it does not.
    pub fn awaited_since(&self, rule_index: u16) -> Option<Time> {
        let awaited = &self.extras.as_ref()?.awaited;
        awaited.iter().find(|rule| rule.rule_index == rule_index).map(|rule| rule.since)
    }

    /// The same for the rule by which a group of a policy judges it.
    pub fn awaited_in_group(&self, policy: PolicyId, group: u8) -> Option<Time> {
        let link = self.links.as_slice().iter().find(|link| (link.policy, link.group) == (policy, group))?;
        self.awaited_since(link.rule_index)
    }

    /// The object awaits a rule since then.
    pub(super) fn await_rule_since(&mut self, rule_index: u16, since: Time) {
        let awaited = &mut self.extras.get_or_insert_default().awaited;
        awaited.retain(|rule| rule.rule_index != rule_index);
        awaited.push(AwaitedRule { rule_index, since });
    }

    /// The object does not await a rule any more.
    pub(super) fn end_awaiting(&mut self, rule_index: u16) {
        if let Some(mut aside) = self.extras.take() {
            aside.awaited.retain(|rule| rule.rule_index != rule_index);
            self.extras = aside.into_boxed();
        }
    }

    pub(super) fn stored_since(&self, rule_index: usize) -> Option<&UnreadySince> {
        self.extras.as_ref()?.since.get(rule_index)?.as_ref()
    }

    /// Returns `true` if the object counts for a parent and is not ready, or may become so with time, under some rule.
    pub(super) fn is_unready(&self) -> bool {
        !self.links.as_slice().is_empty() && self.all_assessments().any(is_or_becomes_unready)
    }

    pub(super) fn all_assessments(&self) -> impl Iterator<Item = &Assessment> {
        std::iter::once(&self.assessment).chain(self.extras.iter().flat_map(|a| &a.further_assessments))
    }

    /// Returns the next moment after `now` at which any of its verdicts changes with time, or is to be renewed.
    pub(super) fn next_recheck(&self, now: Time) -> Option<Time> {
        let turns = self.all_assessments().filter_map(|a| a.then.as_ref().map(|t| t.0));
        turns.filter(|at| *at > now).chain(next_reevaluation(self.all_assessments(), now)).min()
    }

    /// Returns `true` if one of its verdicts was given by the clock, and the object is to be read and evaluated again.
    pub fn is_reevaluation_due(&self, now: Time) -> bool {
        is_reevaluation_due(self.all_assessments(), now)
    }
}

/// Returns `true` if the verdict is not ready, or may become so with time.
pub(super) fn is_or_becomes_unready(assessment: &Assessment) -> bool {
    assessment.verdict.level != Level::Ready || assessment.then.is_some()
}
