//! A live list of metadata that is compared while it is read.

use crate::api_client::live_read::{LiveListWalk, LivePage, LiveReadError};
use crate::kind::ApiKind;
use crate::wire::{ChildObject, WireMeta};

/// A live list of metadata, page by page: whoever knows by its version that nothing has changed stops reading.
pub struct LiveMetadataList {
    walk: LiveListWalk,
    is_complete: bool,
}

impl LiveMetadataList {
    /// A list that has not been asked for yet, with so many objects on its first page.
    pub fn new(client: &kube::Client, kind: &ApiKind, namespace: Option<&str>, first_page: u32) -> Self {
        LiveMetadataList {
            walk: LiveListWalk::of_metadata(client, kind, namespace, first_page),
            is_complete: false,
        }
    }

    /// Reads the next page; `None` after the last one.
    pub async fn next_page(&mut self) -> Result<Option<LivePage<WireMeta>>, LiveReadError> {
        if self.is_complete {
            return Ok(None);
        }
        let (page, goes_on) = self.walk.next_page::<ChildObject>().await?;
        self.is_complete = !goes_on;
        Ok(Some(match page {
            LivePage::Objects(objects) => {
                LivePage::Objects(objects.into_iter().map(|object| object.meta).collect())
            }
            LivePage::Restart => LivePage::Restart,
        }))
    }

    /// The resourceVersion of the list, which all pages share. `None` before the first page, and where the server has no such
    /// versions.
    pub fn version(&self) -> Option<u64> {
        self.walk.version()
    }
}
