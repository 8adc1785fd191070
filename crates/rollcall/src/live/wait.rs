//! `rollcall wait`: until all of it is ready, with the root cause on one line meanwhile.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use controller::args::ClusterArgs;
use controller::core::TreeNode;
use tokio::time::Instant;

use super::ScopeArgs;
use super::gather::Cluster;
use super::target::find;
use super::tree::pick;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);

/// `rollcall wait`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 ready; 1 it failed for good; 2 it could not be told; 124 not ready in time."
)]
pub(crate) struct WaitArgs {
    /// Objects as KIND/NAME or KIND NAME.
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

/// What was seen in one look.
enum Seen {
    Ready,
    /// Not yet, and why.
    Waiting(String),
    /// It will not get better by itself, and why.
    Failed(String),
}

pub(crate) async fn wait(cluster: &ClusterArgs, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.timeout;
    let config = cluster.config().await?;
    let namespace = config.default_namespace.clone();
    let client = watcher::client(config)?;
    let targets = find(&client, &args.what).await?;
    if targets.iter().any(|target| target.name.is_none()) {
        bail!("say which: `rollcall wait KIND/NAME`");
    }
    let kinds: Vec<_> = targets.iter().map(|target| target.kind.clone()).collect();
    let mut cluster = Cluster::new(client, &args.scope, &namespace, &kinds).await?;
    let mut line = Line::default();
    loop {
        let found = pick(&cluster.trees(crate::eval::now()).await, &targets);
        match look(&found, targets.len()) {
            Seen::Ready => {
                line.end(&found.iter().map(title).collect::<Vec<_>>().join(", "), "ready");
                return Ok(ExitCode::SUCCESS);
            }
            Seen::Failed(why) => {
                line.end(&why, "failed");
                return Ok(ExitCode::from(1));
            }
            Seen::Waiting(why) if Instant::now() + EVERY > deadline => {
                line.end(&why, "waited too long");
                for (what, why) in &cluster.unread {
                    eprintln!("rollcall: not read: {what}: {why}");
                }
                return Ok(ExitCode::from(124));
            }
            Seen::Waiting(why) => line.show(&why),
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn look(found: &[TreeNode], wanted: usize) -> Seen {
    if found.len() < wanted {
        return Seen::Waiting(format!("{} of {wanted} found", found.len()));
    }
    let Some(worst) = found.iter().find(|node| node.verdict != "Ready") else { return Seen::Ready };
    let why = format!("{} {}: {}", title(worst), worst.verdict.to_lowercase(), worst.detail);
    // A crash loop may recover; what its own controller has given up will not.
    if worst.verdict == "Stuck" { Seen::Failed(why) } else { Seen::Waiting(why) }
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
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text == self.last {
            return;
        }
        let mut out = std::io::stderr();
        _ = if out.is_terminal() {
            let short: String = text.chars().take(width()).collect();
            write!(out, "\r\x1b[2K{short}").and_then(|()| out.flush())
        } else {
            writeln!(out, "{text}")
        };
        self.last = text;
    }

    fn end(&mut self, text: &str, word: &str) {
        if std::io::stderr().is_terminal() && !self.last.is_empty() {
            eprint!("\r\x1b[2K");
        }
        _ = writeln!(std::io::stdout(), "{text}: {word}");
    }
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(79, |(width, _)| usize::from(width.0).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(verdict: &'static str) -> TreeNode {
        TreeNode {
            kind: "Shop".to_owned(),
            namespace: "shop".to_owned(),
            name: "books".to_owned(),
            verdict,
            detail: "why".to_owned(),
            ..TreeNode::default()
        }
    }

    #[test]
    fn all_must_be_there_and_ready() {
        assert!(matches!(look(&[], 1), Seen::Waiting(why) if why == "0 of 1 found"));
        assert!(matches!(look(&[node("Ready")], 1), Seen::Ready));
        assert!(matches!(look(&[node("Ready"), node("Progressing")], 2), Seen::Waiting(_)));
        assert!(matches!(look(&[node("Stuck")], 1), Seen::Failed(_)));
    }
}
