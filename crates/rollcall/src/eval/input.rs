//! Reads files, directories and standard input as a stream of objects. An unreadable object does not stop the rest.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rollcall_yaml::YamlPiece;
use serde_json::value::RawValue;
use watcher::wire::ChildObject;

use super::json;

/// Position of an object in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ManifestPosition<'a> {
    pub(super) file: &'a str,
    /// Number of the document, from 1.
    pub(super) document: usize,
    /// Number of the list item, from 1.
    pub(super) item: Option<usize>,
    /// 1-based line; 0 if unknown.
    pub(super) line: u64,
}

impl fmt::Display for ManifestPosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": document {}", self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// One result of reading manifests.
#[derive(Debug)]
pub(super) enum ManifestItem<'a> {
    /// An object.
    Object { place: ManifestPosition<'a>, child: Box<ChildObject>, json: &'a RawValue },
    /// Something that cannot be evaluated, with its kind and name if they can be determined.
    Unreadable { place: ManifestPosition<'a>, object: Option<String>, what: String },
    /// Something that can be evaluated but may not mean what its author intended.
    Suspicious { place: ManifestPosition<'a>, object: Option<String>, what: String },
}

/// Callback that receives each result.
pub(super) type ItemSink<'e> = dyn FnMut(ManifestItem<'_>) + 'e;

/// Maximum nesting of lists within lists.
const MAX_LIST_NESTING: usize = 8;

/// Returns the files of a path in order. Accepts the same files of a directory as kubectl.
pub(super) fn list_files(path: &Path, recursive: bool) -> io::Result<Vec<PathBuf>> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries =
        std::fs::read_dir(path)?.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        let manifest = entry.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if entry.is_dir() && recursive {
            found.extend(list_files(&entry, true)?);
        } else if manifest && !entry.is_dir() {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Returns every object of one file, or an error if any part of it cannot be read.
pub(crate) fn read_objects(path: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let (mut objects, mut wrong) = (Vec::new(), None);
    let mut each = |found: ManifestItem<'_>| match found {
        ManifestItem::Object { json, .. } => objects.extend(serde_json::from_str(json.get())),
        ManifestItem::Unreadable { place, what, .. } => {
            _ = wrong.get_or_insert_with(|| format!("{place}: {what}"));
        }
        ManifestItem::Suspicious { .. } => {}
    };
    scan_file(path, &Cell::default(), &mut each)
        .with_context(|| format!("failed to read {}", path.display()))?;
    match wrong {
        Some(wrong) => anyhow::bail!("{wrong}"),
        None => Ok(objects),
    }
}

/// Reads one file to its end, counting its bytes in `count`; `-` is standard input.
pub(super) fn scan_file(path: &Path, count: &Cell<u64>, each: &mut ItemSink<'_>) -> io::Result<()> {
    if path.as_os_str() == "-" {
        return scan_stream("standard input", &mut io::stdin().lock(), each);
    }
    let counted = CountingReader { file: File::open(path)?, count };
    scan_stream(&path.display().to_string(), &mut BufReader::with_capacity(1 << 16, counted), each)
}

struct CountingReader<'c> {
    file: File,
    count: &'c Cell<u64>,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

fn scan_stream(file: &str, input: &mut dyn BufRead, each: &mut ItemSink<'_>) -> io::Result<()> {
    let mut head = Vec::new();
    // Leading blank lines and a byte-order mark do not show the format.
    while head.trim_ascii().trim_start_with_mark().is_empty() {
        if input.read_until(b'\n', &mut head)? == 0 {
            return Ok(());
        }
    }
    if !head.trim_start_with_mark().trim_ascii_start().starts_with(b"{")
        && !head.trim_start_with_mark().trim_ascii_start().starts_with(b"[")
    {
        return read_yaml_documents(file, &mut io::Cursor::new(head).chain(input), each);
    }
    input.read_to_end(&mut head)?;
    let bytes = head.trim_start_with_mark();
    match read_json_text(file, bytes, each) {
        // A YAML flow mapping begins like JSON.
        Err(wrong) => read_yaml_documents(file, &mut &*bytes, &mut |found| match found {
            ManifestItem::Unreadable { place, object, what } if !what.contains(TEMPLATE_PROBLEM) => {
                let place = ManifestPosition { line: wrong.line as u64, ..place };
                let what = if what.starts_with("not YAML") { wrong.what.clone() } else { what };
                each(ManifestItem::Unreadable { place, object, what });
            }
            found => each(found),
        }),
        Ok(()) => Ok(()),
    }
}

trait TrimByteOrderMark {
    fn trim_start_with_mark(&self) -> &[u8];
}

