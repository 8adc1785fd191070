//! `rollcall history`: the transitions of one object, or what the rollouts of its generations waited for, newest last.

mod rollouts;

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use controller::args::ClusterArgs;
use controller::history::HistoryStore;
use controller::history::read::{HistoryAnswer, HistoryEntries, HistoryEntry, HistoryLineKind};
use http::Request;
use readiness::Time;
use readiness::rollup::ParentReason;
use serde_json::Value;
use watcher::status::time;

use super::connect::connect_cluster;
use super::target::{find_targets, split_words};
use crate::eval::OutputFormat;
use crate::terminal::TerminalCapabilities;
use crate::text::{self, TextStyle, print_error_line, sanitize_text, write_stdout};

/// `rollcall history`.
#[derive(Args, Debug)]
#[command(
    after_help = "Without --from, the cluster's Events are read: they are kept for an hour by default, \
                  lack the previous state, and do not exist for policies in shadow mode.\n\n\
                  Rollouts are in the store where `run --history` has also --rollout-causes or --otlp-endpoint: what a \
                  generation waited for is in no object any more once the next one has replaced its pods. `rollcall explain \
                  --slow` tells the current one from the objects.\n\n\
                  Exit codes: 0 there are transitions, or rollouts; 1 there are none; 2 they could not be read."
)]
pub(crate) struct HistoryArgs {
    /// The object, as KIND/NAME or KIND NAME.
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    what: Vec<String>,
    /// Namespace of the object [default: that of the kubeconfig].
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Time span to look back.
    #[arg(long, default_value = "24h", value_parser = humantime::parse_duration, value_name = "DURATION")]
    since: Duration,
    /// Object store that `run --history` fills, read with your own credentials: s3://bucket/prefix, gs://…, az://…,
    /// file:///folder.
    #[arg(long, env = "ROLLCALL_HISTORY", value_name = "URL")]
    from: Option<String>,
    /// Show what the rollout of each generation waited for, and how long, instead of transitions.
    #[arg(long, requires = "from")]
    rollouts: bool,
    /// Output format.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: OutputFormat,
}

impl HistoryArgs {
    fn line_kind(&self) -> HistoryLineKind {
        if self.rollouts { HistoryLineKind::Rollouts } else { HistoryLineKind::Transitions }
    }
}

pub(crate) async fn print_history(cluster: &ClusterArgs, args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let [(kind, Some(name))] = &split_words(&args.what)?[..] else {
        bail!("name an object: `rollcall history KIND/NAME`");
    };
    let now = crate::eval::current_time();
    let since = Time(now.0.saturating_sub(i64::try_from(args.since.as_millis()).unwrap_or(i64::MAX)));
    let lines = match &args.from {
        Some(url) => {
            let namespace = match &args.namespace {
                Some(namespace) => namespace.clone(),
                // The store is enough by itself; a kubeconfig is used if there is one.
                None => cluster
                    .client_config()
                    .await
                    .map_or_else(|_| "default".to_owned(), |c| c.default_namespace),
            };
            let store = HistoryStore::open_existing(url)?;
            let lines = args.line_kind();
            let is_wanted = |line: &HistoryEntry| is_about(line, kind, &namespace, name);
            let found = HistoryEntries::read_range(&store, lines, (since, now), is_wanted).await?;
            for (batch, why) in &found.unreadable {
                print_error_line(&format!("not read: {batch}: {why}"));
            }
            found.entries
        }
        None => read_events(cluster, args, since).await?,
    };
    if lines.is_empty() {
        let of = args.from.as_ref().map_or_else(|| "Events of the cluster".to_owned(), |url| redact_url(url));
        let what = if args.rollouts { "rollout" } else { "transition" };
        print_error_line(&format!(
            "no {what} of {kind}/{name} since {} in {of}",
            time::format_seconds(since)
        ));
    }
    write_stdout(&match args.output {
        OutputFormat::Json => crate::text::json_text(&lines)?,
        OutputFormat::Yaml => policy::to_yaml(&lines)?,
        OutputFormat::Table if args.rollouts => rollouts::render_rollouts(&lines),
        OutputFormat::Table => render_table(
            &lines,
            TerminalCapabilities::detect_stdout(true).colour,
            TerminalCapabilities::stdout_width(),
        ),
    })?;
    Ok(ExitCode::from(u8::from(lines.is_empty())))
}

