//! What Kopf operators log as Events, as it is listed and watched.

use readiness::Time;
use serde::Deserialize;
use watcher::reflector::{KopfLogLine, LoggedLine, Reflector};
use watcher::{FollowEvent, ParentObject};

use crate::staged_list::StagedList;

/// An Event by its namespace and name.
type EventKey = (Box<str>, Box<str>);

/// The lines of the whole cluster, or of one namespace, that say how handlers ended.
#[derive(Debug, Default)]
pub struct ListedKopfLines {
    list: StagedList<EventKey, OrderedLine>,
}

/// A line, and its place among the others: the server counts the versions of Events upwards.
#[derive(Clone, Debug)]
struct OrderedLine {
    version: u64,
    logged: LoggedLine,
}

impl ListedKopfLines {
    /// Applies an event; returns what it changes.
    pub fn apply_event(&mut self, event: &FollowEvent<ParentObject>) -> KopfLogChange {
        match event {
            FollowEvent::Init => self.list.begin_list(),
            FollowEvent::InitApply(object) => {
                if let Some(line) = read_line(object) {
                    self.list.stage_item(key_of(object), line);
                }
            }
            FollowEvent::InitDone => {
                self.list.finish_list();
                return KopfLogChange::Listed;
            }
            FollowEvent::Apply(object) => {
                if let Some(line) = read_line(object) {
                    let is_known = self.list.apply_item(key_of(object), line.clone()).is_some();
                    return if is_known { KopfLogChange::Nothing } else { KopfLogChange::Line(line.logged) };
                }
            }
            // The server forgets Events after an hour; what they said stands.
            FollowEvent::Delete(object) => _ = self.list.remove_item(&key_of(object)),
            FollowEvent::Alive | FollowEvent::Failure(_) => {}
        }
        KopfLogChange::Nothing
    }

    /// Returns `true` once they were listed.
    pub fn are_listed(&self) -> bool {
        self.list.items().is_some()
    }

    /// All lines with their places.
    fn ordered_lines(&self) -> impl Iterator<Item = &OrderedLine> {
        self.list.items().into_iter().flat_map(|items| items.values())
    }
}

/// What an event changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KopfLogChange {
    /// Nothing.
    Nothing,
    /// A line was logged.
    Line(LoggedLine),
    /// A list is complete.
    Listed,
}

/// Tells the reflector all lines of these lists in the order in which they were logged.
pub fn replace_kopf_log<'l>(reflector: &Reflector, lists: impl Iterator<Item = &'l ListedKopfLines>) {
    let mut lines: Vec<&OrderedLine> = lists.flat_map(ListedKopfLines::ordered_lines).collect();
    lines.sort_by_key(|line| line.version);
    reflector.replace_kopf_log(lines.into_iter().map(|line| line.logged.clone()));
}

fn key_of(object: &ParentObject) -> EventKey {
    (object.child.meta.namespace.clone(), object.child.meta.name.clone())
}

/// An Event, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenEvent {
    involved_object: InvolvedObject,
    message: String,
}

#[derive(Deserialize)]
struct InvolvedObject {
    uid: Box<str>,
}

fn read_line(object: &ParentObject) -> Option<OrderedLine> {
    let meta = &object.child.meta;
    let WrittenEvent { involved_object, message } = serde_json::from_str(object.text.get()).ok()?;
    let line = KopfLogLine::parse(&message)?;
    let logged = LoggedLine { uid: involved_object.uid, at: meta.created.unwrap_or(Time(0)), line };
    Some(OrderedLine { version: meta.resource_version, logged })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(name: &str, version: u32, message: &str) -> ParentObject {
        let object = json!({
            "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": version.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z" },
            "involvedObject": { "uid": "db" }, "message": message, "reason": "Logging",
        });
        serde_json::from_value(object).expect("an Event")
    }

    #[test]
    fn only_lines_that_say_how_handlers_ended_are_kept_in_the_order_in_which_they_were_logged() {
        let mut listed = ListedKopfLines::default();
        let ended = |is_success| KopfLogLine::ChangeEnded(is_success);
        let nothing = KopfLogChange::Nothing;
        assert_eq!(listed.apply_event(&FollowEvent::Init), nothing);
        for (name, version, message) in [
            ("c", 3, "Updating is processed: 1 succeeded; 0 failed."),
            ("b", 5, "Handler 'up' is invoked."),
            ("a", 7, "Updating is processed: 0 succeeded; 1 failed."),
        ] {
            assert_eq!(listed.apply_event(&FollowEvent::InitApply(event(name, version, message))), nothing);
        }
        assert_eq!(listed.ordered_lines().count(), 0, "half a list");
        assert_eq!(listed.apply_event(&FollowEvent::InitDone), KopfLogChange::Listed);
        let mut lines: Vec<_> =
            listed.ordered_lines().map(|line| (line.version, line.logged.line.clone())).collect();
        lines.sort_by_key(|(version, _)| *version);
        assert_eq!(lines, [(3, ended(true)), (7, ended(false))]);
        let new = event("d", 9, "Creation is processed: 1 succeeded; 0 failed.");
        let KopfLogChange::Line(line) = listed.apply_event(&FollowEvent::Apply(new.clone())) else {
            panic!("it is new")
        };
        assert_eq!((&*line.uid, line.line), ("db", ended(true)));
        assert_eq!(listed.apply_event(&FollowEvent::Apply(new.clone())), nothing, "it was told already");
        assert_eq!(listed.apply_event(&FollowEvent::Delete(new)), nothing);
        assert_eq!(listed.ordered_lines().count(), 2);
    }
}
