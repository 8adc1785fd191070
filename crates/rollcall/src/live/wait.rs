//! `rollcall wait`: until all of it is ready, with the root cause on one line meanwhile.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use controller::args::ClusterArgs;
use controller::core::TreeNode;
use tokio::time::{Instant, timeout_at};

use super::follow::Following;
use super::pick::{lacking, pick};
use super::target::Target;
use super::{ScopeArgs, open};
use crate::look::Look;
use crate::text::{cut, plain, put};

/// `rollcall wait`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all are ready; 1 one failed for good; 2 it could not be told; 124 not ready in time."
)]
pub(crate) struct WaitArgs {
    /// Objects as KIND/NAME or KIND NAME; one that does not exist yet is waited for.
    #[arg(value_name = "KIND/NAME", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// How long at most.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    timeout: Duration,
    /// What is waited for; ready is all there is.
    #[arg(long = "for", default_value = "ready", value_parser = ["ready"], value_name = "WHAT")]
    until: String,
}

const UNANSWERED: &str = "the cluster has not answered";

/// What was seen in one look.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Ready,
    /// Not yet, and why.
    Waiting(String),
    /// It will not get better by itself, and why.
    Failed(String),
    /// It cannot be told, and why.
    Untold(String),
}

pub(crate) async fn wait(cluster: &ClusterArgs, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.timeout;
    let mut line = Line::default();
    let Ok(opened) = timeout_at(deadline, open(cluster, &args.scope, &args.what)).await else {
        return unanswered(&mut line);
    };
    let (mut cluster, targets) = opened?;
    if targets.iter().any(|target| target.name.is_none()) {
        bail!("say which: `rollcall wait KIND/NAME`");
    }
    let Ok(mut following) = timeout_at(deadline, Following::new(&mut cluster)).await else {
        return unanswered(&mut line);
    };
    let mut last = UNANSWERED.to_owned();
    while timeout_at(deadline, following.moved(&mut cluster)).await.is_ok() {
        let trees = cluster.trees(&following.objects(), crate::eval::now());
        let found = pick(trees, &targets);
        let (text, word, code) = match look(&found, &targets) {
            Seen::Waiting(why) => {
                let why = following.trouble().map_or(why.clone(), |trouble| format!("{trouble}; {why}"));
                line.show(&why);
                last = why;
                continue;
            }
            Seen::Ready => (found.iter().map(title).collect::<Vec<_>>().join(", "), "ready", 0),
            Seen::Failed(why) => (why, "failed", 1),
            Seen::Untold(why) => (why, "could not be told", 2),
        };
        line.end(&text, word)?;
        cluster.complain();
        return Ok(ExitCode::from(code));
    }
    line.end(&last, "waited too long")?;
    cluster.complain();
    Ok(ExitCode::from(124))
}

fn unanswered(line: &mut Line) -> anyhow::Result<ExitCode> {
    line.end(UNANSWERED, "waited too long")?;
    Ok(ExitCode::from(124))
}

fn look(found: &[TreeNode], targets: &[Target]) -> Seen {
    let unready: Vec<&TreeNode> = found.iter().filter(|node| node.verdict != "Ready").collect();
    if let Some(lost) = unready.iter().find(|node| node.stalled) {
        return Seen::Failed(told(lost));
    }
    // Rights do not come by waiting.
    if let Some(hidden) = unready.iter().find(|node| node.reason == "KindNotVisible") {
        return Seen::Untold(told(hidden));
    }
    let lacking = lacking(found, targets);
    if unready.is_empty() && lacking.is_empty() {
        return Seen::Ready;
    }
    let of = if targets.len() > 1 {
        format!("{} of {} ready; ", found.len() - unready.len(), found.len() + lacking.len())
    } else {
        String::new()
    };
    let cause =
        unready.first().map_or_else(|| format!("{} does not exist", lacking.join(", ")), |node| told(node));
    Seen::Waiting(of + &cause)
}

fn told(node: &TreeNode) -> String {
    format!("{} {}: {}", title(node), node.verdict.to_lowercase(), node.detail)
}

fn title(node: &TreeNode) -> String {
    format!("{} {}", node.kind, node.name)
}

/// One line that is written over, on a terminal; elsewhere a line for each change.
#[derive(Default)]
struct Line {
    last: String,
}

impl Line {
    fn show(&mut self, text: &str) {
        let text = plain(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
        if text == self.last {
            return;
        }
        let mut out = std::io::stderr();
        _ = if out.is_terminal() {
            write!(out, "\r\x1b[2K{}", cut(&text, width())).and_then(|()| out.flush())
        } else {
            writeln!(out, "{text}")
        };
        self.last = text;
    }

    fn end(&mut self, text: &str, word: &str) -> anyhow::Result<()> {
        let mut out = std::io::stderr();
        if out.is_terminal() && !self.last.is_empty() {
            _ = write!(out, "\r\x1b[2K");
        }
        put(&format!("{}: {word}\n", plain(text)))?;
        Ok(())
    }
}

fn width() -> usize {
    let stderr = || terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0));
    // The last column stays free: some terminals break the line there.
    Look::width().or_else(stderr).unwrap_or(80).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::super::target::KindName;
    use super::*;

    fn node(name: &str, verdict: &'static str) -> TreeNode {
        let (kind, name, detail) = ("Shop".to_owned(), name.to_owned(), "why".to_owned());
        TreeNode { kind, name, verdict, detail, ..TreeNode::default() }
    }

    fn shops(names: &[&str]) -> Vec<Target> {
        let kind = KindName { group: String::new(), kind: "Shop".to_owned() };
        let target =
            |name: &&str| Target { kind: kind.clone(), namespaced: true, name: Some((*name).to_owned()) };
        names.iter().map(target).collect()
    }

    #[test]
    fn all_must_be_there_and_ready() {
        let waiting = |text: &str| Seen::Waiting(text.to_owned());
        let two = shops(&["books", "toys"]);
        assert_eq!(look(&[], &shops(&["books"])), waiting("Shop books does not exist"));
        assert_eq!(look(&[node("books", "Ready")], &two), waiting("1 of 2 ready; Shop toys does not exist"));
        let one = [node("books", "Ready"), node("toys", "Progressing")];
        assert_eq!(look(&one, &two), waiting("1 of 2 ready; Shop toys progressing: why"));
        assert_eq!(look(&[node("books", "Ready"), node("toys", "Ready")], &two), Seen::Ready);
    }

    #[test]
    fn what_has_failed_for_good_is_not_waited_for_and_a_crash_loop_is() {
        let of = shops(&["books"]);
        let lost = TreeNode { stalled: true, ..node("books", "Failed") };
        assert_eq!(look(&[lost], &of), Seen::Failed("Shop books failed: why".to_owned()));
        assert!(matches!(look(&[node("books", "Failed")], &of), Seen::Waiting(_)));
        let hidden = TreeNode { reason: "KindNotVisible".to_owned(), ..node("books", "Unknown") };
        assert!(matches!(look(&[hidden], &of), Seen::Untold(_)));
    }
}
