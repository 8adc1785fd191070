//! Lines of styled text that fit into a width, with colour or without; and text of others, made harmless.

use std::borrow::Cow;
use std::io::{self, Write};

/// How a piece of text looks where there is colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Dim,
    Bold,
    /// Ready.
    Good,
    /// On its way.
    Busy,
    /// In trouble.
    Bad,
    /// Not known, or paused.
    Open,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Dim => "2",
            Style::Bold => "1",
            Style::Good => "32",
            Style::Busy => "33",
            Style::Bad => "31",
            Style::Open => "35",
        }
    }

    /// The style of a verdict, or of a condition's status.
    pub(crate) fn of(word: &str) -> Style {
        match word {
            "Ready" | "True" => Style::Good,
            "Progressing" | "Terminating" => Style::Busy,
            "Failed" | "Stuck" | "Missing" | "False" => Style::Bad,
            _ => Style::Open,
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(Vec<(Style, String)>);

impl Line {
    /// A line of one style.
    pub(crate) fn new(style: Style, text: impl Into<String>) -> Line {
        Line(vec![(style, text.into())])
    }

    /// More text at its end.
    pub(crate) fn then(mut self, style: Style, text: impl Into<String>) -> Line {
        self.0.push((style, text.into()));
        self
    }

    /// Blanks up to that column, at least one.
    pub(crate) fn to(self, column: usize) -> Line {
        let blanks = column.saturating_sub(self.width()).max(1);
        self.then(Style::Plain, " ".repeat(blanks))
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// The line within that width, without a newline.
    pub(crate) fn fit(&self, width: usize, colour: bool) -> String {
        let mut out = String::new();
        let mut room = width;
        for (style, text) in &self.0 {
            let text = cut(text, room);
            room -= text.chars().count();
            let code = style.code();
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

/// The text within that width; what is cut shows it.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain((width > 0).then_some('…')).collect()
}

/// The text as it is to be read: on one line, and what would move a cursor, recolour a terminal, turn the direction of
/// reading or hide is shown by its number. Names and messages come from whoever may write to the cluster.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
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

/// Controls, and characters of Unicode's category Cf: marks of direction, joiners, tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Says a line on standard error; that nobody listens there is no reason to stop.
pub(crate) fn say(line: &str) {
    _ = writeln!(std::io::stderr(), "rollcall: {}", plain(line));
}

/// Writes to standard output; `false` where the reader has seen enough, which is no error.
pub(crate) fn put(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}

/// The text in lines of that width, broken between words, and at most so many lines.
pub(crate) fn wrap(text: &str, width: usize, lines: usize) -> Vec<String> {
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
            *last = cut(&format!("{} …", cut(last, width.saturating_sub(2))), width);
        }
    }
    out.iter().map(|line| cut(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_exceeds_its_width_and_colour_adds_none() {
        let line = Line::new(Style::Bad, "Failed").to(12).then(Style::Dim, "pod books-db-0 – größer");
        for width in [0, 1, 5, 12, 13, 20, 80] {
            let plain = line.fit(width, false);
            assert!(plain.chars().count() <= width, "{plain:?}");
            assert_eq!(strip(&line.fit(width, true)).trim_end(), plain);
        }
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        let line = Line::new(Style::Good, "Ready\x1b[2J");
        assert_eq!(line.fit(80, false), "Ready\\u{1b}[2J");
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
            assert_eq!(plain(text), shown);
            assert_eq!(plain(shown), shown, "once is enough");
        }
    }

    #[test]
    fn long_text_is_broken_between_words_and_cut_visibly() {
        assert_eq!(wrap("one two three", 8, 3), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 8, 2), ["one two", "three …"]);
        assert_eq!(wrap("abcdefghij", 4, 1), ["abc…"]);
        assert!(wrap("", 4, 1).is_empty());
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
