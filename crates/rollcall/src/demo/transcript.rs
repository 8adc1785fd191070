//! The story as lines of text: for `--once`, for a pipe, for a file.

use std::io::Write;

use controller::core::TreeNode;

use super::show::{Caption, Check};
use super::tree;
use crate::look::Look;
use crate::text::{Line, Style, wrap};

/// Right for every terminal, and for a README.
pub(super) const WIDTH: usize = 80;
/// What leads in the lines between a title and a tree.
const LABEL: usize = 12;

/// The heading of a scene.
pub(super) fn scene(caption: &Caption) -> Vec<Line> {
    let head = format!("{} of {} · {} ", caption.scene, caption.scenes, caption.title);
    let rule = WIDTH.saturating_sub(head.chars().count() + 3);
    vec![
        Line::default(),
        Line::new(Style::Dim, "── ").then(Style::Bold, head).then(Style::Dim, "─".repeat(rule)),
    ]
}

/// What happened, what it means, and how everything stands.
pub(super) fn beat(caption: &Caption, trees: &[TreeNode], now: i64) -> Vec<Line> {
    let mut out = vec![Line::default()];
    out.extend(words(caption, WIDTH));
    out.push(Line::default());
    out.extend(tree::lines(trees, now, WIDTH));
    out
}

/// Something that was looked at beside what the parent says.
pub(super) fn checked(check: &Check, width: usize) -> Vec<Line> {
    let (label, style) = if check.holds { ("checked", Style::Plain) } else { ("NOT SO", Style::Bad) };
    labelled(label, style, &check.what, width, 3)
}

/// What happens, what others say of it, and what the parent says.
pub(super) fn words(caption: &Caption, width: usize) -> Vec<Line> {
    let mut out = labelled("cluster", Style::Plain, caption.what, width, 2);
    if !caption.others.is_empty() {
        out.extend(labelled("without", Style::Dim, &caption.others, width, 1));
    }
    out.extend(labelled("", Style::Dim, caption.moral, width, 2));
    out.extend(answer(caption, width));
    out
}

fn answer(caption: &Caption, width: usize) -> Vec<Line> {
    let said = &caption.said;
    if said.status.is_empty() {
        return Vec::new();
    }
    let mut head = Line::new(Style::Dim, "rollcall")
        .to(LABEL)
        .then(Style::of(&said.status), format!("Ready={}", said.status))
        .then(Style::Plain, format!(" {}", said.reason));
    for beside in &said.beside {
        head = head.then(Style::Plain, format!(" {beside}=True"));
    }
    let mut out = vec![head];
    out.extend(labelled("", Style::Plain, &said.message, width, 3));
    out
}

fn labelled(label: &str, style: Style, text: &str, width: usize, lines: usize) -> Vec<Line> {
    let room = width.saturating_sub(LABEL);
    let mut label = Some(label);
    let wrapped = wrap(text, room, lines).into_iter();
    wrapped
        .map(|text| Line::new(Style::Dim, label.take().unwrap_or("")).to(LABEL).then(style, text))
        .collect()
}

/// How it ended.
pub(super) fn end(caption: &Caption, stays: bool) -> Vec<Line> {
    let mut out = scene(&Caption { title: "The end", ..caption.clone() });
    out[1] = Line::new(Style::Dim, "─".repeat(WIDTH));
    out.push(Line::new(Style::Good, verdict(caption)));
    if stays {
        let get = format!("The cluster stays up: {} get shops,databases", caption.kubectl);
        out.extend([Line::new(Style::Plain, get), Line::new(Style::Plain, "Ctrl-C ends it.")]);
    }
    out
}

/// The last line of a story that went well.
pub(super) fn verdict(caption: &Caption) -> String {
    format!("All {} expectations held.", caption.met)
}

/// Writes lines to standard output.
pub(super) fn write(lines: &[Line], look: Look) -> std::io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.fit(WIDTH, look.colour));
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::said::Said;

    fn plain(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.fit(WIDTH, false)).collect()
    }

    #[test]
    fn a_beat_says_what_happens_what_others_say_and_what_the_parent_says() {
        let said = Said {
            status: "False".to_owned(),
            reason: "ChildrenStuck".to_owned(),
            message: "1 of 3 not ready: PersistentVolumeClaim media stuck (finalizer example.org/backup)"
                .to_owned(),
            beside: vec!["Stalled".to_owned()],
        };
        let caption = Caption {
            what: "Nobody lets go.",
            moral: "It would hang for ever.",
            others: "Argo CD: no health, so Healthy · kstatus: Current".to_owned(),
            said,
            ..Caption::default()
        };
        assert_eq!(
            plain(&words(&caption, WIDTH)),
            [
                "cluster     Nobody lets go.",
                "without     Argo CD: no health, so Healthy · kstatus: Current",
                "            It would hang for ever.",
                "rollcall    Ready=False ChildrenStuck Stalled=True",
                "            1 of 3 not ready: PersistentVolumeClaim media stuck (finalizer",
                "            example.org/backup)",
            ]
        );
    }

    #[test]
    fn a_heading_fills_the_line() {
        let caption = Caption { scene: 3, scenes: 9, title: "One is slow", ..Caption::default() };
        let line = &plain(&scene(&caption))[1];
        assert!(line.starts_with("── 3 of 9 · One is slow ──"), "{line}");
        assert_eq!(line.chars().count(), WIDTH);
    }
}
