//! The events of a text, as libyaml has them. Its translation into Rust panics on some texts that end in the middle,
//! such as a block scalar whose last line has no line break, which C's libyaml reads, and a tag before a comma.

use std::io::{BufReader, Chain, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{Event, EventData, Parser, ScalarStyle};

use crate::read_error::YamlReadError;

/// Capacity of the buffer before the parser, which decodes its input eagerly, at four bytes per character.
const BUFFER_SIZE: usize = 1 << 14;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// A text, and the line break that was added to it.
type EndedText<'t> = BufReader<Chain<&'t [u8], &'t [u8]>>;

/// Reads the events of a text, one after another.
pub(crate) struct YamlEvents<'t> {
    parser: Parser<EndedText<'t>>,
    /// Position behind the added line break, if a block scalar that reaches to it has one character too many.
    added_break: Option<u64>,
}

impl<'t> YamlEvents<'t> {
    /// Events of `text`. The text is ended by a line break if it is not, and its last block scalar loses it again.
    pub(crate) fn new(text: &'t [u8]) -> YamlEvents<'t> {
        let is_utf16 = UTF16_MARKS.iter().any(|mark| text.starts_with(mark));
        let is_ended = is_utf16 || matches!(text.last(), None | Some(b'\n' | b'\r'));
        let ending: &[u8] = if is_ended { b"" } else { b"\n" };
        let last_line = text.rsplit(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        let has_content = !last_line.iter().all(|byte| matches!(byte, b' ' | b'\t'));
        let counted = text.strip_prefix(UTF8_MARK).unwrap_or(text).len() + 1;
        let added_break = (!is_ended && has_content).then_some(counted as u64);
        let mut parser = Parser::new();
        parser.set_input(BufReader::with_capacity(BUFFER_SIZE, text.chain(ending)));
        YamlEvents { parser, added_break }
    }

    /// The next event.
    pub(crate) fn next_event(&mut self) -> Result<Event, YamlReadError> {
        let parsed = catch_unwind(AssertUnwindSafe(|| self.parser.parse())).map_err(|_| {
            YamlReadError::new(
                "not YAML: the parser failed, as it does on some texts that are none".to_owned(),
            )
        })?;
        let mut event = parsed.map_err(|error| {
            let line = error.problem_mark().map_or(0, |mark| mark.line + 1);
            let begin = error.context_mark().map(|mark| (mark.line + 1, mark.column + 1));
            YamlReadError { line, begin, what: format!("not YAML: {}", error.problem()) }
        })?;
        if let EventData::Scalar { value, style: ScalarStyle::Literal | ScalarStyle::Folded, .. } =
            &mut event.data
            && self.added_break == Some(event.end_mark.index)
            && value.ends_with('\n')
        {
            value.pop();
        }
        Ok(event)
    }
}
