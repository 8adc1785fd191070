//! Reads everything once, page by page. A plain child is evaluated on arrival and not kept: a tree of a hundred
//! thousand objects is held as rows, not as objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use inspect::api_group;
use inspect::owned_index::object_hash;
use policy::offline::OfflineRollup;
use readiness::Time;
use rollcall_core::TreeNode;
use watcher::wire::ChildObject;
use watcher::{ApiKind, LivePage, LiveReadError, ParentObject, stream_live_pages};

use super::cluster_rollup::ClusterRollup;
use super::kinds_to_read::KindToRead;
use super::pick::{NodeTimes, TreeNodeKey, TreeObjectIndex, node_key};
use super::policy_cluster::{MAX_CONCURRENT_LISTS, PolicyCluster};
use super::read_error::read_error_text;
use super::since::leaf_since;
use super::target::ObjectTarget;

/// Everything that was read.
pub(super) struct ClusterSurvey {
    pub(super) trees: Vec<TreeNode>,
    kept_objects: Vec<ParentObject>,
    /// Times of objects that were not kept, by a hash of their names.
    discarded_times: BTreeMap<u64, NodeTimes>,
    kinds: Vec<ApiKind>,
}

impl ClusterSurvey {
    /// Reads everything once and aggregates it. Where a target is found that no policy chooses, it is read once more, with what that
    /// one is judged by.
    pub(super) async fn read(
        cluster: &mut PolicyCluster,
        targets: &[ObjectTarget],
        now: Time,
    ) -> anyhow::Result<ClusterSurvey> {
        let survey = ClusterSurvey::read_once(cluster, now).await;
        let objects: Vec<_> = survey.kept_objects.iter().collect();
        if cluster.adopt_unchosen(targets, &survey.trees, &objects)? {
            return Ok(ClusterSurvey::read_once(cluster, now).await);
        }
        Ok(survey)
    }

    async fn read_once(cluster: &mut PolicyCluster, now: Time) -> ClusterSurvey {
        let mut survey = ClusterSurvey {
            trees: Vec::new(),
            kept_objects: Vec::new(),
            discarded_times: BTreeMap::new(),
            kinds: Vec::new(),
        };
        let mut rollup = cluster.begin_rollup((Time(i64::MIN), now));
        let kinds =
            read_pages(cluster, |api, keeps, page| survey.take_page(&mut rollup, api, keeps, page)).await;
        survey.kinds = kinds;
        survey.trees = cluster.end_rollup(rollup, &survey.kept_objects.iter().collect::<Vec<_>>(), now);
        survey
    }

    fn take_page(
        &mut self,
        rollup: &mut ClusterRollup,
        api: &ApiKind,
        keeps: bool,
        page: LivePage<ParentObject>,
    ) {
        rollup.states_mut().for_each(|state| feed_page(state, api, &page));
        let LivePage::Objects(objects) = page else {
            self.kept_objects
                .retain(|object| *object.child.meta.kind != *api.kind || api_group(object) != api.group);
            return;
        };
        for object in objects {
            let meta = &object.child.meta;
            if keeps {
                self.kept_objects.push(object);
            } else {
                let moments = NodeTimes { created: meta.created, since: leaf_since(&object) };
                self.discarded_times
                    .insert(hash_key((api_group(&object), &meta.kind, &meta.namespace, &meta.name)), moments);
            }
        }
    }

    /// Returns the times of a node: from the object if it was kept, otherwise as noted when it was read.
    pub(super) fn node_times(&self) -> impl Fn(&TreeNode) -> NodeTimes + '_ {
        let index = self.object_index();
        move |node| match self.discarded_times.get(&hash_key(node_key(node))) {
            Some(moments) => moments.clone(),
            None => index.node_times(node),
        }
    }

    /// Returns an index of the objects that were kept.
    pub(super) fn object_index(&self) -> TreeObjectIndex<'_> {
        TreeObjectIndex::new(&self.kept_objects.iter().collect::<Vec<_>>())
    }

    /// Returns `true` if this target was read, whether or not a tree shows it.
    pub(super) fn has_object(&self, target: &ObjectTarget) -> bool {
        self.kept_objects.iter().any(|object| target.matches_object(object))
    }

    /// Adds kinds of which objects are shown that were not read with it.
    pub(super) fn add_kinds(&mut self, kinds: Vec<ApiKind>) {
        self.kinds.extend(kinds);
    }

    /// Returns the kind of a node.
    pub(super) fn find_kind(&self, node: &TreeNode) -> Option<&ApiKind> {
        self.kinds.iter().find(|api| api.group == node.group && api.kind == node.kind)
    }
}

