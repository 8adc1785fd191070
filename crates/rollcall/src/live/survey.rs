//! Everything read once, page by page. What counts for its parent alone is judged as it comes and not kept: a tree of a
//! hundred thousand objects is held as rows, not as objects.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use controller::core::TreeNode;
use controller::offline::World;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use readiness::Time;
use watcher::wire::Child;
use watcher::{ApiKind, LookError, Page, Parent, look_pages};

use super::gather::{AT_ONCE, Cluster, Place, group, told};
use super::pick::{Index, Key, Moments, key};
use super::since::of_leaf;

/// What was read.
pub(super) struct Survey {
    pub(super) trees: Vec<TreeNode>,
    kept: Vec<Parent>,
    /// Of those that were not kept, by a hash of their names.
    passed: BTreeMap<u64, Moments>,
    kinds: Vec<ApiKind>,
}

impl Cluster {
    /// Reads everything once and rolls it up.
    pub(super) async fn survey(&mut self, now: Time) -> Survey {
        let mut survey =
            Survey { trees: Vec::new(), kept: Vec::new(), passed: BTreeMap::new(), kinds: Vec::new() };
        let mut world = World::new(&self.policies, now);
        // What namespaces say chooses among what lives in them.
        let (first, rest): (Vec<_>, Vec<_>) =
            self.places().await.into_iter().partition(|place| is_namespace(&place.api));
        for places in [first, rest] {
            survey.kinds.extend(places.iter().map(|place| place.api.clone()));
            let lists = places.into_iter().map(|place| {
                let list = pages(&self.client, &place);
                let keeps = place.whole || self.is_alone(&place.api);
                list.map(move |page| (place.api.clone(), keeps, page)).boxed()
            });
            let mut pages = stream::iter(lists.collect::<Vec<_>>()).flatten_unordered(AT_ONCE);
            while let Some((api, keeps, page)) = pages.next().await {
                match page {
                    Ok(page) => survey.take(&mut world, &api, keeps, page),
                    Err(error) => self.hide(&api, told(&error)),
                }
            }
        }
        survey.trees = self.finish(world.end(self.hidden()), &survey.kept.iter().collect::<Vec<_>>(), now);
        survey
    }
}

impl Survey {
    fn take(&mut self, world: &mut World, api: &ApiKind, keeps: bool, page: Page<Parent>) {
        let Page::Objects(objects) = page else {
            let kind = (api.group.clone(), api.kind.clone());
            self.kept.retain(|object| *object.child.meta.kind != *kind.1 || group(object) != kind.0);
            return world.again(&kind);
        };
        for object in objects {
            let object = object.typed(&api.api_version(), &api.kind);
            if is_namespace(api) {
                world.namespace(&object);
            }
            world.take(&object);
            let meta = &object.child.meta;
            if keeps {
                self.kept.push(object);
            } else {
                let moments = Moments { created: meta.created, since: of_leaf(&object) };
                self.passed.insert(hash((group(&object), &meta.kind, &meta.namespace, &meta.name)), moments);
            }
        }
    }

    /// What the objects that were kept say of the time, and what was noted of the others.
    pub(super) fn moments(&self) -> impl Fn(&TreeNode) -> Moments + '_ {
        let index = self.index();
        move |node| match self.passed.get(&hash(key(node))) {
            Some(moments) => moments.clone(),
            None => index.moments(node),
        }
    }

    /// The objects that were kept.
    pub(super) fn index(&self) -> Index<'_> {
        Index::new(&self.kept.iter().collect::<Vec<_>>())
    }

    /// The kind of a node.
    pub(super) fn kind(&self, node: &TreeNode) -> Option<&ApiKind> {
        self.kinds.iter().find(|api| api.group == node.group && api.kind == node.kind)
    }
}

fn is_namespace(api: &ApiKind) -> bool {
    api.group.is_empty() && api.kind == "Namespace"
}

/// The pages of a kind.
fn pages(client: &kube::Client, place: &Place) -> BoxStream<'static, Result<Page<Parent>, LookError>> {
    let Place { api, namespace, whole } = place;
    if *whole {
        return look_pages::<Parent>(client, api, namespace.as_deref()).boxed();
    }
    let lean = |page| match page {
        Page::Objects(objects) => Page::Objects(objects.into_iter().map(Parent::lean).collect()),
        Page::Again => Page::Again,
    };
    look_pages::<Child>(client, api, namespace.as_deref()).map_ok(lean).boxed()
}

fn hash(key: Key<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
