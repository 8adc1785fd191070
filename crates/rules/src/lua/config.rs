//! Scripts in Argo CD's ConfigMap `argocd-cm`: one key per kind, and the older YAML block that allows wildcards.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The entry of one kind, in either form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct CustomizationEntry {
    #[serde(rename = "health.lua", default)]
    pub(super) script: Option<String>,
    #[serde(rename = "health.lua.useOpenLibs", default)]
    pub(super) open: Option<bool>,
}

/// Error for a ConfigMap that Argo CD would refuse; like Argo CD, we refuse it as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgocdConfigError {
    /// A key that is neither `<group>_<Kind>` nor `<Kind>`.
    #[error("the key {0} does not end in <group>_<Kind> or <Kind>")]
    Key(String),
    /// A key with an unknown third part.
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
    /// The block is not a map of kinds.
    #[error("failed to read resource.customizations: {0}")]
    Block(String),
}

const CUSTOMIZATIONS_KEY: &str = "resource.customizations";

/// Maximum depth of the block. Argo CD's own are three levels deep.
const MAX_BLOCK_DEPTH: usize = 1000;

/// Returns the entries by `group/Kind`, or `Kind` for the core group.
pub(super) fn read_customizations(
    data: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, CustomizationEntry>, ArgocdConfigError> {
    let mut all = match data.get(CUSTOMIZATIONS_KEY) {
        Some(block) => read_block(block)?,
        None => BTreeMap::new(),
    };
    for (key, value) in data.iter().filter(|(key, _)| key.starts_with(CUSTOMIZATIONS_KEY)) {
        let parts: Vec<_> = key.splitn(4, '.').collect();
        let [_, _, kind, target] = parts.as_slice() else { continue };
        let entry = all.entry(override_key(key, target)?).or_default();
        match *kind {
            "health" => entry.script = Some(value.clone()),
            "useOpenLibs" => {
                entry.open =
                    Some(parse_go_bool(value).ok_or_else(|| ArgocdConfigError::Boolean(key.clone()))?);
            }
            "actions" | "ignoreDifferences" | "ignoreResourceUpdates" | "knownTypeFields" => {}
            other => return Err(ArgocdConfigError::Kind { key: key.clone(), kind: other.to_owned() }),
        }
    }
    Ok(all)
}

/// Reads the YAML block. A duplicate key is refused: it may well be that the script which was meant is the other one.
fn read_block(block: &str) -> Result<BTreeMap<String, CustomizationEntry>, ArgocdConfigError> {
    let refused = ArgocdConfigError::Block;
    let documents = rollcall_yaml::read_all_to_depth(block.as_bytes(), MAX_BLOCK_DEPTH)
        .map_err(|error| refused(error.to_string()))?;
    let [document] = documents.as_slice() else {
        let several = || Err(refused("more than one document".to_owned()));
        return if documents.is_empty() { Ok(BTreeMap::new()) } else { several() };
    };
    if let Some(duplicate) = document.duplicate_keys.first() {
        return Err(refused(format!("line {}: {duplicate}", duplicate.line)));
    }
    let entries: Option<_> =
        serde_json::from_str(&document.json).map_err(|error| refused(error.to_string()))?;
    Ok(entries.unwrap_or_default())
}

fn override_key(key: &str, target: &str) -> Result<String, ArgocdConfigError> {
    match target.split('_').collect::<Vec<_>>().as_slice() {
        ["all"] => Ok("*/*".to_owned()),
        [""] => Err(ArgocdConfigError::Key(key.to_owned())),
        [kind] => Ok((*kind).to_owned()),
        [group, kind] => Ok(format!("{group}/{kind}")),
        _ => Err(ArgocdConfigError::Key(key.to_owned())),
    }
}

/// Parses a boolean as Go does.
fn parse_go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
