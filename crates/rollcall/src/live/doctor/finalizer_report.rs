//! The finalizers of a cluster, as text for people.

use inspect::holder_signs::HolderState;
use readiness::Time;
use watcher::status::time;

use super::finalizers::FinalizerEntry;
use crate::text::{StyledLine, TextStyle, wrap_text};
use crate::tree_table::format_age;

/// Column at which texts begin.
const LABEL_WIDTH: usize = 11;
/// Maximum number of lines of one text.
const MAX_TEXT_LINES: usize = 8;

/// Renders the finalizers, each with the objects that wait for it.
pub(super) fn render_finalizers(entries: &[FinalizerEntry], now: Time, width: usize, colour: bool) -> String {
    let lines = entries.iter().flat_map(|entry| entry_lines(entry, now, width));
    lines
        .map(|(line, whole)| line.fit_width(if whole { usize::MAX / 2 } else { width }, colour) + "\n")
        .collect()
}

/// Lines of one finalizer, and whether each must stay whole.
fn entry_lines(entry: &FinalizerEntry, now: Time, width: usize) -> Vec<(StyledLine, bool)> {
    let mut out = Vec::new();
    let style = match (entry.waiting, entry.holder.state) {
        (0, _) => TextStyle::Plain,
        (_, HolderState::Ownerless) => TextStyle::Bad,
        _ => TextStyle::Busy,
    };
    let objects = if entry.objects == 1 { "object" } else { "objects" };
    let waiting = if entry.waiting == 0 { String::new() } else { format!(", {} in deletion", entry.waiting) };
    let head = StyledLine::new(TextStyle::Bold, &*entry.finalizer);
    out.push((head.append_text(style, format!("  {} {objects}{waiting}", entry.objects)), false));
    let kinds: Vec<String> = entry.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    let set_by: Vec<&str> = entry.set_by.iter().map(String::as_str).collect();
    let likely = entry.likely.map(|likely| format!("likely {likely}"));
    let set_by = if set_by.is_empty() { "managedFields do not tell".to_owned() } else { set_by.join(", ") };
    let state = match entry.holder.state {
        HolderState::Alive => "alive",
        HolderState::Ownerless => "ownerless",
        HolderState::Unknown => "not known whether it lives",
    };
    let holder = format!("{state}: {}", entry.holder.evidence);
    let mut texts = vec![("on", kinds.join(", ")), ("set by", set_by)];
    texts.extend(likely.map(|likely| ("holder", likely)));
    texts.push((if entry.likely.is_some() { "" } else { "holder" }, holder));
    for (label, text) in texts {
        push_wrapped(&mut out, label, &text, width);
    }
    for waiter in &entry.waiters {
        let age = time::parse_rfc3339(&waiter.since)
            .map_or_else(String::new, |since| format!(" ({} ago)", format_age(now.0 - since.0)));
        push_wrapped(&mut out, "waits", &format!("{}, since {}{age}", waiter.object, waiter.since), width);
        out.push((labelled("release").append_text(TextStyle::Dim, &*waiter.release), true));
    }
    if entry.waiting > entry.waiters.len() {
        let more = format!("and {} more", entry.waiting - entry.waiters.len());
        push_wrapped(&mut out, "", &more, width);
    }
    out
}

fn labelled(label: &str) -> StyledLine {
    StyledLine::new(TextStyle::Plain, "  ").append_text(TextStyle::Dim, label).pad_to(LABEL_WIDTH)
}

fn push_wrapped(out: &mut Vec<(StyledLine, bool)>, label: &str, text: &str, width: usize) {
    let room = width.saturating_sub(LABEL_WIDTH).max(LABEL_WIDTH);
    for (at, part) in wrap_text(text, room, MAX_TEXT_LINES).into_iter().enumerate() {
        let line = labelled(if at == 0 { label } else { "" });
        out.push((line.append_text(TextStyle::Plain, part), false));
    }
}
