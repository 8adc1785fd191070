//! The story as lines of text: for `--once`, pipes and files.

use std::io::Write;

use rollcall_core::TreeNode;

use super::story_caption::{DemoCheck, StoryCaption};
use super::tree;
use crate::terminal::TerminalCapabilities;
use crate::text::{StyledLine, TextStyle, wrap_text};

/// Width of the transcript: fits every terminal and a README.
pub(super) const TRANSCRIPT_WIDTH: usize = 80;
/// Width of the labels between a title and a tree.
const LABEL_WIDTH: usize = 12;

/// Returns the heading of a scene.
pub(super) fn scene_heading(caption: &StoryCaption) -> Vec<StyledLine> {
    let head = format!("{} of {} · {} ", caption.scene, caption.scenes, caption.title);
    let rule = TRANSCRIPT_WIDTH.saturating_sub(head.chars().count() + 3);
    vec![
        StyledLine::default(),
        StyledLine::new(TextStyle::Dim, "── ")
            .append_text(TextStyle::Bold, head)
            .append_text(TextStyle::Dim, "─".repeat(rule)),
    ]
}

/// Returns the lines of a step: its description, its consequence and the tree.
pub(super) fn beat_lines(caption: &StoryCaption, trees: &[TreeNode], now: i64) -> Vec<StyledLine> {
    let mut out = vec![StyledLine::default()];
    out.extend(caption_lines(caption, TRANSCRIPT_WIDTH));
    out.push(StyledLine::default());
    out.extend(tree::tree_lines(trees, now, TRANSCRIPT_WIDTH));
    out
}

/// Returns the lines of a check.
pub(super) fn check_lines(check: &DemoCheck, width: usize) -> Vec<StyledLine> {
    let (label, style) = if check.holds { ("checked", TextStyle::Plain) } else { ("NOT SO", TextStyle::Bad) };
    labelled_lines(label, style, &check.what, width, 3)
}

/// Returns the lines of a caption: the step, the verdicts of other tools and the parent's conditions.
pub(super) fn caption_lines(caption: &StoryCaption, width: usize) -> Vec<StyledLine> {
    let mut out = labelled_lines("cluster", TextStyle::Plain, caption.what, width, 2);
    if !caption.others.is_empty() {
        out.extend(labelled_lines("without", TextStyle::Dim, &caption.others, width, 1));
    }
    out.extend(labelled_lines("", TextStyle::Dim, caption.moral, width, 2));
    out.extend(answer_lines(caption, width));
    out
}

fn answer_lines(caption: &StoryCaption, width: usize) -> Vec<StyledLine> {
    let answer = &caption.answer;
    if answer.status.is_empty() {
        return Vec::new();
    }
    let mut head = StyledLine::new(TextStyle::Dim, "rollcall")
        .pad_to(LABEL_WIDTH)
        .append_text(TextStyle::of_verdict(&answer.status), format!("Ready={}", answer.status))
        .append_text(TextStyle::Plain, format!(" {}", answer.reason));
    for beside in &answer.other_conditions {
        head = head.append_text(TextStyle::Plain, format!(" {beside}=True"));
    }
    let mut out = vec![head];
    out.extend(labelled_lines("", TextStyle::Plain, &answer.message, width, 3));
    out
}

fn labelled_lines(label: &str, style: TextStyle, text: &str, width: usize, lines: usize) -> Vec<StyledLine> {
    let room = width.saturating_sub(LABEL_WIDTH);
    let mut label = Some(label);
    let wrapped = wrap_text(text, room, lines).into_iter();
    wrapped
        .map(|text| {
            StyledLine::new(TextStyle::Dim, label.take().unwrap_or(""))
                .pad_to(LABEL_WIDTH)
                .append_text(style, text)
        })
        .collect()
}

/// Returns the lines of the ending.
pub(super) fn ending_lines(caption: &StoryCaption, stays: bool) -> Vec<StyledLine> {
    let mut out = scene_heading(&StoryCaption { title: "The end", ..caption.clone() });
    out[1] = StyledLine::new(TextStyle::Dim, "─".repeat(TRANSCRIPT_WIDTH));
    out.push(StyledLine::new(TextStyle::Good, verdict_line(caption)));
    if stays {
        let get = format!("The cluster stays up: {} get shops,databases", caption.kubectl);
        out.extend([
            StyledLine::new(TextStyle::Plain, get),
            StyledLine::new(TextStyle::Plain, "Press Ctrl-C to stop it."),
        ]);
    }
    out
}

/// Returns the last line of a successful story.
pub(super) fn verdict_line(caption: &StoryCaption) -> String {
    format!("All {} expectations held.", caption.met)
}

/// Writes lines to standard output.
pub(super) fn write_lines(lines: &[StyledLine], look: TerminalCapabilities) -> std::io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.fit_width(TRANSCRIPT_WIDTH, look.colour));
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::answer_log::DemoAnswer;

    fn plain(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(|line| line.fit_width(TRANSCRIPT_WIDTH, false)).collect()
    }

    #[test]
    fn a_beat_says_what_happens_what_others_say_and_what_the_parent_says() {
        let answer = DemoAnswer {
            status: "False".to_owned(),
            reason: "ChildrenStuck".to_owned(),
            message: "1 of 3 not ready: PersistentVolumeClaim media stuck (finalizer example.org/backup)"
                .to_owned(),
            other_conditions: vec!["Stalled".to_owned()],
        };
        let caption = StoryCaption {
            what: "The finalizer stays.",
            moral: "It would hang forever.",
            others: "Argo CD: no health, so Healthy · kstatus: Current".to_owned(),
            answer,
            ..StoryCaption::default()
        };
        assert_eq!(
            plain(&caption_lines(&caption, TRANSCRIPT_WIDTH)),
            [
                "cluster     The finalizer stays.",
                "without     Argo CD: no health, so Healthy · kstatus: Current",
                "            It would hang forever.",
                "rollcall    Ready=False ChildrenStuck Stalled=True",
                "            1 of 3 not ready: PersistentVolumeClaim media stuck (finalizer",
                "            example.org/backup)",
            ]
        );
    }

    #[test]
    fn a_heading_fills_the_line() {
        let caption = StoryCaption { scene: 3, scenes: 9, title: "One is slow", ..StoryCaption::default() };
        let line = &plain(&scene_heading(&caption))[1];
        assert!(line.starts_with("── 3 of 9 · One is slow ──"), "{line}");
        assert_eq!(line.chars().count(), TRANSCRIPT_WIDTH);
    }
}
