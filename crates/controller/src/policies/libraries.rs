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
use watcher::{ApiKind, Cause, Event, FollowOptions, Parent, Trouble, follow};

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
    scripts: Arc<Library>,
    source: Arc<str>,
    /// What the scripts were read from; or in one word, why there are none.
    data: Result<BTreeMap<String, String>, String>,
    /// It was read, or is known not to be there.
    read: bool,
    /// The list under way has it.
    listed: bool,
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
                self.known.insert(name.clone(), Known::unread(name));
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
        let held = self.known.get_mut(name);
        let known = match event {
            Event::InitApply(object) | Event::Apply(object) => read(name, &object),
            Event::InitDone if held.as_ref().is_some_and(|held| held.listed) => return false,
            Event::Delete(_) | Event::InitDone => Known::none(name, "not found"),
            Event::Init => {
                if let Some(held) = held {
                    held.listed = false;
                }
                return false;
            }
            Event::Trouble(trouble) => {
                let Trouble { cause, detail } = trouble;
                warn!(config_map = %name, cause = cause.label(), detail, "a library of scripts");
                // What is known stays; what was never known will not come by waiting.
                if cause != Cause::Forbidden || held.as_ref().is_some_and(|held| held.read) {
                    return false;
                }
                Known::none(name, "not permitted to read it")
            }
            Event::Alive => return false,
        };
        // What else a ConfigMap holds, and who touched it, changes no rule.
        if let Some(held) = held.filter(|held| held.read && held.data == known.data) {
            held.listed = true;
            return false;
        }
        known.log(name);
        self.known.insert(name.clone(), known);
        true
    }

    /// Is it known what this library has?
    pub(super) fn is_read(&self, name: &ConfigMapName) -> bool {
        self.known.get(name).is_some_and(|known| known.read)
    }

    /// The rule that a library is, and what it was made from.
    pub(super) fn rule(&self, name: &ConfigMapName) -> (Arc<Rule>, Arc<str>) {
        let none = || Known::unread(name);
        let made = |known: &Known| (Arc::clone(&known.rule), Arc::clone(&known.source));
        self.known.get(name).map_or_else(|| made(&none()), made)
    }
}

impl Known {
    fn new(name: &ConfigMapName, data: Result<BTreeMap<String, String>, String>, version: &str) -> Known {
        let library = data.and_then(|data| match Library::from_config_map(&data) {
            Ok(library) => Ok((library, data)),
            Err(error) => Err(error.to_string()),
        });
        let (library, data) = match library {
            Ok((library, data)) => (library, Ok(data)),
            Err(why) => (Library::default(), Err(why)),
        };
        let words = data.as_ref().err().map_or_else(String::new, |why| format!(" ({why})"));
        let (words, scripts) = (format!("ConfigMap {name}{words}"), Arc::new(library));
        let spec = Spec::Library { name: &words, scripts: Arc::clone(&scripts) };
        let rule = Rule::compile(&spec).expect("invariant: a library is a rule, whatever is in it");
        let source = format!("library {name} {version}").into();
        Known { rule: Arc::new(rule), scripts, source, data, read: true, listed: true }
    }

    fn log(&self, name: &ConfigMapName) {
        if let Err(why) = &self.data {
            warn!(config_map = %name, why, "no library of scripts: what it judges is Unknown");
            return;
        }
        for broken in self.scripts.broken() {
            warn!(config_map = %name, %broken, "a script cannot be run: its kind is Unknown");
        }
        info!(config_map = %name, scripts = self.scripts.len(), "a library of scripts");
    }

    /// No scripts, for this reason.
    fn none(name: &ConfigMapName, why: &str) -> Known {
        Known::new(name, Err(why.to_owned()), why)
    }

    fn unread(name: &ConfigMapName) -> Known {
        Known { read: false, listed: false, ..Known::none(name, "not read yet") }
    }
}

fn read(name: &ConfigMapName, object: &Parent) -> Known {
    let parsed = serde_json::from_str::<ConfigMap>(object.text.get()).map_err(|error| error.to_string());
    let rules = parsed.map(|config| {
        let data = config.data.unwrap_or_default().into_iter();
        data.filter(|(key, _)| key.starts_with("resource.customizations")).collect()
    });
    Known::new(name, rules, &object.child.meta.resource_version.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn name() -> ConfigMapName {
        ConfigMapName { namespace: "argocd".to_owned(), name: "argocd-cm".to_owned() }
    }

    fn followed() -> Libraries {
        Libraries { known: [(name(), Known::unread(&name()))].into(), ..Libraries::default() }
    }

    fn map(version: u32, data: &Value) -> Parent {
        let map = json!({ "metadata": { "name": "argocd-cm", "uid": "u", "resourceVersion": version.to_string() }, "data": data });
        serde_json::from_value(map).expect("a ConfigMap")
    }

    fn says(libraries: &Libraries) -> String {
        let text = r#"{"apiVersion":"example.com/v1","kind":"Shard"}"#;
        let (rule, _) = libraries.rule(&name());
        rule.judge(rules::Object::Text(text), readiness::Time::default())
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
        assert!(libraries.take(&name(), Event::InitApply(map(1, &data))));
        assert!(!libraries.take(&name(), Event::InitDone));
        let mut other = data.clone();
        other["url"] = json!("b");
        assert!(!libraries.take(&name(), Event::Apply(map(2, &other))));
        other["resource.customizations.health.example.com_Shard"] = json!("return {}");
        assert!(libraries.take(&name(), Event::Apply(map(3, &other))));
        assert!(libraries.take(&name(), Event::Delete(map(4, &other))));
    }

    #[test]
    fn one_that_does_not_exist_is_known_not_to_when_the_list_is_through() {
        let mut libraries = followed();
        assert!(!libraries.take(&name(), Event::Init));
        assert!(libraries.take(&name(), Event::InitDone));
        assert!(libraries.is_read(&name()));
        let expected = "ConfigMap argocd/argocd-cm (not found) has no script for Shard of example.com/v1: \
                        no resource.customizations.health.example.com_Shard, no wildcard";
        assert_eq!(says(&libraries), expected);
        assert!(!libraries.take(&name(), Event::Init));
        assert!(!libraries.take(&name(), Event::InitDone), "still not there");
    }

    #[test]
    fn a_deletion_that_no_watch_brought_is_seen_by_the_next_list() {
        let mut libraries = followed();
        libraries.take(&name(), Event::InitApply(map(1, &json!({}))));
        libraries.take(&name(), Event::InitDone);
        libraries.take(&name(), Event::Init);
        assert!(libraries.take(&name(), Event::InitDone));
        assert!(says(&libraries).contains("not found"));
    }

    #[test]
    fn a_block_that_cannot_be_read_says_why() {
        let mut libraries = followed();
        libraries.take(&name(), Event::InitApply(map(1, &json!({ "resource.customizations": "a: [" }))));
        assert!(
            says(&libraries)
                .starts_with("ConfigMap argocd/argocd-cm (failed to read resource.customizations"),
            "{}",
            says(&libraries)
        );
    }
}
