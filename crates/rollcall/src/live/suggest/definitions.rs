//! What the definitions of kinds say of the status that their objects have.

use std::collections::BTreeMap;

use serde_json::Value;
use watcher::ApiKind;

use super::suggested_policy::PolicySuggestion;
use crate::generate::{drops_conditions, missing_defaults};

/// Reads the definitions of the kinds for which a policy is suggested. What cannot be read is noted.
pub(super) async fn read_definitions(
    client: &kube::Client,
    suggestions: &[PolicySuggestion],
    unread: &mut BTreeMap<String, String>,
) -> Vec<Value> {
    let mut definitions = Vec::new();
    for suggestion in suggestions.iter().filter(|suggestion| suggestion.left_out.is_none()) {
        let name = suggestion.crd_name();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
        match client.request::<Value>(request).await {
            Ok(definition) => definitions.push(definition),
            Err(error) => {
                unread.insert(format!("CustomResourceDefinition {name}"), watcher::error_text(error));
            }
        }
    }
    definitions
}

/// Returns `true` if this is the definition of the kind.
pub(super) fn defines(definition: &Value, api: &ApiKind) -> bool {
    definition["spec"]["group"] == *api.group && definition["spec"]["names"]["kind"] == *api.kind
}

/// This version of a definition, with its place.
fn version_of<'d>(definition: &'d Value, version: &str) -> Option<(usize, &'d Value)> {
    let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten().enumerate();
    versions.find(|(_, known)| known["name"] == *version)
}

/// Returns `true` if `rollcall crd-defaults` has something to add to the definition of a kind.
pub(super) fn lacks_default(definition: &Value, version: &str) -> bool {
    version_of(definition, version).is_some_and(|(at, version)| {
        let lacking = || missing_defaults(version, at).is_ok_and(|lacking| !lacking.is_empty());
        !drops_conditions(version) && lacking()
    })
}

/// What the definition of a kind tells of its status, one sentence each; `says_generation` if some object carries an observed
/// generation of its operator's.
pub(super) fn describe_definition(definition: &Value, version: &str, says_generation: bool) -> Vec<String> {
    let Some((at, version)) = version_of(definition, version) else { return Vec::new() };
    let mut said = Vec::new();
    let fields = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    if !fields["observedGeneration"].is_null() && !says_generation {
        said.push(
            "its definition has status.observedGeneration, which none carries of its operator's: an operator that writes it is waited for"
                .to_owned(),
        );
    }
    if drops_conditions(version) {
        said.push(
            "its definition drops status.conditions, so that nothing can be written there before it declares them"
                .to_owned(),
        );
        return said;
    }
    let default = "the default by which a new object does not look ready at its first read";
    said.push(match missing_defaults(version, at) {
        Ok(lacking) if lacking.is_empty() => format!("its definition has {default}"),
        Ok(_) => format!("its definition lacks {default}: rollcall crd-defaults"),
        Err(why) => {
            let more =
                if why.len() > 1 { format!(", and {} more like it", why.len() - 1) } else { String::new() };
            format!(
                "its definition has no room for {default}: {}{more}",
                why.first().map_or("", String::as_str)
            )
        }
    });
    said
}
