//! The live picture: the alternate screen of a terminal, redrawn whenever something moves.

use std::io::{self, Write};
use std::sync::{Arc, Once};
use std::time::Duration;

use controller::core::TreeNode;
use terminal_size::{Height, Width, terminal_size};
use tokio::sync::watch;

use super::cluster::Cluster;
use super::show::Caption;
use super::{transcript, tree};
use crate::look::Look;
use crate::text::{Line, Style, cut};

/// Alternate screen, no cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Ages move even where nothing else does.
const TICK: Duration = Duration::from_millis(250);
/// Wider lines are harder to read, not easier.
const WIDEST: usize = 110;

/// A terminal that shows pictures; it is as it was before once this goes.
struct Terminal;

impl Terminal {
    fn enter() -> io::Result<Terminal> {
        // A panic's words belong on the screen that stays.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                put(LEAVE).ok();
                before(panic);
            }));
        });
        put(ENTER)?;
        Ok(Terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to restore.
        put(LEAVE).ok();
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Draws until the terminal is gone.
pub(super) async fn run(
    look: Look,
    mut caption: watch::Receiver<Caption>,
    mut trees: watch::Receiver<Arc<Vec<TreeNode>>>,
    cluster: &Cluster,
) {
    let Ok(_terminal) = Terminal::enter() else { return };
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shown = String::new();
    loop {
        let (width, height) = size();
        let lines =
            picture(&caption.borrow_and_update(), &trees.borrow_and_update(), cluster.now(), width, height);
        let text = frame(&lines, width, look.colour);
        if text != shown && put(&text).is_err() {
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

fn size() -> (usize, usize) {
    let (Width(width), Height(height)) = terminal_size().unwrap_or((Width(80), Height(24)));
    // A terminal that does not know its size says zero.
    let or = |n: u16, usual: usize| if n == 0 { usual } else { usize::from(n) };
    (or(width, 80).min(WIDEST), or(height, 24))
}

/// One frame: from the top, each line to its end, and nothing below.
fn frame(lines: &[Line], width: usize, colour: bool) -> String {
    let mut out = String::from("\x1b[H");
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            out.push_str("\r\n");
        }
        out.push_str(&line.fit(width, colour));
        out.push_str("\x1b[K");
    }
    out.push_str("\x1b[J");
    out
}

/// The whole picture, at most so high.
fn picture(caption: &Caption, trees: &[TreeNode], now: i64, width: usize, height: usize) -> Vec<Line> {
    let mut lines = vec![head(caption, now, width), Line::default()];
    lines.extend(transcript::words(caption, width));
    if let Some(check) = caption.checked.last() {
        lines.extend(transcript::checked(check, width));
    }
    lines.push(Line::default());
    lines.extend(tree::lines(trees, now, width));
    lines.push(Line::default());
    lines.truncate(height.saturating_sub(1));
    // The newest of the past first: it is what there may be no room for.
    let room = height.saturating_sub(lines.len() + 1);
    let past = caption.past.iter().rev().take(room).map(|said| {
        Line::new(Style::Dim, "before")
            .to(12)
            .then(Style::Dim, format!("Ready={} {}: {}", said.status, said.reason, said.message))
    });
    lines.extend(past);
    lines.resize(height.saturating_sub(1), Line::default());
    lines.push(foot(caption, width));
    lines
}

fn head(caption: &Caption, now: i64, width: usize) -> Line {
    let title = if caption.scene == 0 {
        "starting …".to_owned()
    } else {
        format!("{} of {} · {}", caption.scene, caption.scenes, caption.title)
    };
    let seconds = if caption.since == 0 { 0 } else { (now - caption.since).max(0) / 1_000 };
    Line::new(Style::Bold, "rollcall demo")
        .to(16)
        .then(Style::Bold, title)
        .to(width.saturating_sub(6))
        .then(Style::Dim, format!("{:02}:{:02}", seconds / 60, seconds % 60))
}

fn foot(caption: &Caption, width: usize) -> Line {
    let end = "Ctrl-C ends";
    let at = width.saturating_sub(end.len());
    let held = if caption.over { format!("{} ", transcript::verdict(caption)) } else { String::new() };
    let room = at.saturating_sub(held.chars().count() + 1);
    let both = format!("{} · {}", caption.listening, caption.kubectl);
    // Who has seen the end wants to look around.
    let one = if caption.over { &caption.kubectl } else { &caption.listening };
    let reach = if both.chars().count() <= room { both } else { cut(one, room) };
    Line::new(Style::Good, held).then(Style::Dim, reach).to(at).then(Style::Dim, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::said::Said;

    fn caption() -> Caption {
        let said = Said {
            status: "False".to_owned(),
            reason: "ChildrenFailed".to_owned(),
            message: "word ".repeat(200),
            ..Said::default()
        };
        Caption {
            scene: 5,
            scenes: 9,
            title: "A grandchild fails and recovers",
            what: "Pod books-db-0 crash-loops.",
            past: vec![said.clone(); 40],
            said,
            listening: "page: http://127.0.0.1:8080".to_owned(),
            kubectl: "kubectl -s 127.0.0.1:40351".to_owned(),
            since: 1,
            ..Caption::default()
        }
    }

    #[test]
    fn a_picture_fits_every_size() {
        for (width, height) in [(80, 24), (40, 10), (110, 50), (1, 1), (10, 2)] {
            let lines = picture(&caption(), &[], 65_000, width, height);
            assert!(lines.len() <= height, "{} lines of {height}", lines.len());
            assert!(lines.iter().all(|line| line.fit(width, false).chars().count() <= width));
        }
    }

    #[test]
    fn the_picture_of_eighty_by_twenty_four_has_head_and_foot() {
        let lines = picture(&caption(), &[], 65_000, 80, 24);
        assert_eq!(
            lines[0].fit(80, false),
            "rollcall demo   5 of 9 · A grandchild fails and recovers                  01:04"
        );
        let foot = "page: http://127.0.0.1:8080 · kubectl -s 127.0.0.1:40351             Ctrl-C ends";
        assert_eq!(lines[23].fit(80, false), foot);
        let over = Caption { over: true, met: 25, ..caption() };
        let foot = "All 25 expectations held. kubectl -s 127.0.0.1:40351                 Ctrl-C ends";
        assert_eq!(picture(&over, &[], 65_000, 80, 24)[23].fit(80, false), foot);
    }

    #[test]
    fn a_frame_leaves_nothing_of_the_one_before() {
        let text = frame(&[Line::new(Style::Plain, "a"), Line::default()], 80, false);
        assert_eq!(text, "\x1b[Ha\x1b[K\r\n\x1b[K\x1b[J");
    }
}
