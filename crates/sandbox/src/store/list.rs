//! GET on a collection: consistent, paged, at any remembered revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::json as parser;
use super::message::{Millis, Request, Response};
use super::refusal::{Cause, Refusal};
use super::route::Target;
use super::selector::Selector;
use super::view::View;
use super::{Shelf, Store};

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Where a list begins, and of when.
struct Start {
    revision: u64,
    after: String,
    continued: bool,
}

pub(super) fn bad_revision(text: &str) -> Refusal {
    Refusal::bad_request(format!("invalid resource version: {}", no_number(text)))
}

pub(super) fn no_number(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// A refused combination of list options.
pub(super) fn bad_options(field: &str, why: &str) -> Refusal {
    Refusal::invalid("meta.k8s.io", "ListOptions", "", vec![Cause::forbidden(field, why)])
}

impl Store {
    pub(super) fn list_request(
        &mut self,
        _now: Millis,
        target: &Target,
        request: &Request,
    ) -> Result<Response, Refusal> {
        let view = View::of(request)?;
        let kind = &target.kind;
        let selector = Selector::of(kind, request)?;
        let limit = number(request, "limit")?.unwrap_or(0);
        let start = self.start(target, request)?;
        let prefix = prefix(target);
        let empty = Shelf::default();
        let shelf = self.shelves.get(&kind.storage).unwrap_or(&empty);
        let then = shelf.snapshot(start.revision, &prefix, &start.after);
        let chosen: BTreeMap<String, Arc<Value>> =
            then.into_iter().filter(|(_, object)| selector.matches(object)).collect();
        // From its cache the real server answers whole lists, whatever limit was asked for.
        let limit = if request.param("resourceVersion") == Some("0") && !start.continued { 0 } else { limit };
        let total = chosen.len() as u64;
        let shown = if limit == 0 { total } else { limit.min(total) };
        let mut metadata = json!({"resourceVersion": start.revision.to_string()});
        if kind.traits.custom && view == View::Whole {
            metadata["continue"] = json!("");
        }
        if shown < total {
            let last = chosen.keys().nth(shown as usize - 1).cloned().unwrap_or_default();
            metadata["continue"] = json!(token(start.revision, &last));
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(total - shown);
            }
        }
        let items: Vec<Value> =
            chosen.values().take(shown as usize).map(|object| item(view, target, object)).collect();
        let (list_kind, api_version) = match view {
            View::Whole | View::Table => (kind.list_kind.clone(), kind.api_version()),
            View::Metadata => ("PartialObjectMetadataList".into(), "meta.k8s.io/v1".into()),
        };
        Ok(Response::json(
            200,
            &json!({"kind": list_kind, "apiVersion": api_version, "metadata": metadata, "items": items}),
        ))
    }

    fn start(&self, target: &Target, request: &Request) -> Result<Start, Refusal> {
        let current = self.revision;
        let matching = request.param("resourceVersionMatch");
        if let Some(text) = request.param("continue") {
            if request.param("resourceVersion").is_some_and(|revision| revision != "0") {
                return Err(Refusal::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return self.continued(target, text, current);
        }
        let Some(asked) = request.param("resourceVersion") else {
            if matching.is_some() {
                return Err(bad_options(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            return Ok(Start { revision: current, after: String::new(), continued: false });
        };
        let asked: u64 = asked.parse().map_err(|_| bad_revision(asked))?;
        let exact = match matching {
            Some("Exact") if asked == 0 => {
                return Err(bad_options(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
            Some("Exact") => true,
            Some("NotOlderThan") => false,
            Some(other) => return Err(unsupported_match(other)),
            // As etcd3 had it: a limit turns a bare revision into an exact one.
            None => asked > 0 && number(request, "limit")?.unwrap_or(0) > 0,
        };
        let current = if exact { current } else { request.as_of.unwrap_or(current) };
        if asked > current {
            return Err(Refusal::too_large_revision(asked, current));
        }
        if exact && self.shelves.get(&target.kind.storage).is_some_and(|shelf| shelf.forgot(asked)) {
            return Err(Refusal::expired("The resourceVersion for the provided list is too old."));
        }
        Ok(Start { revision: if exact { asked } else { current }, after: String::new(), continued: false })
    }

    fn continued(&self, target: &Target, text: &str, current: u64) -> Result<Start, Refusal> {
        let bad =
            || Refusal::bad_request(format!("invalid continue token: continue key is not valid: {text}"));
        let (revision, after) = read_token(text).ok_or_else(bad)?;
        // A negative revision: whoever holds this token was told that the rest may be inconsistent.
        let Ok(revision) = u64::try_from(revision) else {
            return Ok(Start { revision: current, after, continued: true });
        };
        if self.shelves.get(&target.kind.storage).is_some_and(|shelf| shelf.forgot(revision)) {
            return Err(Refusal::expired(TOO_OLD).continued_by(token_from(-1, &after)));
        }
        Ok(Start { revision, after, continued: true })
    }
}

fn unsupported_match(what: &str) -> Refusal {
    let message = format!("Unsupported value: {what:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"");
    let cause = Cause { reason: "FieldValueNotSupported", message, field: "resourceVersionMatch".into() };
    Refusal::invalid("meta.k8s.io", "ListOptions", "", vec![cause])
}

/// Keys of a whole kind, or of one namespace of it.
pub(super) fn prefix(target: &Target) -> String {
    target.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default()
}

/// Items of built-in lists do not repeat what they are.
fn item(view: View, target: &Target, object: &Arc<Value>) -> Value {
    let mut shown = view.show(&target.kind.render(object));
    if view == View::Whole
        && !target.kind.traits.custom
        && let Some(fields) = shown.as_object_mut()
    {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    shown
}

pub(super) fn number(request: &Request, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = request.param(name) else { return Ok(None) };
    let number: i64 = text
        .parse()
        .map_err(|_| Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))?;
    Ok(u64::try_from(number).ok())
}

/// Opaque to clients: the revision, and the last key shown, in hexadecimal.
fn token(revision: u64, last: &str) -> String {
    token_from(revision as i64, last)
}

fn token_from(revision: i64, last: &str) -> String {
    let text = json!({"rv": revision, "after": last}).to_string();
    text.bytes().fold(String::new(), |token, byte| format!("{token}{byte:02x}"))
}

fn read_token(token: &str) -> Option<(i64, String)> {
    let digits: Vec<u8> =
        token.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    let value = parser::parse(&bytes).ok()?;
    Some((value["rv"].as_i64()?, value["after"].as_str()?.to_owned()))
}
