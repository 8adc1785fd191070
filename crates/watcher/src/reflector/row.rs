//! One row: what is known of one object.

use aggregator::{KindId, Link, PolicyId, SelectorId};
use readiness::{Assessment, Level, Since, Time};

use super::memory::Remembered;
use super::parent::ParentRow;
use super::refined::Refined;

/// One object that a parent owns or selects, or that is a parent.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its kind.
    pub kind: KindId,
    /// A fingerprint of its finalizers.
    pub(super) finalizers: u16,
    /// Its name.
    pub name: Box<str>,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: Namespace,
    /// Its version: nothing older is ever applied.
    pub version: u64,
    /// `metadata.generation`, its low bits.
    pub generation: u32,
    /// When it was created, in seconds.
    pub(super) created: u32,
    /// Which of its kind's lists last had it.
    pub(super) epoch: u32,
    /// Its native verdict (or, with several lenses, the first).
    pub assessment: Assessment,
    /// What few rows have, behind a thin pointer.
    pub(super) aside: Option<Box<Aside>>,
    /// For whom it counts.
    pub(super) links: Links,
    /// What it is as a parent.
    pub parent: Option<Box<ParentRow>>,
}

/// What few rows have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Aside {
    /// Verdicts through further lenses.
    pub(super) beside: Vec<Assessment>,
    /// What was found below it, and the verdicts as they are without that; both through all lenses.
    pub(super) refined: Option<(Vec<Option<Refined>>, Vec<Assessment>)>,
    /// By what those that it counts for select, because it claims volumes.
    pub(super) lends: Box<[(PolicyId, SelectorId)]>,
    /// It is gone: this is what is remembered of it.
    pub(super) remembered: Option<Remembered>,
    /// Since when it has not been ready, through each lens; none at all where it is ready through all.
    pub(super) since: Vec<Option<Since>>,
}

impl Aside {
    /// Nothing of it where nothing is in it.
    pub(super) fn boxed(self) -> Option<Box<Aside>> {
        (self != Aside::default()).then(|| Box::new(self))
    }
}

/// A namespace name, shared by all rows that are in it; half as wide as an `Arc<str>`.
pub type Namespace = arcstr::ArcStr;

/// None or one inline, more behind a thin pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Links {
    #[default]
    None,
    One(Link),
    Many(Box<Box<[Link]>>),
}

impl Links {
    pub(super) fn of(links: Vec<Link>) -> Links {
        match links.as_slice() {
            [] => Links::None,
            [one] => Links::One(*one),
            _ => Links::Many(Box::new(links.into())),
        }
    }

    pub(super) fn as_slice(&self) -> &[Link] {
        match self {
            Links::None => &[],
            Links::One(one) => std::slice::from_ref(one),
            Links::Many(many) => many,
        }
    }
}

impl Row {
    /// When it was created.
    pub fn created(&self) -> Time {
        Time(i64::from(self.created) * 1_000)
    }

    /// It is gone, and its outcome is remembered.
    pub fn is_remembered(&self) -> bool {
        self.remembered().is_some()
    }

    pub(super) fn remembered(&self) -> Option<&Remembered> {
        self.aside.as_ref()?.remembered.as_ref()
    }

    /// Its verdict through a lens.
    pub fn through(&self, lens: u8) -> &Assessment {
        match (lens, &self.aside) {
            (0, _) | (_, None) => &self.assessment,
            (lens, Some(aside)) => aside.beside.get(usize::from(lens) - 1).unwrap_or(&self.assessment),
        }
    }

    /// Since when it has not been ready through a lens; `None` where it is, or where the loop has not looked yet.
    pub fn since(&self, lens: u8) -> Option<&Since> {
        self.kept_since(lens).filter(|since| since.at != super::since::OPEN)
    }

    pub(super) fn kept_since(&self, lens: u8) -> Option<&Since> {
        self.aside.as_ref()?.since.get(usize::from(lens))?.as_ref()
    }

    /// It counts for somebody, and through some lens it is not ready or may become so by itself.
    pub(super) fn is_unready(&self) -> bool {
        !self.links.as_slice().is_empty() && self.assessments().any(unready)
    }

    pub(super) fn assessments(&self) -> impl Iterator<Item = &Assessment> {
        std::iter::once(&self.assessment).chain(self.aside.iter().flat_map(|a| &a.beside))
    }

    /// The next moment at which any of its verdicts changes by itself, after `now`.
    pub(super) fn recheck(&self, now: Time) -> Option<Time> {
        self.assessments().filter_map(|a| a.then.as_ref().map(|t| t.0)).filter(|at| *at > now).min()
    }
}

/// It is not ready, or may become so by itself.
pub(super) fn unready(assessment: &Assessment) -> bool {
    assessment.verdict.level != Level::Ready || assessment.then.is_some()
}
