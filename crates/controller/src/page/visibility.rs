//! Kinds and namespaces that a viewer may see.

use std::collections::BTreeSet;
use std::ops::Deref;

use aggregator::KindId;
use rustc_hash::FxHashSet;
use watcher::reflector::NamespaceName;

use super::authz::PageViewer;
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::view::KindNamespace;
use crate::reviews::AccessRight;
use rollcall_core::ClusterNames;

/// Scope that a viewer may see.
#[derive(Clone, Debug, Default)]
pub(super) struct VisibleScope {
    /// The viewer may see everything.
    pub(super) all: bool,
    /// Kinds visible in every namespace.
    kinds: FxHashSet<KindId>,
    /// Kinds visible in single namespaces.
    pub(super) places: FxHashSet<KindNamespace>,
    /// There were more namespaces than one request may review.
    pub(super) truncated: bool,
}

impl VisibleScope {
    pub(super) fn may_see(&self, kind: KindId, namespace: &NamespaceName) -> bool {
        self.all || self.kinds.contains(&kind) || self.places.contains(&(kind, namespace.clone()))
    }

    /// True if the viewer may see nothing.
    fn is_nothing(&self) -> bool {
        !self.all && self.kinds.is_empty() && self.places.is_empty()
    }
}

/// What was reviewed of kinds and namespaces.
#[derive(Debug)]
pub(super) enum ReviewedPlaces<K, N> {
    /// The viewer may list everything.
    All,
    /// The viewer may list these.
    Some {
        /// Kinds, in every namespace.
        kinds: BTreeSet<K>,
        /// Kinds, each in a namespace.
        places: BTreeSet<(K, N)>,
        /// There were more namespaces than one request may review.
        truncated: bool,
    },
}

impl<K: Clone + Ord, N: Clone + Ord> ReviewedPlaces<K, N> {
    /// True if the viewer may list this kind in this namespace.
    pub(super) fn contains(&self, kind: &K, namespace: &N) -> bool {
        match self {
            ReviewedPlaces::All => true,
            ReviewedPlaces::Some { kinds, places, .. } => {
                kinds.contains(kind) || places.contains(&(kind.clone(), namespace.clone()))
            }
        }
    }
}

/// Reviews these kinds and namespaces by the right to read each: everywhere, or else in the namespace.
pub(super) async fn review_places<K: Clone + Ord, N: Clone + Ord + Deref<Target = str>>(
    page: &PageService,
    viewer: &PageViewer,
    places: BTreeSet<(K, N)>,
    right: impl Fn(&K, &str) -> AccessRight,
) -> Result<ReviewedPlaces<K, N>, PageRefusal> {
    if matches!(viewer, PageViewer::Local) {
        return Ok(ReviewedPlaces::All);
    }
    let kinds: Vec<K> =
        places.iter().map(|(kind, _)| kind.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let everywhere = kinds.iter().map(|kind| right(kind, "")).collect();
    let (allowed, _) = page.0.authz.allowed_rights(viewer, everywhere).await?;
    let kinds: BTreeSet<K> = allowed.into_iter().map(|at| kinds[at].clone()).collect();
    let open: Vec<(K, N)> =
        places.into_iter().filter(|(kind, space)| !kinds.contains(kind) && !space.is_empty()).collect();
    let rights = open.iter().map(|(kind, namespace)| right(kind, namespace)).collect();
    let (allowed, truncated) = page.0.authz.allowed_rights(viewer, rights).await?;
    let places = allowed.into_iter().map(|at| open[at].clone()).collect();
    Ok(ReviewedPlaces::Some { kinds, places, truncated })
}

/// Subset of these kinds and namespaces that `viewer` may list.
pub(super) async fn visible_to(
    page: &PageService,
    viewer: &PageViewer,
    names: &ClusterNames,
    places: impl IntoIterator<Item = KindNamespace>,
) -> Result<VisibleScope, PageRefusal> {
    let right = |kind: &KindId, namespace: &str| list_right(page, names, *kind, namespace);
    let places =
        if matches!(viewer, PageViewer::Local) { BTreeSet::new() } else { places.into_iter().collect() };
    Ok(match review_places(page, viewer, places, right).await? {
        ReviewedPlaces::All => VisibleScope { all: true, ..VisibleScope::default() },
        ReviewedPlaces::Some { kinds, places, truncated } => VisibleScope {
            all: false,
            kinds: kinds.into_iter().collect(),
            places: places.into_iter().collect(),
            truncated,
        },
    })
}

/// Right to list a kind in a namespace.
fn list_right(page: &PageService, names: &ClusterNames, kind: KindId, namespace: &str) -> AccessRight {
    let followed = page.0.resolved.get(&kind).map(|known| known.api.clone());
    let (group, resource) = followed.map_or_else(
        || {
            let (name, label) = names.kinds.get(&kind).cloned().unwrap_or_default();
            let group = label.strip_prefix(&name).unwrap_or_default().trim_start_matches('.').to_owned();
            (group, policy::rbac::default_plural(&name))
        },
        |api| (api.group, api.plural),
    );
    AccessRight { verb: "list", group, resource, namespace: namespace.to_owned(), name: String::new() }
}

/// Fails if `viewer` may see nothing, and may not know either that there is nothing. Where not everything was reviewed, there
/// may be something.
pub(super) async fn require_any_right(
    page: &PageService,
    viewer: &PageViewer,
    seen: &VisibleScope,
    names: &ClusterNames,
    namespace: &str,
) -> Result<(), PageRefusal> {
    let is_refused =
        seen.is_nothing() && !seen.truncated && !may_list_any(page, viewer, names, namespace).await?;
    if is_refused { Err(PageRefusal::NoRights) } else { Ok(()) }
}

/// True if `viewer` may know that there is nothing to see: a viewer who may list a kind of parent is told that
/// there is none.
async fn may_list_any(
    page: &PageService,
    viewer: &PageViewer,
    names: &ClusterNames,
    namespace: &str,
) -> Result<bool, PageRefusal> {
    let reflector = &page.0.views.reflector;
    let known: Vec<KindId> = page.0.resolved.iter().map(|kind| *kind.key()).collect();
    let has_parents =
        |kind: &KindId| reflector.interest(*kind).is_some_and(|interest| !interest.parent.is_empty());
    let parents: Vec<KindId> = known.into_iter().filter(has_parents).collect();
    let rights: Vec<_> = parents.into_iter().map(|kind| list_right(page, names, kind, namespace)).collect();
    // Without policies there is nothing to hide.
    Ok(rights.is_empty() || !page.0.authz.allowed_rights(viewer, rights).await?.0.is_empty())
}
