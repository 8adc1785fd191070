//! `containerStatuses` and `initContainerStatuses` of a pod.

use readiness::{Container, Containers, Exit};

use super::cursor::Cursor;

/// So many containers with trouble are kept.
const KEPT: usize = 32;

pub(super) fn read(list: &mut Cursor<'_>, init: bool, containers: &mut Containers) {
    let mut troubled = Vec::new();
    list.elements(|element| {
        let (container, ready) = container(element, init);
        if !init {
            containers.all += 1;
            containers.ready += u32::from(ready);
        }
        if !ready && troubled.len() < KEPT && (container.waiting.is_some() || container.ended.is_some()) {
            troubled.push(container);
        }
    });
    if init {
        troubled.append(&mut containers.troubled);
        containers.troubled = troubled;
    } else {
        containers.troubled.append(&mut troubled);
    }
}

fn container(object: &mut Cursor<'_>, init: bool) -> (Container, bool) {
    let mut container = Container { init, ..Container::default() };
    let (mut ready, mut before) = (false, None);
    object.members(|key, value| match key {
        "name" => container.name = value.boxed(),
        "ready" => ready = value.flag() == Some(true),
        "state" => (container.waiting, container.ended) = state(value),
        "lastState" => before = state(value).1,
        _ => {}
    });
    container.ended = container.ended.or(before);
    (container, ready)
}

fn state(object: &mut Cursor<'_>) -> (Option<Box<str>>, Option<Exit>) {
    let (mut waiting, mut ended) = (None, None);
    object.members(|key, value| match key {
        "waiting" => {
            value.members(|key, value| {
                if key == "reason" {
                    waiting = value.string().filter(|text| !text.is_empty()).map(Into::into);
                }
            });
        }
        "terminated" => {
            let mut exit = Exit::default();
            let there = value.members(|key, value| match key {
                "exitCode" => exit.code = value.integer().unwrap_or(0),
                "reason" => exit.reason = value.boxed(),
                _ => {}
            });
            ended = there.then_some(exit);
        }
        _ => {}
    });
    (waiting, ended)
}
