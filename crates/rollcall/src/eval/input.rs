//! Files, directories and standard input as a stream of objects. What cannot be read does not stop what can.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::value::RawValue;
use watcher::wire::Child;

use super::{json, yaml};

/// Where something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    /// The first is 1.
    pub(super) document: usize,
    /// Of a list; the first is 1.
    pub(super) item: Option<usize>,
    /// 1-based; 0 where it is not known.
    pub(super) line: u64,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": document {}", self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// What reading comes upon.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// An object of some kind.
    Object { place: Place<'a>, child: Box<Child>, json: &'a RawValue },
    /// Something that cannot be judged, with its kind and name where they can be made out.
    Wrong { place: Place<'a>, object: Option<String>, what: String },
    /// Something that can be judged, and may not mean what it should.
    Odd { place: Place<'a>, object: Option<String>, what: String },
}

/// Who takes what is found.
pub(super) type Each<'e> = dyn FnMut(Found<'_>) + 'e;

/// Lists within lists are followed so far.
const LISTS: usize = 8;

/// The files that a path stands for, in order; what kubectl takes from a directory is taken here.
pub(super) fn files(path: &Path, recursive: bool) -> io::Result<Vec<PathBuf>> {
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
            found.extend(files(&entry, true)?);
        } else if manifest && !entry.is_dir() {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Every object of one file, or what cannot be read in it.
pub(crate) fn objects(path: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let (mut objects, mut wrong) = (Vec::new(), None);
    let mut each = |found: Found<'_>| match found {
        Found::Object { json, .. } => objects.extend(serde_json::from_str(json.get())),
        Found::Wrong { place, what, .. } => _ = wrong.get_or_insert_with(|| format!("{place}: {what}")),
        Found::Odd { .. } => {}
    };
    read(path, &Cell::default(), &mut each).with_context(|| format!("failed to read {}", path.display()))?;
    match wrong {
        Some(wrong) => anyhow::bail!("{wrong}"),
        None => Ok(objects),
    }
}

/// Reads one file to its end, counting its bytes in `count`; `-` is standard input.
pub(super) fn read(path: &Path, count: &Cell<u64>, each: &mut Each<'_>) -> io::Result<()> {
    if path.as_os_str() == "-" {
        return stream("standard input", &mut io::stdin().lock(), each);
    }
    let counted = Counted { file: File::open(path)?, count };
    stream(&path.display().to_string(), &mut BufReader::with_capacity(1 << 16, counted), each)
}

struct Counted<'c> {
    file: File,
    count: &'c Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

fn stream(file: &str, input: &mut dyn BufRead, each: &mut Each<'_>) -> io::Result<()> {
    let mut head = Vec::new();
    // Leading blank lines and a byte-order mark say nothing about what follows.
    while head.trim_ascii().trim_start_with_mark().is_empty() {
        if input.read_until(b'\n', &mut head)? == 0 {
            return Ok(());
        }
    }
    if !head.trim_start_with_mark().trim_ascii_start().starts_with(b"{")
        && !head.trim_start_with_mark().trim_ascii_start().starts_with(b"[")
    {
        return documents(file, &mut io::Cursor::new(head).chain(input), each);
    }
    input.read_to_end(&mut head)?;
    let bytes = head.trim_start_with_mark();
    match whole(file, bytes, each) {
        // A flow mapping of YAML begins like JSON.
        Err(wrong) => documents(file, &mut &*bytes, &mut |found| match found {
            Found::Wrong { place, object, what } if !what.contains(TEMPLATE) => {
                let place = Place { line: wrong.line as u64, ..place };
                let what = if what.starts_with("not YAML") { wrong.what.clone() } else { what };
                each(Found::Wrong { place, object, what });
            }
            found => each(found),
        }),
        Ok(()) => Ok(()),
    }
}

trait Mark {
    fn trim_start_with_mark(&self) -> &[u8];
}

impl Mark for [u8] {
    fn trim_start_with_mark(&self) -> &[u8] {
        self.strip_prefix("\u{feff}".as_bytes()).unwrap_or(self)
    }
}

/// A file of JSON. An error means that nothing was found before it.
fn whole(file: &str, bytes: &[u8], each: &mut Each<'_>) -> Result<(), json::Wrong> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = bytes[..error.valid_up_to()].split(|b| *b == b'\n').count();
            let place = Place { file, document: 1, item: None, line: line as u64 };
            each(Found::Wrong { place, object: None, what: "not UTF-8".to_owned() });
            return Ok(());
        }
    };
    let mut any = false;
    let done = json::read(text, |document, item, raw| {
        any = true;
        value(Place { file, document, item, line: 0 }, raw, LISTS, each);
    });
    match done {
        Err(wrong) if any => {
            let place = Place { file, document: wrong.value, item: None, line: wrong.line as u64 };
            each(Found::Wrong { place, object: None, what: wrong.what });
            Ok(())
        }
        done => done,
    }
}