impl TrimByteOrderMark for [u8] {
    fn trim_start_with_mark(&self) -> &[u8] {
        self.strip_prefix("\u{feff}".as_bytes()).unwrap_or(self)
    }
}

/// Reads a JSON file. An error means that nothing was found before it.
fn read_json_text(file: &str, bytes: &[u8], each: &mut ItemSink<'_>) -> Result<(), json::JsonReadError> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = bytes[..error.valid_up_to()].split(|b| *b == b'\n').count();
            let place = ManifestPosition { file, document: 1, item: None, line: line as u64 };
            each(ManifestItem::Unreadable { place, object: None, what: "not UTF-8".to_owned() });
            return Ok(());
        }
    };
    let mut any = false;
    let done = json::read_values(text, |document, item, raw| {
        any = true;
        visit_value(ManifestPosition { file, document, item, line: 0 }, raw, MAX_LIST_NESTING, each);
    });
    match done {
        Err(wrong) if any => {
            let place = ManifestPosition { file, document: wrong.value, item: None, line: wrong.line as u64 };
            each(ManifestItem::Unreadable { place, object: None, what: wrong.what });
            Ok(())
        }
        done => done,
    }
}

/// Reads a YAML file with one document in memory at a time.
fn read_yaml_documents(file: &str, input: &mut dyn BufRead, each: &mut ItemSink<'_>) -> io::Result<()> {
    let (mut chunk, mut line) = (Vec::new(), Vec::new());
    let (mut first, mut at, mut number) = (1, 1, 0);
    loop {
        line.clear();
        let end = input.read_until(b'\n', &mut line)? == 0;
        if end || (is_document_start(&line) && !is_preamble(&chunk)) {
            read_document(file, &chunk, first, &mut number, each);
            chunk.clear();
            first = at;
        }
        if end {
            return Ok(());
        }
        at += 1;
        chunk.extend_from_slice(&line);
    }
}

