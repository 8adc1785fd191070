//! The live view: the terminal's alternate screen, redrawn on every change.

use std::io::{self, Write};
use std::sync::{Arc, Once};
use std::time::Duration;

use rollcall_core::TreeNode;
use terminal_size::{Height, Width, terminal_size};
use tokio::sync::watch;

use super::cluster::DemoCluster;
use super::story_caption::StoryCaption;
use super::{transcript, tree};
use crate::terminal::TerminalCapabilities;
use crate::text::{StyledLine, TextStyle, truncate_text};

/// Escape sequences that enter the alternate screen and hide the cursor, and that leave it.
const ENTER_SCREEN: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE_SCREEN: &str = "\x1b[?25h\x1b[?1049l";
/// Redraw interval: ages advance even if nothing else changes.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum width of lines; longer ones are hard to read.
const MAX_SCREEN_WIDTH: usize = 110;

/// A terminal in its alternate screen; dropping it restores the previous state.
struct TerminalScreen;

impl TerminalScreen {
    fn enter_screen() -> io::Result<TerminalScreen> {
        // A panic message belongs on the main screen.
        static PANIC_HOOK: Once = Once::new();
        PANIC_HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                write_screen(LEAVE_SCREEN).ok();
                before(panic);
            }));
        });
        write_screen(ENTER_SCREEN)?;
        Ok(TerminalScreen)
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        write_screen(LEAVE_SCREEN).ok();
    }
}

fn write_screen(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Draws until the terminal is gone.
pub(super) async fn run_screen(
    look: TerminalCapabilities,
    mut caption: watch::Receiver<StoryCaption>,
    mut trees: watch::Receiver<Arc<Vec<TreeNode>>>,
    cluster: &DemoCluster,
) {
    let Ok(_terminal) = TerminalScreen::enter_screen() else { return };
    let mut ticks = tokio::time::interval(REDRAW_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shown = String::new();
    loop {
        let (width, height) = screen_size();
        let lines = render_picture(
            &caption.borrow_and_update(),
            &trees.borrow_and_update(),
            cluster.now_millis(),
            width,
            height,
        );
        let text = render_frame(&lines, width, look.colour);
        if text != shown && write_screen(&text).is_err() {
            return;
        }
        shown = text;
        tokio::select! {
            _ = ticks.tick() => {}
            Ok(()) = caption.changed() => {}
            Ok(()) = trees.changed() => {}
        }
    }
}

fn screen_size() -> (usize, usize) {
    let (Width(width), Height(height)) = terminal_size().unwrap_or((Width(80), Height(24)));
    // Zero means that the terminal does not know its size.
    let or = |n: u16, usual: usize| if n == 0 { usual } else { usize::from(n) };
    (or(width, 80).min(MAX_SCREEN_WIDTH), or(height, 24))
}

/// Returns one frame: clears the rest of each line and everything below the last one.
fn render_frame(lines: &[StyledLine], width: usize, colour: bool) -> String {
    let mut out = String::from("\x1b[H");
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            out.push_str("\r\n");
        }
        out.push_str(&line.fit_width(width, colour));
        out.push_str("\x1b[K");
    }
    out.push_str("\x1b[J");
    out
}

/// Returns the whole view in at most `height` lines.
fn render_picture(
    caption: &StoryCaption,
    trees: &[TreeNode],
    now: i64,
    width: usize,
    height: usize,
) -> Vec<StyledLine> {
    let mut lines = vec![header_line(caption, now, width), StyledLine::default()];
    lines.extend(transcript::caption_lines(caption, width));
    if let Some(check) = caption.checked.last() {
        lines.extend(transcript::check_lines(check, width));
    }
    lines.push(StyledLine::default());
    lines.extend(tree::tree_lines(trees, now, width));
    lines.push(StyledLine::default());
    lines.truncate(height.saturating_sub(1));
    // Newest history first, as older entries may not fit.
    let room = height.saturating_sub(lines.len() + 1);
    let past = caption.past_answers.iter().rev().take(room).map(|answer| {
        StyledLine::new(TextStyle::Dim, "before").pad_to(12).append_text(
            TextStyle::Dim,
            format!("Ready={} {}: {}", answer.status, answer.reason, answer.message),
        )
    });
    lines.extend(past);
    lines.resize(height.saturating_sub(1), StyledLine::default());
    lines.push(footer_line(caption, width));
    lines
}

