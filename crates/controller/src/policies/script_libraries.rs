//! Health scripts in ConfigMaps, such as Argo CD's `argocd-cm`: watched, and recompiled when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use policy::{
    ConfigMapName, GroupRule, KeptScripts, LibraryRules, LibraryState, PolicyInUse, ScriptData,
    UnreadLibraries, compile_library_rule, is_script_key, kept_script_text,
};
use rollcall_core::StagedList;
use rules::CompiledRule;
use rules::lua::ScriptLibrary;
use serde::Deserialize;
use tracing::{info, warn};
use watcher::{ApiFailureCause, ApiKind, FollowEvent, FollowFailure, FollowOptions, ParentObject, follow};

use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;
use crate::own_watches::OwnWatchKind;

/// Script libraries of all policies in use.
#[derive(Default)]
pub(crate) struct ScriptLibraries {
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    loaded: BTreeMap<ConfigMapName, FollowedLibrary>,
    /// Scripts that were read before the process began.
    kept: KeptScripts,
    events: SelectAll<BoxStream<'static, (ConfigMapName, FollowEvent<ParentObject>)>>,
}

/// One ConfigMap that is followed.
struct FollowedLibrary {
    /// Itself, where it exists.
    list: StagedList<(), Arc<ParentObject>>,
    known: LoadedLibrary,
    /// Why the ConfigMap as it is now cannot be used. What was last read of it stays in force.
    trouble: Option<String>,
}

/// One library as last read.
struct LoadedLibrary {
    rule: Arc<CompiledRule>,
    scripts: Arc<ScriptLibrary>,
    source: Arc<str>,
    /// Text of its scripts, as it is kept, or a short reason for their absence.
    text: Result<Arc<str>, String>,
    /// The ConfigMap was read, or is known not to exist.
    read: bool,
}

#[derive(Deserialize)]
struct ConfigMapData {
    #[serde(default)]
    data: Option<ScriptData>,
}

impl ScriptLibraries {
    /// Watches the libraries that these policies need. A library no longer needed costs one watch of one object.
    pub(super) fn follow_needed(&mut self, context: &KindContext, policies: &[PolicyInUse]) {
        for name in libraries_of(policies) {
            if !self.loaded.contains_key(name) {
                self.loaded.insert(name.clone(), FollowedLibrary::unread(name));
                let options = FollowOptions {
                    fields: Some(format!("metadata.name={}", name.name)),
                    ..context.follow_options()
                };
                let (client, namespace) = (context.client.clone(), name.namespace.clone());
                let open = move || {
                    follow::<ParentObject>(&client, &config_map_kind(), Some(&namespace), options.clone())
                        .boxed()
                };
                let events = context.breaks.reopened_after(open);
                let events = context.own_watches.observed(OwnWatchKind::Scripts, &name.to_string(), events);
                let key = name.clone();
                self.events.push(events.map(move |event| (key.clone(), event)).boxed());
            }
        }
        let needed: BTreeSet<String> = libraries_of(policies).map(ToString::to_string).collect();
        context.own_watches.set_needed(OwnWatchKind::Scripts, |name| needed.contains(name));
    }

    /// Waits until a library changes, and returns its name. Never completes if none is watched.
    pub(super) async fn next_change(&mut self) -> ConfigMapName {
        loop {
            let Some((name, event)) = self.events.next().await else { return std::future::pending().await };
            if self.apply_event(&name, event) {
                return name;
            }
        }
    }

    /// The scripts by which these policies judge, where they were read, as they are kept.
    pub(super) fn scripts_of(&self, policies: &[PolicyInUse]) -> BTreeMap<ConfigMapName, Option<Arc<str>>> {
        let text_of = |name: &ConfigMapName| self.loaded.get(name)?.known.text.clone().ok();
        libraries_of(policies).map(|name| (name.clone(), text_of(name))).collect()
    }

    /// Notes scripts that another process has read: they are in force where their ConfigMap is gone. `true` where that is so.
    pub(super) fn recall(&mut self, kept: &KeptScripts) -> bool {
        self.kept = kept.clone();
        let libraries = self.loaded.iter_mut().filter(|(_, followed)| followed.known.read);
        libraries.fold(false, |moved, (name, followed)| followed.recall(name, &self.kept) || moved)
    }

    fn apply_event(&mut self, name: &ConfigMapName, event: FollowEvent<ParentObject>) -> bool {
        let Some(followed) = self.loaded.get_mut(name) else { return false };
        match event {
            FollowEvent::Init => followed.list.begin_list(),
            FollowEvent::InitApply(object) => followed.list.stage_item((), Arc::new(object)),
            FollowEvent::InitDone => {
                followed.list.finish_list();
                return followed.update(name, &self.kept);
            }
            FollowEvent::Apply(object) => {
                followed.list.apply_item((), Arc::new(object));
                return followed.update(name, &self.kept);
            }
            FollowEvent::Delete(_) => {
                followed.list.remove_item(&());
                return followed.update(name, &self.kept);
            }
            FollowEvent::Failure(FollowFailure { cause, detail }) => {
                let (config_map, reason) = (name.to_string(), cause.metric_label());
                self.failures.report("follow scripts", format!("{config_map} {reason}"), move |failures| {
                    warn!(
                        config_map,
                        cause = reason,
                        detail,
                        failures,
                        "cannot watch a ConfigMap of health scripts"
                    );
                });
                // A known library is kept; one that was never read will not become readable by waiting.
                if cause == ApiFailureCause::Forbidden && !followed.known.read {
                    let known = LoadedLibrary::without_scripts(name, "not permitted to read it");
                    return followed.accept(name, known, &self.kept);
                }
            }
            FollowEvent::Alive => {}
        }
        false
    }
}

