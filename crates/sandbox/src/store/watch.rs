//! Watches, as cursors over the history of a kind.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster_objects::ClusterObjects;
use super::kind::SandboxKind;
use super::kind_store::StoredChange;
use super::list::{self, invalid_list_options};
use super::message::{EpochMillis, StoreRequest};
use super::object_storage::ObjectStorage;
use super::refusal::StoreRefusal;
use super::response_form::ResponseForm;
use super::route::RequestTarget;
use super::selector::ListSelector;
use super::watch_line::{WatchEventType, WatchLine};
use super::{meta, table};

/// Interval between bookmarks of a watch that asks for them, and the time before its end at which the last one is sent.
const BOOKMARK_INTERVAL: EpochMillis = 60_000;
const LAST_BOOKMARK_LEAD: EpochMillis = 2_000;

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

    /// Opens a watch of the target of a request.
    pub(super) fn open(
        now: EpochMillis,
        target: RequestTarget,
        request: &StoreRequest,
        storage: &ObjectStorage,
    ) -> Result<WatchCursor, StoreRefusal> {
        if target.kind.traits.review || target.subresource.is_some() {
            return Err(StoreRefusal::method_not_allowed());
        }
        let mut selector = ListSelector::from_request(&target.kind, request)?;
        if let Some(name) = &target.name {
            selector = selector.only_name(name);
        }
        let initial = wants_initial_events(request)?;
        let current = request.as_of.unwrap_or(storage.revision());
        let asked = asked_revision(request)?;
        let deadline = watch_deadline(now, request)?;
        let bookmarks = request.query_flag("allowWatchBookmarks");
        let mut cursor = WatchCursor {
            prefix: target.key_prefix(),
            kind: target.kind,
            selector,
            view: ResponseForm::from_request(request)?,
            revision: asked,
            pending: VecDeque::new(),
            bookmark: bookmarks.then(|| next_bookmark(now, deadline)).flatten(),
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
            let fresh = if consistent { storage.revision() } else { current };
            cursor.queue_initial_events(storage, current, fresh);
        } else if asked == 0 {
            cursor.revision = current;
        } else if storage.has_forgotten(cursor.kind.storage, asked) {
            cursor.expire_cursor();
        }
        Ok(cursor)
    }

    fn queue_initial_events(&mut self, storage: &ObjectStorage, current: u64, fresh: u64) {
        if let Some(kind_store) = storage.kind_store(self.kind.storage) {
            let then = kind_store.objects_at(current, &self.prefix, "");
            let seen = then.filter(|(_, object)| self.selector.matches(object));
            let lines: Vec<WatchLine> =
                seen.map(|(_, object)| self.watch_line(WatchEventType::Added, object)).collect();
            self.pending.extend(lines);
        }
        self.revision = current;
        self.caught_up = self.bookmark.is_some().then_some(fresh);
        self.finish_initial_events(current);
    }

    /// Returns the next line of the changes up to `limit`, if there is one now.
    pub(super) fn take_line(
        &mut self,
        now: EpochMillis,
        objects: &ClusterObjects,
        limit: u64,
    ) -> Option<WatchLine> {
        if self.pending.is_empty() && !self.ended {
            self.advance(now, objects, limit);
        }
        let line = self.pending.pop_front()?;
        Some(if self.view == ResponseForm::Table { self.render_table_line(now, line) } else { line })
    }

    fn advance(&mut self, now: EpochMillis, objects: &ClusterObjects, limit: u64) {
        if let Some(kind_store) = objects.storage().kind_store(self.kind.storage) {
            if kind_store.has_forgotten(self.revision) {
                self.expire_cursor();
                return;
            }
            for change in
                kind_store.changes_since(self.revision).take_while(|change| change.revision <= limit)
            {
                self.revision = change.revision;
                if let Some(line) = self.translate_change(change) {
                    self.pending.push_back(line);
                    return;
                }
            }
        }
        let newest = objects.storage().revision().min(limit);
        self.finish_initial_events(newest);
        let over = self.deadline.is_some_and(|deadline| now >= deadline);
        self.ended = over || !objects.registry().is_served(self.kind.storage);
        if !self.ended && self.bookmark.is_some_and(|due| now >= due) {
            self.revision = self.revision.max(newest);
            self.bookmark = next_bookmark(now, self.deadline);
            let line = self.bookmark_line();
            self.pending.push_back(line);
        }
    }

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
        WatchLine { kind, object: self.view.render_form(&self.kind.render_version(object)).into_owned() }
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
        WatchLine { kind: WatchEventType::Bookmark, object: self.view.render_form(&object).into_owned() }
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

/// Returns the revision after which the watch begins; 0 where the request names none.
fn asked_revision(request: &StoreRequest) -> Result<u64, StoreRefusal> {
    let Some(text) = request.query_param("resourceVersion") else { return Ok(0) };
    text.parse().map_err(|_| StoreRefusal::new(500, "", list::not_a_number_message(text)))
}

/// Returns the time at which the watch ends by itself.
fn watch_deadline(now: EpochMillis, request: &StoreRequest) -> Result<Option<EpochMillis>, StoreRefusal> {
    let seconds = list::parse_number_param(request, "timeoutSeconds")?.filter(|seconds| *seconds > 0);
    let millis =
        |seconds: u64| EpochMillis::try_from(seconds).unwrap_or(EpochMillis::MAX).saturating_mul(1_000);
    Ok(seconds.map(|seconds| now.saturating_add(millis(seconds))))
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
