//! Watches, as cursors over the history of a kind.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::Kind;
use super::list::{self, bad_options};
use super::message::{Millis, Request};
use super::refusal::Refusal;
use super::route::{self, Route};
use super::selector::Selector;
use super::shelf::Change;
use super::view::View;
use super::{Store, literal, meta, table};

/// How often a watch that wants bookmarks gets one, and how long before its end it gets its last.
const BOOKMARK_EVERY: Millis = 60_000;
const BEFORE_END: Millis = 2_000;

/// What a line says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It came into sight.
    Added,
    /// It changed.
    Modified,
    /// It left: deleted, or no longer selected.
    Deleted,
    /// Nothing happened up to this revision.
    Bookmark,
    /// The watch ends here.
    Error,
}

impl LineKind {
    /// As it is written in the stream.
    pub fn as_str(self) -> &'static str {
        match self {
            LineKind::Added => "ADDED",
            LineKind::Modified => "MODIFIED",
            LineKind::Deleted => "DELETED",
            LineKind::Bookmark => "BOOKMARK",
            LineKind::Error => "ERROR",
        }
    }
}

/// One line of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchLine {
    /// What happened.
    pub kind: LineKind,
    /// To what, as it is now (for a deletion: as it was last).
    pub object: Value,
}

impl WatchLine {
    /// The line as it is sent, with its newline.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut line = format!("{{\"type\":{:?},\"object\":", self.kind.as_str()).into_bytes();
        line.extend_from_slice(&literal::written(&self.object));
        line.extend_from_slice(b"}\n");
        line
    }

    /// The revision it brings its reader to; 0 for an error.
    pub fn revision(&self) -> u64 {
        meta::revision(&self.object)
    }
}

/// A watch in progress. It holds no lock and no socket; ask the store for its next line.
#[derive(Clone, Debug)]
pub struct Cursor {
    kind: Arc<Kind>,
    prefix: String,
    selector: Selector,
    view: View,
    revision: u64,
    pending: VecDeque<WatchLine>,
    /// When the next bookmark is due; never for a watch that wants none.
    bookmark: Option<Millis>,
    deadline: Option<Millis>,
    /// The revision at which the bookmark after all that was there is due: a cache that lags has to reach it first.
    caught_up: Option<u64>,
    ended: bool,
    /// How rows are to be shown, where tables are asked for; and whether the columns were named.
    request: Request,
    columns_told: bool,
}

impl Cursor {
    /// Whether no line will ever come again.
    pub fn ended(&self) -> bool {
        self.ended && self.pending.is_empty()
    }

    /// When to ask again although nothing changed: a bookmark or the end of the watch is due.
    pub fn wake(&self) -> Option<Millis> {
        [self.bookmark, self.deadline].into_iter().flatten().min()
    }