/// Returns the URL without parts that may be secret.
fn redact_url(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Returns `true` if the line is about the object. A cluster-scoped object matches from any namespace.
fn is_about(line: &HistoryEntry, word: &str, namespace: &str, name: &str) -> bool {
    let (kind, group) = word.split_once('.').map_or((word, None), |(kind, group)| (kind, Some(group)));
    let named = kind.eq_ignore_ascii_case(&line.kind)
        || kind.eq_ignore_ascii_case(&policy::rbac::default_plural(&line.kind));
    named
        && group.is_none_or(|group| group == line.group)
        && line.name == name
        && (line.namespace.is_empty() || line.namespace == namespace)
}

/// What the server says of a refusal, in its own words.
fn server_error(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => anyhow::Error::msg(status.message),
        error => error.into(),
    }
}

/// Reads transitions from the cluster's Events.
async fn read_events(
    cluster: &ClusterArgs,
    args: &HistoryArgs,
    since: Time,
) -> anyhow::Result<Vec<HistoryEntry>> {
    let (client, namespace) = connect_cluster(cluster).await?;
    let own = args.namespace.clone().unwrap_or(namespace);
    let targets = find_targets(&client, &args.what).await?;
    let Some(target) = targets.first() else { bail!("name an object: `rollcall history KIND/NAME`") };
    let namespace = if target.namespaced { own } else { "default".to_owned() };
    let name = target.name.as_deref().unwrap_or_default();
    let about = format!("involvedObject.kind={},involvedObject.name={name}", target.kind.kind);
    let (mut lines, mut more) = (Vec::new(), String::new());
    loop {
        let query = format!("fieldSelector={about}&limit=500&continue={more}");
        let path = format!("/api/v1/namespaces/{namespace}/events?{query}");
        let request = Request::get(path).body(Vec::new())?;
        let list: Value =
            client.request(request).await.map_err(server_error).with_context(|| {
                format!("failed to list Events in {namespace}; --from reads an object store")
            })?;
        let items = list["items"].as_array().into_iter().flatten();
        let of_group = |event: &&Value| {
            let version = event["involvedObject"]["apiVersion"].as_str().unwrap_or_default();
            version.split_once('/').map_or("", |(group, _)| group) == target.kind.group
        };
        lines.extend(items.filter(of_group).filter_map(transition_from_event));
        list["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut more);
        if more.is_empty() {
            break;
        }
    }
    let from = time::format_millis(since);
    lines.retain(|line| line.at >= from);
    lines.sort_by(|a, b| a.at.cmp(&b.at));
    Ok(lines)
}

/// Converts one of Rollcall's Events to a transition; it does not contain the previous state.
fn transition_from_event(event: &Value) -> Option<HistoryEntry> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if event["reportingComponent"] != "rollcall.dev/controller" {
        return None;
    }
    let reason = ParentReason::parse_reason(event["reason"].as_str()?)?;
    let (first, series) = (text(&event["eventTime"]), &event["series"]);
    let mut message = text(&event["message"]);
    let mut at = first.clone();
    if let Some(count) = series["count"].as_u64() {
        at = text(&series["lastObservedTime"]);
        _ = write!(message, " ({count} times since {first})");
    }
    let object = &event["involvedObject"];
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    Some(HistoryEntry {
        at,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text(&object["kind"]),
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        uid: text(&object["uid"]),
        to: HistoryAnswer {
            verdict: reason.child_level().as_str().to_owned(),
            status: reason.condition_status().as_str().to_owned(),
            reason: reason.as_str().to_owned(),
        },
        message,
        ..HistoryEntry::default()
    })
}

/// Minimum width of the message column.
const MIN_MESSAGE_WIDTH: usize = 20;
/// Maximum number of lines of one message.
const MAX_MESSAGE_LINES: usize = 8;

