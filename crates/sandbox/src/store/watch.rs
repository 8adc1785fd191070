//! Watches, as cursors over the history of a kind.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::kind_store::StoredChange;
use super::list::{self, invalid_list_options};
use super::message::{EpochMillis, StoreRequest};
use super::refusal::StoreRefusal;
use super::response_form::ResponseForm;
use super::route::{self, RequestRoute};
use super::selector::ListSelector;
use super::{SandboxStore, meta, server_json, table};

/// Interval between bookmarks of a watch that asks for them, and the time before its end at which the last one is sent.
const BOOKMARK_INTERVAL: EpochMillis = 60_000;
const LAST_BOOKMARK_LEAD: EpochMillis = 2_000;

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

/// A watch in progress. It holds no lock and no socket; ask the store for its next line.
#[derive(Clone, Debug)]
pub struct WatchCursor {
    kind: Arc<SandboxKind>,
    prefix: String,
    selector: ListSelector,
    view: ResponseForm,
    revision: u64,
    pending: VecDeque<WatchLine>,
    /// Time of the next bookmark; `None` for a watch without bookmarks.
    bookmark: Option<EpochMillis>,
    deadline: Option<EpochMillis>,
    /// Revision at which the bookmark that ends the initial events is due: a lagging cache must reach it first.
    caught_up: Option<u64>,
    ended: bool,
    /// The request, for the representation of table rows; and whether the columns were already sent.
    request: StoreRequest,
    columns_sent: bool,
}

impl WatchCursor {
    /// Returns `true` if no further line will follow.
    pub fn has_ended(&self) -> bool {
        self.ended && self.pending.is_empty()
    }

    /// Time at which to poll even if no object has changed: a bookmark or the end of the watch is due.
    pub fn wake_at(&self) -> Option<EpochMillis> {
        [self.bookmark, self.deadline].into_iter().flatten().min()
    }