fn is_document_start(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Returns `true` for a chunk of only comments and directives, which belong to the document that follows.
fn is_preamble(chunk: &[u8]) -> bool {
    let blank = |line: &[u8]| matches!(line.trim_ascii().first(), None | Some(b'#' | b'%'));
    chunk.split(|b| *b == b'\n').all(blank)
}

/// Reads the chunk between two separators, which usually is one document.
fn read_document(file: &str, chunk: &[u8], first: u64, number: &mut usize, each: &mut ItemSink<'_>) {
    let list = list_header(chunk);
    let mut item = 0;
    let done = rollcall_yaml::read_documents(chunk, list.is_some(), |piece| {
        let place = |number| ManifestPosition { file, document: number, item: None, line: first };
        let document = match piece {
            YamlPiece::Item(json) => {
                item += 1;
                let place = ManifestPosition { item: Some(item), ..place(*number + 1) };
                let of = list.as_ref().map_or(("", ""), |(api_version, of)| (api_version, of));
                if let Ok(raw) = serde_json::from_str::<&RawValue>(&json) {
                    visit_list_item(place, raw, of, MAX_LIST_NESTING - 1, each);
                }
                return;
            }
            YamlPiece::Document(document) => document,
        };
        *number += 1;
        let place = place(*number);
        let raw: Result<&RawValue, _> = serde_json::from_str(&document.json);
        let Ok(raw) = raw else { return };
        visit_value(place, raw, MAX_LIST_NESTING, each);
        let object = (!document.duplicate_keys.is_empty()).then(|| ChildObject::from_raw(raw).meta);
        for duplicate in document.duplicate_keys {
            let what = duplicate.to_string();
            let place = ManifestPosition { line: first + duplicate.line - 1, ..place };
            let object = object.as_ref().map(|meta| object_title(&meta.kind, &meta.namespace, &meta.name));
            each(ManifestItem::Suspicious { place, object, what });
        }
    });
    if let Err(wrong) = done {
        *number += 1;
        let line = if wrong.line > 0 { first + wrong.line - 1 } else { first };
        let place = ManifestPosition { file, document: *number, item: None, line };
        let what = if looks_like_template(chunk) {
            format!("{TEMPLATE_PROBLEM}: {}", wrong.what)
        } else {
            wrong.what
        };
        each(ManifestItem::Unreadable { place, object: guess_title(chunk), what });
    }
}

/// Returns `apiVersion` and the item kind of a chunk that looks like a list in block style.
fn list_header(chunk: &[u8]) -> Option<(String, String)> {
    let word = |key: &str| {
        let mut lines = chunk.split(|b| *b == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(key.as_bytes()))?;
        Some(std::str::from_utf8(value).ok()?.trim().trim_matches(['"', '\'']).to_owned())
    };
    let kind = word("kind:")?.strip_suffix("List")?.to_owned();
    Some((word("apiVersion:").unwrap_or_default(), kind))
}

const TEMPLATE_PROBLEM: &str = "an unrendered template; render it first, with `helm template`";

fn looks_like_template(chunk: &[u8]) -> bool {
    let has = |line: &[u8], pair: &[u8]| line.windows(2).any(|two| two == pair);
    chunk.split(|b| *b == b'\n').any(|line| has(line, b"{{") && has(line, b"}}"))
}

/// Guesses kind and name of an unreadable document from lines that look like them.
fn guess_title(chunk: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(chunk);
    let (mut kind, mut namespace, mut name, mut inside) = (None, "", "", false);
    for line in text.lines() {
        let word = |prefix| line.strip_prefix(prefix).map(|rest: &str| rest.trim().trim_matches(['"', '\'']));
        if !line.starts_with([' ', '#']) {
            inside = line.starts_with("metadata:");
            kind = kind.or(word("kind:"));
        } else if inside {
            name = word("  name:").unwrap_or(name);
            namespace = word("  namespace:").unwrap_or(namespace);
        }
    }
    kind.map(|kind| if name.is_empty() { kind.to_owned() } else { object_title(kind, namespace, name) })
}

/// Returns an object's title: `Deployment shop/web`.
pub(crate) fn object_title(kind: &str, namespace: &str, name: &str) -> String {
    match (namespace, name) {
        (_, "") => format!("{kind} (no name)"),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

/// Visits one value: an object, or a list of objects.
fn visit_value(place: ManifestPosition<'_>, raw: &RawValue, lists: usize, each: &mut ItemSink<'_>) {
    let what = match raw.get().as_bytes()[0] {
        b'{' => return visit_object(place, raw, lists, each),
        b'[' if lists > 0 => {
            return json::for_each_element(raw, |at, element| {
                visit_value(ManifestPosition { item: Some(at), ..place }, element, lists - 1, each);
            });
        }
        b'[' => "lists within lists within lists",
        // An empty document.
        b'n' if place.item.is_none() => return,
        b'n' => "null, not an object",
        b'"' => "a text, not an object",
        b't' | b'f' => "a boolean, not an object",
        _ => "a number, not an object",
    };
    each(ManifestItem::Unreadable { place, object: None, what: what.to_owned() });
}

fn visit_object(place: ManifestPosition<'_>, raw: &RawValue, lists: usize, each: &mut ItemSink<'_>) {
    let child = Box::new(ChildObject::from_raw(raw));
    let kind = &child.meta.kind;
    if kind.is_empty() {
        let name = Some(&*child.meta.name).filter(|name| !name.is_empty()).map(str::to_owned);
        let what = "not a Kubernetes object: it has no kind".to_owned();
        return each(ManifestItem::Unreadable { place, object: name, what });
    }
    if let (Some(of), Some(items)) = (kind.strip_suffix("List"), list_items(raw)) {
        if lists == 0 {
            let what = "lists within lists within lists".to_owned();
            return each(ManifestItem::Unreadable { place, object: Some(kind.to_string()), what });
        }
        return json::for_each_element(items, |at, item| {
            let place = ManifestPosition { item: Some(at), ..place };
            visit_list_item(place, item, (&child.meta.api_version, of), lists - 1, each);
        });
    }
    each(ManifestItem::Object { place, child, json: raw });
}

/// Visits one item of a typed list.
fn visit_list_item(
    place: ManifestPosition<'_>,
    item: &RawValue,
    (api_version, kind): (&str, &str),
    lists: usize,
    each: &mut ItemSink<'_>,
) {
    match with_item_type(item, api_version, kind) {
        Some(item) => visit_value(place, &item, lists, each),
        None => visit_value(place, item, lists, each),
    }
}

/// Returns the `items` of a list.
fn list_items(list: &RawValue) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct ItemList<'a> {
        #[serde(borrow)]
        items: Option<&'a RawValue>,
    }
    let list: ItemList<'_> = serde_json::from_str(list.get()).ok()?;
    list.items.filter(|items| items.get().starts_with('['))
}

/// Adds `apiVersion` and `kind` to an item: in a `PodList` the server omits them.
fn with_item_type(item: &RawValue, api_version: &str, kind: &str) -> Option<Box<RawValue>> {
    let inside = item.get().strip_prefix('{')?;
    if kind.is_empty() || !ChildObject::from_raw(item).meta.kind.is_empty() {
        return None;
    }
    let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
    let [api_version, kind] = [api_version, kind].map(|text| serde_json::Value::from(text).to_string());
    RawValue::from_string(format!("{{\"apiVersion\":{api_version},\"kind\":{kind}{comma}{inside}")).ok()
}
