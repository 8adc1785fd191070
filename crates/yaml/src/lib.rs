//! YAML as kubectl reads it.
//!
//! The parser is libyaml in safe Rust, so that all input of `kubectl apply` is accepted. Of two equal keys the last one
//! wins, as in kubectl, and the duplicate is reported. The result is JSON text, so that its reader has no say in what
//! YAML means.

mod duplicate_key;
mod merge_keys;
mod positions;
mod read_error;
mod scalar;
#[cfg(test)]
mod tests;
mod tree;
mod yaml_events;

use std::collections::BTreeMap;

use libyaml_safer::{Event, EventData, MappingStyle, SequenceStyle};

pub use duplicate_key::DuplicateKey;
pub use positions::{DocumentPositions, SourcePosition, read_positions};
pub use read_error::YamlReadError;

use scalar::{ScalarTag, YamlScalar};
use tree::{YamlNode, YamlNodeId, YamlTree};
use yaml_events::YamlEvents;

/// Maximum depth of a document, as in kubectl.
const MAX_YAML_DEPTH: usize = 10_000;

/// A document that was read.
#[derive(Debug)]
pub struct YamlDocument {
    /// The document as JSON.
    pub json: String,
    /// Duplicate keys of its maps.
    pub duplicate_keys: Vec<DuplicateKey>,
}

/// One result of reading YAML.
#[derive(Debug)]
pub enum YamlPiece {
    /// One of a list's `items`, as JSON. The list itself is then delivered without items.
    Item(String),
    /// A document.
    Document(YamlDocument),
}

/// Calls `each` with each document of `text`; with `items`, also with a list's items one by one, so that only one is in
/// memory. Stops at the first document that cannot be read.
pub fn read_documents(text: &[u8], items: bool, each: impl FnMut(YamlPiece)) -> Result<(), YamlReadError> {
    read_pieces(text, (items, MAX_YAML_DEPTH), each)
}

fn read_pieces(
    text: &[u8],
    (items, max_depth): (bool, usize),
    mut each: impl FnMut(YamlPiece),
) -> Result<(), YamlReadError> {
    let mut events = YamlEvents::new(text);
    let mut builder = DocumentBuilder { items, max_depth, ..DocumentBuilder::default() };
    loop {
        let event = events.next_event().map_err(|error| {
            let begin = builder.flow_starts.last().copied().flatten().or(error.begin);
            YamlReadError { begin, ..error }
        })?;
        if matches!(event.data, EventData::StreamEnd) {
            return Ok(());
        }
        let line = event.start_mark.line + 1;
        if let Some(piece) = builder.take_event(event).map_err(|wrong| wrong.at_line(line))? {
            each(piece);
        }
    }
}

/// Reads all documents of `text`.
pub fn read_all(text: &[u8]) -> Result<Vec<YamlDocument>, YamlReadError> {
    read_all_to_depth(text, MAX_YAML_DEPTH)
}

/// Reads all documents of a text that a stranger wrote; an error if collections are nested deeper than this. The parser
/// looks at every open bracket again for each word, so that the time which a text takes grows with their number.
pub fn read_all_to_depth(text: &[u8], max_depth: usize) -> Result<Vec<YamlDocument>, YamlReadError> {
    let mut documents = Vec::new();
    read_pieces(text, (false, max_depth), |piece| {
        if let YamlPiece::Document(document) = piece {
            documents.push(document);
        }
    })?;
    Ok(documents)
}

/// A line and a column, 1-based.
type LineColumn = (u64, u64);

/// The collection that the next node belongs to.
#[derive(Debug)]
enum OpenCollection {
    List {
        id: YamlNodeId,
        items: Vec<YamlNodeId>,
    },
    Map {
        id: YamlNodeId,
        place: LineColumn,
        entries: Vec<(YamlNodeId, YamlNodeId)>,
        places: Vec<LineColumn>,
        key: Option<(YamlNodeId, LineColumn)>,
        merged: Vec<YamlNodeId>,
    },
}

impl OpenCollection {
    fn id(&self) -> YamlNodeId {
        match self {
            OpenCollection::List { id, .. } | OpenCollection::Map { id, .. } => *id,
        }
    }
}