/// Reads every kind that the policies of a cluster need, page by page, and gives each page away; with it, whether its objects are
/// needed whole. Namespaces come first: their labels select among the objects in them. Returns the kinds.
pub(super) async fn read_pages(
    cluster: &mut PolicyCluster,
    mut take: impl FnMut(&ApiKind, bool, LivePage<ParentObject>),
) -> Vec<ApiKind> {
    let (first, rest): (Vec<_>, Vec<_>) =
        cluster.kinds_to_read().await.into_iter().partition(|place| is_namespace(&place.api));
    let mut kinds = Vec::new();
    for places in [first, rest] {
        kinds.extend(places.iter().map(|place| place.api.clone()));
        let narrower = read_places(cluster, places, &mut take).await;
        // In a namespace there is nothing narrower to read.
        read_places(cluster, narrower, &mut take).await;
    }
    kinds
}

/// Reads kinds at their places. Returns where those are read that may be listed only there.
async fn read_places(
    cluster: &mut PolicyCluster,
    places: Vec<KindToRead>,
    take: &mut impl FnMut(&ApiKind, bool, LivePage<ParentObject>),
) -> Vec<KindToRead> {
    let lists = places.into_iter().map(|place| {
        let list = kind_pages(&cluster.client, &place);
        let keeps = place.whole || cluster.is_standalone(&place.api);
        let place = Arc::new(place);
        list.map(move |page| (place.clone(), keeps, page)).boxed()
    });
    let mut pages = stream::iter(lists.collect::<Vec<_>>()).flatten_unordered(MAX_CONCURRENT_LISTS);
    let mut narrower = Vec::new();
    while let Some((place, keeps, page)) = pages.next().await {
        match page {
            Ok(page) => {
                if matches!(&page, LivePage::Objects(objects) if !objects.is_empty()) {
                    cluster.show_kind(&place.api, true);
                }
                take(&place.api, keeps, with_types(&place.api, page));
            }
            Err(error) => {
                narrower.extend(cluster.hide_kind(&place, error.cause, read_error_text(&error)));
            }
        }
    }
    narrower
}

/// Objects in lists of built-in kinds lack their types.
fn with_types(api: &ApiKind, page: LivePage<ParentObject>) -> LivePage<ParentObject> {
    let version = api.api_version();
    match page {
        LivePage::Objects(objects) => LivePage::Objects(
            objects.into_iter().map(|object| object.with_type_meta(&version, &api.kind)).collect(),
        ),
        LivePage::Restart => LivePage::Restart,
    }
}

/// Adds a page of this kind to a state.
pub(super) fn feed_page(world: &mut OfflineRollup, api: &ApiKind, page: &LivePage<ParentObject>) {
    let LivePage::Objects(objects) = page else {
        return world.restart_kind(&(api.group.clone(), api.kind.clone()));
    };
    for object in objects {
        if is_namespace(api) {
            world.add_namespace(object);
        }
        world.add_object(object);
    }
}

fn is_namespace(api: &ApiKind) -> bool {
    api.group.is_empty() && api.kind == "Namespace"
}

/// Returns the pages of a kind.
fn kind_pages(
    client: &kube::Client,
    place: &KindToRead,
) -> BoxStream<'static, Result<LivePage<ParentObject>, LiveReadError>> {
    let KindToRead { api, namespace, whole } = place;
    if *whole {
        return stream_live_pages::<ParentObject>(client, api, namespace.as_deref()).boxed();
    }
    let lean = |page| match page {
        LivePage::Objects(objects) => {
            LivePage::Objects(objects.into_iter().map(ParentObject::without_text).collect())
        }
        LivePage::Restart => LivePage::Restart,
    };
    stream_live_pages::<ChildObject>(client, api, namespace.as_deref()).map_ok(lean).boxed()
}

pub(super) fn hash_key((group, kind, namespace, name): TreeNodeKey<'_>) -> u64 {
    object_hash(group, kind, namespace, name)
}
