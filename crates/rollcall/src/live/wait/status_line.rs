//! The line that shows what is waited for.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use crate::terminal::TerminalCapabilities;
use crate::text::{sanitize_text, truncate_text, write_stdout};

/// Shown until the cluster has answered for the first time.
pub(super) const UNANSWERED_TEXT: &str = "the cluster has not responded";

/// Ends a wait in which the cluster never answered.
pub(super) fn end_unanswered(line: &mut StatusLine) -> anyhow::Result<ExitCode> {
    line.end_with(UNANSWERED_TEXT, "waited too long")?;
    Ok(ExitCode::from(124))
}

/// A status line: overwritten in place on a terminal, otherwise a new line for each change.
#[derive(Default)]
pub(super) struct StatusLine {
    last: String,
}

impl StatusLine {
    /// Shows the text unless it is shown already.
    pub(super) fn show_text(&mut self, text: &str) {
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

    /// Replaces the line by the result, on standard output.
    pub(super) fn end_with(&mut self, text: &str, word: &str) -> anyhow::Result<()> {
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
