//! Where the fields of a YAML text stand, so that a finding can be clicked.

use std::collections::BTreeMap;
use std::fmt::Write;

use libyaml_safer::{Event, EventData, Mark, Parser, ScalarStyle};

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    fn of(mark: &Mark) -> Place {
        let count = |n: u64| u32::try_from(n + 1).unwrap_or(u32::MAX);
        Place { line: count(mark.line), column: count(mark.column) }
    }
}

/// A value: where it begins, and how its text is written.
#[derive(Clone, Copy, Debug)]
struct Spot {
    key: Option<Place>,
    value: Place,
    block: bool,
    quoted: bool,
}

/// One document: its fields by path, as `spec.children[0].kind`.
#[derive(Debug, Default)]
pub(super) struct Document {
    spots: BTreeMap<String, Spot>,
    start: Option<Place>,
}

/// What is open around the next node.
enum Open {
    List(String, usize),
    Map(String, Option<(String, Place)>),
}

/// The documents of a text that is YAML, as far as it is.
pub(super) fn read(text: &[u8]) -> Vec<Document> {
    let mut parser = Parser::new();
    let mut input = text;
    parser.set_input(&mut input);
    let (mut documents, mut open) = (Vec::new(), Vec::new());
    while let Ok(event) = parser.parse() {
        match &event.data {
            EventData::StreamEnd => break,
            EventData::DocumentStart { .. } => {
                documents.push(Document { start: Some(Place::of(&event.end_mark)), ..Document::default() });
                open.clear();
            }
            EventData::StreamStart { .. } | EventData::DocumentEnd { .. } => {}
            EventData::SequenceEnd | EventData::MappingEnd => _ = open.pop(),
            _ => {
                if let Some(document) = documents.last_mut() {
                    document.take(&event, &mut open);
                }
            }
        }
    }
    documents
}

impl Document {
    fn take(&mut self, event: &Event, open: &mut Vec<Open>) {
        let place = Place::of(&event.start_mark);
        let (text, style) = match &event.data {
            EventData::Scalar { value, style, .. } => (Some(value), Some(*style)),
            _ => (None, None),
        };
        let (path, key) = match open.last_mut() {
            None => (String::new(), None),
            Some(Open::List(path, next)) => {
                *next += 1;
                (format!("{path}[{}]", *next - 1), None)
            }
            Some(Open::Map(path, key)) => {
                let Some((name, at)) = key.take() else {
                    *key = text.map(|name| (name.clone(), place));
                    return;
                };
                (if path.is_empty() { name } else { format!("{path}.{name}") }, Some(at))
            }
        };
        let block = matches!(style, Some(ScalarStyle::Literal | ScalarStyle::Folded));
        let quoted = matches!(style, Some(ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted));
        self.spots.insert(path.clone(), Spot { key, value: place, block, quoted });
        match &event.data {
            EventData::SequenceStart { .. } => open.push(Open::List(path, 0)),
            EventData::MappingStart { .. } => open.push(Open::Map(path, None)),
            _ => {}
        }
    }

    /// Where a field stands; where it is not written, the nearest field around it that is.
    pub(super) fn find(&self, field: &str) -> Place {
        let mut path = dotted(field);
        loop {
            if let Some(spot) = self.spots.get(&path).filter(|_| !path.is_empty()) {
                return spot.key.unwrap_or(spot.value);
            }
            match path.rfind(['.', '[']) {
                Some(end) => path.truncate(end),
                None => return self.start.unwrap_or(Place { line: 1, column: 1 }),
            }
        }
    }

    /// Where a line and column inside the text of a field stand in the file.
    pub(super) fn within(&self, field: &str, (line, column): (u32, u32), file: &str) -> Place {
        let Some(spot) = self.spots.get(&dotted(field)) else { return self.find(field) };
        if spot.block {
            let line = spot.value.line + line;
            let text = file.lines().nth(line as usize - 1).unwrap_or_default();
            // The indentation of the block is that of its first line.
            let first = file.lines().nth(spot.value.line as usize).unwrap_or(text);
            let indent = first.len() - first.trim_start().len();
            return Place { line, column: u32::try_from(indent).unwrap_or(0) + column };
        }
        let start = spot.value.column + u32::from(spot.quoted);
        let column = if line == 1 { start + column - 1 } else { column };
        Place { line: spot.value.line + line - 1, column }
    }
}

/// `labels[app]` names a key, `children[0]` a place: both are written with a dot here unless it is a number.
fn dotted(field: &str) -> String {
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

    fn place(line: u32, column: u32) -> Place {
        Place { line, column }
    }

    #[test]
    fn fields_are_found_by_their_paths() {
        let documents = read(TEXT.as_bytes());
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].find("kind"), place(2, 1));
        assert_eq!(documents[1].find("spec.children[0].kind.kind"), place(6, 15));
        assert_eq!(documents[1].find("spec.children[0].find.labels[app]"), place(13, 19));
    }

    #[test]
    fn what_is_not_written_is_found_at_what_is_around_it() {
        let documents = read(TEXT.as_bytes());
        assert_eq!(documents[1].find("spec.children[0].quorum"), place(6, 7));
        assert_eq!(documents[1].find("spec.parent.kind"), place(4, 1));
    }

    #[test]
    fn a_place_inside_a_block_is_one_of_the_file() {
        let documents = read(TEXT.as_bytes());
        assert_eq!(documents[1].within("spec.children[0].ready.cel.current", (2, 3), TEXT), place(11, 15));
        let line = "a: 'x == y'\n";
        assert_eq!(read(line.as_bytes())[0].within("a", (1, 6), line), place(1, 10));
    }
}
