//! The ReadinessGroups that a policy stands for.

use std::ops::Range;

use api::policy::ChildSpec;
use watcher::plan::{LabelMatcher, NamespaceScope, ShapeMatcher};

/// API group and kind of ReadinessGroups.
pub const GROUP_KIND: (&str, &str) = ("rollcall.dev", "ReadinessGroup");

/// Where a ReadinessGroup names those that come before it.
pub(super) const EARLIER_GROUPS: &str = "spec.after[*]";

/// Where a ReadinessGroup has its members.
pub(super) const MEMBERS: &str = "spec.members";

/// Place of the member that an entry of a policy stands for: it selects by what that says.
pub(super) fn member_of(child: &ChildSpec) -> Option<usize> {
    let find = child.find.as_ref()?;
    let paths = find.refs.iter().chain(find.labels.values());
    let of_member = |path: &String| {
        let (_, place) = path.split_once(MEMBERS)?;
        place.strip_prefix('[')?.split_once(']')?.0.parse().ok()
    };
    paths.into_iter().find_map(of_member)
}

/// A ReadinessGroup in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName {
    /// Its namespace, where the file names it.
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Box<str>,
}

/// The members that a group chooses by a category of kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CategoryMembers {
    /// The category.
    pub(super) category: String,
    /// The entries of the policy that are for its kinds.
    pub(super) children: Range<usize>,
    /// Number of members that are expected in all.
    pub(super) min: u32,
    /// Most members that are expected in all.
    pub(super) max: Option<u32>,
}

/// Selects ReadinessGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSelection {
    /// What they ask for.
    pub(super) shape: ShapeMatcher,
    /// Members that they choose by categories.
    pub(super) categories: Vec<CategoryMembers>,
    /// Labels by which this release is for them.
    pub(super) labels: LabelMatcher,
    /// Their namespaces, and those of their members.
    pub(super) scope: NamespaceScope,
    /// The one that it was read from; `None` for all of that shape.
    pub(super) group: Option<GroupName>,
}

impl GroupSelection {
    /// The group that the policy was made for, where it was read from a file.
    pub fn group(&self) -> Option<&GroupName> {
        self.group.as_ref()
    }

    /// Returns `true` if the groups cannot be judged.
    pub fn is_refused(&self) -> bool {
        self.shape.is_refused()
    }
}
