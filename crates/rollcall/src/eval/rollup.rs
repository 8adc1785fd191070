//! Applies policies to manifests: finds parents and their children and evaluates the parents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use policy::offline::roll_up;
use policy::{CompiledPolicy, FoundPolicy, PolicySettings, read_file};
use readiness::Time;
use rollcall_core::TreeNode;
use serde_json::value::RawValue;
use watcher::ParentObject;
use watcher::wire::{ChildObject, WireMeta};

/// Reads the policies of these files; all must be valid.
pub(crate) fn read_policies(
    files: &[PathBuf],
    stuck_after: Duration,
) -> anyhow::Result<Vec<(FoundPolicy, CompiledPolicy)>> {
    let settings = PolicySettings::with_stuck_after(stuck_after);
    let mut all = Vec::new();
    for file in files {
        for found in read_file(file)? {
            match found.compile_spec(&settings) {
                Ok(compiled) => all.push((found, compiled)),
                Err(why) => bail!("{}: policy {}: {why}", file.display(), found.name),
            }
        }
    }
    if all.is_empty() {
        bail!(
            "no ReadinessPolicy in {}",
            files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(all)
}

/// All objects that were read, to be aggregated at the end.
#[derive(Debug, Default)]
pub(super) struct ManifestRollup {
    objects: Vec<ParentObject>,
}

impl ManifestRollup {
    pub(super) fn add_object(&mut self, child: ChildObject, json: &str) {
        if let Ok(text) = RawValue::from_string(json.to_owned()) {
            self.objects.push(ParentObject { child, text });
        }
    }

    pub(super) fn roll_up(mut self, policies: &[(String, CompiledPolicy)], now: Time) -> Vec<TreeNode> {
        self.assign_uids();
        roll_up(policies, &self.objects.iter().collect::<Vec<_>>(), &BTreeSet::new(), now)
    }

    /// Assigns uids to manifests that were never in a cluster, and to the ownerReferences that name them.
    fn assign_uids(&mut self) {
        let mut named = BTreeMap::new();
        let mut known = BTreeSet::new();
        for object in &mut self.objects {
            let meta = &mut object.child.meta;
            if meta.uid.is_empty() {
                meta.uid = synthetic_uid(&meta.api_version, &meta.kind, &meta.namespace, &meta.name).into();
                named.insert(
                    identity_key(&meta.api_version, &meta.kind, &meta.namespace, &meta.name),
                    meta.uid.clone(),
                );
            }
            known.insert(meta.uid.clone());
        }
        for object in &mut self.objects {
            let WireMeta { owners, namespace, .. } = &mut object.child.meta;
            for owner in owners.iter_mut().filter(|owner| !known.contains(&owner.uid)) {
                let named = |namespace: &str| {
                    named.get(&identity_key(&owner.api_version, &owner.kind, namespace, &owner.name))
                };
                if let Some(uid) = named(namespace).or_else(|| named("")) {
                    owner.uid = uid.clone();
                }
            }
        }
    }
}

/// Returns the identity of an object, which excludes the API version.
fn identity_key(api_version: &str, kind: &str, namespace: &str, name: &str) -> [String; 4] {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    [group, kind, namespace, name].map(str::to_owned)
}

fn synthetic_uid(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    identity_key(api_version, kind, namespace, name).join("/")
}
