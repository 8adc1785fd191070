//! Lists: consistent, paged, at any revision still kept.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::json as parser;
use super::kind::SandboxKind;
use super::kind_store::KindStore;
use super::message::{StoreRequest, StoreResponse};
use super::object_storage::ObjectStorage;
use super::refusal::{StatusCause, StoreRefusal};
use super::response_form::ResponseForm;
use super::route::RequestTarget;
use super::selector::ListSelector;

const CONTINUE_TOO_OLD_MESSAGE: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A list as it is sent, its members in the order of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListBody {
    api_version: String,
    items: Vec<ListItem>,
    kind: String,
    metadata: Value,
}

/// An item of a list: as it is stored, where that is how it is shown.
#[derive(Serialize)]
#[serde(untagged)]
enum ListItem {
    Stored(#[serde(serialize_with = "serialize_stored")] Arc<Value>),
    Rendered(Value),
}

fn serialize_stored<S: Serializer>(object: &Arc<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    object.as_ref().serialize(serializer)
}

/// Start key and revision of a list.
struct ListStart {
    revision: u64,
    after: String,
    continued: bool,
    /// Number of objects after it, where a page before has counted them: counting takes as long as the list is.
    left: Option<usize>,
}

pub(super) fn invalid_revision(text: &str) -> StoreRefusal {
    StoreRefusal::bad_request(format!("invalid resource version: {}", not_a_number_message(text)))
}

pub(super) fn not_a_number_message(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// Refuses an invalid combination of list options.
pub(super) fn invalid_list_options(field: &str, why: &str) -> StoreRefusal {
    StoreRefusal::invalid("meta.k8s.io", "ListOptions", "", vec![StatusCause::forbidden(field, why)])
}

/// Answers a list.
pub(super) fn answer_list(
    storage: &ObjectStorage,
    target: &RequestTarget,
    request: &StoreRequest,
) -> Result<StoreResponse, StoreRefusal> {
    let view = ResponseForm::from_request(request)?;
    let kind = &target.kind;
    let selector = ListSelector::from_request(kind, request)?;
    let limit = parse_number_param(request, "limit")?.unwrap_or(0);
    let start = list_start(storage, target, request)?;
    let prefix = target.key_prefix();
    let empty = KindStore::default();
    let kind_store = storage.kind_store(kind.storage).unwrap_or(&empty);
    // From its watch cache the real server answers whole lists, whatever the limit.
    let limit =
        if request.query_param("resourceVersion") == Some("0") && !start.continued { 0 } else { limit };
    let most = if limit == 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let then = kind_store.objects_at(start.revision, &prefix, &start.after);
    let mut chosen = then.filter(|(_, object)| selector.matches(object));
    let page: Vec<_> = chosen.by_ref().take(most).collect();
    // Of a selection the server does not say how many are left.
    let rest = match start.left {
        Some(left) if selector.is_empty() => left.saturating_sub(page.len()),
        None if selector.is_empty() => chosen.count(),
        _ => usize::from(chosen.next().is_some()),
    };
    let mut metadata = json!({"resourceVersion": start.revision.to_string()});
    if kind.traits.custom && view == ResponseForm::Whole {
        metadata["continue"] = json!("");
    }
    if rest > 0 {
        let last = page.last().map(|(key, _)| *key).unwrap_or_default();
        let left = selector.is_empty().then_some(rest);
        let revision = i64::try_from(start.revision).unwrap_or(i64::MAX);
        metadata["continue"] = json!(encode_token(revision, last, left));
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(rest);
        }
    }
    let items = page.into_iter().map(|(_, object)| list_item(view, target, object)).collect();
    let (list_kind, api_version) = match view {
        ResponseForm::Whole | ResponseForm::Table => (kind.list_kind.clone(), kind.api_version()),
        ResponseForm::Metadata => ("PartialObjectMetadataList".into(), "meta.k8s.io/v1".into()),
    };
    Ok(StoreResponse::json(200, &ListBody { api_version, items, kind: list_kind, metadata }))
}

fn list_start(
    storage: &ObjectStorage,
    target: &RequestTarget,
    request: &StoreRequest,
) -> Result<ListStart, StoreRefusal> {
    let current = storage.revision();
    let matching = request.query_param("resourceVersionMatch");
    if let Some(text) = request.query_param("continue") {
        if request.query_param("resourceVersion").is_some_and(|revision| revision != "0") {
            return Err(StoreRefusal::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return continued_start(storage, target, text);
    }
    let Some(asked) = request.query_param("resourceVersion") else {
        if matching.is_some() {
            return Err(invalid_list_options(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        return Ok(ListStart { revision: current, after: String::new(), continued: false, left: None });
    };
    let asked: u64 = asked.parse().map_err(|_| invalid_revision(asked))?;
    let exact = match matching {
        Some("Exact") if asked == 0 => {
            return Err(invalid_list_options(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        Some("Exact") => true,
        Some("NotOlderThan") => false,
        Some(other) => return Err(unsupported_match(other)),
        // As etcd3 has it: a limit turns a bare revision into an exact one.
        None => asked > 0 && parse_number_param(request, "limit")?.unwrap_or(0) > 0,
    };
    let current = if exact { current } else { request.as_of.unwrap_or(current) };
    if asked > current {
        return Err(StoreRefusal::too_large_revision(asked, current));
    }
    if exact && storage.has_forgotten(target.kind.storage, asked) {
        return Err(StoreRefusal::expired("The resourceVersion for the provided list is too old."));
    }
    Ok(ListStart {
        revision: if exact { asked } else { current },
        after: String::new(),
        continued: false,
        left: None,
    })
}

fn continued_start(
    storage: &ObjectStorage,
    target: &RequestTarget,
    text: &str,
) -> Result<ListStart, StoreRefusal> {
    let bad =
        || StoreRefusal::bad_request(format!("invalid continue token: continue key is not valid: {text}"));
    let (revision, after, left) = read_token(text).ok_or_else(bad)?;
    // A negative revision: the holder of this token was told that the rest may be inconsistent.
    let Ok(revision) = u64::try_from(revision) else {
        return Ok(ListStart { revision: storage.revision(), after, continued: true, left: None });
    };
    if storage.has_forgotten(target.kind.storage, revision) {
        return Err(
            StoreRefusal::expired(CONTINUE_TOO_OLD_MESSAGE).continued_by(encode_token(-1, &after, None))
        );
    }
    Ok(ListStart { revision, after, continued: true, left })
}

fn unsupported_match(what: &str) -> StoreRefusal {
    let message = format!("Unsupported value: {what:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"");
    let cause =
        StatusCause { reason: "FieldValueNotSupported", message, field: "resourceVersionMatch".into() };
    StoreRefusal::invalid("meta.k8s.io", "ListOptions", "", vec![cause])
}

/// Renders an item in the representation that the client asks for.
fn list_item(view: ResponseForm, target: &RequestTarget, object: &Arc<Value>) -> ListItem {
    match view {
        ResponseForm::Whole if target.kind.traits.custom => {
            ListItem::Stored(target.kind.render_version(object))
        }
        ResponseForm::Whole => ListItem::Rendered(whole_list_item(&target.kind, object)),
        _ => ListItem::Rendered(view.render_form(&target.kind.render_version(object)).into_owned()),
    }
}

/// Renders an item whole; items of built-in lists omit apiVersion and kind.
pub(super) fn whole_list_item(kind: &SandboxKind, object: &Arc<Value>) -> Value {
    let mut shown = (*kind.render_version(object)).clone();
    if !kind.traits.custom
        && let Some(fields) = shown.as_object_mut()
    {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    shown
}

pub(super) fn parse_number_param(request: &StoreRequest, name: &str) -> Result<Option<u64>, StoreRefusal> {
    let Some(text) = request.query_param(name) else { return Ok(None) };
    let number: i64 = text.parse().map_err(|_| {
        StoreRefusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
    })?;
    Ok(u64::try_from(number).ok())
}

/// Returns a continue token, opaque to clients: the revision, the last key shown and the number of those left, in hexadecimal.
fn encode_token(revision: i64, last: &str, left: Option<usize>) -> String {
    let text = json!({"rv": revision, "after": last, "left": left}).to_string();
    text.bytes().fold(String::new(), |token, byte| format!("{token}{byte:02x}"))
}

fn read_token(token: &str) -> Option<(i64, String, Option<usize>)> {
    let digits: Vec<u8> = token.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    let value = parser::parse_json(&bytes).ok()?;
    let left = value["left"].as_u64().and_then(|left| usize::try_from(left).ok());
    Some((value["rv"].as_i64()?, value["after"].as_str()?.to_owned(), left))
}
