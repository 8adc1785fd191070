//! Scripts in Argo CD's ConfigMap `argocd-cm`: one key a kind, and the older block of YAML that allows wildcards.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One kind's entry, whichever form it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "health.lua", default)]
    pub(super) script: Option<String>,
    #[serde(rename = "health.lua.useOpenLibs", default)]
    pub(super) open: Option<bool>,
}

/// Why Argo CD would not take this ConfigMap, and neither do we: it refuses it as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Neither `<group>_<Kind>` nor `<Kind>`.
    #[error("the key {0} does not end in <group>_<Kind> or <Kind>")]
    Key(String),
    /// A third part of the key that is not known.
    #[error("the key {key} has the unknown type {kind}")]
    Kind {
        /// The key.
        key: String,
        /// Its type.
        kind: String,
    },
    /// `useOpenLibs` is not a boolean.
    #[error("the value of {0} is not a boolean")]
    Boolean(String),
    /// The block is no map of kinds.
    #[error("failed to read resource.customizations: {0}")]
    Block(String),
}

const BLOCK: &str = "resource.customizations";

/// The entries by `group/Kind`, or `Kind` where there is no group.
pub(super) fn entries(data: &BTreeMap<String, String>) -> Result<BTreeMap<String, Entry>, ConfigError> {
    let mut all = match data.get(BLOCK) {
        Some(block) if !block.trim().is_empty() => {
            serde_norway::from_str(block).map_err(|error| ConfigError::Block(error.to_string()))?
        }
        _ => BTreeMap::<String, Entry>::new(),
    };
    for (key, value) in data.iter().filter(|(key, _)| key.starts_with(BLOCK)) {
        let parts: Vec<_> = key.splitn(4, '.').collect();
        let [_, _, kind, target] = parts.as_slice() else { continue };
        let entry = all.entry(override_key(key, target)?).or_default();
        match *kind {
            "health" => entry.script = Some(value.clone()),
            "useOpenLibs" => {
                entry.open = Some(boolean(value).ok_or_else(|| ConfigError::Boolean(key.clone()))?);
            }
            "actions" | "ignoreDifferences" | "ignoreResourceUpdates" | "knownTypeFields" => {}
            other => return Err(ConfigError::Kind { key: key.clone(), kind: other.to_owned() }),
        }
    }
    Ok(all)
}

fn override_key(key: &str, target: &str) -> Result<String, ConfigError> {
    match target.split('_').collect::<Vec<_>>().as_slice() {
        ["all"] => Ok("*/*".to_owned()),
        [""] => Err(ConfigError::Key(key.to_owned())),
        [kind] => Ok((*kind).to_owned()),
        [group, kind] => Ok(format!("{group}/{kind}")),
        _ => Err(ConfigError::Key(key.to_owned())),
    }
}

/// What Go takes for a boolean.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
