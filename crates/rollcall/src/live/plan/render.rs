//! The plan, as text and as JSON.

use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::json;

use super::checked_account::CheckedAccount;
use super::condition_change::{ConditionChange, ConditionChanges, ParentSays, ParentTurn};
use super::policy_change::PlannedPolicyChange;
use super::replay::ReplayedPolicy;
use crate::terminal::TerminalCapabilities;
use crate::text::{StyledLine, TextStyle, json_text, sanitize_text};

/// Output format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PlanFormat {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
}

/// Number of parents that are shown as text.
const SHOWN_PARENTS: usize = 100;

/// Everything that a plan found.
pub(super) struct PlanReport {
    pub(super) policies: Vec<PlannedPolicyChange>,
    /// What a history would have been with them.
    pub(super) replayed: Vec<ReplayedPolicy>,
    pub(super) parents: ConditionChanges,
    /// Rights that the service account lacks, one line each.
    pub(super) lacking: Vec<String>,
    /// What could not be read, with the error.
    pub(super) unread: Vec<String>,
    pub(super) files: Vec<PathBuf>,
    /// The account whose rights were checked.
    pub(super) account: CheckedAccount,
}

impl PlanReport {
    pub(super) fn exit_code(&self) -> u8 {
        if !self.unread.is_empty() {
            return 2;
        }
        let moved = self.parents.changes.iter().any(|c| c.turn < ParentTurn::Shadow);
        let refused = self.policies.iter().any(|policy| policy.refused.is_some());
        u8::from(moved || refused || !self.lacking.is_empty())
    }

    pub(super) fn render(&self, output: PlanFormat, limit: Option<usize>) -> anyhow::Result<String> {
        match output {
            PlanFormat::Json => Ok(json_text(&json!({
                "policies": self.policies,
                "replayed": self.replayed,
                "parents": self.parents.changes.iter().take(limit.unwrap_or(usize::MAX)).collect::<Vec<_>>(),
                "counts": self.counts(),
                "lackingRights": self.lacking,
                "notRead": self.unread,
            }))?),
            PlanFormat::Text => Ok(self.render_text(limit.unwrap_or(SHOWN_PARENTS))),
        }
    }

    fn count(&self, turn: ParentTurn) -> usize {
        self.parents.changes.iter().filter(|change| change.turn == turn).count()
    }

    fn counts(&self) -> serde_json::Value {
        json!({
            "falls": self.count(ParentTurn::Falls),
            "turns": self.count(ParentTurn::Turns),
            "released": self.count(ParentTurn::Released),
            "new": self.count(ParentTurn::New),
            "shadow": self.count(ParentTurn::Shadow),
            "words": self.count(ParentTurn::Words),
            "unchanged": self.parents.unchanged,
        })
    }

    fn render_text(&self, limit: usize) -> String {
        let capabilities = TerminalCapabilities::detect_stdout(false);
        let width = TerminalCapabilities::stdout_width().unwrap_or(usize::MAX);
        let mut lines: Vec<StyledLine> =
            self.policies.iter().map(|policy| StyledLine::new(TextStyle::Plain, policy.to_line())).collect();
        lines.extend(self.replayed.iter().map(|of| StyledLine::new(TextStyle::Plain, of.to_line())));
        // Other words alone are counted, not shown: they change all the time.
        let shown = self.parents.changes.iter().filter(|change| change.turn != ParentTurn::Words);
        let shown: Vec<&ConditionChange> = shown.collect();
        lines.extend(shown.iter().take(limit).flat_map(|change| change_lines(change)));
        if shown.len() > limit {
            let more = format!("… and {} more: use --limit", shown.len() - limit);
            lines.push(StyledLine::new(TextStyle::Plain, more));
        }
        lines.push(StyledLine::new(TextStyle::Plain, self.summary()));
        let mut text = String::new();
        for line in lines {
            _ = writeln!(text, "{}", line.fit_width(width, capabilities.colour));
        }
        for right in &self.lacking {
            _ = writeln!(text, "{}", sanitize_text(right));
        }
        if !self.lacking.is_empty() && !self.files.is_empty() {
            _ = writeln!(text, "grant them with `{}`", sanitize_text(&self.granting_command()));
        }
        text
    }