/// Renders one line per transition. On a terminal the message is cut at the end of the line, or placed below it if less
/// than the minimum width is left.
fn render_table(lines: &[HistoryEntry], colour: bool, width: Option<usize>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 5]> = lines.iter().map(table_row).collect();
    let head = ["TIME", "POLICY", "FROM", "TO", "MESSAGE"].map(str::to_owned);
    let mut at = [0; 5];
    for column in 1..5 {
        let widest = std::iter::once(&head).chain(&rows).map(|row| row[column - 1].chars().count()).max();
        at[column] = at[column - 1] + widest.unwrap_or(0) + 3;
    }
    // Events contain neither the policy nor the previous state.
    let empty = [1, 2].map(|column| rows.iter().all(|row| row[column].is_empty()));
    let skipped: usize =
        [1, 2].map(|column| usize::from(empty[column - 1]) * (at[column + 1] - at[column])).iter().sum();
    if let Some(width) = width.filter(|width| *width < at[4] - skipped + MIN_MESSAGE_WIDTH) {
        return render_stacked(lines, &rows, colour, width);
    }
    let mut out = String::new();
    for (row, verdict) in std::iter::once((&head, None)).chain(rows.iter().zip(lines.iter().map(Some))) {
        let mut line = text::StyledLine::new(TextStyle::Plain, &*row[0]);
        let mut left = 0;
        for column in 1..5 {
            if (column == 1 && empty[0]) || (column == 2 && empty[1]) {
                left += at[column + 1] - at[column];
                continue;
            }
            let style = match verdict {
                Some(verdict) if column == 3 => TextStyle::of_verdict(&verdict.to.verdict),
                _ => TextStyle::Plain,
            };
            line = line.pad_to(at[column] - left).append_text(style, &*row[column]);
        }
        out += &(line.fit_width(width.unwrap_or(usize::MAX), colour) + "\n");
    }
    out
}

/// Renders transitions without columns, on a narrow terminal: time and policy, state and reason, one below the other.
fn render_stacked(lines: &[HistoryEntry], rows: &[[String; 5]], colour: bool, width: usize) -> String {
    let indent = || text::StyledLine::new(TextStyle::Plain, "  ");
    let mut out = Vec::new();
    for (line, [at, policy, before, to, message]) in lines.iter().zip(rows) {
        let before = if before.is_empty() { String::new() } else { format!("  after {before}") };
        out.push(
            text::StyledLine::new(TextStyle::Plain, at)
                .pad_to(at.len() + 2)
                .append_text(TextStyle::Dim, policy),
        );
        out.push(
            indent()
                .append_text(TextStyle::of_verdict(&line.to.verdict), to)
                .append_text(TextStyle::Dim, before),
        );
        let parts = text::wrap_text(message, width.saturating_sub(2), MAX_MESSAGE_LINES).into_iter();
        out.extend(parts.map(|part| indent().append_text(TextStyle::Plain, part)));
    }
    out.iter().map(|line| line.fit_width(width, colour) + "\n").collect()
}

