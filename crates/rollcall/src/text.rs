//! Styled lines that fit a width, with or without colour, and sanitizing of foreign text.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

/// Style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Plain,
    Dim,
    Bold,
    /// Ready.
    Good,
    /// Progressing.
    Busy,
    /// Failed or stuck.
    Bad,
    /// Unknown or paused.
    Open,
}

impl TextStyle {
    fn ansi_code(self) -> &'static str {
        match self {
            TextStyle::Plain => "",
            TextStyle::Dim => "2",
            TextStyle::Bold => "1",
            TextStyle::Good => "32",
            TextStyle::Busy => "33",
            TextStyle::Bad => "31",
            TextStyle::Open => "35",
        }
    }

    /// Returns the style of a verdict or of a condition's status.
    pub(crate) fn of_verdict(word: &str) -> TextStyle {
        match word {
            "Ready" | "True" => TextStyle::Good,
            "Progressing" | "Terminating" => TextStyle::Busy,
            "Failed" | "Stuck" | "Missing" | "False" => TextStyle::Bad,
            _ => TextStyle::Open,
        }
    }
}

/// A line of styled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledLine(Vec<(TextStyle, String)>);

impl StyledLine {
    /// Returns a line of one style.
    pub(crate) fn new(style: TextStyle, text: impl Into<String>) -> StyledLine {
        StyledLine(vec![(style, text.into())])
    }

    /// Appends text.
    pub(crate) fn append_text(mut self, style: TextStyle, text: impl Into<String>) -> StyledLine {
        self.0.push((style, text.into()));
        self
    }

    /// Pads with blanks to this column, by at least one.
    pub(crate) fn pad_to(self, column: usize) -> StyledLine {
        let blanks = column.saturating_sub(self.char_width()).max(1);
        self.append_text(TextStyle::Plain, " ".repeat(blanks))
    }

    pub(crate) fn char_width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Renders the line within this width, without a newline.
    pub(crate) fn fit_width(&self, width: usize, colour: bool) -> String {
        let mut out = String::new();
        let mut room = width;
        for (style, text) in &self.0 {
            let text = truncate_text(text, room);
            room -= text.chars().count();
            let code = style.ansi_code();
            if colour && !code.is_empty() && !text.trim().is_empty() {
                out.extend(["\x1b[", code, "m", &text, "\x1b[0m"]);
            } else {
                out.push_str(&text);
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out
    }
}

/// Truncates text to this width and marks the cut.
pub(crate) fn truncate_text(text: &str, width: usize) -> String {
    let text = sanitize_text(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain((width > 0).then_some('…')).collect()
}

/// Makes foreign text safe to print: puts it on one line and replaces characters that would move a cursor, recolour a
/// terminal, change the reading direction or be invisible by their numbers. Names and messages come from anyone who can
/// write to the cluster.
pub(crate) fn sanitize_text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_hidden(c) => out.push(c),
            c if c.is_whitespace() => out.push(' '),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Serializes a value as indented JSON in which the characters that [`sanitize_text`] replaces are escaped: it means the
/// same to a program, and does nothing to a terminal.
pub(crate) fn json_text(value: &(impl serde::Serialize + ?Sized)) -> serde_json::Result<String> {
    Ok(escape_json(&serde_json::to_string_pretty(value)?) + "\n")
}

/// Escapes these characters in a JSON text.
pub(crate) fn escape_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if c == '\n' || !is_hidden(c) {
            out.push(c);
        } else {
            // Only strings can hold such a character: those that JSON itself forbids there are escaped already.
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Returns `true` for control characters and characters of Unicode's category Cf: direction marks, joiners, tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Prints a line to standard error. A failed write is ignored.
pub(crate) fn print_error_line(line: &str) {
    _ = writeln!(std::io::stderr(), "rollcall: {}", sanitize_text(line));
}

/// Writes to standard output; returns `false` if the reader has closed it, which is no error.
pub(crate) fn write_stdout(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}

/// Writes to standard output, for commands that end with it.
pub(crate) fn print_stdout(text: &str) -> anyhow::Result<()> {
    write_stdout(text).map(drop).context("failed to write to standard output")
}

/// Writes a file, and the folders that it lies in.
pub(crate) fn write_file(file: &Path, text: &str) -> anyhow::Result<()> {
    file.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(file, text))
        .with_context(|| format!("failed to write {}", file.display()))
}

/// Wraps text between words into lines of this width, at most `lines` of them.
pub(crate) fn wrap_text(text: &str, width: usize, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match out.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => out.push(word.to_owned()),
        }
    }
    if out.len() > lines {
        out.truncate(lines);
        if let Some(last) = out.last_mut() {
            *last = truncate_text(&format!("{} …", truncate_text(last, width.saturating_sub(2))), width);
        }
    }
    out.iter().map(|line| truncate_text(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_exceeds_its_width_and_colour_adds_none() {
        let line = StyledLine::new(TextStyle::Bad, "Failed")
            .pad_to(12)
            .append_text(TextStyle::Dim, "pod books-db-0 – größer");
        for width in [0, 1, 5, 12, 13, 20, 80] {
            let plain = line.fit_width(width, false);
            assert!(plain.chars().count() <= width, "{plain:?}");
            assert_eq!(strip(&line.fit_width(width, true)).trim_end(), plain);
        }
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        let line = StyledLine::new(TextStyle::Good, "Ready\x1b[2J");
        assert_eq!(line.fit_width(80, false), "Ready\\u{1b}[2J");
    }

    #[test]
    fn what_would_move_a_cursor_or_turn_the_direction_is_shown_as_text() {
        for (text, shown) in [
            ("größe 日本 – ok", "größe 日本 – ok"),
            ("a\x1b[31mred", "a\\u{1b}[31mred"),
            ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("two\r\nlines\ttab\u{2028}end", "two  lines tab end"),
            ("\u{9b}31m\x07\x7f", "\\u{9b}31m\\u{7}\\u{7f}"),
        ] {
            assert_eq!(sanitize_text(text), shown);
            assert_eq!(sanitize_text(shown), shown, "once is enough");
        }
    }

    #[test]
    fn json_means_the_same_and_moves_no_cursor() {
        let value =
            serde_json::json!({ "a\u{9b}31m": ["\x1b[2J", "\u{202e}", "two\nlines", "größe", "\u{e0041}"] });
        let text = json_text(&value).expect("JSON");
        assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }

    #[test]
    fn long_text_is_broken_between_words_and_cut_visibly() {
        assert_eq!(wrap_text("one two three", 8, 3), ["one two", "three"]);
        assert_eq!(wrap_text("one two three four", 8, 2), ["one two", "three …"]);
        assert_eq!(wrap_text("abcdefghij", 4, 1), ["abc…"]);
        assert!(wrap_text("", 4, 1).is_empty());
    }

    fn strip(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if c == '\x1b' {
                rest.by_ref().find(|c| *c == 'm');
            } else {
                out.push(c);
            }
        }
        out
    }
}
