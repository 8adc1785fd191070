//! Libraries of health scripts, as the ConfigMaps of a cluster hold them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use inspect::client::InspectClient;
use policy::{
    ConfigMapName, FoundPolicy, GroupRule, LibraryRules, LibraryState, PolicySettings, compile_library_rule,
};
use rules::CompiledRule;
use rules::lua::ScriptLibrary;

use crate::limits::STUCK_AFTER;

/// Why nothing is known of a ConfigMap.
const NOT_READ: &str = "not found, or you may not read it";

/// The libraries that policies name; the error of one that cannot be used, and nothing of one that could not be read: the service
/// may have read it.
#[derive(Default)]
pub(super) struct ClusterLibraries(BTreeMap<String, Option<Result<Arc<ScriptLibrary>, String>>>);

impl ClusterLibraries {
    /// Reads every library that one of these policies names, as it is now or as it was last accepted.
    pub(super) async fn read(
        client: &kube::Client,
        policies: impl Iterator<Item = &FoundPolicy>,
    ) -> ClusterLibraries {
        let settings = PolicySettings::with_stuck_after(STUCK_AFTER);
        let mut names = BTreeMap::new();
        for policy in policies {
            let accepted = policy.status.accepted.as_ref().and_then(|kept| kept.spec.as_deref());
            let accepted = accepted.and_then(|text| serde_json::from_str(text).ok());
            let specs = [policy.spec.clone().ok(), accepted].into_iter().flatten();
            for spec in specs {
                let Ok(compiled) = policy::compile_with(&spec, &settings) else { continue };
                for group in &compiled.groups {
                    if let Some(GroupRule::Library(name)) = &group.rule {
                        names.insert(name.to_string(), name.clone());
                    }
                }
            }
        }
        let mut ask = InspectClient::new(client.clone());
        let mut libraries = ClusterLibraries::default();
        for (label, name) in names {
            let path = format!("/api/v1/namespaces/{}/configmaps/{}", name.namespace, name.name);
            let map = ask.get(&format!("ConfigMap {label}"), &path).await;
            libraries.add_map(label, map.as_ref());
        }
        libraries
    }

    /// Adds a ConfigMap, by namespace and name, as it was read; `None` if it was not.
    pub(super) fn add_map(&mut self, label: String, map: Option<&serde_json::Value>) {
        self.0.insert(label, map.map(read_scripts));
    }

    /// What could not be read, with the error.
    pub(super) fn unread(&self) -> impl Iterator<Item = (String, String)> {
        let failed = self.0.iter().filter_map(|(name, read)| Some((name, why_unusable(read.as_ref())?)));
        failed.map(|(name, why)| (format!("ConfigMap {name}"), why.to_owned()))
    }
}

fn why_unusable(read: Option<&Result<Arc<ScriptLibrary>, String>>) -> Option<&str> {
    read.map_or(Some(NOT_READ), |read| read.as_ref().err().map(String::as_str))
}

fn read_scripts(map: &serde_json::Value) -> Result<Arc<ScriptLibrary>, String> {
    let data: BTreeMap<String, String> =
        serde_json::from_value(map["data"].clone()).map_err(|_| "it holds no texts".to_owned())?;
    ScriptLibrary::from_config_map(&data).map(Arc::new).map_err(|error| error.to_string())
}

impl LibraryRules for ClusterLibraries {
    fn state(&self, name: &ConfigMapName) -> LibraryState {
        match self.0.get(&name.to_string()) {
            Some(Some(Ok(_))) => LibraryState::Current,
            Some(Some(Err(why))) => LibraryState::Missing(why.clone()),
            Some(None) | None => LibraryState::Unread,
        }
    }

    fn library_rule(&self, name: &ConfigMapName) -> (Arc<CompiledRule>, Arc<str>) {
        match self.0.get(&name.to_string()) {
            Some(Some(Ok(scripts))) => compile_library_rule(name, scripts.clone(), None, "as it is now"),
            other => {
                let why = other.map_or(Some("not read"), |read| why_unusable(read.as_ref()));
                compile_library_rule(name, Arc::default(), why, why.unwrap_or_default())
            }
        }
    }
}
