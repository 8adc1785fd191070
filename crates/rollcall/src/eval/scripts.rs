//! Sources of health scripts: a directory in Argo CD's layout, a file with `argocd-cm`, or the live ConfigMap.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use controller::args::ClusterArgs;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use policy::is_object_name;
use rules::lua::ScriptLibrary;
use serde_json::Value;

use super::input::{self, ManifestItem};
use super::judge::decode_json;
use crate::text::print_error_line;

/// Loads all sources; for a kind in several of them, the first wins.
pub(super) fn load_libraries(
    sources: &[String],
    cluster: &ClusterArgs,
) -> anyhow::Result<Option<ScriptLibrary>> {
    let mut libraries = Vec::new();
    for source in sources {
        libraries.push(load_library(source, cluster)?);
    }
    let all = libraries.into_iter().rev().reduce(|below, above| above.layered_over(below));
    for broken in all.iter().flat_map(ScriptLibrary::broken_scripts) {
        print_error_line(&format!("{broken}"));
    }
    Ok(all)
}

fn load_library(source: &str, cluster: &ClusterArgs) -> anyhow::Result<ScriptLibrary> {
    let path = Path::new(source);
    if path.is_dir() {
        let library = ScriptLibrary::from_directory(path)?;
        if library.is_empty() {
            bail!("{source}: no <group>/<Kind>/health.lua below this directory");
        }
        return Ok(library);
    }
    let data =
        if path.is_file() { read_config_map_file(path)? } else { read_live_config_map(source, cluster)? };
    ScriptLibrary::from_config_map(&data).with_context(|| format!("failed to use the ConfigMap of {source}"))
}

/// Returns `data` of the first ConfigMap in a file that could be `argocd-cm`.
fn read_config_map_file(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut maps: Vec<(bool, BTreeMap<String, String>)> = Vec::new();
    let mut wrong = None;
    input::scan_file(path, &Cell::new(0), &mut |found| match found {
        ManifestItem::Object { child, json, .. } if &*child.meta.kind == "ConfigMap" => {
            let data =
                decode_json(json.get()).map(|object| text_entries(&object["data"])).unwrap_or_default();
            maps.push((&*child.meta.name == "argocd-cm", data));
        }
        ManifestItem::Unreadable { place, what, .. } => {
            wrong = wrong.take().or(Some(format!("{place}: {what}")));
        }
        _ => {}
    })
    .with_context(|| format!("failed to read {}", path.display()))?;
    maps.sort_by_key(|(named, _)| !named);
    match (maps.into_iter().next(), wrong) {
        (Some((_, data)), _) => Ok(data),
        (None, Some(wrong)) => bail!("{wrong}"),
        (None, None) => bail!("{}: no ConfigMap in this file", path.display()),
    }
}

fn text_entries(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Returns `data` of the ConfigMap `namespace/name` in the cluster.
fn read_live_config_map(source: &str, cluster: &ClusterArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let is_name = |(namespace, name): &(&str, &str)| is_object_name(namespace) && is_object_name(name);
    let Some((namespace, name)) = source.split_once('/').filter(is_name) else {
        bail!(
            "there is no directory or file {source}; --rules takes NAMESPACE/NAME of a ConfigMap in the cluster, too"
        );
    };
    let gvk = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let object = runtime.block_on(async {
        let client = kube::Client::try_from(cluster.client_config().await?)?;
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&gvk));
        api.get(name).await.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 404 => {
                anyhow!("there is neither a directory or file {source} nor such a ConfigMap in the cluster")
            }
            kube::Error::Api(status) => anyhow!("failed to read ConfigMap {source}: {}", status.message),
            error => anyhow!(error).context(format!("failed to read ConfigMap {source}")),
        })
    })?;
    Ok(text_entries(&object.data["data"]))
}
