//! The rollouts of an object's generations, as the history has them.

use std::fmt::Write as _;

use controller::history::read::{HistoryEntry, HistoryRollout};
use policy::GROUP_KIND;
use readiness::Time;

use crate::live::rollout_text::{duration_text, part_line};
use crate::text::sanitize_text;

/// Renders what each generation waited for, the newest last.
pub(super) fn render_rollouts(lines: &[HistoryEntry]) -> String {
    let told = lines.iter().filter_map(|line| Some((line, line.rollout.as_ref()?)));
    told.map(|(line, rollout)| render_rollout(line, rollout)).collect()
}

fn render_rollout(line: &HistoryEntry, rollout: &HistoryRollout) -> String {
    let whole = seconds_between(&rollout.from, &rollout.to);
    let slash = if line.namespace.is_empty() { "" } else { "/" };
    let written = match line.generation {
        _ if (&*line.group, &*line.kind) == GROUP_KIND => " its newest member".to_owned(),
        Some(generation) => format!(" generation {generation}"),
        None => String::new(),
    };
    let HistoryEntry { kind, namespace, name, policy, .. } = line;
    let head =
        format!("{kind} {namespace}{slash}{name}: ready {} after{written} was written", duration_text(whole));
    let from = rollout.from.get(..19).map_or_else(|| rollout.from.clone(), |text| format!("{text}Z"));
    let mut text =
        format!("{} ({}, policy {})\n", sanitize_text(&head), sanitize_text(&from), sanitize_text(policy));
    for part in &rollout.parts {
        text += &part_line(seconds_between(&part.from, &part.to), whole, &part.object, &part.says);
    }
    for what in &rollout.not_read {
        _ = writeln!(text, "  not read: {}", sanitize_text(what));
    }
    text
}

fn seconds_between(from: &str, to: &str) -> f64 {
    let at = |text: &str| Time::from_rfc3339(text).unwrap_or_default();
    (at(to) - at(from)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use controller::history::read::HistoryRolloutPart;

    use super::*;

    fn part(object: &str, says: &str, from: &str, to: &str) -> HistoryRolloutPart {
        let at = |time: &str| format!("2026-11-21T{time}.000Z");
        let (object, says) = (object.to_owned(), says.to_owned());
        HistoryRolloutPart { object, says, from: at(from), to: at(to), cause: String::new() }
    }

    #[test]
    fn each_generation_tells_what_it_waited_for_and_names_of_others_are_harmless() {
        let parts = vec![
            part("Pod orders-0", "image pull r/db:\u{1b}[31m2", "13:00:00", "13:05:03"),
            part("Job migrate", "ran", "13:05:03", "13:07:43"),
        ];
        let (from, to) = (parts[0].from.clone(), parts[1].to.clone());
        let not_read = vec!["Events: forbidden".to_owned()];
        let mut line = HistoryEntry {
            policy: "databases".to_owned(),
            kind: "Database".to_owned(),
            group: "example.com".to_owned(),
            namespace: "shop".to_owned(),
            name: "orders".to_owned(),
            generation: Some(7),
            rollout: Some(HistoryRollout { from, to, parts, not_read }),
            ..HistoryEntry::default()
        };
        let text = render_rollouts(&[line.clone(), HistoryEntry::default()]);
        let lines: Vec<_> = text.lines().collect();
        let head = "Database shop/orders: ready 7m 43s after generation 7 was written (2026-11-21T13:00:00Z, policy databases)";
        assert_eq!(lines[0], head);
        assert!(lines[1].starts_with("         5m 3s   65 %  Pod orders-0: image pull r/db:"), "{text}");
        assert_eq!(lines[2], "        2m 40s   35 %  Job migrate: ran");
        assert_eq!(lines[3..], ["  not read: Events: forbidden"]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        (line.group, line.kind) = ("rollcall.dev".to_owned(), "ReadinessGroup".to_owned());
        assert!(render_rollouts(&[line]).contains("after its newest member was written"));
    }
}