    /// The revision up to which everything was told.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl Store {
    /// Opens a watch, or says why not.
    pub fn open_watch(&self, now: Millis, request: &Request) -> Result<Cursor, Refusal> {
        let Route::Resource(target) = route::route(&self.registry, request)? else {
            return Err(Refusal::not_allowed());
        };
        if target.kind.traits.review || target.sub.is_some() {
            return Err(Refusal::not_allowed());
        }
        let mut selector = Selector::of(&target.kind, request)?;
        if let Some(name) = &target.name {
            selector = selector.only_name(name);
        }
        let initial = initial(request)?;
        let current = request.as_of.unwrap_or(self.revision);
        let asked = match request.param("resourceVersion") {
            None => 0,
            Some(text) => text.parse().map_err(|_| Refusal::new(500, "", list::no_number(text)))?,
        };
        let deadline = list::number(request, "timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let deadline = deadline.map(|seconds| now + seconds as Millis * 1000);
        let mut cursor = Cursor {
            prefix: list::prefix(&target),
            kind: target.kind,
            selector,
            view: View::of(request)?,
            revision: asked,
            pending: VecDeque::new(),
            bookmark: request.flag("allowWatchBookmarks").then(|| next_bookmark(now, deadline)).flatten(),
            deadline,
            caught_up: None,
            ended: false,
            request: Request { body: Vec::new(), ..request.clone() },
            columns_told: false,
        };
        if initial == Some(true) && asked > current {
            return Err(Refusal::too_large_revision(asked, current));
        }
        if initial == Some(true) || (initial.is_none() && asked == 0) {
            // Without a resourceVersion a streamed list is as fresh as a consistent read; with one, as fresh as that.
            let consistent = initial == Some(true) && request.param("resourceVersion").is_none();
            let fresh = if consistent { self.revision } else { current };
            self.tell_all(&mut cursor, current, fresh);
        } else if asked == 0 {
            cursor.revision = current;
        } else if self.shelves.get(&cursor.kind.storage).is_some_and(|shelf| shelf.forgot(asked)) {
            cursor.expire();
        }
        Ok(cursor)
    }

    fn tell_all(&self, cursor: &mut Cursor, current: u64, fresh: u64) {
        if let Some(shelf) = self.shelves.get(&cursor.kind.storage) {
            let then = shelf.snapshot(current, &cursor.prefix, "");
            let seen = then.values().filter(|object| cursor.selector.matches(object));
            let lines: Vec<WatchLine> = seen.map(|object| cursor.line(LineKind::Added, object)).collect();
            cursor.pending.extend(lines);
        }
        cursor.revision = current;
        cursor.caught_up = cursor.bookmark.is_some().then_some(fresh);
        cursor.end_initial(current);
    }

    /// The next line, if there is one by now. Without one, ask again when [`Store::revision`] has moved or at
    /// [`Cursor::wake`], unless the cursor has [ended](Cursor::ended).
    pub fn next(&self, now: Millis, cursor: &mut Cursor) -> Option<WatchLine> {
        self.next_until(now, cursor, u64::MAX)
    }

    /// The same, but what happened after `limit` is not seen yet: a replica that lags.
    pub fn next_until(&self, now: Millis, cursor: &mut Cursor, limit: u64) -> Option<WatchLine> {
        if cursor.pending.is_empty() && !cursor.ended {
            self.advance_cursor(now, cursor, limit);
        }
        let line = cursor.pending.pop_front()?;
        Some(if cursor.view == View::Table { cursor.tabled(now, line) } else { line })
    }

    fn advance_cursor(&self, now: Millis, cursor: &mut Cursor, limit: u64) {
        if let Some(shelf) = self.shelves.get(&cursor.kind.storage) {
            if shelf.forgot(cursor.revision) {
                cursor.expire();
                return;
            }
            for change in shelf.since(cursor.revision).take_while(|change| change.revision <= limit) {
                cursor.revision = change.revision;
                if let Some(line) = cursor.translate(change) {
                    cursor.pending.push_back(line);
                    return;
                }
            }
        }
        cursor.end_initial(self.revision.min(limit));
        let over = cursor.deadline.is_some_and(|deadline| now >= deadline);
        cursor.ended = over || !self.registry.served(cursor.kind.storage);
        if !cursor.ended && cursor.bookmark.is_some_and(|due| now >= due) {
            cursor.revision = cursor.revision.max(self.revision.min(limit));
            cursor.bookmark = next_bookmark(now, cursor.deadline);
            let line = cursor.bookmark_line();
            cursor.pending.push_back(line);
        }
    }
}

impl Cursor {
    /// A change as this watch sees it: what enters or leaves the selection is added or deleted.
    fn translate(&self, change: &Change) -> Option<WatchLine> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let was = change.before.as_ref().is_some_and(|before| self.selector.matches(before));
        let is = !change.deleted && self.selector.matches(&change.after);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.line(LineKind::Added, &change.after)),
            (true, true) => Some(self.line(LineKind::Modified, &change.after)),
            (true, false) => {
                // The state that was last selected, under the revision at which it left.
                let mut last = (**change.before.as_ref()?).clone();
                meta::meta_mut(&mut last)
                    .insert("resourceVersion".into(), json!(change.revision.to_string()));
                Some(self.line(LineKind::Deleted, &Arc::new(last)))
            }
        }
    }

    fn line(&self, kind: LineKind, object: &Arc<Value>) -> WatchLine {
        WatchLine { kind, object: self.view.show(&self.kind.render(object)) }
    }

    /// Each line is a table of one row; only the first names the columns.
    fn tabled(&mut self, now: Millis, mut line: WatchLine) -> WatchLine {
        if line.kind != LineKind::Error {
            line.object = table::of(&self.kind, now, &self.request, &line.object);
            if std::mem::replace(&mut self.columns_told, true) {
                line.object["columnDefinitions"] = Value::Null;
            }
        }
        line
    }

    fn bookmark_line(&self) -> WatchLine {
        let metadata = json!({"resourceVersion": self.revision.to_string()});
        let object =
            json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        WatchLine { kind: LineKind::Bookmark, object: self.view.show(&object) }
    }

    /// Says that all that was there was told, once the cache knows as much as it has to.
    fn end_initial(&mut self, known: u64) {
        if self.caught_up.is_some_and(|fresh| known >= fresh) {
            self.caught_up = None;
            self.revision = self.revision.max(known);
            let mut line = self.bookmark_line();
            line.object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            self.pending.push_back(line);
        }
    }

    fn expire(&mut self) {
        let message = format!("too old resource version: {}", self.revision);
        self.pending
            .push_back(WatchLine { kind: LineKind::Error, object: Refusal::expired(message).status() });
        self.ended = true;
    }
}

fn next_bookmark(now: Millis, deadline: Option<Millis>) -> Option<Millis> {
    let next = deadline.map_or(Millis::MAX, |deadline| deadline - BEFORE_END).min(now + BOOKMARK_EVERY);
    (next > now).then_some(next)
}

/// Whether the watch starts with all that is there: as asked, or as the revision implies.
fn initial(request: &Request) -> Result<Option<bool>, Refusal> {
    let matching = request.param("resourceVersionMatch");
    let Some(wanted) = request.param("sendInitialEvents").map(|text| !matches!(text, "false" | "0")) else {
        return match matching {
            Some(_) => Err(bad_options(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            None => Ok(None),
        };
    };
    if matching != Some("NotOlderThan") {
        return Err(bad_options(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    Ok(Some(wanted))
}
