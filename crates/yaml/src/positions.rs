//! Source positions of the fields of a YAML text, so that findings can link to file, line and column.

use std::collections::BTreeMap;
use std::fmt::Write;

use libyaml_safer::{Event, EventData, Mark, ScalarStyle};

use crate::yaml_events::YamlEvents;

/// A position in a file, 1-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl SourcePosition {
    fn from_mark(mark: &Mark) -> SourcePosition {
        let count = |n: u64| u32::try_from(n + 1).unwrap_or(u32::MAX);
        SourcePosition { line: count(mark.line), column: count(mark.column) }
    }
}

/// Start of a value and the style its text is written in.
#[derive(Clone, Copy, Debug)]
struct FieldPosition {
    key: Option<SourcePosition>,
    value: SourcePosition,
    block: bool,
    quoted: bool,
}

/// Positions of one document's fields by path, such as `spec.children[0].kind`.
#[derive(Debug, Default)]
pub struct DocumentPositions {
    fields: BTreeMap<String, FieldPosition>,
    start: Option<SourcePosition>,
}

/// Longest path of a field whose position is kept, in bytes: each field below has it in its own.
const MAX_PATH_LENGTH: usize = 512;

/// The container that the next node belongs to.
enum OpenContainer {
    /// One whose path is too long, or in such a one.
    TooDeep,
    List(String, usize),
    Map(String, Option<(String, SourcePosition)>),
}

/// Reads the documents of a YAML text, up to the first syntax error. A field whose path is very long has the position of one above
/// it.
pub fn read_positions(text: &[u8]) -> Vec<DocumentPositions> {
    let mut events = YamlEvents::new(text);
    let (mut documents, mut open) = (Vec::new(), Vec::new());
    while let Ok(event) = events.next_event() {
        match &event.data {
            EventData::StreamEnd => break,
            EventData::DocumentStart { .. } => {
                documents.push(DocumentPositions {
                    start: Some(SourcePosition::from_mark(&event.end_mark)),
                    ..DocumentPositions::default()
                });
                open.clear();
            }
            EventData::StreamStart { .. } | EventData::DocumentEnd { .. } => {}
            EventData::SequenceEnd | EventData::MappingEnd => _ = open.pop(),
            _ => {
                if let Some(document) = documents.last_mut() {
                    document.on_event(&event, &mut open);
                }
            }
        }
    }
    documents
}

impl DocumentPositions {
    fn on_event(&mut self, event: &Event, open: &mut Vec<OpenContainer>) {
        let place = SourcePosition::from_mark(&event.start_mark);
        let (text, style) = match &event.data {
            EventData::Scalar { value, style, .. } => (Some(value), Some(*style)),
            _ => (None, None),
        };
        let (path, key) = match open.last_mut() {
            None => (String::new(), None),
            Some(OpenContainer::TooDeep) => {
                if matches!(event.data, EventData::SequenceStart { .. } | EventData::MappingStart { .. }) {
                    open.push(OpenContainer::TooDeep);
                }
                return;
            }
            Some(OpenContainer::List(path, next)) => {
                *next += 1;
                (format!("{path}[{}]", *next - 1), None)
            }
            Some(OpenContainer::Map(path, key)) => {
                let Some((name, at)) = key.take() else {
                    *key = text.map(|name| (name.clone(), place));
                    return;
                };
                (if path.is_empty() { name } else { format!("{path}.{name}") }, Some(at))
            }
        };
        if path.len() > MAX_PATH_LENGTH {
            if text.is_none() && !matches!(event.data, EventData::Alias { .. }) {
                open.push(OpenContainer::TooDeep);
            }
            return;
        }
        let block = matches!(style, Some(ScalarStyle::Literal | ScalarStyle::Folded));
        let quoted = matches!(style, Some(ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted));
        self.fields.insert(path.clone(), FieldPosition { key, value: place, block, quoted });
        match &event.data {
            EventData::SequenceStart { .. } => open.push(OpenContainer::List(path, 0)),
            EventData::MappingStart { .. } => open.push(OpenContainer::Map(path, None)),
            _ => {}
        }
    }

    /// Bytes of the paths that are kept.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.fields.keys().map(String::len).sum()
    }

    /// Returns the position of a field, or of the nearest enclosing field if it is absent.
    pub fn find_field(&self, field: &str) -> SourcePosition {
        let mut path = dotted_path(field);
        loop {
            if let Some(spot) = self.fields.get(&path).filter(|_| !path.is_empty()) {
                return spot.key.unwrap_or(spot.value);
            }
            match path.rfind(['.', '[']) {
                Some(end) => path.truncate(end),
                None => return self.start.unwrap_or(SourcePosition { line: 1, column: 1 }),
            }
        }
    }

    /// Converts a line and column inside a field's text to a position in the file.
    pub fn find_within(&self, field: &str, (line, column): (u32, u32), file: &str) -> SourcePosition {
        let Some(spot) = self.fields.get(&dotted_path(field)) else { return self.find_field(field) };
        if spot.block {
            let line = spot.value.line + line;
            let text = file.lines().nth(line as usize - 1).unwrap_or_default();
            // A block scalar is indented like its first line.
            let first = file.lines().nth(spot.value.line as usize).unwrap_or(text);
            let indent = first.len() - first.trim_start().len();
            return SourcePosition { line, column: u32::try_from(indent).unwrap_or(0) + column };
        }
        let start = spot.value.column + u32::from(spot.quoted);
        let column = if line == 1 { start + column - 1 } else { column };
        SourcePosition { line: spot.value.line + line - 1, column }
    }
}

/// Writes a field path with dots: `labels[app]` holds a key and becomes `labels.app`; an index such as `children[0]` is
/// kept.
fn dotted_path(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, tail)) = after.split_once(']') else { break };
        out.push_str(before);
        if inside.bytes().all(|b| b.is_ascii_digit()) {
            _ = write!(out, "[{inside}]");
        } else {
            out.push('.');
            out.push_str(inside);
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# policies\nkind: A\n---\nspec:\n  children:\n    - kind: { kind: Pod }\n      ready:\n        cel:\n          current: |\n            status.phase ==\n              nothing\n      find:\n        labels: { app: x }\n";

    fn place(line: u32, column: u32) -> SourcePosition {
        SourcePosition { line, column }
    }

    #[test]
    fn fields_are_found_by_their_paths() {
        let documents = read_positions(TEXT.as_bytes());
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].find_field("kind"), place(2, 1));
        assert_eq!(documents[1].find_field("spec.children[0].kind.kind"), place(6, 15));
        assert_eq!(documents[1].find_field("spec.children[0].find.labels[app]"), place(13, 19));
    }

    #[test]
    fn what_is_not_written_is_found_at_what_is_around_it() {
        let documents = read_positions(TEXT.as_bytes());
        assert_eq!(documents[1].find_field("spec.children[0].quorum"), place(6, 7));
        assert_eq!(documents[1].find_field("spec.parent.kind"), place(4, 1));
    }

    #[test]
    fn a_place_inside_a_block_is_one_of_the_file() {
        let documents = read_positions(TEXT.as_bytes());
        assert_eq!(
            documents[1].find_within("spec.children[0].ready.cel.current", (2, 3), TEXT),
            place(11, 15)
        );
        let line = "a: 'x == y'\n";
        assert_eq!(read_positions(line.as_bytes())[0].find_within("a", (1, 6), line), place(1, 10));
    }
}