/// Stands for the key `<<`; no node has this id.
const MERGE_KEY: YamlNodeId = YamlNodeId::MAX;

#[derive(Debug, Default)]
struct DocumentBuilder {
    tree: YamlTree,
    open: Vec<OpenCollection>,
    /// Of each open collection the place at which it begins, if it is one in brackets.
    flow_starts: Vec<Option<LineColumn>>,
    anchors: BTreeMap<String, YamlNodeId>,
    root: Option<YamlNodeId>,
    duplicate_keys: Vec<DuplicateKey>,
    /// Items are delivered one by one.
    items: bool,
    /// Maximum number of collections that are open at once.
    max_depth: usize,
    /// Position in the tree at which an item's nodes begin, and the finished item.
    items_mark: tree::TreeMark,
    item: Option<YamlNodeId>,
}

impl DocumentBuilder {
    fn take_event(&mut self, event: Event) -> Result<Option<YamlPiece>, YamlReadError> {
        let place = (event.start_mark.line + 1, event.start_mark.column + 1);
        match event.data {
            EventData::Scalar { anchor, tag, value, plain_implicit, .. } => {
                let id = self.add_scalar(tag.as_deref(), &value, plain_implicit)?;
                self.define_anchor(anchor, id);
                self.place_node(id, place)?;
            }
            EventData::Alias { anchor } => {
                let Some(&id) = self.anchors.get(&anchor) else {
                    return Err(YamlReadError::new(format!("no anchor {anchor:?} before this alias")));
                };
                // A collection got its id when it was opened, so that those of the open ones ascend.
                if self.open.binary_search_by_key(&id, OpenCollection::id).is_ok() {
                    return Err(YamlReadError::new(format!("the anchor {anchor:?} contains itself")));
                }
                self.place_node(id, place)?;
            }
            EventData::SequenceStart { anchor, style, .. } => {
                self.flow_starts.push((style == SequenceStyle::Flow).then_some(place));
                let id = self.tree.push(YamlNode::List(Vec::new()));
                self.define_anchor(anchor, id);
                self.open_collection(OpenCollection::List { id, items: Vec::new() })?;
            }
            EventData::MappingStart { anchor, style, .. } => {
                self.flow_starts.push((style == MappingStyle::Flow).then_some(place));
                let id = self.tree.push(YamlNode::Map(Vec::new()));
                self.define_anchor(anchor, id);
                let (entries, places, merged) = (Vec::new(), Vec::new(), Vec::new());
                self.open_collection(OpenCollection::Map { id, place, entries, places, key: None, merged })?;
            }
            EventData::SequenceEnd | EventData::MappingEnd => self.close_collection()?,
            EventData::DocumentEnd { .. } => {
                return self.finish_document().map(|done| Some(YamlPiece::Document(done)));
            }
            _ => {}
        }
        let Some(item) = self.item.take() else { return Ok(None) };
        let json = self.tree.write_json(item)?;
        // A node with an anchor must be kept for aliases.
        if self.anchors.is_empty() {
            self.tree.truncate_to(self.items_mark);
        }
        Ok(Some(YamlPiece::Item(json)))
    }

    /// Returns `true` if the next node is an item of a list.
    fn is_in_items(&self) -> bool {
        let [OpenCollection::Map { key: Some((key, _)), .. }, OpenCollection::List { .. }] =
            self.open.as_slice()
        else {
            return false;
        };
        self.items && *key != MERGE_KEY && self.tree.scalar_json(*key) == "\"items\""
    }

    fn open_collection(&mut self, open: OpenCollection) -> Result<(), YamlReadError> {
        self.open.push(open);
        if self.is_in_items() {
            self.items_mark = self.tree.take_mark();
        }
        if self.open.len() > self.max_depth {
            return Err(YamlReadError::new(format!("nested deeper than {} levels", self.max_depth)));
        }
        Ok(())
    }

    fn define_anchor(&mut self, anchor: Option<String>, id: YamlNodeId) {
        self.anchors.extend(anchor.filter(|_| id != MERGE_KEY).map(|anchor| (anchor, id)));
    }

