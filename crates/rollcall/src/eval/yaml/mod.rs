//! YAML as kubectl reads it, into JSON text.
//!
//! The parser is libyaml's in safe Rust, so that what `kubectl apply` takes is taken here. Of two equal keys the last
//! one counts, as in kubectl; it is noted.

mod scalar;
mod tree;

use std::collections::BTreeMap;
use std::io::BufReader;

use libyaml_safer::{Event, EventData, Parser};

use scalar::{Scalar, Tag};
use tree::{Id, Node, Tree};

/// Deeper documents are refused, as kubectl refuses them.
const DEPTH: usize = 10_000;

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// 1-based, within the text that was given; 0 where it is not known.
    pub(super) line: u64,
    pub(super) what: String,
}

impl Wrong {
    fn new(what: String) -> Wrong {
        Wrong { line: 0, what }
    }

    fn at(self, line: u64) -> Wrong {
        Wrong { line: if self.line == 0 { line } else { self.line }, ..self }
    }
}

/// A document that was read.
#[derive(Debug)]
pub(super) struct Document {
    /// As JSON.
    pub(super) json: String,
    /// Keys that are there twice, with their lines.
    pub(super) twice: Vec<(u64, String)>,
}

/// What reading comes upon.
#[derive(Debug)]
pub(super) enum Piece {
    /// One of a list's `items`, as JSON. The list itself then has none.
    Item(String),
    Document(Document),
}

/// Hands each document of `text` to `each`, and with `items` those of a list one by one, so that only one is in memory.
/// It ends at the first that cannot be read.
pub(super) fn read(text: &[u8], items: bool, mut each: impl FnMut(Piece)) -> Result<(), Wrong> {
    let mut parser = Parser::new();
    // It decodes what it is given at once, four bytes a character.
    parser.set_input(BufReader::with_capacity(1 << 14, text));
    let mut builder = Builder { items, ..Builder::default() };
    loop {
        let event = parser.parse().map_err(|error| {
            let line = error.problem_mark().map_or(0, |mark| mark.line + 1);
            Wrong { line, what: format!("not YAML: {}", error.problem()) }
        })?;
        if matches!(event.data, EventData::StreamEnd) {
            return Ok(());
        }
        let line = event.start_mark.line + 1;
        if let Some(piece) = builder.take(event).map_err(|wrong| wrong.at(line))? {
            each(piece);
        }
    }
}

/// What is open around the next node.
#[derive(Debug)]
enum Open {
    List {
        id: Id,
        items: Vec<Id>,
    },
    Map {
        id: Id,
        line: u64,
        entries: Vec<(Id, Id)>,
        lines: Vec<u64>,
        key: Option<(Id, u64)>,
        merged: Vec<Id>,
    },
}

/// Stands for the key `<<`; no node has this place.
const MERGE: Id = Id::MAX;

#[derive(Debug, Default)]
struct Builder {
    tree: Tree,
    open: Vec<Open>,
    anchors: BTreeMap<String, Id>,
    root: Option<Id>,
    twice: Vec<(u64, String)>,
    /// Items are handed on one by one.
    items: bool,
    /// Where the nodes of items begin, and the item that is finished.
    floor: tree::Mark,
    item: Option<Id>,
}

impl Builder {
    fn take(&mut self, event: Event) -> Result<Option<Piece>, Wrong> {
        let line = event.start_mark.line + 1;
        match event.data {
            EventData::Scalar { anchor, tag, value, plain_implicit, .. } => {
                let id = self.scalar(tag.as_deref(), &value, plain_implicit)?;
                self.anchor(anchor, id);
                self.node(id, line)?;
            }
            EventData::Alias { anchor } => {
                let Some(&id) = self.anchors.get(&anchor) else {
                    return Err(Wrong::new(format!("there is no anchor {anchor:?} before this alias")));
                };
                let inside = |open: &Open| matches!(open, Open::List { id: o, .. } | Open::Map { id: o, .. } if *o == id);
                if self.open.iter().any(inside) {
                    return Err(Wrong::new(format!("the anchor {anchor:?} holds itself")));
                }
                self.node(id, line)?;
            }
            EventData::SequenceStart { anchor, .. } => {
                let id = self.tree.push(Node::List(Vec::new()));
                self.anchor(anchor, id);
                self.opens(Open::List { id, items: Vec::new() })?;
            }
            EventData::MappingStart { anchor, .. } => {
                let id = self.tree.push(Node::Map(Vec::new()));
                self.anchor(anchor, id);
                let (entries, lines, merged) = (Vec::new(), Vec::new(), Vec::new());
                self.opens(Open::Map { id, line, entries, lines, key: None, merged })?;
            }
            EventData::SequenceEnd | EventData::MappingEnd => self.close()?,
            EventData::DocumentEnd { .. } => return self.finish().map(|done| Some(Piece::Document(done))),
            _ => {}
        }
        let Some(item) = self.item.take() else { return Ok(None) };
        let json = self.tree.json(item)?;
        // An alias may still ask for a node that has an anchor.
        if self.anchors.is_empty() {
            self.tree.truncate(self.floor);
        }
        Ok(Some(Piece::Item(json)))
    }

