//! One line of a watch.

use serde_json::Value;

use super::meta;
use super::server_json;

/// Type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEventType {
    /// The object was created, or entered the selection.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted, or left the selection.
    Deleted,
    /// All changes up to this revision were sent.
    Bookmark,
    /// The watch ends with an error.
    Error,
}

impl WatchEventType {
    /// Returns the type as written in the stream.
    pub fn as_str(self) -> &'static str {
        match self {
            WatchEventType::Added => "ADDED",
            WatchEventType::Modified => "MODIFIED",
            WatchEventType::Deleted => "DELETED",
            WatchEventType::Bookmark => "BOOKMARK",
            WatchEventType::Error => "ERROR",
        }
    }
}

/// One line of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchLine {
    /// Type of the event.
    pub kind: WatchEventType,
    /// The object as it is now; after a deletion, its last state.
    pub object: Value,
}

impl WatchLine {
    /// Returns the line as it is sent, with its newline.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut line = format!("{{\"type\":{:?},\"object\":", self.kind.as_str()).into_bytes();
        line.extend_from_slice(&server_json::to_server_json(&self.object));
        line.extend_from_slice(b"}\n");
        line
    }

    /// Returns the revision that the reader has reached with this line; 0 for an error.
    pub fn revision(&self) -> u64 {
        meta::resource_version(&self.object)
    }
}
