//! Members that are chosen by a category of kinds. A shape names the category alone, as its group does; which kinds that means is
//! filled in from what the API server serves, and again when it serves others.

use std::ops::Range;

use api::ReadinessPolicySpec;
use api::policy::{ChildRole, ChildSpec, ExpectSpec, KindRef};
use watcher::ServedKinds;

use crate::group_selection::CategoryMembers;
use crate::groups::MAX_GROUPS;

/// Stands in a shape for the API groups of a category, where `kind` names that. No kind that a group names can have this API group.
const ANY_API_GROUP: &str = "*";

/// The kinds of a category, in a shape.
pub(super) fn category_kind(category: &str) -> KindRef {
    KindRef { group: ANY_API_GROUP.to_owned(), version: None, kind: category.to_owned() }
}

/// The category that an entry of a shape stands for.
fn category_of(kind: &KindRef) -> Option<&str> {
    (kind.group == ANY_API_GROUP).then_some(&*kind.kind)
}

/// What a shape means where these kinds are served.
pub(super) struct ExpandedShape {
    pub(super) spec: ReadinessPolicySpec,
    pub(super) categories: Vec<CategoryMembers>,
}

/// Fills in the kinds of categories, or says why groups of this shape cannot be judged.
pub(super) fn expand_shape(shape: &str, served: &ServedKinds) -> Result<ExpandedShape, String> {
    let mut spec: ReadinessPolicySpec = serde_json::from_str(shape).map_err(|error| error.to_string())?;
    let (mut children, mut categories) = (Vec::new(), Vec::new());
    for child in std::mem::take(&mut spec.children) {
        let Some(category) = category_of(&child.kind) else {
            refuse_cluster_scoped(&child.kind, served)?;
            children.push(child);
            continue;
        };
        let members = children_of_category(category, &child, served)?;
        let first = children.len();
        children.extend(members);
        if children.len() > usize::from(MAX_GROUPS) {
            return Err(format!(
                "it cannot be judged: category {category} has {} kinds, and members and kinds together may select in \
                 {MAX_GROUPS} ways: name the kinds that count, in several groups, and one whose members they are",
                children.len() - first
            ));
        }
        categories.push(members_of(category, &child, first..children.len()));
    }
    spec.children = children;
    Ok(ExpandedShape { spec, categories })
}

/// Members are in the namespace of their group: of a kind whose objects are in none there would never be one.
fn refuse_cluster_scoped(kind: &KindRef, served: &ServedKinds) -> Result<(), String> {
    let is_namespaced = served.find(&kind.group, &kind.kind).is_none_or(|kind| kind.namespaced);
    let name =
        if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) };
    let why = format!(
        "it cannot be judged: {name} is cluster-scoped, and members are in the namespace of their group: remove it, or \
         name what is in the namespace and depends on it"
    );
    if is_namespaced { Ok(()) } else { Err(why) }
}

/// The entries of a policy for all kinds of a category.
fn children_of_category(
    category: &str,
    child: &ChildSpec,
    served: &ServedKinds,
) -> Result<Vec<ChildSpec>, String> {
    if let Some(why) = unknown_kinds(category, served) {
        return Err(format!("it cannot be judged: {why}"));
    }
    let of_kind = |(group, kind): &(String, String)| ChildSpec {
        kind: KindRef { group: group.clone(), version: None, kind: kind.clone() },
        // It is their number in all that is expected.
        expect: Some(ExpectSpec { min: Some(0), ..ExpectSpec::default() }),
        ..child.clone()
    };
    let children: Vec<_> = served.of_category(category).map(of_kind).collect();
    if children.is_empty() {
        return Err(format!(
            "it cannot be judged: the API server lists no namespaced kind in category {category} (`kubectl api-resources \
             --categories {category}`)"
        ));
    }
    Ok(children)
}

/// Why it is not known which kinds a category has. What does not answer may have some, whose objects nobody would miss: as the
/// deletion of a namespace does, a group waits for it.
fn unknown_kinds(category: &str, served: &ServedKinds) -> Option<String> {
    if !served.is_known() {
        let why = served.unknown_because().unwrap_or("only the API server knows that");
        return Some(format!("which kinds category {category} has is not known: {why}"));
    }
    let unread: Vec<_> = served.unread.iter().map(|group| &**group).collect();
    (!unread.is_empty()).then(|| {
        format!(
            "which kinds category {category} has is not known while no server answers for API group {}: mend or remove its \
             APIService",
            unread.join(", ")
        )
    })
}

fn members_of(category: &str, child: &ChildSpec, children: Range<usize>) -> CategoryMembers {
    // Of optional members no number is expected, as of those of a kind that is named.
    let is_critical = child.role == ChildRole::Critical;
    let ExpectSpec { min, max, .. } = child.expect.clone().filter(|_| is_critical).unwrap_or_default();
    let min = min.unwrap_or(u32::from(is_critical && max != Some(0)));
    CategoryMembers { category: category.to_owned(), children, min, max }
}

/// The categories whose kinds a shape leaves to the API server.
pub(super) fn categories_of(shape: &str) -> Vec<String> {
    let categories = kinds_of(shape).into_iter().filter_map(|kind| category_of(&kind).map(str::to_owned));
    categories.collect()
}

/// Returns `true` if what a shape means may change with the kinds that are served: it names a category, or a kind whose scope is not
/// known yet or is a wrong one.
pub(super) fn depends_on_served(shape: &str, served: &ServedKinds) -> bool {
    let is_settled =
        |kind: &KindRef| served.find(&kind.group, &kind.kind).is_some_and(|kind| kind.namespaced);
    !kinds_of(shape).iter().all(is_settled)
}

fn kinds_of(shape: &str) -> Vec<KindRef> {
    #[derive(serde::Deserialize)]
    struct ChildKind {
        kind: KindRef,
    }
    #[derive(serde::Deserialize)]
    struct Kinds {
        children: Vec<ChildKind>,
    }
    let read = serde_json::from_str::<Kinds>(shape).map(|shape| shape.children);
    read.into_iter().flatten().map(|child| child.kind).collect()
}
