//! `containerStatuses` and `initContainerStatuses` of a pod.

use readiness::{ContainerExit, PodContainers, UnreadyContainer};

use super::cursor::JsonCursor;

/// Largest number of containers with problems that is kept.
const MAX_TROUBLED_CONTAINERS: usize = 32;

pub(super) fn read_container_statuses(list: &mut JsonCursor<'_>, init: bool, containers: &mut PodContainers) {
    let mut troubled = Vec::new();
    list.each_element(|element| {
        let (container, ready) = read_container_status(element, init);
        if !init {
            containers.all += 1;
            containers.ready += u32::from(ready);
        }
        if !ready
            && troubled.len() < MAX_TROUBLED_CONTAINERS
            && (container.waiting.is_some() || container.ended.is_some())
        {
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

fn read_container_status(object: &mut JsonCursor<'_>, init: bool) -> (UnreadyContainer, bool) {
    let mut container = UnreadyContainer { init, ..UnreadyContainer::default() };
    let (mut ready, mut before) = (false, None);
    object.each_member(|key, value| match key {
        "name" => container.name = value.read_boxed(),
        "ready" => ready = value.read_flag() == Some(true),
        "state" => (container.waiting, container.ended) = read_container_state(value),
        "restartCount" => {
            container.restarts = value.read_integer().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        }
        "lastState" => before = read_container_state(value).1,
        _ => {}
    });
    container.ended = container.ended.or(before);
    (container, ready)
}

fn read_container_state(object: &mut JsonCursor<'_>) -> (Option<Box<str>>, Option<ContainerExit>) {
    let (mut waiting, mut ended) = (None, None);
    object.each_member(|key, value| match key {
        "waiting" => {
            value.each_member(|key, value| {
                if key == "reason" {
                    waiting = value.read_string().filter(|text| !text.is_empty()).map(Into::into);
                }
            });
        }
        "terminated" => {
            let mut exit = ContainerExit::default();
            let there = value.each_member(|key, value| match key {
                "exitCode" => exit.code = value.read_integer().unwrap_or(0),
                "reason" => exit.reason = value.read_boxed(),
                "startedAt" => exit.started = value.read_time(),
                "finishedAt" => exit.finished = value.read_time(),
                _ => {}
            });
            ended = there.then_some(exit);
        }
        _ => {}
    });
    (waiting, ended)
}
