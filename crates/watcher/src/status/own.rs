//! Recognition of our own entries: those of a type that a policy writes, and in our words where the server does not say whose an
//! entry is.

use super::entry::ConditionEntry;

/// Written beside `Ready`, for readers that know kstatus.
const BESIDE_READY: [&str; 2] = ["Reconciling", "Stalled"];

/// Types of conditions that a policy with this condition and this fallback writes.
pub fn written_types<'a>(condition: &'a str, fallback: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let is_ready = condition == "Ready" || fallback == Some("Ready");
    let beside = if is_ready { &BESIDE_READY[..] } else { &[] };
    std::iter::once(condition).chain(fallback).chain(beside.iter().copied())
}

/// Returns `true` for what is written beside `Ready`, and comes and goes with the answer.
pub(crate) fn is_beside_ready(kind: &str) -> bool {
    BESIDE_READY.contains(&kind)
}

/// Types of conditions that are ours on a parent.
#[derive(Clone, Debug, Default)]
pub struct OwnTypes<'a> {
    /// `None` for any, where it is not known what policies wrote.
    written: Option<Vec<&'a str>>,
    taken: Vec<&'a str>,
    returned: &'a [ConditionEntry],
}

impl<'a> OwnTypes<'a> {
    /// Whatever the type: to look at a parent, not to write on it.
    pub fn any() -> OwnTypes<'a> {
        OwnTypes::default()
    }

    /// These, where they are in our words.
    pub fn of(written: impl IntoIterator<Item = &'a str>) -> OwnTypes<'a> {
        OwnTypes { written: Some(written.into_iter().collect()), ..OwnTypes::default() }
    }

    /// These too, even in the words of others.
    pub fn taking(mut self, taken: impl IntoIterator<Item = &'a str>) -> OwnTypes<'a> {
        self.taken.extend(taken);
        self
    }

    /// These entries too, as they stand: the server returned them for what was written, in other words.
    pub(crate) fn returning(mut self, returned: &'a [ConditionEntry]) -> OwnTypes<'a> {
        self.returned = returned;
        self
    }

    /// Not these.
    pub fn leaving(mut self, left: &[&str]) -> OwnTypes<'a> {
        if let Some(written) = &mut self.written {
            written.retain(|kind| !left.contains(kind));
        }
        self
    }

    /// A policy writes conditions of this type, or did.
    pub(super) fn writes(&self, kind: &str) -> bool {
        self.written.as_ref().is_none_or(|written| written.contains(&kind))
    }

    /// The server returned this entry for one that was written.
    pub(super) fn has_returned(&self, entry: &ConditionEntry) -> bool {
        self.returned.contains(entry)
    }

    pub(super) fn takes(&self, kind: &str) -> bool {
        self.taken.contains(&kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_writes_its_condition_its_fallback_and_beside_ready_what_kstatus_reads() {
        let types = |condition, fallback| written_types(condition, fallback).collect::<Vec<_>>();
        assert_eq!(types("Ready", None), ["Ready", "Reconciling", "Stalled"]);
        assert_eq!(types("Healthy", None), ["Healthy"]);
        assert_eq!(types("Healthy", Some("Ready")), ["Healthy", "Ready", "Reconciling", "Stalled"]);
        assert_eq!(types("Ready", Some("ChildrenReady"))[..2], ["Ready", "ChildrenReady"]);
    }
}
