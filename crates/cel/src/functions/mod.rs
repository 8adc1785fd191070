//! The functions, by name and argument types. Each charges for the data it walks and allocates.

mod convert;
mod encode;
mod format;
pub(crate) mod lists;
mod net;
mod optional;
mod pattern;
mod quantity;
mod semver;
mod sets;
mod strings;
mod time;
mod url;

use crate::overload::CelOverload;

const OVERLOAD_TABLES: [&[CelOverload]; 12] = [
    convert::OVERLOADS,
    encode::OVERLOADS,
    lists::OVERLOADS,
    net::OVERLOADS,
    optional::OVERLOADS,
    pattern::OVERLOADS,
    quantity::OVERLOADS,
    semver::OVERLOADS,
    sets::OVERLOADS,
    strings::OVERLOADS,
    time::OVERLOADS,
    url::OVERLOADS,
];

pub(crate) fn all_overloads() -> impl Iterator<Item = &'static CelOverload> {
    OVERLOAD_TABLES.into_iter().flatten()
}

pub(crate) fn is_known_function(name: &str) -> bool {
    all_overloads().any(|function| function.name == name)
}

pub(crate) fn has_pattern_argument(name: &str) -> bool {
    matches!(name, "matches" | "find" | "findAll")
}

/// Returns the library that would provide an unknown function.
pub(crate) fn unsupported_library(name: &str) -> Option<&'static str> {
    let by_name = |names: &[&str]| names.contains(&name);
    let space = name.split_once('.').map_or("", |(space, _)| space);
    match space {
        "math" => return Some("math of cel-go"),
        "regex" => return Some("regex of cel-go"),
        "proto" => return Some("protocol buffers"),
        "format" => return Some("named formats of Kubernetes"),
        "jsonpatch" => return Some("JSON patches of Kubernetes"),
        "random" | "hash" | "json" | "runtime" | "maps" => return Some("kro"),
        _ => {}
    }
    if by_name(&["lists.setAtIndex", "lists.insertAtIndex", "lists.removeAtIndex", "merge", "omit"]) {
        return Some("kro");
    }
    if by_name(&["path", "group", "serviceAccount", "resource", "subresource", "check", "allowed"]) {
        return Some("the authorizer of Kubernetes");
    }
    by_name(&["validate"]).then_some("named formats of Kubernetes")
}