    /// Returns the revision up to which all changes were sent.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl SandboxStore {
    /// Opens a watch, or returns the error response.
    pub fn open_watch(&self, now: EpochMillis, request: &StoreRequest) -> Result<WatchCursor, StoreRefusal> {
        let RequestRoute::Resource(target) = route::route_request(&self.registry, request)? else {
            return Err(StoreRefusal::method_not_allowed());
        };
        if target.kind.traits.review || target.subresource.is_some() {
            return Err(StoreRefusal::method_not_allowed());
        }
        let mut selector = ListSelector::from_request(&target.kind, request)?;
        if let Some(name) = &target.name {
            selector = selector.only_name(name);
        }
        let initial = wants_initial_events(request)?;
        let current = request.as_of.unwrap_or(self.revision);
        let asked = match request.query_param("resourceVersion") {
            None => 0,
            Some(text) => {
                text.parse().map_err(|_| StoreRefusal::new(500, "", list::not_a_number_message(text)))?
            }
        };
        let deadline = list::parse_number_param(request, "timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let millis =
            |seconds| EpochMillis::try_from(seconds).unwrap_or(EpochMillis::MAX).saturating_mul(1_000);
        let deadline = deadline.map(|seconds: u64| now.saturating_add(millis(seconds)));
        let mut cursor = WatchCursor {
            prefix: list::key_prefix(&target),
            kind: target.kind,
            selector,
            view: ResponseForm::from_request(request)?,
            revision: asked,
            pending: VecDeque::new(),
            bookmark: request
                .query_flag("allowWatchBookmarks")
                .then(|| next_bookmark(now, deadline))
                .flatten(),
            deadline,
            caught_up: None,
            ended: false,
            request: StoreRequest { body: Vec::new(), ..request.clone() },
            columns_sent: false,
        };
        if initial == Some(true) && asked > current {
            return Err(StoreRefusal::too_large_revision(asked, current));
        }
        if initial == Some(true) || (initial.is_none() && asked == 0) {
            // Without a resourceVersion a streamed list is as fresh as a consistent read; with one, at least as fresh
            // as that.
            let consistent = initial == Some(true) && request.query_param("resourceVersion").is_none();
            let fresh = if consistent { self.revision } else { current };
            self.queue_initial_events(&mut cursor, current, fresh);
        } else if asked == 0 {
            cursor.revision = current;
        } else if self.kind_stores.get(&cursor.kind.storage).is_some_and(|shelf| shelf.has_forgotten(asked)) {
            cursor.expire_cursor();
        }
        Ok(cursor)
    }

    fn queue_initial_events(&self, cursor: &mut WatchCursor, current: u64, fresh: u64) {
        if let Some(shelf) = self.kind_stores.get(&cursor.kind.storage) {
            let then = shelf.snapshot(current, &cursor.prefix, "");
            let seen = then.values().filter(|object| cursor.selector.matches(object));
            let lines: Vec<WatchLine> =
                seen.map(|object| cursor.watch_line(WatchEventType::Added, object)).collect();
            cursor.pending.extend(lines);
        }
        cursor.revision = current;
        cursor.caught_up = cursor.bookmark.is_some().then_some(fresh);
        cursor.finish_initial_events(current);
    }

    /// Returns the next line, if there is one now. Otherwise poll again when [`SandboxStore::revision`] has changed or
    /// at [`WatchCursor::wake_at`], unless the cursor [has ended](WatchCursor::has_ended).
    pub fn next_line(&self, now: EpochMillis, cursor: &mut WatchCursor) -> Option<WatchLine> {
        self.next_line_until(now, cursor, u64::MAX)
    }

    /// Like [`SandboxStore::next_line`], without the changes after `limit`: a lagging replica.
    pub fn next_line_until(
        &self,
        now: EpochMillis,
        cursor: &mut WatchCursor,
        limit: u64,
    ) -> Option<WatchLine> {
        if cursor.pending.is_empty() && !cursor.ended {
            self.advance_cursor(now, cursor, limit);
        }
        let line = cursor.pending.pop_front()?;
        Some(if cursor.view == ResponseForm::Table { cursor.render_table_line(now, line) } else { line })
    }

    fn advance_cursor(&self, now: EpochMillis, cursor: &mut WatchCursor, limit: u64) {
        if let Some(shelf) = self.kind_stores.get(&cursor.kind.storage) {
            if shelf.has_forgotten(cursor.revision) {
                cursor.expire_cursor();
                return;
            }
            for change in shelf.changes_since(cursor.revision).take_while(|change| change.revision <= limit) {
                cursor.revision = change.revision;
                if let Some(line) = cursor.translate_change(change) {
                    cursor.pending.push_back(line);
                    return;
                }
            }
        }
        cursor.finish_initial_events(self.revision.min(limit));
        let over = cursor.deadline.is_some_and(|deadline| now >= deadline);
        cursor.ended = over || !self.registry.is_served(cursor.kind.storage);
        if !cursor.ended && cursor.bookmark.is_some_and(|due| now >= due) {
            cursor.revision = cursor.revision.max(self.revision.min(limit));
            cursor.bookmark = next_bookmark(now, cursor.deadline);
            let line = cursor.bookmark_line();
            cursor.pending.push_back(line);
        }
    }
}

impl WatchCursor {
    /// Converts a change to this watch's event: an object that enters or leaves the selection is added or deleted.
    fn translate_change(&self, change: &StoredChange) -> Option<WatchLine> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let was = change.before.as_ref().is_some_and(|before| self.selector.matches(before));
        let is = !change.deleted && self.selector.matches(&change.after);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.watch_line(WatchEventType::Added, &change.after)),
            (true, true) => Some(self.watch_line(WatchEventType::Modified, &change.after)),
            (true, false) => {
                // The last state that was selected, under the revision at which it left the selection.
                let mut last = (**change.before.as_ref()?).clone();
                meta::meta_mut(&mut last)
                    .insert("resourceVersion".into(), json!(change.revision.to_string()));
                Some(self.watch_line(WatchEventType::Deleted, &Arc::new(last)))
            }
        }
    }

    fn watch_line(&self, kind: WatchEventType, object: &Arc<Value>) -> WatchLine {
        WatchLine { kind, object: self.view.render_form(&self.kind.render_version(object)) }
    }

    /// Converts a line to a table of one row; only the first line carries the columns.
    fn render_table_line(&mut self, now: EpochMillis, mut line: WatchLine) -> WatchLine {
        if line.kind != WatchEventType::Error {
            line.object = table::to_table(&self.kind, now, &self.request, &line.object);
            if std::mem::replace(&mut self.columns_sent, true) {
                line.object["columnDefinitions"] = Value::Null;
            }
        }
        line
    }

    fn bookmark_line(&self) -> WatchLine {
        let metadata = json!({"resourceVersion": self.revision.to_string()});
        let object =
            json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        WatchLine { kind: WatchEventType::Bookmark, object: self.view.render_form(&object) }
    }

    /// Sends the bookmark that ends the initial events, once the cache has caught up.
    fn finish_initial_events(&mut self, known: u64) {
        if self.caught_up.is_some_and(|fresh| known >= fresh) {
            self.caught_up = None;
            self.revision = self.revision.max(known);
            let mut line = self.bookmark_line();
            line.object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            self.pending.push_back(line);
        }
    }

    fn expire_cursor(&mut self) {
        let message = format!("too old resource version: {}", self.revision);
        self.pending.push_back(WatchLine {
            kind: WatchEventType::Error,
            object: StoreRefusal::expired(message).to_status(),
        });
        self.ended = true;
    }
}

fn next_bookmark(now: EpochMillis, deadline: Option<EpochMillis>) -> Option<EpochMillis> {
    let next = deadline
        .map_or(EpochMillis::MAX, |deadline| deadline - LAST_BOOKMARK_LEAD)
        .min(now + BOOKMARK_INTERVAL);
    (next > now).then_some(next)
}

/// Returns whether the watch starts with all existing objects: as requested, or as the revision implies.
fn wants_initial_events(request: &StoreRequest) -> Result<Option<bool>, StoreRefusal> {
    let matching = request.query_param("resourceVersionMatch");
    let Some(wanted) = request.query_param("sendInitialEvents").map(|text| !matches!(text, "false" | "0"))
    else {
        return match matching {
            Some(_) => Err(invalid_list_options(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            None => Ok(None),
        };
    };
    if matching != Some("NotOlderThan") {
        return Err(invalid_list_options(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    Ok(Some(wanted))
}
