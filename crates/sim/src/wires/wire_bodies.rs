//! Bodies of the API server's answers, read as far as the wires need them.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A line of a watch.
#[derive(Deserialize)]
pub(crate) struct WireWatchLine<'a> {
    pub(crate) r#type: &'a str,
    #[serde(borrow)]
    pub(crate) object: &'a RawValue,
}

/// A list.
#[derive(Deserialize)]
pub(crate) struct WireListBody {
    metadata: WireListMeta,
    pub(crate) items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireListMeta {
    resource_version: String,
}

impl WireListBody {
    /// Returns the revision of the list.
    pub(crate) fn revision(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }
}