impl LibraryRules for ScriptLibraries {
    fn state(&self, name: &ConfigMapName) -> LibraryState {
        match self.loaded.get(name) {
            Some(followed) if followed.known.read => match (&followed.trouble, &followed.known.text) {
                (None, Ok(_)) => LibraryState::Current,
                (Some(why), Ok(_)) => LibraryState::Outdated(why.clone()),
                (_, Err(why)) => LibraryState::Missing(why.clone()),
            },
            _ => LibraryState::Unread,
        }
    }

    fn library_rule(&self, name: &ConfigMapName) -> (Arc<CompiledRule>, Arc<str>) {
        let made = |known: &LoadedLibrary| (Arc::clone(&known.rule), Arc::clone(&known.source));
        let known = self.loaded.get(name).map(|followed| made(&followed.known));
        known.unwrap_or_else(|| UnreadLibraries.library_rule(name))
    }
}

impl FollowedLibrary {
    fn unread(name: &ConfigMapName) -> Self {
        FollowedLibrary {
            list: StagedList::default(),
            known: LoadedLibrary::not_read_yet(name),
            trouble: None,
        }
    }

    /// The ConfigMap is another one now, or is not there; `true` where that is news.
    fn update(&mut self, name: &ConfigMapName, kept: &KeptScripts) -> bool {
        let Some(items) = self.list.items() else { return false };
        let known = items.get(&()).map_or_else(
            || LoadedLibrary::without_scripts(name, "not found"),
            |object| parse_config_map(name, object),
        );
        self.accept(name, known, kept)
    }

    fn accept(&mut self, name: &ConfigMapName, known: LoadedLibrary, kept: &KeptScripts) -> bool {
        let trouble = known.text.as_ref().err().cloned();
        let moved = std::mem::replace(&mut self.trouble, trouble) != self.trouble;
        if let (Some(why), true, Ok(_)) = (&self.trouble, self.known.read, &self.known.text) {
            if moved {
                warn_of_trouble(name, why);
            }
            return moved;
        }
        // Changes of other data, or of the metadata, change no rule.
        if self.known.read && self.known.text == known.text {
            return moved;
        }
        self.known = known;
        if !self.recall(name, kept) {
            self.known.log_state(name);
        }
        true
    }

    /// Where the ConfigMap is gone or cannot be used, what another process has read of it is in force; `true` where that is so.
    fn recall(&mut self, name: &ConfigMapName, kept: &KeptScripts) -> bool {
        let (Some(why), Err(_)) = (&self.trouble, &self.known.text) else { return false };
        let kept = kept.find(name).map(|data| LoadedLibrary::new(name, Ok(data), "as kept"));
        let Some(kept) = kept.filter(|kept| kept.text.is_ok()) else { return false };
        warn_of_trouble(name, why);
        self.known = kept;
        true
    }
}

impl LoadedLibrary {
    fn new(name: &ConfigMapName, data: Result<ScriptData, String>, version: &str) -> LoadedLibrary {
        let library = data.and_then(|data| match ScriptLibrary::from_config_map(&data) {
            Ok(library) => Ok((library, kept_script_text(&data))),
            Err(error) => Err(error.to_string()),
        });
        let (library, text) = match library {
            Ok((library, text)) => (library, Ok(text)),
            Err(why) => (ScriptLibrary::default(), Err(why)),
        };
        let scripts = Arc::new(library);
        let trouble = text.as_ref().err().map(String::as_str);
        let (rule, source) = compile_library_rule(name, Arc::clone(&scripts), trouble, version);
        LoadedLibrary { rule, scripts, source, text, read: true }
    }

    fn log_state(&self, name: &ConfigMapName) {
        if let Err(why) = &self.text {
            warn!(config_map = %name, why, "cannot load health scripts from ConfigMap; kinds judged by it report Unknown");
            return;
        }
        for broken in self.scripts.broken_scripts() {
            warn!(config_map = %name, %broken, "cannot compile health script; its kind reports Unknown");
        }
        info!(config_map = %name, scripts = self.scripts.len(), "loaded health scripts from ConfigMap");
    }

    /// Library without scripts, for this reason.
    fn without_scripts(name: &ConfigMapName, why: &str) -> LoadedLibrary {
        LoadedLibrary::new(name, Err(why.to_owned()), why)
    }

    fn not_read_yet(name: &ConfigMapName) -> LoadedLibrary {
        LoadedLibrary { read: false, ..LoadedLibrary::without_scripts(name, "not read yet") }
    }
}

fn parse_config_map(name: &ConfigMapName, object: &ParentObject) -> LoadedLibrary {
    let parsed = serde_json::from_str::<ConfigMapData>(object.text.get()).map_err(|error| error.to_string());
    let rules = parsed.map(|config| {
        let data = config.data.unwrap_or_default().into_iter();
        data.filter(|(key, _)| is_script_key(key)).collect()
    });
    LoadedLibrary::new(name, rules, &object.child.meta.resource_version.to_string())
}

/// ConfigMaps by whose scripts these policies judge.
fn libraries_of(policies: &[PolicyInUse]) -> impl Iterator<Item = &ConfigMapName> {
    let groups = policies.iter().flat_map(|policy| &policy.compiled.groups);
    groups.filter_map(|group| match &group.rule {
        Some(GroupRule::Library(name)) => Some(name),
        _ => None,
    })
}

fn warn_of_trouble(name: &ConfigMapName, why: &str) {
    warn!(
        config_map = %name,
        why,
        "cannot use the ConfigMap of health scripts; the scripts that were last read stay in force"
    );
}

fn config_map_kind() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
        has_status: false,
    }
}

#[cfg(test)]
mod tests;
