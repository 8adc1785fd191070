//! A rollout as a line of the history.

use inspect::rollout::WaitCause;
use readiness::rollup::ParentReason;
use watcher::status::time;

use crate::history::read::{HistoryAnswer, HistoryEntry, HistoryRollout, HistoryRolloutPart};
use crate::page::RolloutReport;

/// The line that tells of a rollout, of the time at which it was read.
pub(super) fn history_entry(report: &RolloutReport) -> HistoryEntry {
    let (group, version) = report.api_version.split_once('/').unwrap_or(("", &report.api_version));
    let parts = report.parts.iter().map(|part| HistoryRolloutPart {
        object: part.object.clone(),
        cause: cause_name(part.cause),
        says: part.cause_text(),
        from: time::format_millis(part.from),
        to: time::format_millis(part.to),
    });
    let ready = ParentReason::AllChildrenReady;
    HistoryEntry {
        at: time::format_millis(report.read_at),
        policy: report.policy.clone(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: report.kind.clone(),
        namespace: report.namespace.clone(),
        name: report.name.clone(),
        uid: report.uid.clone(),
        generation: Some(report.generation),
        to: HistoryAnswer {
            verdict: ready.child_level().as_str().to_owned(),
            status: ready.condition_status().as_str().to_owned(),
            reason: ready.as_str().to_owned(),
        },
        rollout: Some(HistoryRollout {
            from: time::format_millis(report.from),
            to: time::format_millis(report.to),
            parts: parts.collect(),
            not_read: report.not_read.clone(),
        }),
        ..HistoryEntry::default()
    }
}

/// The name that `rollcall explain --slow --output json` prints.
fn cause_name(cause: WaitCause) -> String {
    serde_json::to_value(cause).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::rollout_report::tests::report;

    #[test]
    fn a_line_says_what_the_page_and_the_command_say() {
        let entry = history_entry(&report("u-1", 7, 2));
        assert_eq!((&*entry.group, &*entry.version), ("example.com", "v1"));
        let rollout = entry.rollout.unwrap();
        assert_eq!((&*rollout.from, &*rollout.to), ("1970-01-01T00:00:07.000Z", "1970-01-01T00:00:09.000Z"));
        let said: Vec<_> = rollout.parts.iter().map(|part| (&*part.cause, &*part.says)).collect();
        assert_eq!(said, [("imagePull", "image pull r/db:2"); 2]);
    }
}