    /// Is the next node one of the items of a list?
    fn in_items(&self) -> bool {
        let [Open::Map { key: Some((key, _)), .. }, Open::List { .. }] = self.open.as_slice() else {
            return false;
        };
        self.items && *key != MERGE && self.tree.scalar(*key) == "\"items\""
    }

    fn opens(&mut self, open: Open) -> Result<(), Wrong> {
        self.open.push(open);
        if self.in_items() {
            self.floor = self.tree.mark();
        }
        if self.open.len() > DEPTH {
            return Err(Wrong::new(format!("nested deeper than {DEPTH} levels")));
        }
        Ok(())
    }

    fn anchor(&mut self, anchor: Option<String>, id: Id) {
        self.anchors.extend(anchor.filter(|_| id != MERGE).map(|anchor| (anchor, id)));
    }

    fn scalar(&mut self, tag: Option<&str>, value: &str, plain: bool) -> Result<Id, Wrong> {
        let keys = matches!(self.open.last(), Some(Open::Map { key: None, .. }));
        if keys && plain && tag.is_none() && value == "<<" {
            return Ok(MERGE);
        }
        let scalar = scalar::read(value, Tag::of(tag, plain))?;
        Ok(match (scalar, keys) {
            (Scalar::Text, _) => self.tree.text(value),
            (Scalar::Bytes(text), _) => self.tree.text(&text),
            (Scalar::Null, false) => self.tree.literal("null"),
            (Scalar::Boolean(value), false) => self.tree.literal(if value { "true" } else { "false" }),
            (Scalar::Number(digits), false) => self.tree.literal(&digits),
            // JSON has no other keys; kubectl spells them like this.
            (Scalar::Boolean(value), true) => self.tree.text(if value { "true" } else { "false" }),
            (Scalar::Number(digits), true) => self.tree.text(&digits),
            (Scalar::Null, true) => return Err(Wrong::new("a key is null".to_owned())),
        })
    }