fn header_line(caption: &StoryCaption, now: i64, width: usize) -> StyledLine {
    let title = if caption.scene == 0 {
        "starting …".to_owned()
    } else {
        format!("{} of {} · {}", caption.scene, caption.scenes, caption.title)
    };
    let seconds = if caption.since == 0 { 0 } else { (now - caption.since).max(0) / 1_000 };
    StyledLine::new(TextStyle::Bold, "rollcall demo")
        .pad_to(16)
        .append_text(TextStyle::Bold, title)
        .pad_to(width.saturating_sub(6))
        .append_text(TextStyle::Dim, format!("{:02}:{:02}", seconds / 60, seconds % 60))
}

fn footer_line(caption: &StoryCaption, width: usize) -> StyledLine {
    let end = "Ctrl-C ends";
    let at = width.saturating_sub(end.len());
    let held = if caption.over { format!("{} ", transcript::verdict_line(caption)) } else { String::new() };
    let room = at.saturating_sub(held.chars().count() + 1);
    let both = format!("{} · {}", caption.listening, caption.kubectl);
    // After the end, readers want the command to inspect the cluster.
    let one = if caption.over { &caption.kubectl } else { &caption.listening };
    let reach = if both.chars().count() <= room { both } else { truncate_text(one, room) };
    StyledLine::new(TextStyle::Good, held)
        .append_text(TextStyle::Dim, reach)
        .pad_to(at)
        .append_text(TextStyle::Dim, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::answer_log::DemoAnswer;

    fn caption() -> StoryCaption {
        let answer = DemoAnswer {
            status: "False".to_owned(),
            reason: "ChildrenFailed".to_owned(),
            message: "word ".repeat(200),
            ..DemoAnswer::default()
        };
        StoryCaption {
            scene: 5,
            scenes: 9,
            title: "A grandchild fails and recovers",
            what: "Pod books-db-0 crash-loops.",
            past_answers: vec![answer.clone(); 40],
            answer,
            listening: "page: http://127.0.0.1:8080".to_owned(),
            kubectl: "kubectl -s 127.0.0.1:40351".to_owned(),
            since: 1,
            ..StoryCaption::default()
        }
    }

    #[test]
    fn a_picture_fits_every_size() {
        for (width, height) in [(80, 24), (40, 10), (110, 50), (1, 1), (10, 2)] {
            let lines = render_picture(&caption(), &[], 65_000, width, height);
            assert!(lines.len() <= height, "{} lines of {height}", lines.len());
            assert!(lines.iter().all(|line| line.fit_width(width, false).chars().count() <= width));
        }
    }

    #[test]
    fn the_picture_of_eighty_by_twenty_four_has_head_and_foot() {
        let lines = render_picture(&caption(), &[], 65_000, 80, 24);
        assert_eq!(
            lines[0].fit_width(80, false),
            "rollcall demo   5 of 9 · A grandchild fails and recovers                  01:04"
        );
        let foot = "page: http://127.0.0.1:8080 · kubectl -s 127.0.0.1:40351             Ctrl-C ends";
        assert_eq!(lines[23].fit_width(80, false), foot);
        let over = StoryCaption { over: true, met: 25, ..caption() };
        let foot = "All 25 expectations held. kubectl -s 127.0.0.1:40351                 Ctrl-C ends";
        assert_eq!(render_picture(&over, &[], 65_000, 80, 24)[23].fit_width(80, false), foot);
    }

    #[test]
    fn a_frame_leaves_nothing_of_the_one_before() {
        let text = render_frame(&[StyledLine::new(TextStyle::Plain, "a"), StyledLine::default()], 80, false);
        assert_eq!(text, "\x1b[Ha\x1b[K\r\n\x1b[K\x1b[J");
    }
}
