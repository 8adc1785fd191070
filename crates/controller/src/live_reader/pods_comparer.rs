//! The comparison of pods: which of the workloads that are not ready have other pods than those that explain them.

use futures::TryStreamExt;
use rollcall_core::{PodDigest, UnreadyWorkload};
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use watcher::wire::{ChildObject, WireMeta};
use watcher::{ApiFailureCause, LiveMetadataList, LivePage, LiveReadError, stream_live_pages};

use super::folding::{is_whole_list_cheaper, max_compared_objects};
use super::place_comparisons::{ComparedPlace, PlaceComparisons};
use super::workload_explanations::ExplainedWorkload;
use super::workload_lookup::{WorkloadExplainer, pod_kind};

/// Number of pods on a page.
const PAGE_SIZE: u32 = 500;
/// Maximum number of pods that are held at once to explain workloads by them. Beyond it each workload has its own list.
const MAX_PODS_READ_TOGETHER: usize = 5_000;

/// Compares the pods of a place with those that explain its workloads.
pub(super) struct PodsComparer<'r> {
    pub(super) comparisons: &'r PlaceComparisons,
    pub(super) explainer: WorkloadExplainer<'r>,
}

impl PodsComparer<'_> {
    /// Lists the metadata of all pods of a place, and returns the lookups of the workloads whose pods have changed. Where these are
    /// many, the pods are listed whole, and only what is to be looked up besides is returned. Where there are so many pods of others
    /// that a lookup for each workload asks less, or where pods may not be listed there, each has one.
    pub(super) async fn compare(&self, place: &ComparedPlace) -> Result<Vec<UnreadyWorkload>, LiveReadError> {
        let (begun, scope) = (Instant::now(), place.namespace.as_deref());
        let WorkloadExplainer { reflector, explanations, .. } = self.explainer;
        let mut tally = PodTally::new(explanations.current_in(reflector, scope, begun));
        let is_whole = match self.list_metadata(scope, &mut tally).await {
            // The rights may be those of single namespaces.
            Err(error) if error.cause == ApiFailureCause::Forbidden => {
                self.comparisons.forget(place, begun);
                false
            }
            listed => listed?,
        };
        let listed = tally.listed;
        self.comparisons.on_compared(place, begun, listed, None);
        if !is_whole {
            return Ok(tally.explained.iter().map(ExplainedWorkload::pod_lookup).collect());
        }
        let ChangedWorkloads { changed, pods, mut lookups } = tally.into_changed();
        let is_dear = !is_whole_list_cheaper(changed.len(), listed.saturating_sub(pods));
        if is_dear || pods > MAX_PODS_READ_TOGETHER {
            lookups.extend(changed);
        } else {
            lookups.extend(self.explain_together(scope, changed).await?);
        }
        Ok(lookups)
    }

    /// Lists the metadata of pods for as long as that asks less than a lookup for each workload. Returns whether these are all.
    async fn list_metadata(&self, scope: Option<&str>, tally: &mut PodTally) -> Result<bool, LiveReadError> {
        let most = max_compared_objects(tally.explained.len());
        if most == 0 {
            return Ok(false);
        }
        let mut list = LiveMetadataList::new(self.explainer.client, &pod_kind(), scope, PAGE_SIZE);
        while let Some(page) = list.next_page().await? {
            match page {
                LivePage::Objects(pods) => tally.add_page(&pods),
                LivePage::Restart => tally.restart(),
            }
            if tally.listed > most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Explains workloads by one list of all pods of a place. Returns what is to be looked up besides.
    async fn explain_together(
        &self,
        scope: Option<&str>,
        workloads: Vec<UnreadyWorkload>,
    ) -> Result<Vec<UnreadyWorkload>, LiveReadError> {
        let index = NamespaceIndex::of(workloads.iter());
        let mut found: Vec<Vec<ChildObject>> = vec![Vec::new(); workloads.len()];
        let mut pages =
            std::pin::pin!(stream_live_pages::<ChildObject>(self.explainer.client, &pod_kind(), scope));
        while let Some(page) = pages.try_next().await? {
            match page {
                LivePage::Objects(pods) => {
                    for pod in pods {
                        let owners = index.in_namespace(&pod.meta.namespace);
                        for at in owners.filter(|at| workloads[*at].has_pod(&pod.meta)) {
                            found[at].push(pod.clone());
                        }
                    }
                }
                LivePage::Restart => found.iter_mut().for_each(Vec::clear),
            }
        }
        let explain =
            |(workload, pods): (UnreadyWorkload, Vec<_>)| self.explainer.explain_by_pods(workload, &pods);
        Ok(workloads.into_iter().zip(found).filter_map(explain).collect())
    }
}

/// Workloads by their namespace.
struct NamespaceIndex(FxHashMap<String, Vec<usize>>);

impl NamespaceIndex {
    fn of<'w>(workloads: impl Iterator<Item = &'w UnreadyWorkload>) -> NamespaceIndex {
        let mut index: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (at, workload) in workloads.enumerate() {
            index.entry(workload.namespace.clone()).or_default().push(at);
        }
        NamespaceIndex(index)
    }

    fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = usize> {
        self.0.get(namespace).into_iter().flatten().copied()
    }
}

/// What has to be looked up after a comparison.
struct ChangedWorkloads {
    /// Lookups of workloads that have other pods than those that explain them.
    changed: Vec<UnreadyWorkload>,
    /// Number of the pods of these.
    pods: usize,
    /// What is to be looked up of others.
    lookups: Vec<UnreadyWorkload>,
}

/// The pods of each workload, page by page.
struct PodTally {
    explained: Vec<ExplainedWorkload>,
    index: NamespaceIndex,
    digests: Vec<PodDigest>,
    /// Number of pods that the list had so far.
    listed: usize,
}

impl PodTally {
    fn new(explained: Vec<ExplainedWorkload>) -> PodTally {
        let index = NamespaceIndex::of(explained.iter().map(|explained| &*explained.workload));
        let digests = vec![PodDigest::default(); explained.len()];
        PodTally { explained, index, digests, listed: 0 }
    }

    fn add_page(&mut self, pods: &[WireMeta]) {
        self.listed += pods.len();
        for pod in pods {
            let owners = self.index.in_namespace(&pod.namespace);
            for at in owners.filter(|at| self.explained[*at].workload.has_pod(pod)) {
                self.digests[at].add_pod(pod);
            }
        }
    }

    /// The list begins again.
    fn restart(&mut self) {
        self.digests.fill(PodDigest::default());
        self.listed = 0;
    }

    fn into_changed(self) -> ChangedWorkloads {
        let (mut changed, mut pods, mut lookups) = (Vec::new(), 0, Vec::new());
        for (explained, digest) in self.explained.iter().zip(self.digests) {
            if !explained.pods.is_some_and(|before| before.is_same(&digest)) {
                pods += digest.count();
                changed.push(explained.pod_lookup());
            } else if explained.has_events_due {
                lookups.push((*explained.workload).clone());
            }
        }
        ChangedWorkloads { changed, pods, lookups }
    }
}
