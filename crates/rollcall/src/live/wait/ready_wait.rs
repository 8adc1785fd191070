//! `rollcall wait`: waits until all targets are ready and shows the root cause on one line meanwhile.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use controller::args::ClusterArgs;
use rollcall_core::TreeNode;
use tokio::time::{Instant, timeout_at};

use super::follow::ClusterFollower;
use super::open_cluster;
use super::pick::{missing_targets, pick_targets};
use super::scope_args::ScopeArgs;
use super::target::ObjectTarget;
use crate::terminal::TerminalCapabilities;
use crate::text::{sanitize_text, truncate_text, write_stdout};

/// `rollcall wait`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all are ready; 1 one failed permanently; 2 readiness could not be determined; 124 not ready in time."
)]
pub(crate) struct WaitArgs {
    /// Objects as KIND/NAME or KIND NAME; one that does not exist yet is waited for.
    #[arg(value_name = "KIND/NAME", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Maximum time to wait.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    timeout: Duration,
    /// State to wait for; only `ready` is supported.
    #[arg(long = "for", default_value = "ready", value_parser = ["ready"], value_name = "WHAT")]
    until: String,
}

const UNANSWERED_TEXT: &str = "the cluster has not responded";

/// Result of one evaluation.
#[derive(Debug, PartialEq, Eq)]
enum WaitState {
    Ready,
    /// Not ready yet, with the reason.
    Waiting(String),
    /// Failed permanently, with the reason.
    Failed(String),
    /// Unknown, with the reason.
    Undetermined(String),
}

pub(crate) async fn wait_until_ready(cluster: &ClusterArgs, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.timeout;
    let mut line = StatusLine::default();
    let Ok(opened) = timeout_at(deadline, open_cluster(cluster, &args.scope, &args.what)).await else {
        return end_unanswered(&mut line);
    };
    let (mut cluster, targets) = opened?;
    if targets.iter().any(|target| target.name.is_none()) {
        bail!("name an object: `rollcall wait KIND/NAME`");
    }
    let Ok(mut following) = timeout_at(deadline, ClusterFollower::new(&mut cluster)).await else {
        return end_unanswered(&mut line);
    };
    let mut last = UNANSWERED_TEXT.to_owned();
    while timeout_at(deadline, following.wait_for_change(&mut cluster)).await.is_ok() {
        let trees = cluster.build_trees(&following.known_objects(), crate::eval::current_time());
        let found = pick_targets(trees, &targets);
        let (text, word, code) = match check_targets(&found, &targets) {
            WaitState::Waiting(why) => {
                let why = following.trouble_text().map_or(why.clone(), |trouble| format!("{trouble}; {why}"));
                line.show_text(&why);
                last = why;
                continue;
            }
            WaitState::Ready => (found.iter().map(node_title).collect::<Vec<_>>().join(", "), "ready", 0),
            WaitState::Failed(why) => (why, "failed", 1),
            WaitState::Undetermined(why) => (why, "could not be determined", 2),
        };
        line.end_with(&text, word)?;
        cluster.report_unread();
        return Ok(ExitCode::from(code));
    }
    line.end_with(&last, "waited too long")?;
    cluster.report_unread();
    Ok(ExitCode::from(124))
}

fn end_unanswered(line: &mut StatusLine) -> anyhow::Result<ExitCode> {
    line.end_with(UNANSWERED_TEXT, "waited too long")?;
    Ok(ExitCode::from(124))
}

fn check_targets(found: &[TreeNode], targets: &[ObjectTarget]) -> WaitState {
    let unready: Vec<&TreeNode> = found.iter().filter(|node| node.verdict != "Ready").collect();
    if let Some(lost) = unready.iter().find(|node| node.stalled) {
        return WaitState::Failed(node_text(lost));
    }
    // Waiting does not grant missing rights.
    if let Some(hidden) = unready.iter().find(|node| node.reason == "KindNotVisible") {
        return WaitState::Undetermined(node_text(hidden));
    }
    let lacking = missing_targets(found, targets);
    if unready.is_empty() && lacking.is_empty() {
        return WaitState::Ready;
    }
    let of = if targets.len() > 1 {
        format!("{} of {} ready; ", found.len() - unready.len(), found.len() + lacking.len())
    } else {
        String::new()
    };
    let cause = unready
        .first()
        .map_or_else(|| format!("{} does not exist", lacking.join(", ")), |node| node_text(node));
    WaitState::Waiting(of + &cause)
}

