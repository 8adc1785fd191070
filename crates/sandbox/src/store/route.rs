//! From a path to what it addresses.

use std::sync::Arc;

use super::discovery;
use super::kind::Kind;
use super::message::{Request, Response};
use super::openapi;
use super::refusal::Refusal;
use super::registry::Registry;

/// What a path leads to.
pub(super) enum Route {
    /// Something that needs no object: discovery, health, version.
    Answer(Response),
    Resource(Target),
}

/// An object, or a collection of them, or a subresource.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) kind: Arc<Kind>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) sub: Option<Sub>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sub {
    Status,
    /// Of Namespaces: a write there may change `spec.finalizers`.
    Finalize,
}

impl Target {
    /// The namespace; empty for the whole cluster.
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn not_found(&self) -> Refusal {
        Refusal::not_found(&self.kind.group, &self.kind.plural, self.name.as_deref().unwrap_or_default())
    }

    pub(super) fn described(&self) -> String {
        format!("this request on {}/{}", self.kind.plural, self.name.as_deref().unwrap_or_default())
    }
}

pub(super) fn route(registry: &Registry, request: &Request) -> Result<Route, Refusal> {
    let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
    match &parts[..] {
        ["api" | "apis"] | ["api", "v1"] | ["apis", _] | ["apis", _, _] => {
            discovery::answer(registry, request, &parts).map(Route::Answer)
        }
        ["api", version, rest @ ..] => resource(registry, "", version, rest),
        ["apis", group, version, rest @ ..] => resource(registry, group, version, rest),
        ["healthz" | "livez" | "readyz", ..] => Ok(Route::Answer(Response::text(200, "ok"))),
        ["version"] => Ok(Route::Answer(Response::json(200, &discovery::version()))),
        ["openapi", "v3", rest @ ..] => openapi::answer(registry, rest).map(Route::Answer),
        _ => Err(Refusal::no_such_path()),
    }
}

fn resource(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Result<Route, Refusal> {
    let unknown = || {
        if registry.group_exists(group) && !registry.is_custom(group) {
            Refusal::no_such_resource()
        } else {
            Refusal::no_such_path()
        }
    };
    let (namespace, plural, name, sub) = match rest {
        ["namespaces", name, sub @ ("status" | "finalize")] => (None, "namespaces", Some(*name), Some(*sub)),
        ["namespaces", namespace, plural, more @ ..]
            if !more.is_empty() || registry.find(group, version, plural).is_some() =>
        {
            (Some(*namespace), *plural, more.first().copied(), more.get(1).copied())
        }
        [plural, more @ ..] if rest.len() != 3 || *plural != "namespaces" => {
            (None, *plural, more.first().copied(), more.get(1).copied())
        }
        _ => return Err(unknown()),
    };
    let kind = registry.find(group, version, plural).ok_or_else(unknown)?;
    if kind.namespaced && namespace.is_none() && name.is_some() || !kind.namespaced && namespace.is_some() {
        return Err(unknown());
    }
    let sub = subresource(kind, name, sub)?;
    let target =
        Target { kind: kind.clone(), namespace: namespace.map(Into::into), name: name.map(Into::into), sub };
    Ok(Route::Resource(target))
}

fn subresource(kind: &Kind, name: Option<&str>, sub: Option<&str>) -> Result<Option<Sub>, Refusal> {
    match sub {
        None => Ok(None),
        Some("status") if kind.status => Ok(Some(Sub::Status)),
        Some("finalize") if kind.plural == "namespaces" => Ok(Some(Sub::Finalize)),
        Some(
            known @ ("scale"
            | "log"
            | "exec"
            | "eviction"
            | "binding"
            | "token"
            | "ephemeralcontainers"
            | "proxy"
            | "resize"
            | "attach"
            | "portforward"),
        ) if !kind.traits.custom => Err(Refusal::not_implemented(&format!("{}/{known}", kind.plural))),
        Some(_) if kind.traits.custom => {
            Err(Refusal::not_found(&kind.group, &kind.plural, name.unwrap_or_default()))
        }
        Some(_) => Err(Refusal::no_such_resource()),
    }
}
