//! Where health scripts come from: a directory in Argo CD's layout, a file with `argocd-cm`, or the live ConfigMap.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use controller::args::ClusterArgs;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use rules::lua::Library;
use serde_json::Value;

use super::input::{self, Found};
use super::judge::decode;

/// Reads all of them; of two that know a kind, the first goes before the second.
pub(super) fn load(sources: &[String], cluster: &ClusterArgs) -> anyhow::Result<Option<Library>> {
    let mut libraries = Vec::new();
    for source in sources {
        libraries.push(one(source, cluster)?);
    }
    let all = libraries.into_iter().rev().reduce(|below, above| above.over(below));
    for broken in all.iter().flat_map(Library::broken) {
        eprintln!("rollcall: {broken}");
    }
    Ok(all)
}

fn one(source: &str, cluster: &ClusterArgs) -> anyhow::Result<Library> {
    let path = Path::new(source);
    if path.is_dir() {
        let library = Library::from_directory(path)?;
        if library.is_empty() {
            bail!("{source}: no <group>/<Kind>/health.lua below this directory");
        }
        return Ok(library);
    }
    let data = if path.is_file() { file(path)? } else { live(source, cluster)? };
    Library::from_config_map(&data).with_context(|| format!("failed to use the ConfigMap of {source}"))
}

/// `data` of the first ConfigMap in a file that could be `argocd-cm`.
fn file(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut maps: Vec<(bool, BTreeMap<String, String>)> = Vec::new();
    let mut wrong = None;
    input::read(path, &Cell::new(0), &mut |found| match found {
        Found::Object { child, json, .. } if &*child.meta.kind == "ConfigMap" => {
            let data = decode(json.get()).map(|object| texts(&object["data"])).unwrap_or_default();
            maps.push((&*child.meta.name == "argocd-cm", data));
        }
        Found::Wrong { place, what, .. } => wrong = wrong.take().or(Some(format!("{place}: {what}"))),
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

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The ConfigMap in the cluster, by `namespace/name`.
fn live(source: &str, cluster: &ClusterArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let Some((namespace, name)) = source.split_once('/').filter(|(_, name)| !name.contains('/')) else {
        bail!("{source}: no such directory or file, and not <namespace>/<name> of a ConfigMap either");
    };
    let gvk = GroupVersionKind::gvk("", "v1", "ConfigMap");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let object = runtime.block_on(async {
        let client = kube::Client::try_from(cluster.config().await?)?;
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&gvk));
        api.get(name).await.with_context(|| format!("failed to read ConfigMap {source}"))
    })?;
    Ok(texts(&object.data["data"]))
}
