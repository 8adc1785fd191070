//! What was judged, for people and for machines.

use std::io::{self, StdoutLock, Write};

use clap::ValueEnum;

use super::judge::Judged;
use crate::look::Look;
use crate::text::plain;

/// The form of what is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A line for each object.
    #[default]
    Table,
    /// One array.
    Json,
    /// One list.
    Yaml,
}

/// Prints verdicts: JSON as they come, everything else at the end.
pub(super) struct Report {
    output: Output,
    out: io::BufWriter<StdoutLock<'static>>,
    colour: bool,
    printed: usize,
    kept: Vec<Judged>,
}

impl Report {
    pub(super) fn new(output: Output) -> Report {
        let stdout = io::stdout();
        let colour = Look::of_this_process(true).colour;
        Report { output, out: io::BufWriter::new(stdout.lock()), colour, printed: 0, kept: Vec::new() }
    }

    pub(super) fn add(&mut self, judged: Judged) -> io::Result<()> {
        if self.output != Output::Json {
            self.kept.push(judged);
            return Ok(());
        }
        self.out.write_all(if self.printed == 0 { b"[\n" } else { b",\n" })?;
        self.printed += 1;
        serde_json::to_writer(&mut self.out, &judged).map_err(io::Error::from)
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        match self.output {
            Output::Json if self.printed == 0 => self.out.write_all(b"[]\n")?,
            Output::Json => self.out.write_all(b"\n]\n")?,
            Output::Yaml if self.kept.is_empty() => self.out.write_all(b"[]\n")?,
            Output::Yaml => {
                let text = controller::policies::to_yaml(&self.kept).map_err(io::Error::other)?;
                self.out.write_all(text.as_bytes())?;
            }
            Output::Table if self.kept.is_empty() => {}
            Output::Table => self.table()?,
        }
        self.out.flush()
    }

    fn table(&mut self) -> io::Result<()> {
        let rows: Vec<Vec<String>> = self.kept.iter().map(row).collect();
        let heads: Vec<String> = match self.kept.first().and_then(|judged| judged.profile.as_ref()) {
            Some(peer) => {
                [&*peer.name.to_uppercase(), "NATIVE", "OBJECT", "RULE", "MESSAGE"].map(str::to_owned).into()
            }
            None => ["VERDICT", "REASON", "OBJECT", "RULE", "MESSAGE"].map(str::to_owned).into(),
        };
        let width =
            |column: usize| rows.iter().chain([&heads]).map(|r| r[column].chars().count()).max().unwrap_or(0);
        // The object comes first, as in kubectl; the message comes last and may be as long as it likes.
        let columns = [2, 0, 1, 3, 4];
        let widths = columns.map(width);
        for row in [&heads].into_iter().chain(&rows) {
            for (at, column) in columns.into_iter().enumerate() {
                let cell = &row[column];
                let gap = if column == 4 { 0 } else { widths[at] - cell.chars().count() + 3 };
                let colour = if column == 0 && self.colour { colour(cell) } else { "" };
                let reset = if colour.is_empty() { "" } else { "\x1b[0m" };
                write!(self.out, "{colour}{cell}{reset}{:gap$}", "")?;
            }
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn row(judged: &Judged) -> Vec<String> {
    let Judged { kind, namespace, name, .. } = judged;
    let object = line(&super::input::title(kind, namespace, name));
    let verdict = judged.verdict.to_owned();
    let Some(peer) = &judged.profile else {
        return vec![verdict, judged.reason.clone(), object, line(&judged.rule), line(&judged.message)];
    };
    let status = peer.status.unwrap_or("no health").to_owned();
    vec![status, verdict, object, peer.rule.clone(), line(&peer.message)]
}

/// On one line, and without anything that a terminal would obey.
fn line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn colour(status: &str) -> &'static str {
    match status {
        "Ready" | "Current" | "Healthy" => "\x1b[32m",
        "Failed" | "Stuck" | "Missing" | "Degraded" | "NotFound" => "\x1b[31m",
        "Unknown" | "Progressing" | "InProgress" | "Terminating" | "Suspended" => "\x1b[33m",
        _ => "",
    }
}
