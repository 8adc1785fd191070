//! Output of verdicts, for people and for machines.

use std::io::{self, StdoutLock, Write};

use clap::ValueEnum;

use super::judge::ManifestVerdict;
use crate::terminal::TerminalCapabilities;
use crate::text::{escape_json, sanitize_text};

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One line per object.
    #[default]
    Table,
    /// One JSON array.
    Json,
    /// One YAML list.
    Yaml,
}

/// Prints verdicts: JSON as they arrive, other formats at the end.
pub(super) struct EvalReport {
    output: OutputFormat,
    out: io::BufWriter<StdoutLock<'static>>,
    colour: bool,
    printed: usize,
    kept: Vec<ManifestVerdict>,
}

impl EvalReport {
    pub(super) fn new(output: OutputFormat) -> EvalReport {
        let stdout = io::stdout();
        let colour = TerminalCapabilities::detect_stdout(true).colour;
        EvalReport { output, out: io::BufWriter::new(stdout.lock()), colour, printed: 0, kept: Vec::new() }
    }

    pub(super) fn add_verdict(&mut self, judged: ManifestVerdict) -> io::Result<()> {
        if self.output != OutputFormat::Json {
            self.kept.push(judged);
            return Ok(());
        }
        self.out.write_all(if self.printed == 0 { b"[\n" } else { b",\n" })?;
        self.printed += 1;
        let text = serde_json::to_string(&judged)?;
        self.out.write_all(escape_json(&text).as_bytes())
    }

    pub(super) fn finish_report(mut self) -> io::Result<()> {
        match self.output {
            OutputFormat::Json if self.printed == 0 => self.out.write_all(b"[]\n")?,
            OutputFormat::Json => self.out.write_all(b"\n]\n")?,
            OutputFormat::Yaml if self.kept.is_empty() => self.out.write_all(b"[]\n")?,
            OutputFormat::Yaml => {
                let text = policy::to_yaml(&self.kept).map_err(io::Error::other)?;
                self.out.write_all(text.as_bytes())?;
            }
            OutputFormat::Table if self.kept.is_empty() => {}
            OutputFormat::Table => self.write_table()?,
        }
        self.out.flush()
    }

    fn write_table(&mut self) -> io::Result<()> {
        let rows: Vec<Vec<String>> = self.kept.iter().map(table_row).collect();
        let heads: Vec<String> = match self.kept.first().and_then(|judged| judged.profile.as_ref()) {
            Some(peer) => {
                [&*peer.name.to_uppercase(), "NATIVE", "OBJECT", "RULE", "MESSAGE"].map(str::to_owned).into()
            }
            None => ["VERDICT", "REASON", "OBJECT", "RULE", "MESSAGE"].map(str::to_owned).into(),
        };
        let width =
            |column: usize| rows.iter().chain([&heads]).map(|r| r[column].chars().count()).max().unwrap_or(0);
        // The object comes first, as in kubectl; the message comes last, with any length.
        let columns = [2, 0, 1, 3, 4];
        let widths = columns.map(width);
        for row in [&heads].into_iter().chain(&rows) {
            for (at, column) in columns.into_iter().enumerate() {
                let cell = &row[column];
                let gap = if column == 4 { 0 } else { widths[at] - cell.chars().count() + 3 };
                let colour = if column == 0 && self.colour { verdict_colour(cell) } else { "" };
                let reset = if colour.is_empty() { "" } else { "\x1b[0m" };
                write!(self.out, "{colour}{cell}{reset}{:gap$}", "")?;
            }
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn table_row(judged: &ManifestVerdict) -> Vec<String> {
    let ManifestVerdict { kind, namespace, name, .. } = judged;
    let object = one_line(&super::input::object_title(kind, namespace, name));
    let verdict = judged.verdict.to_owned();
    let Some(peer) = &judged.profile else {
        return vec![
            verdict,
            judged.reason.as_str().to_owned(),
            object,
            one_line(&judged.rule),
            one_line(&judged.message),
        ];
    };
    let status = peer.status.unwrap_or("no health").to_owned();
    vec![status, verdict, object, peer.rule.clone(), one_line(&peer.message)]
}

/// Returns the text on one line, without terminal control sequences.
fn one_line(text: &str) -> String {
    sanitize_text(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn verdict_colour(status: &str) -> &'static str {
    match status {
        "Ready" | "Current" | "Healthy" => "\x1b[32m",
        "Failed" | "Stuck" | "Missing" | "Degraded" | "NotFound" => "\x1b[31m",
        "Unknown" | "Progressing" | "InProgress" | "Terminating" | "Suspended" => "\x1b[33m",
        _ => "",
    }
}
