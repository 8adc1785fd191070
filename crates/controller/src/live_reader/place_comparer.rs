//! The comparison of a place: what the server has there, by its metadata, and what is held.

use aggregator::KindId;
use rollcall_core::{LiveRead, MetadataComparison};
use tokio::time::Instant;
use watcher::reflector::Reflector;
use watcher::{ApiKind, LiveMetadataList, LivePage, LiveReadError};

use super::place_comparisons::{ComparedPlace, HeldState, PlaceComparisons};

/// Compares places.
pub(super) struct PlaceComparer<'r> {
    pub(super) client: &'r kube::Client,
    pub(super) reflector: &'r Reflector,
    pub(super) comparisons: &'r PlaceComparisons,
}

/// What a comparison has found.
#[derive(Debug, Default)]
pub(super) struct ComparedObjects {
    /// Number of objects that the server has; `None` where the version of the list said that nothing has changed.
    pub(super) listed: Option<usize>,
    /// Reads of what is held otherwise.
    pub(super) reads: Vec<LiveRead>,
    /// These are all.
    pub(super) is_whole: bool,
}

impl PlaceComparer<'_> {
    /// Lists the metadata of a place, and returns the reads of what is held otherwise: at most so many of what is newer there or
    /// unknown here, and of what is missing there. Where the version of the list proves that nothing has changed since all was as
    /// it is held, the rest of the list is not asked for.
    pub(super) async fn compare(
        &self,
        (api, kind): (&ApiKind, KindId),
        place: &ComparedPlace,
        most: usize,
    ) -> Result<ComparedObjects, LiveReadError> {
        let Some(interest) = self.reflector.interest(kind) else {
            return Ok(ComparedObjects::default());
        };
        let (begun, scope) = (Instant::now(), place.namespace.as_deref());
        // Objects cached now but missing from a list that starts now are deleted; objects created in between are not in
        // this set.
        let mut comparison = MetadataComparison::begin(self.reflector, kind, scope);
        let held = HeldState { digest: comparison.held_digest(), interest };
        let unchanged = self.comparisons.unchanged_version(place, &held, begun);
        let first_page = self.comparisons.first_page_size(place);
        let mut list = LiveMetadataList::new(self.client, api, scope, first_page);
        while let Some(page) = list.next_page().await? {
            match page {
                LivePage::Objects(_) if unchanged.is_some() && list.version() == unchanged => {
                    self.comparisons.on_same_version(place);
                    return Ok(ComparedObjects { is_whole: true, ..ComparedObjects::default() });
                }
                LivePage::Objects(metas) => comparison.compare_page(self.reflector, &metas),
                LivePage::Restart => comparison.restart(),
            }
        }
        let listed = comparison.listed_count();
        let outdated = comparison.into_outdated(most);
        if outdated.are_all {
            let proven = list.version().filter(|_| outdated.reads.is_empty()).map(|version| (version, held));
            self.comparisons.on_compared(place, begun, listed, proven);
        } else {
            self.comparisons.on_cut_short(place);
        }
        Ok(ComparedObjects { listed: Some(listed), reads: outdated.reads, is_whole: outdated.are_all })
    }
}
