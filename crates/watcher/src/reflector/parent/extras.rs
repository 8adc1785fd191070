//! What few parents have.

use arcstr::ArcStr;

use super::super::kopf::outcomes::SeenFailure;
use super::super::rules_of_parent::OutrankedPolicy;
use super::deletion::ParentDeletion;
use crate::status::StatusFailure;

/// Data that few parents have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reflector) struct ParentExtras {
    /// Handlers that hold up the operator, as far as it reports them.
    pub(super) progress: Option<Box<str>>,
    /// The operator's failure to handle the current generation, where it was seen.
    pub(super) failure: Option<SeenFailure>,
    /// Failure that its own status reports.
    pub(super) reported: Option<StatusFailure>,
    /// What it was told of a failure is what its status says, or said until lately.
    pub(super) tells_status: bool,
    /// Its deletion; `None` if it is not being deleted.
    pub(super) deletion: Option<ParentDeletion>,
    /// Condition types of Rollcall's on this parent that kept being overwritten.
    pub(super) overwritten_types: Vec<ArcStr>,
    /// Policies that select it too, and leave it to an older one.
    pub(super) outranked: Vec<OutrankedPolicy>,
}

impl ParentExtras {
    /// Boxes the data; `None` if all of it is empty.
    pub(super) fn into_boxed(self) -> Option<Box<ParentExtras>> {
        (self != ParentExtras::default()).then(|| Box::new(self))
    }

    /// Bytes that it takes, with what hangs on it.
    pub(in crate::reflector) fn held_bytes(&self) -> usize {
        let texts = [
            self.progress.as_deref(),
            self.failure.as_ref().and_then(|failure| failure.handlers.as_deref()),
            self.reported.as_ref().map(|reported| &*reported.text),
            self.deletion.as_ref().map(|deletion| &*deletion.text),
        ];
        size_of_val(self)
            + texts.into_iter().flatten().map(str::len).sum::<usize>()
            + size_of_val(self.overwritten_types.as_slice())
            + size_of_val(self.outranked.as_slice())
    }
}
