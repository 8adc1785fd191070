//! Which custom resources own what: by metadata alone, one pass by kind.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use inspect::discover::listable_kinds;
use inspect::owned_reader::answer_in_time;
use readiness::RuleKind;
use watcher::wire::{ChildObject, OwnerRef};
use watcher::{ApiKind, LivePage, LiveReadError, stream_live_head_pages};

use super::super::target::KindName;

/// Maximum number of kinds listed concurrently.
const MAX_CONCURRENT_LISTS: usize = 8;
/// Longest time that one page of a kind may take: the others are surveyed without the kind. 10 s.
pub(super) const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many objects of a kind each parent owns, by the parent's uid.
pub(super) type OwnedCounts = BTreeMap<Box<str>, usize>;

/// What the objects of one kind own.
#[derive(Debug, Default)]
pub(super) struct OwnedKinds {
    pub(super) children: BTreeMap<KindName, OwnedCounts>,
}

/// Kinds of custom resources that own something.
#[derive(Debug, Default)]
pub(super) struct OwnerSurvey {
    pub(super) owners: BTreeMap<KindName, OwnedKinds>,
    /// Kinds that the cluster serves.
    pub(super) served: Vec<ApiKind>,
    /// Kinds that could not be listed, with the reason.
    pub(super) unread: BTreeMap<String, String>,
}

impl OwnerSurvey {
    /// Lists the metadata of all kinds, in this namespace or everywhere.
    pub(super) async fn read(client: &kube::Client, namespace: Option<&str>) -> anyhow::Result<OwnerSurvey> {
        let mut survey = OwnerSurvey { served: listable_kinds(client).await?, ..OwnerSurvey::default() };
        let listed = survey.served.iter().filter(|api| namespace.is_none() || api.namespaced);
        let lists = listed.map(|api| {
            let scope = namespace.filter(|_| api.namespaced);
            count_owned(api.clone(), stream_live_head_pages::<ChildObject>(client, api, scope).boxed())
        });
        let lists: Vec<_> = lists.collect();
        let mut lists = stream::iter(lists).buffer_unordered(MAX_CONCURRENT_LISTS);
        while let Some((api, counted)) = lists.next().await {
            match counted {
                Ok(counted) => survey.add_kind(&api, counted),
                Err(why) => _ = survey.unread.insert(api.to_string(), why),
            }
        }
        Ok(survey)
    }

    fn add_kind(&mut self, api: &ApiKind, counted: BTreeMap<KindName, OwnedCounts>) {
        for (owner, counts) in counted {
            if is_custom_kind(&owner) {
                let child = KindName { group: api.group.clone(), kind: api.kind.clone() };
                self.owners.entry(owner).or_default().children.insert(child, counts);
            }
        }
    }

    /// The kind of this name, if it is served.
    pub(super) fn find_kind(&self, name: &KindName) -> Option<&ApiKind> {
        self.served.iter().find(|api| api.group == name.group && api.kind == name.kind)
    }
}

/// Counts what the objects of a kind are owned by.
async fn count_owned(
    api: ApiKind,
    mut pages: BoxStream<'static, Result<LivePage<ChildObject>, LiveReadError>>,
) -> (ApiKind, Result<BTreeMap<KindName, OwnedCounts>, String>) {
    let mut counted = BTreeMap::<KindName, OwnedCounts>::new();
    loop {
        match answer_in_time("you", "list", PAGE_TIMEOUT, pages.try_next()).await {
            Ok(None) => return (api, Ok(counted)),
            Ok(Some(LivePage::Restart)) => counted.clear(),
            Ok(Some(LivePage::Objects(objects))) => {
                for owner in objects.iter().flat_map(|object| &object.meta.owners) {
                    *counted.entry(kind_of(owner)).or_default().entry(owner.uid.clone()).or_default() += 1;
                }
            }
            Err(why) => return (api, Err(why)),
        }
    }
}

fn kind_of(owner: &OwnerRef) -> KindName {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    KindName { group: group.to_owned(), kind: owner.kind.to_string() }
}

/// Built-in kinds have controllers of their own, and a status that speaks for what they own.
fn is_custom_kind(kind: &KindName) -> bool {
    kind.group.contains('.')
        && !kind.group.ends_with(".k8s.io")
        && kind.group != "rollcall.dev"
        && matches!(RuleKind::from_group_kind(&kind.group, &kind.kind), RuleKind::Other | RuleKind::Run)
}