fn table_row(line: &HistoryEntry) -> [String; 5] {
    let one = |text: &str| sanitize_text(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    let shadow = if line.shadow { " (shadow)" } else { "" };
    let before = line.from.as_ref().map_or_else(
        // The first observation has no previous state.
        || if line.policy.is_empty() { String::new() } else { "-".to_owned() },
        |from| one(&from.reason),
    );
    let seconds = line.at.get(..19).map_or_else(|| one(&line.at), |text| one(text) + "Z");
    [seconds, one(&line.policy) + shadow, before, one(&line.to.reason), one(&line.message)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(kind: &str, group: &str, namespace: &str, name: &str) -> HistoryEntry {
        let word = |word: &str| word.to_owned();
        HistoryEntry {
            kind: word(kind),
            group: word(group),
            namespace: word(namespace),
            name: word(name),
            ..HistoryEntry::default()
        }
    }

    fn said(reason: ParentReason) -> HistoryAnswer {
        let word = |word: &str| word.to_owned();
        HistoryAnswer {
            verdict: word(reason.child_level().as_str()),
            status: String::new(),
            reason: word(reason.as_str()),
        }
    }

    #[test]
    fn an_object_is_called_as_in_kubectl() {
        let of = line("Database", "example.com", "shop", "orders");
        for word in ["database", "databases", "Database", "databases.example.com"] {
            assert!(is_about(&of, word, "shop", "orders"), "{word}");
        }
        assert!(!is_about(&of, "database", "other", "orders"));
        assert!(!is_about(&of, "database", "shop", "order"));
        assert!(!is_about(&of, "database.example.org", "shop", "orders"));
        assert!(is_about(&line("Cluster", "a.io", "", "one"), "cluster", "shop", "one"), "cluster-scoped");
    }

    #[test]
    fn a_table_has_the_newest_last_and_text_of_others_is_harmless() {
        let mut first = line("Database", "example.com", "shop", "orders");
        (first.at, first.policy) = ("2026-11-21T13:45:02.123Z".to_owned(), "databases".to_owned());
        first.to = said(ParentReason::ChildrenPending);
        let mut second = first.clone();
        second.at = "2026-11-21T13:46:02.123Z".to_owned();
        (second.from, second.to) = (Some(first.to.clone()), said(ParentReason::ChildrenFailed));
        second.message = "Pod \u{1b}[31mred\n\u{202e}failed".to_owned();
        let text = render_table(&[first, second], false, None);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[0], ["TIME", "POLICY", "FROM", "TO", "MESSAGE"]);
        assert_eq!(lines[1], ["2026-11-21T13:45:02Z", "databases", "-", "ChildrenPending"]);
        assert_eq!(lines[2][..4], ["2026-11-21T13:46:02Z", "databases", "ChildrenPending", "ChildrenFailed"]);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn on_a_narrow_terminal_what_is_said_and_why_go_below() {
        let mut of = line("Database", "example.com", "shop", "orders");
        (of.at, of.policy) = ("2026-11-21T13:45:02.123Z".to_owned(), "databases".to_owned());
        (of.from, of.to) = (Some(said(ParentReason::AllChildrenReady)), said(ParentReason::ChildrenFailed));
        of.message = "1 of 3 not ready: Pod orders-0 failed (waiting: CrashLoopBackOff)".to_owned();
        let narrow = render_table(std::slice::from_ref(&of), false, Some(40));
        assert_eq!(
            narrow.lines().collect::<Vec<_>>(),
            [
                "2026-11-21T13:45:02Z  databases",
                "  ChildrenFailed  after AllChildrenReady",
                "  1 of 3 not ready: Pod orders-0 failed",
                "  (waiting: CrashLoopBackOff)",
            ]
        );
        let wide = render_table(&[of], false, Some(100));
        assert!(wide.lines().count() == 2 && wide.contains("1 of 3 not ready"), "{wide}");
        assert!(wide.lines().all(|line| line.chars().count() <= 100), "{wide}");
    }

    #[test]
    fn an_event_of_ours_is_a_transition_without_what_was_before() {
        let mut event = json!({
            "reportingComponent": "rollcall.dev/controller", "reason": "ChildrenFailed", "message": "1 of 3 not ready",
            "eventTime": "2026-11-21T13:45:02.123000Z",
            "involvedObject": { "apiVersion": "example.com/v1", "kind": "Database", "namespace": "shop", "name": "orders" },
        });
        let of = transition_from_event(&event).unwrap();
        assert_eq!((of.at.as_str(), of.to.verdict.as_str()), ("2026-11-21T13:45:02.123000Z", "Failed"));
        assert_eq!(
            render_table(&[of], false, None).lines().next(),
            Some("TIME                   TO               MESSAGE")
        );
        event["series"] = json!({ "count": 3, "lastObservedTime": "2026-11-21T14:00:00.000000Z" });
        let of = transition_from_event(&event).unwrap();
        assert_eq!(of.at, "2026-11-21T14:00:00.000000Z");
        assert!(of.message.ends_with("(3 times since 2026-11-21T13:45:02.123000Z)"), "{}", of.message);
        event["reportingComponent"] = json!("deployment-controller");
        assert_eq!(transition_from_event(&event), None);
    }
}