    /// What grants the rights to the account that was checked.
    fn granting_command(&self) -> String {
        let files: String =
            self.files.iter().flat_map(|file| [" -f ".to_owned(), file.display().to_string()]).collect();
        let flags = self.account.role_flags();
        format!("rollcall rbac{files}{flags} | kubectl apply -f -")
    }

    fn summary(&self) -> String {
        let turns = self.count(ParentTurn::Falls) + self.count(ParentTurn::Turns);
        let mut text = format!(
            "{turns} conditions turn, {} of them from True; {} are new, {} go; {} stay",
            self.count(ParentTurn::Falls),
            self.count(ParentTurn::New),
            self.count(ParentTurn::Released),
            self.count(ParentTurn::Words) + self.parents.unchanged,
        );
        if self.count(ParentTurn::Words) > 0 {
            _ = write!(text, ", {} of them in other words", self.count(ParentTurn::Words));
        }
        if self.count(ParentTurn::Shadow) > 0 {
            _ = write!(text, "; {} are evaluated otherwise and not written", self.count(ParentTurn::Shadow));
        }
        text
    }
}

/// The parent on one line, and what is said of it below.
fn change_lines(change: &ConditionChange) -> [StyledLine; 3] {
    let of = &change.parent;
    let place = if of.namespace.is_empty() { String::new() } else { format!("{}/", of.namespace) };
    let title = format!("{} {place}{}  {}", of.kind, of.name, of.condition);
    [
        StyledLine::new(TextStyle::Plain, title),
        said_line("now ", change.now.as_ref()),
        said_line("then", change.then.as_ref()),
    ]
}

fn said_line(when: &str, says: Option<&ParentSays>) -> StyledLine {
    let line = StyledLine::new(TextStyle::Plain, format!("  {when}  "));
    let Some(says) = says else { return line.append_text(TextStyle::Dim, "nothing") };
    let unwritten = match &says.kept_by {
        _ if says.shadow => " (shadow: not written)".to_owned(),
        Some(owner) if owner.is_empty() => " (another client has the condition: not written)".to_owned(),
        Some(owner) => format!(" ({owner} has the condition: not written)"),
        None => String::new(),
    };
    line.append_text(TextStyle::of_verdict(says.status), says.status)
        .append_text(TextStyle::Plain, format!(" {}: {}{unwritten}", says.reason, says.message))
}

#[cfg(test)]
mod tests {
    use super::super::super::doctor::parse_service_account;
    use super::*;

    fn said(account: &str, records_namespace: Option<&str>) -> String {
        let report = PlanReport {
            policies: Vec::new(),
            replayed: Vec::new(),
            parents: ConditionChanges::default(),
            lacking: vec!["lacks list databases.example.com".to_owned()],
            unread: Vec::new(),
            files: vec!["policy.yaml".into()],
            account: CheckedAccount::new(
                parse_service_account(account).expect("an account"),
                records_namespace.map(str::to_owned),
            ),
        };
        report.render_text(SHOWN_PARENTS)
    }

    #[test]
    fn what_lacks_is_granted_to_the_account_that_was_asked_about() {
        let text = said("rollcall-system/rollcall", None);
        assert!(
            text.ends_with("grant them with `rollcall rbac -f policy.yaml | kubectl apply -f -`\n"),
            "{text}"
        );
        let text = said("watchers/team-a", None);
        let command =
            "`rollcall rbac -f policy.yaml -n watchers --service-account team-a | kubectl apply -f -`";
        assert!(text.contains(command), "{text}");
        let text = said("rollcall-system/rollcall", Some("records"));
        let command = "`rollcall rbac -f policy.yaml --records-namespace records | kubectl apply -f -`";
        assert!(text.contains(command), "{text}");
    }
}