/// A file of YAML, one document in memory at a time.
fn documents(file: &str, input: &mut dyn BufRead, each: &mut Each<'_>) -> io::Result<()> {
    let (mut chunk, mut line) = (Vec::new(), Vec::new());
    let (mut first, mut at, mut number) = (1, 1, 0);
    loop {
        line.clear();
        let end = input.read_until(b'\n', &mut line)? == 0;
        if end || (begins_document(&line) && !preamble(&chunk)) {
            document(file, &chunk, first, &mut number, each);
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

fn begins_document(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Are these only comments and directives, which belong to the document that follows?
fn preamble(chunk: &[u8]) -> bool {
    let blank = |line: &[u8]| matches!(line.trim_ascii().first(), None | Some(b'#' | b'%'));
    chunk.split(|b| *b == b'\n').all(blank)
}

/// What sits between two separators: mostly one document.
fn document(file: &str, chunk: &[u8], first: u64, number: &mut usize, each: &mut Each<'_>) {
    let list = list(chunk);
    let mut item = 0;
    let done = yaml::read(chunk, list.is_some(), |piece| {
        let place = |number| Place { file, document: number, item: None, line: first };
        let document = match piece {
            yaml::Piece::Item(json) => {
                item += 1;
                let place = Place { item: Some(item), ..place(*number + 1) };
                let of = list.as_ref().map_or(("", ""), |(api_version, of)| (api_version, of));
                if let Ok(raw) = serde_json::from_str::<&RawValue>(&json) {
                    listed(place, raw, of, LISTS - 1, each);
                }
                return;
            }
            yaml::Piece::Document(document) => document,
        };
        *number += 1;
        let place = place(*number);
        let raw: Result<&RawValue, _> = serde_json::from_str(&document.json);
        let Ok(raw) = raw else { return };
        value(place, raw, LISTS, each);
        let object = (!document.twice.is_empty()).then(|| Child::read(raw).meta);
        for (line, key) in document.twice {
            let what = format!("the key {key:?} is there twice; the last one counts");
            let place = Place { line: first + line - 1, ..place };
            let object = object.as_ref().map(|meta| title(&meta.kind, &meta.namespace, &meta.name));
            each(Found::Odd { place, object, what });
        }
    });
    if let Err(wrong) = done {
        *number += 1;
        let line = if wrong.line > 0 { first + wrong.line - 1 } else { first };
        let place = Place { file, document: *number, item: None, line };
        let what = if template(chunk) { format!("{TEMPLATE}: {}", wrong.what) } else { wrong.what };
        each(Found::Wrong { place, object: sketch(chunk), what });
    }
}

/// `apiVersion`, and the kind of its items, of what looks like a list in block style.
fn list(chunk: &[u8]) -> Option<(String, String)> {
    let word = |key: &str| {
        let mut lines = chunk.split(|b| *b == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(key.as_bytes()))?;
        Some(std::str::from_utf8(value).ok()?.trim().trim_matches(['"', '\'']).to_owned())
    };
    let kind = word("kind:")?.strip_suffix("List")?.to_owned();
    Some((word("apiVersion:").unwrap_or_default(), kind))
}

const TEMPLATE: &str = "a template that was not rendered (`helm template` does)";

fn template(chunk: &[u8]) -> bool {
    let has = |line: &[u8], pair: &[u8]| line.windows(2).any(|two| two == pair);
    chunk.split(|b| *b == b'\n').any(|line| has(line, b"{{") && has(line, b"}}"))
}

/// Kind and name of a document that cannot be read, from lines that look like them.
fn sketch(chunk: &[u8]) -> Option<String> {
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
    kind.map(|kind| if name.is_empty() { kind.to_owned() } else { title(kind, namespace, name) })
}

/// An object as people call it: `Deployment shop/web`.
pub(crate) fn title(kind: &str, namespace: &str, name: &str) -> String {
    match (namespace, name) {
        (_, "") => format!("{kind} (no name)"),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

/// One value: an object, or a list of them.
fn value(place: Place<'_>, raw: &RawValue, lists: usize, each: &mut Each<'_>) {
    let what = match raw.get().as_bytes()[0] {
        b'{' => return object(place, raw, lists, each),
        b'[' if lists > 0 => {
            return json::elements(raw, |at, element| {
                value(Place { item: Some(at), ..place }, element, lists - 1, each);
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
    each(Found::Wrong { place, object: None, what: what.to_owned() });
}

fn object(place: Place<'_>, raw: &RawValue, lists: usize, each: &mut Each<'_>) {
    let child = Box::new(Child::read(raw));
    let kind = &child.meta.kind;
    if kind.is_empty() {
        let name = Some(&*child.meta.name).filter(|name| !name.is_empty()).map(str::to_owned);
        let what = "no Kubernetes object: it has no kind".to_owned();
        return each(Found::Wrong { place, object: name, what });
    }
    if let (Some(of), Some(items)) = (kind.strip_suffix("List"), items(raw)) {
        if lists == 0 {
            let what = "lists within lists within lists".to_owned();
            return each(Found::Wrong { place, object: Some(kind.to_string()), what });
        }
        return json::elements(items, |at, item| {
            let place = Place { item: Some(at), ..place };
            listed(place, item, (&child.meta.api_version, of), lists - 1, each);
        });
    }
    each(Found::Object { place, child, json: raw });
}

/// One item of a list of a kind.
fn listed(
    place: Place<'_>,
    item: &RawValue,
    (api_version, kind): (&str, &str),
    lists: usize,
    each: &mut Each<'_>,
) {
    match typed(item, api_version, kind) {
        Some(item) => value(place, &item, lists, each),
        None => value(place, item, lists, each),
    }
}

/// `items` of a list.
fn items(list: &RawValue) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Option<&'a RawValue>,
    }
    let list: List<'_> = serde_json::from_str(list.get()).ok()?;
    list.items.filter(|items| items.get().starts_with('['))
}

/// Within a `PodList` a server leaves out what each of its items is.
fn typed(item: &RawValue, api_version: &str, kind: &str) -> Option<Box<RawValue>> {
    let inside = item.get().strip_prefix('{')?;
    if kind.is_empty() || !Child::read(item).meta.kind.is_empty() {
        return None;
    }
    let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
    let [api_version, kind] = [api_version, kind].map(|text| serde_json::Value::from(text).to_string());
    RawValue::from_string(format!("{{\"apiVersion\":{api_version},\"kind\":{kind}{comma}{inside}")).ok()
}