    fn add_scalar(
        &mut self,
        tag: Option<&str>,
        value: &str,
        plain: bool,
    ) -> Result<YamlNodeId, YamlReadError> {
        let keys = matches!(self.open.last(), Some(OpenCollection::Map { key: None, .. }));
        if keys && plain && tag.is_none() && value == "<<" {
            return Ok(MERGE_KEY);
        }
        let scalar = scalar::read_scalar(value, ScalarTag::from_tag(tag, plain))?;
        Ok(match (scalar, keys) {
            (YamlScalar::Text, _) => self.tree.add_text(value),
            (YamlScalar::Bytes(text), _) => self.tree.add_text(&text),
            (YamlScalar::Null, false) => self.tree.add_literal("null"),
            (YamlScalar::Boolean(value), false) => {
                self.tree.add_literal(if value { "true" } else { "false" })
            }
            (YamlScalar::Number(digits), false) => self.tree.add_literal(&digits),
            // JSON allows only text keys; kubectl spells booleans like this.
            (YamlScalar::Boolean(value), true) => self.tree.add_text(if value { "true" } else { "false" }),
            (YamlScalar::Number(digits), true) => self.tree.add_text(&digits),
            (YamlScalar::Null, true) => return Err(YamlReadError::new("a key is null".to_owned())),
        })
    }

    /// Adds a finished node to its collection.
    fn place_node(&mut self, id: YamlNodeId, place: LineColumn) -> Result<(), YamlReadError> {
        if self.is_in_items() {
            self.item = Some(id);
            return Ok(());
        }
        match self.open.last_mut() {
            None => self.root = Some(id),
            Some(OpenCollection::List { items, .. }) => items.push(id),
            Some(OpenCollection::Map { entries, places, key, merged, .. }) => match key.take() {
                None if id == MERGE_KEY || !self.tree.scalar_json(id).is_empty() => *key = Some((id, place)),
                None => return Err(YamlReadError::new("a key is a list or a map".to_owned())),
                Some((MERGE_KEY, _)) => merged.push(id),
                Some((key, place)) => {
                    entries.push((key, id));
                    places.push(place);
                }
            },
        }
        Ok(())
    }

    fn close_collection(&mut self) -> Result<(), YamlReadError> {
        self.flow_starts.pop();
        let (id, place, node) = match self.open.pop() {
            Some(OpenCollection::List { id, items }) => (id, (0, 0), YamlNode::List(items)),
            Some(OpenCollection::Map { id, place, entries, places, merged, .. }) => {
                let mut entries = self.drop_duplicate_keys(entries, &places);
                merge_keys::merge_sources(&mut self.tree, &merged, &mut entries)?;
                (id, place, YamlNode::Map(entries))
            }
            None => return Ok(()),
        };
        self.tree.nodes[id] = node;
        self.place_node(id, place)
    }

    /// Drops all but the last entry of duplicate keys.
    fn drop_duplicate_keys(
        &mut self,
        entries: Vec<(YamlNodeId, YamlNodeId)>,
        places: &[LineColumn],
    ) -> Vec<(YamlNodeId, YamlNodeId)> {
        let key = |at: &usize| self.tree.scalar_json(entries[*at].0);
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|a, b| key(a).cmp(key(b)));
        let same = order.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1]));
        let noted = |at: usize| {
            let ((line, column), key) = (places[at], key(&at).trim_matches('"').to_owned());
            DuplicateKey { line, column, key }
        };
        let (mut gone, noted): (Vec<usize>, Vec<_>) = same.map(|pair| (pair[0], noted(pair[1]))).unzip();
        self.duplicate_keys.extend(noted);
        gone.sort_unstable();
        let kept = entries.into_iter().enumerate().filter(|(at, _)| gone.binary_search(at).is_err());
        kept.map(|(_, entry)| entry).collect()
    }

    fn finish_document(&mut self) -> Result<YamlDocument, YamlReadError> {
        let next =
            DocumentBuilder { items: self.items, max_depth: self.max_depth, ..DocumentBuilder::default() };
        let mut done = std::mem::replace(self, next);
        let json = done.root.map_or(Ok("null".to_owned()), |root| done.tree.write_json(root))?;
        self.tree = done.tree.next_document();
        Ok(YamlDocument { json, duplicate_keys: done.duplicate_keys })
    }
}
