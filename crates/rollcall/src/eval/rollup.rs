//! Policies over manifests: which parents there are, what belongs to them, and what they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use controller::core::TreeNode;
use controller::offline::roll_up;
use controller::policies::{Compiled, read_file};
use readiness::Time;
use serde_json::value::RawValue;
use watcher::Parent;
use watcher::wire::{Child, Meta};

/// Reads the policies of these files, each of which must be valid.
pub(crate) fn policies(files: &[PathBuf], stuck_after: Duration) -> anyhow::Result<Vec<(String, Compiled)>> {
    let mut all = Vec::new();
    for file in files {
        for found in read_file(file)? {
            match found.compile(stuck_after) {
                Ok(compiled) => all.push((found.name, compiled)),
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

/// Everything that was read, to be rolled up at the end.
#[derive(Debug, Default)]
pub(super) struct World {
    objects: Vec<Parent>,
}

impl World {
    pub(super) fn add(&mut self, child: Child, json: &str) {
        if let Ok(text) = RawValue::from_string(json.to_owned()) {
            self.objects.push(Parent { child, text });
        }
    }

    pub(super) fn roll_up(mut self, policies: &[(String, Compiled)], now: Time) -> Vec<TreeNode> {
        self.identify();
        roll_up(policies, &self.objects.iter().collect::<Vec<_>>(), &BTreeSet::new(), now)
    }

    /// Gives an identity to what was never in a cluster, and to the owners that name it.
    fn identify(&mut self) {
        let mut named = BTreeMap::new();
        let mut known = BTreeSet::new();
        for object in &mut self.objects {
            let meta = &mut object.child.meta;
            if meta.uid.is_empty() {
                meta.uid = uid(&meta.api_version, &meta.kind, &meta.namespace, &meta.name).into();
                named.insert(
                    key(&meta.api_version, &meta.kind, &meta.namespace, &meta.name),
                    meta.uid.clone(),
                );
            }
            known.insert(meta.uid.clone());
        }
        for object in &mut self.objects {
            let Meta { owners, namespace, .. } = &mut object.child.meta;
            for owner in owners.iter_mut().filter(|owner| !known.contains(&owner.uid)) {
                let named = |namespace: &str| {
                    named.get(&key(&owner.api_version, &owner.kind, namespace, &owner.name))
                };
                if let Some(uid) = named(namespace).or_else(|| named("")) {
                    owner.uid = uid.clone();
                }
            }
        }
    }
}

/// A version is no part of an identity.
fn key(api_version: &str, kind: &str, namespace: &str, name: &str) -> [String; 4] {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    [group, kind, namespace, name].map(str::to_owned)
}

fn uid(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    key(api_version, kind, namespace, name).join("/")
}
