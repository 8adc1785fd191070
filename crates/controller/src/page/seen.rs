//! Which kinds in which namespaces may somebody see?

use std::collections::BTreeSet;

use aggregator::KindId;
use rustc_hash::FxHashSet;
use watcher::reflector::Namespace;

use super::Page;
use super::gate::{Right, Viewer};
use super::refusal::Refusal;
use super::shown::Names;
use super::tree::Place;

/// What somebody may see.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Everything.
    pub(super) all: bool,
    /// Kinds, in every namespace.
    kinds: FxHashSet<KindId>,
    /// Kinds, in these.
    pub(super) places: FxHashSet<Place>,
    /// There were more namespaces than are asked about at a time.
    pub(super) cut: bool,
}

impl Seen {
    pub(super) fn may(&self, kind: KindId, namespace: &Namespace) -> bool {
        self.all || self.kinds.contains(&kind) || self.places.contains(&(kind, namespace.clone()))
    }

    /// Nothing at all.
    pub(super) fn is_nothing(&self) -> bool {
        !self.all && self.kinds.is_empty() && self.places.is_empty()
    }
}

impl Page {
    /// What of these places `viewer` may list.
    pub(super) async fn seen(
        &self,
        viewer: &Viewer,
        names: &Names,
        places: impl IntoIterator<Item = Place>,
    ) -> Result<Seen, Refusal> {
        if matches!(viewer, Viewer::Local) {
            return Ok(Seen { all: true, ..Seen::default() });
        }
        let places: BTreeSet<Place> = places.into_iter().collect();
        let kinds: Vec<KindId> =
            places.iter().map(|(kind, _)| *kind).collect::<BTreeSet<_>>().into_iter().collect();
        let everywhere = kinds.iter().map(|kind| self.list(names, *kind, "")).collect();
        let (allowed, _) = self.0.gate.allowed(viewer, everywhere).await?;
        let kinds: FxHashSet<KindId> = allowed.into_iter().map(|at| kinds[at]).collect();
        let open: Vec<Place> =
            places.into_iter().filter(|(kind, space)| !kinds.contains(kind) && !space.is_empty()).collect();
        let rights = open.iter().map(|(kind, namespace)| self.list(names, *kind, namespace)).collect();
        let (allowed, cut) = self.0.gate.allowed(viewer, rights).await?;
        let places = allowed.into_iter().map(|at| open[at].clone()).collect();
        Ok(Seen { all: false, kinds, places, cut })
    }

    /// The right to list a kind in a namespace.
    pub(super) fn list(&self, names: &Names, kind: KindId, namespace: &str) -> Right {
        let followed = self.0.known.get(&kind).map(|known| known.api.clone());
        let (group, resource) = followed.map_or_else(
            || {
                let (name, label) = names.kinds.get(&kind).cloned().unwrap_or_default();
                let group = label.strip_prefix(&name).unwrap_or_default().trim_start_matches('.').to_owned();
                (group, crate::rbac::plural(&name))
            },
            |api| (api.group, api.plural),
        );
        Right { verb: "list", group, resource, namespace: namespace.to_owned(), name: String::new() }
    }

    /// May `viewer` look at all, where there is nothing that they see? Who may list a kind of parent is told that there
    /// is none.
    pub(super) async fn may_look(
        &self,
        viewer: &Viewer,
        names: &Names,
        namespace: &str,
    ) -> Result<bool, Refusal> {
        let known = &self.0.known;
        let parents = known.iter().filter(|kind| !kind.interest.parent.is_empty()).map(|kind| *kind.key());
        let parents: Vec<KindId> = parents.collect();
        let rights: Vec<_> = parents.into_iter().map(|kind| self.list(names, kind, namespace)).collect();
        // Without policies there is nothing that could be hidden.
        Ok(rights.is_empty() || !self.0.gate.allowed(viewer, rights).await?.0.is_empty())
    }
}
