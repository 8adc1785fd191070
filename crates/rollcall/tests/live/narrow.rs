//! `doctor` and `history` on a small terminal, and without colours.

use std::time::SystemTime;

use serde_json::json;

use super::cluster::{LiveCluster, custom};
use super::terminal::LiveTerminal;

/// Columns of a small terminal.
const NARROW: u16 = 40;

/// Returns a Shop with Events about it, one of which has a long message.
async fn shop(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    let shop = cluster.create(&custom("Shop", "books"));
    let about = json!({
        "apiVersion": "example.com/v1", "kind": "Shop", "namespace": "default", "name": "books",
        "uid": shop["metadata"]["uid"],
    });
    let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let now = readiness::Time(i64::try_from(since_epoch.as_millis()).unwrap()).to_rfc3339_millis();
    for (name, reason, message) in [
        ("one", "ChildrenProgressing", "1 of 1 not ready"),
        (
            "two",
            "ChildrenFailed",
            "1 of 1 not ready: Database db failed (Pod web-1 failed (waiting: CrashLoopBackOff))",
        ),
    ] {
        cluster.create(&json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": name, "namespace": "default" },
            "involvedObject": about, "reason": reason, "message": message, "type": "Normal", "action": "Judge",
            "reportingComponent": "rollcall.dev/controller", "reportingInstance": "it",
            "eventTime": now,
        }));
    }
    cluster
}

/// Returns the output of a command on a small terminal, line by line as displayed, and everything that was sent to the
/// terminal.
async fn printed(
    cluster: &LiveCluster,
    args: &[&str],
    env: &[(&str, &str)],
    last: &str,
) -> (Vec<String>, String) {
    let mut terminal = LiveTerminal::start(&cluster.rollcall(args), NARROW, env);
    terminal.until(last, |rows| rows.join(" ").contains(last)).await;
    terminal.end().await;
    let sent = terminal.sent();
    let lines = sent.lines().map(without_colour);
    // The terminal wraps standard error and commands.
    let lines: Vec<String> = lines.filter(|line| !line.starts_with("rollcall: ")).collect();
    for line in &lines {
        assert!(line.chars().count() <= usize::from(NARROW), "{line:?} of {args:?}");
    }
    (lines, sent)
}

fn without_colour(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once('m')).map(|(_, text)| text).collect::<String>()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_keeps_to_a_small_terminal_and_loses_no_word() {
    let cluster = shop("narrow-doctor").await;
    let (lines, sent) = printed(&cluster, &["doctor"], &[], "policies checked").await;
    let (_, wide, _) = cluster.run(&["doctor"]).await;
    assert!(wide.lines().any(|line| line.len() > 80), "it has much to say: {wide}");
    // The same words, in other places; an object's name may be truncated, with a mark.
    let told: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let missing = wide.lines().filter(|line| line.starts_with(' ')).flat_map(str::split_whitespace);
    let missing: Vec<&str> = missing.filter(|word| word.len() <= 31 && !told.contains(word)).collect();
    assert!(missing.is_empty(), "{missing:?} of\n{wide}\nis not in\n{}", lines.join("\n"));
    assert!(sent.contains("\u{1b}["), "in colour: {sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_keeps_to_a_small_terminal_and_still_says_what_and_why() {
    let cluster = shop("narrow-history").await;
    let mut command = cluster.bare();
    command.args(["history", "shop/books"]);
    let mut terminal = LiveTerminal::start(&command, NARROW, &[]);
    let rows = terminal.until("the last word", |rows| rows.join(" ").contains("CrashLoopBackOff))")).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(terminal.is_unbroken(), "{rows:#?}");
    let said: Vec<&str> = rows.iter().map(String::as_str).filter(|row| !row.starts_with("20")).collect();
    let expected = [
        "  ChildrenProgressing",
        "  1 of 1 not ready",
        "  ChildrenFailed",
        "  1 of 1 not ready: Database db failed",
        "  (Pod web-1 failed (waiting:",
        "  CrashLoopBackOff))",
    ];
    assert_eq!(said, expected);
    let sent = terminal.sent();
    assert!(sent.contains("\u{1b}[31m"), "in colour: {sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_colours_there_are_none() {
    let cluster = shop("narrow-plain").await;
    for env in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, sent) = printed(&cluster, &["doctor"], &[env], "policies checked").await;
        assert!(!sent.contains('\u{1b}'), "{env:?}: {sent:?}");
        let mut command = cluster.bare();
        command.args(["history", "shop/books"]);
        let mut terminal = LiveTerminal::start(&command, NARROW, &[env]);
        terminal.until("the last word", |rows| rows.join(" ").contains("CrashLoopBackOff))")).await;
        terminal.end().await;
        assert!(!terminal.sent().contains('\u{1b}'), "{env:?}: {:?}", terminal.sent());
    }
}
