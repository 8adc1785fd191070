//! Health scripts in ConfigMaps, such as Argo CD's `argocd-cm`: watched, and recompiled when they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use policy::{
    ConfigMapName, GroupRule, LibraryRules, LibraryState, PolicyInUse, UnreadLibraries, compile_library_rule,
};
use rollcall_core::StagedList;
use rules::CompiledRule;
use rules::lua::ScriptLibrary;
use serde::Deserialize;
use tracing::{info, warn};
use watcher::{ApiFailureCause, ApiKind, FollowEvent, FollowFailure, FollowOptions, ParentObject, follow};

use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;

/// Script libraries of all policies in use.
#[derive(Default)]
pub(crate) struct ScriptLibraries {
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    loaded: BTreeMap<ConfigMapName, FollowedLibrary>,
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
    /// Data of the ConfigMap, or a short reason for its absence.
    data: Result<BTreeMap<String, String>, String>,
    /// The ConfigMap was read, or is known not to exist.
    read: bool,
}

#[derive(Deserialize)]
struct ConfigMapData {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl ScriptLibraries {
    /// Watches the libraries that these policies need. A library no longer needed costs one watch of one object.
    pub(super) fn follow_needed(&mut self, context: &KindContext, policies: &[PolicyInUse]) {
        let groups = policies.iter().flat_map(|p| &p.compiled.groups);
        for name in groups.filter_map(|g| match &g.rule {
            Some(GroupRule::Library(name)) => Some(name),
            _ => None,
        }) {
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
                let key = name.clone();
                self.events.push(events.map(move |event| (key.clone(), event)).boxed());
            }
        }
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

