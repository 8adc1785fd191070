//! `rollcall tree --watch`: the trees drawn again whenever something changes.

use std::process::ExitCode;

use readiness::Time;
use rollcall_core::TreeNode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::below_watch::{BelowWatch, UnreadBelow};
use super::follow::ClusterFollower;
use super::pick::{NodeTimes, TreeObjectIndex};
use super::policy_cluster::PolicyCluster;
use super::tree_selection::{TreeSelection, node_age};
use super::uncounted::PolicyAnswers;
use super::uncounted_search::{SearchDepth, UncountedSearch};
use crate::eval::{OutputFormat, current_time};
use crate::terminal::TerminalCapabilities;
use crate::text::{print_error_line, write_stdout};
use crate::tree_table;

/// Moves to the top of the screen and clears it, scrollback included.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J\x1b[3J";
/// Drawing a large tree takes at most one n-th of the time, with n this number.
const DRAW_TIME_SHARE: u32 = 4;
/// Maximum number of lines about what could not be read below.
const MAX_UNREAD_LINES: usize = 3;

/// Draws the trees until Ctrl-C.
pub(super) async fn watch_tree(
    cluster: &mut PolicyCluster,
    selection: &TreeSelection<'_>,
    output: OutputFormat,
) -> anyhow::Result<ExitCode> {
    let search = UncountedSearch::new(cluster, SearchDepth::Everything);
    // All trees of all policies are no small search, and are not asked for by one object.
    let mut below = (!selection.targets.is_empty()).then(|| BelowWatch::new(search));
    let mut following = ClusterFollower::new(cluster).await;
    let mut drawing = TreeDrawing::new(output);
    let mut resized = signal(SignalKind::window_change())?;
    // One stream for all of the time: what arrives while the tree is drawn is not lost.
    let mut interrupted = signal(SignalKind::interrupt())?;
    loop {
        let mut changed = false;
        tokio::select! { biased;
            _ = interrupted.recv() => return Ok(ExitCode::from(drawing.code)),
            // Before the first drawing there is nothing to redraw.
            _ = resized.recv(), if drawing.printed.is_some() => {}
            () = wait_below(below.as_mut()) => {}
            moved = following.wait_for_change(cluster) => changed = moved,
        }
        cluster.report_unread();
        // A group has begun to ask for kinds that were not listed yet.
        if !following.is_listed() {
            continue;
        }
        let (began, now) = (Instant::now(), current_time());
        let objects = following.known_objects();
        let index = TreeObjectIndex::new(&objects);
        let trees = cluster.build_trees(&objects, now);
        if cluster.adopt_unchosen(selection.targets, &trees, &objects)? {
            following.note_more_asked();
            continue;
        }
        let answers = PolicyAnswers::collect(if below.is_some() { &trees[..] } else { &[] });
        let mut shown = selection.pick(trees);
        if let Some(below) = &mut below {
            below.search_if_due(&shown, changed, now);
            below.add_to(&mut shown, &answers);
        }
        let unread = below.as_mut().map(BelowWatch::tell_unread).unwrap_or_default();
        let moments = |node: &TreeNode| {
            let found = below.as_ref().and_then(|below| below.findings().node_times(node));
            // What has come to count since is followed itself.
            found.filter(|_| index.get(node).is_none()).unwrap_or_else(|| index.node_times(node))
        };
        selection.prune(&mut shown, &moments);
        let is_open = drawing.draw(&shown, following.trouble_text(), &unread, &moments, now)?;
        drawing.code = cluster.exit_code(drawing.code);
        if !is_open {
            return Ok(ExitCode::from(drawing.code));
        }
        tokio::select! { biased;
            _ = interrupted.recv() => return Ok(ExitCode::from(drawing.code)),
            () = tokio::time::sleep(began.elapsed() * (DRAW_TIME_SHARE - 1)) => {}
        }
    }
}

async fn wait_below(below: Option<&mut BelowWatch>) {
    match below {
        Some(below) => below.wait_for_findings().await,
        None => std::future::pending().await,
    }
}

/// What was drawn last.
struct TreeDrawing {
    output: OutputFormat,
    /// Redrawn in its place; otherwise one tree after the other.
    live: bool,
    /// The last text without ages, which advance on a terminal only; a file receives changes.
    printed: Option<String>,
    lost: String,
    /// Exit code by the last state.
    code: u8,
}

impl TreeDrawing {
    fn new(output: OutputFormat) -> TreeDrawing {
        let live = TerminalCapabilities::detect_stdout(false).live && output == OutputFormat::Table;
        TreeDrawing { output, live, printed: None, lost: String::new(), code: 2 }
    }

    /// Draws the trees, if that shows anything new. Returns false if nobody reads them any more.
    fn draw(
        &mut self,
        shown: &[TreeNode],
        trouble: Option<String>,
        unread: &UnreadBelow,
        moments: &dyn Fn(&TreeNode) -> NodeTimes,
        now: Time,
    ) -> anyhow::Result<bool> {
        self.code = tree_table::exit_code(shown);
        let undated = tree_table::render_trees(shown, self.output, &|_| None)?;
        let trouble = trouble.map_or(String::new(), |trouble| {
            let room = TerminalCapabilities::stdout_width().unwrap_or(usize::MAX);
            crate::text::wrap_text(&trouble, room, 3).join("\n") + "\n"
        });
        let unread = self.unread_text(unread);
        if !self.live && trouble != self.lost {
            print_error_line(if trouble.is_empty() {
                "the cluster responds again"
            } else {
                trouble.trim_end()
            });
        }
        self.lost.clone_from(&trouble);
        if self.live || self.printed.as_ref() != Some(&undated) {
            let before = if self.live {
                CLEAR_SCREEN
            } else if self.printed.is_some() && self.output == OutputFormat::Table {
                "\n"
            } else {
                ""
            };
            let ages = |node: &TreeNode| node_age(&moments(node), now);
            let text = tree_table::render_trees(shown, self.output, &ages)?;
            let text = if self.live {
                fit_height(&(trouble + &text + &unread), TerminalCapabilities::stdout_height())
            } else {
                text
            };
            if !write_stdout(&(before.to_owned() + &text))? {
                return Ok(false);
            }
        }
        self.printed = Some(undated);
        Ok(true)
    }

    /// What could not be read below: for the end of the screen, which is cleared each time, or told once beside the trees.
    fn unread_text(&self, unread: &UnreadBelow) -> String {
        if !self.live {
            for line in &unread.news {
                print_error_line(line);
            }
            return String::new();
        }
        let width = TerminalCapabilities::stdout_width().unwrap_or(usize::MAX);
        let lines = unread.all.iter().take(MAX_UNREAD_LINES);
        lines.map(|line| crate::text::truncate_text(line, width) + "\n").collect()
    }
}

/// Returns as many lines as fit: the worst of a tree come first.
fn fit_height(text: &str, height: Option<usize>) -> String {
    let (all, room) = (text.lines().count(), height.unwrap_or(usize::MAX).saturating_sub(1));
    if all <= room {
        return text.to_owned();
    }
    let shown = room.saturating_sub(1);
    let kept: String = text.split_inclusive('\n').take(shown).collect();
    let more = format!("… {} more lines: use --limit, --depth or a taller terminal", all - shown);
    kept + &crate::text::truncate_text(&more, TerminalCapabilities::stdout_width().unwrap_or(usize::MAX))
        + "\n"
}
