//! Routing: parses the target of a path.

use std::sync::Arc;

use super::discovery;
use super::kind::SandboxKind;
use super::message::{StoreRequest, StoreResponse};
use super::openapi;
use super::refusal::StoreRefusal;
use super::registry::KindRegistry;

/// Target of a path.
pub(super) enum RequestRoute {
    /// An answer that needs no object: discovery, health, version.
    Answer(StoreResponse),
    Resource(RequestTarget),
}

/// An object, or a collection of them, or a subresource.
#[derive(Clone, Debug)]
pub(super) struct RequestTarget {
    pub(super) kind: Arc<SandboxKind>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<SubresourceKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubresourceKind {
    Status,
    /// Subresource of Namespaces: a write to it may change `spec.finalizers`.
    Finalize,
    /// Subresource of workloads: a write to it may change `spec.replicas`.
    Scale,
}

impl RequestTarget {
    /// Namespace of the target; empty for the whole cluster.
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// Name of the target; empty for a collection.
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Storage key of the object.
    pub(super) fn key(&self) -> String {
        self.kind.storage_key(self.namespace(), self.name())
    }

    /// Start of the storage keys of all objects of a collection: of the whole kind, or of one namespace of it.
    pub(super) fn key_prefix(&self) -> String {
        self.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default()
    }

    pub(super) fn not_found(&self) -> StoreRefusal {
        StoreRefusal::not_found(&self.kind.group, &self.kind.plural, self.name())
    }

    pub(super) fn describe_request(&self) -> String {
        format!("this request on {}/{}", self.kind.plural, self.name())
    }
}

pub(super) fn route_request(
    registry: &KindRegistry,
    request: &StoreRequest,
) -> Result<RequestRoute, StoreRefusal> {
    let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
    match &parts[..] {
        ["api" | "apis"] | ["api", "v1"] | ["apis", _] | ["apis", _, _] => {
            discovery::answer_discovery(registry, request, &parts).map(RequestRoute::Answer)
        }
        ["api", version, rest @ ..] => route_resource(registry, "", version, rest),
        ["apis", group, version, rest @ ..] => route_resource(registry, group, version, rest),
        ["healthz" | "livez" | "readyz", ..] => Ok(RequestRoute::Answer(StoreResponse::text(200, "ok"))),
        ["version"] => Ok(RequestRoute::Answer(StoreResponse::json(200, &discovery::version_info()))),
        ["openapi", "v3", rest @ ..] => openapi::answer_openapi(registry, rest).map(RequestRoute::Answer),
        _ => Err(StoreRefusal::no_such_path()),
    }
}

fn route_resource(
    registry: &KindRegistry,
    group: &str,
    version: &str,
    rest: &[&str],
) -> Result<RequestRoute, StoreRefusal> {
    let unknown = || {
        if registry.group_exists(group) && !registry.is_custom(group) {
            StoreRefusal::no_such_resource()
        } else {
            StoreRefusal::no_such_path()
        }
    };
    let (namespace, plural, name, sub) = match rest {
        ["namespaces", name, sub @ ("status" | "finalize")] => (None, "namespaces", Some(*name), Some(*sub)),
        ["namespaces", namespace, plural, more @ ..]
            if !more.is_empty() || registry.find_kind(group, version, plural).is_some() =>
        {
            (Some(*namespace), *plural, more.first().copied(), more.get(1).copied())
        }
        [plural, more @ ..] if rest.len() != 3 || *plural != "namespaces" => {
            (None, *plural, more.first().copied(), more.get(1).copied())
        }
        _ => return Err(unknown()),
    };
    let kind = registry.find_kind(group, version, plural).ok_or_else(unknown)?;
    if kind.namespaced && namespace.is_none() && name.is_some() || !kind.namespaced && namespace.is_some() {
        return Err(unknown());
    }
    let sub = parse_subresource(kind, name, sub)?;
    let target = RequestTarget {
        kind: kind.clone(),
        namespace: namespace.map(Into::into),
        name: name.map(Into::into),
        subresource: sub,
    };
    Ok(RequestRoute::Resource(target))
}

/// Workloads that can be scaled, all of them in the group `apps`.
const SCALABLE: [&str; 3] = ["deployments", "replicasets", "statefulsets"];

fn is_scalable(kind: &SandboxKind) -> bool {
    kind.group == "apps" && SCALABLE.contains(&&*kind.plural)
}

fn parse_subresource(
    kind: &SandboxKind,
    name: Option<&str>,
    sub: Option<&str>,
) -> Result<Option<SubresourceKind>, StoreRefusal> {
    match sub {
        None => Ok(None),
        Some("status") if kind.status => Ok(Some(SubresourceKind::Status)),
        Some("scale") if is_scalable(kind) => Ok(Some(SubresourceKind::Scale)),
        Some("finalize") if kind.plural == "namespaces" => Ok(Some(SubresourceKind::Finalize)),
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
        ) if !kind.traits.custom => Err(StoreRefusal::not_implemented(&format!("{}/{known}", kind.plural))),
        Some(_) if kind.traits.custom => {
            Err(StoreRefusal::not_found(&kind.group, &kind.plural, name.unwrap_or_default()))
        }
        Some(_) => Err(StoreRefusal::no_such_resource()),
    }
}