    fn apply_event(&mut self, name: &ConfigMapName, event: FollowEvent<ParentObject>) -> bool {
        let Some(followed) = self.loaded.get_mut(name) else { return false };
        match event {
            FollowEvent::Init => followed.list.begin_list(),
            FollowEvent::InitApply(object) => followed.list.stage_item((), Arc::new(object)),
            FollowEvent::InitDone => {
                followed.list.finish_list();
                return followed.update(name);
            }
            FollowEvent::Apply(object) => {
                followed.list.apply_item((), Arc::new(object));
                return followed.update(name);
            }
            FollowEvent::Delete(_) => {
                followed.list.remove_item(&());
                return followed.update(name);
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
                    return followed
                        .accept(name, LoadedLibrary::without_scripts(name, "not permitted to read it"));
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
            Some(followed) if followed.known.read => match (&followed.trouble, &followed.known.data) {
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
    fn update(&mut self, name: &ConfigMapName) -> bool {
        let Some(items) = self.list.items() else { return false };
        let known = items.get(&()).map_or_else(
            || LoadedLibrary::without_scripts(name, "not found"),
            |object| parse_config_map(name, object),
        );
        self.accept(name, known)
    }

    fn accept(&mut self, name: &ConfigMapName, known: LoadedLibrary) -> bool {
        let trouble = known.data.as_ref().err().cloned();
        let moved = std::mem::replace(&mut self.trouble, trouble) != self.trouble;
        if let (Some(why), true, Ok(_)) = (&self.trouble, self.known.read, &self.known.data) {
            if moved {
                warn!(config_map = %name, why, "cannot use the ConfigMap of health scripts; the scripts that were last read stay in force");
            }
            return moved;
        }
        // Changes of other data, or of the metadata, change no rule.
        if self.known.read && self.known.data == known.data {
            return moved;
        }
        known.log_state(name);
        self.known = known;
        true
    }
}

impl LoadedLibrary {
    fn new(
        name: &ConfigMapName,
        data: Result<BTreeMap<String, String>, String>,
        version: &str,
    ) -> LoadedLibrary {
        let library = data.and_then(|data| match ScriptLibrary::from_config_map(&data) {
            Ok(library) => Ok((library, data)),
            Err(error) => Err(error.to_string()),
        });
        let (library, data) = match library {
            Ok((library, data)) => (library, Ok(data)),
            Err(why) => (ScriptLibrary::default(), Err(why)),
        };
        let scripts = Arc::new(library);
        let trouble = data.as_ref().err().map(String::as_str);
        let (rule, source) = compile_library_rule(name, Arc::clone(&scripts), trouble, version);
        LoadedLibrary { rule, scripts, source, data, read: true }
    }

    fn log_state(&self, name: &ConfigMapName) {
        if let Err(why) = &self.data {
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
        data.filter(|(key, _)| key.starts_with("resource.customizations")).collect()
    });
    LoadedLibrary::new(name, rules, &object.child.meta.resource_version.to_string())
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
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn name() -> ConfigMapName {
        ConfigMapName { namespace: "argocd".to_owned(), name: "argocd-cm".to_owned() }
    }

    fn followed() -> ScriptLibraries {
        ScriptLibraries {
            loaded: [(name(), FollowedLibrary::unread(&name()))].into(),
            ..ScriptLibraries::default()
        }
    }

    fn map(version: u32, data: &Value) -> ParentObject {
        let map = json!({ "metadata": { "name": "argocd-cm", "uid": "u", "resourceVersion": version.to_string() }, "data": data });
        serde_json::from_value(map).expect("a ConfigMap")
    }

    fn says(libraries: &ScriptLibraries) -> String {
        let text = r#"{"apiVersion":"example.com/v1","kind":"Shard"}"#;
        let (rule, _) = libraries.library_rule(&name());
        rule.judge_object(rollcall_cel::ObjectJson::Text(text), readiness::Time::default())
            .assessment
            .verdict
            .reason
            .to_string()
    }

    #[test]
    fn only_a_change_of_scripts_is_news() {
        let mut libraries = followed();
        let data = json!({ "resource.customizations.health.example.com_Shard": "return nil", "url": "a" });
        assert!(!libraries.is_read(&name()), "before its list was through");
        assert!(!libraries.apply_event(&name(), FollowEvent::Init));
        assert!(!libraries.apply_event(&name(), FollowEvent::InitApply(map(1, &data))));
        assert!(!libraries.is_read(&name()), "half a list");
        assert!(libraries.apply_event(&name(), FollowEvent::InitDone));
        let mut other = data.clone();
        other["url"] = json!("b");
        assert!(!libraries.apply_event(&name(), FollowEvent::Apply(map(2, &other))));
        other["resource.customizations.health.example.com_Shard"] = json!("return {}");
        assert!(libraries.apply_event(&name(), FollowEvent::Apply(map(3, &other))));
        assert!(libraries.apply_event(&name(), FollowEvent::Delete(map(4, &other))));
    }

    #[test]
    fn one_that_does_not_exist_is_known_not_to_when_the_list_is_through() {
        let mut libraries = followed();
        assert!(!libraries.apply_event(&name(), FollowEvent::Init));
        assert!(libraries.apply_event(&name(), FollowEvent::InitDone));
        assert!(libraries.is_read(&name()));
        let expected = "ConfigMap argocd/argocd-cm (not found) has no script for Shard of example.com/v1: \
                        no resource.customizations.health.example.com_Shard, no wildcard";
        assert_eq!(says(&libraries), expected);
        assert!(!libraries.apply_event(&name(), FollowEvent::Init));
        assert!(!libraries.apply_event(&name(), FollowEvent::InitDone), "still not there");
    }

    fn list(libraries: &mut ScriptLibraries, maps: impl IntoIterator<Item = ParentObject>) -> bool {
        libraries.apply_event(&name(), FollowEvent::Init);
        for map in maps {
            libraries.apply_event(&name(), FollowEvent::InitApply(map));
        }
        libraries.apply_event(&name(), FollowEvent::InitDone)
    }

    #[test]
    fn scripts_of_a_map_that_is_gone_or_cannot_be_read_stay_in_force_until_it_is_mended() {
        let script = |script: &str| json!({ "resource.customizations.health.example.com_Shard": script });
        let mut libraries = followed();
        assert!(list(&mut libraries, [map(1, &script("return { status = 'Healthy', message = 'one' }"))]));
        let before = says(&libraries);
        assert_eq!(libraries.state(&name()), LibraryState::Current);
        assert!(list(&mut libraries, []), "a deletion that no watch brought is seen by the next list");
        assert_eq!(libraries.state(&name()), LibraryState::Outdated("not found".to_owned()));
        assert_eq!(says(&libraries), before);
        assert!(!list(&mut libraries, []), "still not there");
        assert!(
            libraries.apply_event(
                &name(),
                FollowEvent::Apply(map(2, &json!({ "resource.customizations": "a: [" })))
            )
        );
        assert_eq!(says(&libraries), before);
        assert!(libraries.apply_event(
            &name(),
            FollowEvent::Apply(map(3, &script("return { status = 'Degraded', message = 'two' }")))
        ));
        assert_eq!(libraries.state(&name()), LibraryState::Current);
        assert_ne!(says(&libraries), before);
    }

    #[test]
    fn a_list_that_breaks_off_takes_no_scripts_away() {
        let mut libraries = followed();
        let data = json!({ "resource.customizations.health.example.com_Shard": "return nil" });
        list(&mut libraries, [map(1, &data)]);
        libraries.apply_event(&name(), FollowEvent::Init);
        libraries.apply_event(&name(), FollowEvent::Init);
        assert_eq!(libraries.state(&name()), LibraryState::Current);
    }

    #[test]
    fn a_block_that_cannot_be_read_says_why() {
        let mut libraries = followed();
        list(&mut libraries, [map(1, &json!({ "resource.customizations": "a: [" }))]);
        assert!(
            says(&libraries)
                .starts_with("ConfigMap argocd/argocd-cm (failed to read resource.customizations"),
            "{}",
            says(&libraries)
        );
    }
}
