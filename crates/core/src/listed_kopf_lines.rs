//! What Kopf operators log as Events, as it is listed and watched.

use readiness::Time;
use serde::Deserialize;
use watcher::reflector::{KopfLogLine, LoggedLine};
use watcher::{FollowEvent, ParentObject};

use crate::staged_list::StagedList;

/// An Event by its namespace and name.
type EventKey = (Box<str>, Box<str>);

/// The lines of the whole cluster, or of one namespace, that say how handlers ended. None is kept once it is told: whoever may write
/// Events may write many.
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
    /// Applies an event; returns the lines that are to be told, in the order in which they were logged.
    pub fn apply_event(&mut self, event: &FollowEvent<ParentObject>) -> Vec<LoggedLine> {
        match event {
            FollowEvent::Init => self.list.begin_list(),
            FollowEvent::InitApply(object) => {
                if let Some(line) = read_line(object) {
                    self.list.stage_item(key_of(object), line);
                }
            }
            FollowEvent::InitDone => return self.take_listed(),
            FollowEvent::Apply(object) => {
                return read_line(object).into_iter().map(|line| line.logged).collect();
            }
            // The server forgets Events after an hour; what they said stands.
            FollowEvent::Delete(_) | FollowEvent::Alive | FollowEvent::Failure(_) => {}
        }
        Vec::new()
    }

    /// Returns `true` once they were listed.
    pub fn are_listed(&self) -> bool {
        self.list.items().is_some()
    }

    fn take_listed(&mut self) -> Vec<LoggedLine> {
        self.list.finish_list();
        let listed = std::mem::replace(&mut self.list, StagedList::of_complete([]));
        let mut lines: Vec<OrderedLine> =
            listed.items().into_iter().flat_map(|items| items.values()).cloned().collect();
        lines.sort_by_key(|line| line.version);
        lines.into_iter().map(|line| line.logged).collect()
    }
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
    fn only_lines_that_say_how_handlers_ended_are_told_once_in_the_order_in_which_they_were_logged() {
        let mut listed = ListedKopfLines::default();
        let told = |lines: Vec<LoggedLine>| lines.into_iter().map(|line| line.line).collect::<Vec<_>>();
        let ended = |is_success| KopfLogLine::ChangeEnded(is_success);
        assert!(listed.apply_event(&FollowEvent::Init).is_empty());
        for (name, version, message) in [
            ("c", 3, "Updating is processed: 1 succeeded; 0 failed."),
            ("b", 5, "Handler 'up' is invoked."),
            ("a", 7, "Updating is processed: 0 succeeded; 1 failed."),
        ] {
            let half_a_list = listed.apply_event(&FollowEvent::InitApply(event(name, version, message)));
            assert!(half_a_list.is_empty() && !listed.are_listed());
        }
        assert_eq!(told(listed.apply_event(&FollowEvent::InitDone)), [ended(true), ended(false)]);
        assert!(listed.list.items().is_some_and(std::collections::BTreeMap::is_empty), "nothing is kept");
        let new = event("d", 9, "Creation is processed: 1 succeeded; 0 failed.");
        let lines = listed.apply_event(&FollowEvent::Apply(new.clone()));
        assert_eq!((&*lines[0].uid, told(lines.clone())), ("db", vec![ended(true)]));
        assert!(listed.apply_event(&FollowEvent::Delete(new)).is_empty() && listed.are_listed());
    }
}
