//! Scripts that live in ConfigMaps, such as Argo CD's `argocd-cm`: followed, and compiled anew when they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use rules::lua::Library;
use rules::{Rule, Spec};
use serde::Deserialize;
use timer::Seed;
use tracing::{info, warn};
use watcher::{ApiKind, Event, FollowOptions, Parent, follow};

use super::plan::InUse;
use super::ready::{ConfigMapName, GroupRule};

/// The libraries of all policies in use.
#[derive(Default)]
pub(crate) struct Libraries {
    known: BTreeMap<ConfigMapName, Known>,
    events: SelectAll<BoxStream<'static, (ConfigMapName, Event<Parent>)>>,
}

/// One library, as it was last read.
struct Known {
    rule: Arc<Rule>,
    source: Arc<str>,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl Libraries {
    /// Follows what these policies need and is not followed yet. What is not needed any more costs one watch of one object.
    pub(super) fn follow(&mut self, client: &kube::Client, seed: Seed, policies: &[InUse]) {
        let groups = policies.iter().flat_map(|p| &p.compiled.groups);
        for name in groups.filter_map(|g| match &g.rule {
            Some(GroupRule::Library(name)) => Some(name),
            _ => None,
        }) {
            if !self.known.contains_key(name) {
                self.known.insert(name.clone(), Known::new(name, Library::default(), "not read yet"));
                let options = FollowOptions {
                    fields: Some(format!("metadata.name={}", name.name)),
                    ..FollowOptions::new(seed)
                };
                let events = follow::<Parent>(client, &config_map(), Some(&name.namespace), options);
                let key = name.clone();
                self.events.push(events.map(move |event| (key.clone(), event)).boxed());
            }
        }
    }

    /// Waits until a library moved; which one. Never ends where none is followed.
    pub(super) async fn moved(&mut self) -> ConfigMapName {
        loop {
            let Some((name, event)) = self.events.next().await else { return std::future::pending().await };
            if self.take(&name, event) {
                return name;
            }
        }
    }

    fn take(&mut self, name: &ConfigMapName, event: Event<Parent>) -> bool {
        let known = match event {
            Event::InitApply(object) | Event::Apply(object) => read(name, &object),
            Event::Delete(_) => {
                warn!(config_map = %name, "the library of scripts is gone");
                Known::new(name, Library::default(), "gone")
            }
            Event::Trouble(trouble) => {
                warn!(config_map = %name, cause = trouble.cause.label(), detail = trouble.detail, "a library of scripts");
                return false;
            }
            Event::Init | Event::InitDone | Event::Alive => return false,
        };
        let news = self.known.get(name).is_none_or(|old| old.source != known.source);
        self.known.insert(name.clone(), known);
        news
    }

    /// The rule that a library is, and what it was made from.
    pub(super) fn rule(&self, name: &ConfigMapName) -> (Arc<Rule>, Arc<str>) {
        let none = || Known::new(name, Library::default(), "not followed");
        let made = |known: &Known| (Arc::clone(&known.rule), Arc::clone(&known.source));
        self.known.get(name).map_or_else(|| made(&none()), made)
    }
}

impl Known {
    fn new(name: &ConfigMapName, library: Library, version: &str) -> Known {
        let spec = Spec::Library { name: &name.to_string(), scripts: Arc::new(library) };
        let rule = Rule::compile(&spec).expect("invariant: a library is a rule, whatever is in it");
        Known { rule: Arc::new(rule), source: format!("library {name} {version}").into() }
    }
}

fn read(name: &ConfigMapName, object: &Parent) -> Known {
    let parsed = serde_json::from_str::<ConfigMap>(object.text.get()).map_err(|error| error.to_string());
    let library = parsed.and_then(|config| {
        Library::from_config_map(&config.data.unwrap_or_default()).map_err(|error| error.to_string())
    });
    let version = object.child.meta.resource_version.to_string();
    match library {
        Ok(library) => {
            for broken in library.broken() {
                warn!(config_map = %name, %broken, "a script cannot be run: its kind is Unknown");
            }
            info!(config_map = %name, scripts = library.len(), "a library of scripts");
            Known::new(name, library, &version)
        }
        Err(error) => {
            warn!(config_map = %name, error, "a library of scripts cannot be read: what it judges is Unknown");
            Known::new(name, Library::default(), &version)
        }
    }
}

fn config_map() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
        has_status: false,
    }
}