    /// Puts a finished node where it belongs.
    fn node(&mut self, id: Id, line: u64) -> Result<(), Wrong> {
        if self.in_items() {
            self.item = Some(id);
            return Ok(());
        }
        match self.open.last_mut() {
            None => self.root = Some(id),
            Some(Open::List { items, .. }) => items.push(id),
            Some(Open::Map { entries, lines, key, merged, .. }) => match key.take() {
                None if id == MERGE || !self.tree.scalar(id).is_empty() => *key = Some((id, line)),
                None => return Err(Wrong::new("a key is a list or a map".to_owned())),
                Some((MERGE, _)) => merged.push(id),
                Some((key, line)) => {
                    entries.push((key, id));
                    lines.push(line);
                }
            },
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Wrong> {
        let (id, line, node) = match self.open.pop() {
            Some(Open::List { id, items }) => (id, 0, Node::List(items)),
            Some(Open::Map { id, line, entries, lines, merged, .. }) => {
                let mut entries = self.last_wins(entries, &lines);
                for source in merged {
                    self.merge(source, &mut entries)?;
                }
                (id, line, Node::Map(entries))
            }
            None => return Ok(()),
        };
        self.tree.nodes[id] = node;
        self.node(id, line)
    }

    /// Leaves out entries whose key comes again.
    fn last_wins(&mut self, entries: Vec<(Id, Id)>, lines: &[u64]) -> Vec<(Id, Id)> {
        let key = |at: &usize| self.tree.scalar(entries[*at].0);
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|a, b| key(a).cmp(key(b)));
        let same = order.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1]));
        let (mut gone, noted): (Vec<usize>, Vec<_>) =
            same.map(|pair| (pair[0], (lines[pair[1]], key(&pair[1]).trim_matches('"').to_owned()))).unzip();
        self.twice.extend(noted);
        gone.sort_unstable();
        let kept = entries.into_iter().enumerate().filter(|(at, _)| gone.binary_search(at).is_err());
        kept.map(|(_, entry)| entry).collect()
    }

    /// Adds what a map, or each map of a list, has and `entries` have not.
    fn merge(&self, source: Id, entries: &mut Vec<(Id, Id)>) -> Result<(), Wrong> {
        let refused = || Wrong::new("what is merged by << is neither a map nor a list of maps".to_owned());
        let sources = match &self.tree.nodes[source] {
            Node::Map(_) => vec![source],
            Node::List(items) => items.clone(),
            Node::Scalar { .. } => return Err(refused()),
        };
        for source in sources {
            let Node::Map(more) = &self.tree.nodes[source] else { return Err(refused()) };
            for (key, value) in more {
                if !entries.iter().any(|(own, _)| self.tree.scalar(*own) == self.tree.scalar(*key)) {
                    entries.push((*key, *value));
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Document, Wrong> {
        let done = std::mem::replace(self, Builder { items: self.items, ..Builder::default() });
        let json = done.root.map_or(Ok("null".to_owned()), |root| done.tree.json(root))?;
        Ok(Document { json, twice: done.twice })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn json(yaml: &str) -> Result<String, Wrong> {
        let mut all = Vec::new();
        read(yaml.as_bytes(), false, |piece| {
            all.push(match piece {
                Piece::Item(json) => json,
                Piece::Document(document) => document.json,
            });
        })?;
        Ok(all.join(" "))
    }

    #[test]
    fn yaml_becomes_the_json_that_kubectl_makes_of_it() {
        let cases = [
            ("a: 1\nb: [x, 'yes', yes, ~]\n", r#"{"a":1,"b":["x","yes",true,null]}"#),
            ("on: push\n1: x\n1.5: z\n", r#"{"true":"push","1":"x","1.5":"z"}"#),
            (
                "a: |2\n   x\n  \n   y  \n\nb: >-\n  folded\n  text\n",
                r#"{"a":" x\n\n y  \n","b":"folded text"}"#,
            ),
            ("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n", r#"{"a":{"b":1},"c":{"b":1},"d":{"e":2,"b":1}}"#),
            ("a: \"\\u00e4\\0\"\n", "{\"a\":\"ä\\u0000\"}"),
            ("a: 2026-08-14T09:12:33Z\n", r#"{"a":"2026-08-14T09:12:33Z"}"#),
            ("a:\r\n- b: c\r\n", r#"{"a":[{"b":"c"}]}"#),
            ("a: 1\n...\n---\nb: 2\n", r#"{"a":1} {"b":2}"#),
            ("--- # only a comment\n", "null"),
            ("", ""),
        ];
        for (yaml, expected) in cases {
            assert_eq!(json(yaml).as_deref(), Ok(expected), "{yaml}");
        }
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        let cases = [
            ("a: 1\nb: [1, 2\nc: 3\n", 3),
            ("a: *x\n", 1),
            ("x: 1\na: &x [*x]\n", 2),
            ("{a: 1}: b\n", 1),
            ("a: 1\n? [x]\n: 2\n", 2),
            ("a: 1\nb: .inf\n", 2),
            ("a: {{ .Values.x }}\n", 1),
            ("a: 1\n<<: 3\n", 2),
            ("\ta: 1\n", 1),
        ];
        for (yaml, line) in cases {
            let wrong = json(yaml).unwrap_err();
            assert!(wrong.line >= line && wrong.line <= line + 1, "{yaml}: {wrong:?}");
        }
    }

    #[test]
    fn of_equal_keys_the_last_one_counts_and_is_noted() {
        let mut all = Vec::new();
        read(b"a: 1\nb: {c: 1, c: 2}\na: 3\na: 4\n", false, |piece| all.push(piece)).unwrap();
        let Piece::Document(document) = &all[0] else { panic!("{all:?}") };
        assert_eq!(document.json, r#"{"b":{"c":2},"a":4}"#);
        let mut lines = document.twice.clone();
        lines.sort();
        assert_eq!(lines, [(2, "c".to_owned()), (3, "a".to_owned()), (4, "a".to_owned())]);
    }

    #[test]
    fn items_come_one_by_one() {
        let items = |yaml: &str| {
            let mut all = String::new();
            let done = read(yaml.as_bytes(), true, |piece| match piece {
                Piece::Item(json) => all.extend([json.as_str(), " "]),
                Piece::Document(document) => all += &document.json,
            });
            (all, done.is_ok())
        };
        let text = "v: 1\nitems:\n- {a: [1, {items: [2]}]}\n- b: 3\n-\nkind: List\n";
        let expected = r#"{"a":[1,{"items":[2]}]} {"b":3} null {"v":1,"items":[],"kind":"List"}"#;
        assert_eq!(items(text), (expected.to_owned(), true));
        let shared = "items:\n- &x {a: 1}\n- {b: *x}\n- *x\nkind: List\n";
        let expected = r#"{"a":1} {"b":{"a":1}} {"a":1} {"items":[],"kind":"List"}"#;
        assert_eq!(items(shared), (expected.to_owned(), true));
        assert_eq!(items("items:\n- {a: 1}\n- {b\n"), (r#"{"a":1} "#.to_owned(), false));
    }

    #[test]
    fn depth_costs_no_stack_and_has_an_end() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(json(&nested(5_000)).as_deref(), Ok(&*nested(5_000)));
        assert!(json(&nested(10_001)).unwrap_err().what.contains("10000"));
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let refs = vec![format!("*a{}", n - 1); 10].join(", ");
            writeln!(yaml, "a{n}: &a{n} [{refs}]").unwrap();
        }
        assert!(json(&yaml).unwrap_err().what.contains("aliases"));
    }
}