fn node_text(node: &TreeNode) -> String {
    format!("{} {}: {}", node_title(node), node.verdict.to_lowercase(), node.detail)
}

fn node_title(node: &TreeNode) -> String {
    format!("{} {}", node.kind, node.name)
}

/// A status line: overwritten in place on a terminal, otherwise a new line for each change.
#[derive(Default)]
struct StatusLine {
    last: String,
}

impl StatusLine {
    fn show_text(&mut self, text: &str) {
        let text = sanitize_text(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
        if text == self.last {
            return;
        }
        let mut out = std::io::stderr();
        _ = if out.is_terminal() {
            write!(out, "\r\x1b[2K{}", truncate_text(&text, line_width())).and_then(|()| out.flush())
        } else {
            writeln!(out, "{text}")
        };
        self.last = text;
    }

    fn end_with(&mut self, text: &str, word: &str) -> anyhow::Result<()> {
        let mut out = std::io::stderr();
        if out.is_terminal() && !self.last.is_empty() {
            _ = write!(out, "\r\x1b[2K");
        }
        write_stdout(&format!("{}: {word}\n", sanitize_text(text)))?;
        Ok(())
    }
}

fn line_width() -> usize {
    let stderr = || terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0));
    // The last column stays free: some terminals wrap there.
    TerminalCapabilities::stdout_width().or_else(stderr).unwrap_or(80).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::super::target::KindName;
    use super::*;

    fn node(name: &str, verdict: &'static str) -> TreeNode {
        let (kind, name, detail) = ("Shop".to_owned(), name.to_owned(), "why".to_owned());
        TreeNode { kind, name, verdict, detail, ..TreeNode::default() }
    }

    fn shops(names: &[&str]) -> Vec<ObjectTarget> {
        let kind = KindName { group: String::new(), kind: "Shop".to_owned() };
        let target = |name: &&str| ObjectTarget {
            kind: kind.clone(),
            namespaced: true,
            name: Some((*name).to_owned()),
        };
        names.iter().map(target).collect()
    }

    #[test]
    fn all_must_be_there_and_ready() {
        let waiting = |text: &str| WaitState::Waiting(text.to_owned());
        let two = shops(&["books", "toys"]);
        assert_eq!(check_targets(&[], &shops(&["books"])), waiting("Shop books does not exist"));
        assert_eq!(
            check_targets(&[node("books", "Ready")], &two),
            waiting("1 of 2 ready; Shop toys does not exist")
        );
        let one = [node("books", "Ready"), node("toys", "Progressing")];
        assert_eq!(check_targets(&one, &two), waiting("1 of 2 ready; Shop toys progressing: why"));
        assert_eq!(check_targets(&[node("books", "Ready"), node("toys", "Ready")], &two), WaitState::Ready);
    }

    #[test]
    fn what_has_failed_for_good_is_not_waited_for_and_a_crash_loop_is() {
        let of = shops(&["books"]);
        let lost = TreeNode { stalled: true, ..node("books", "Failed") };
        assert_eq!(check_targets(&[lost], &of), WaitState::Failed("Shop books failed: why".to_owned()));
        assert!(matches!(check_targets(&[node("books", "Failed")], &of), WaitState::Waiting(_)));
        let hidden = TreeNode { reason: "KindNotVisible".to_owned(), ..node("books", "Unknown") };
        assert!(matches!(check_targets(&[hidden], &of), WaitState::Undetermined(_)));
    }
}
