//! `rollcall demo --crowd`: a cluster of fifty parents that live until the demo is ended.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::cluster::DemoCluster;
use super::crowd_fate::{ChildState, ParentFate};
use super::crowd_manifests::{child_manifest, child_status, parent_manifest};
use super::crowd_member::CrowdMember;
use super::fixtures::{BACKUP_FINALIZER, DemoObject, owner_patch};
use super::pace::StoryPace;

/// Interval at which the crowd's children change, and the shortest at any speed.
const CROWD_TICK: Duration = Duration::from_secs(1);
const MIN_CROWD_TICK: Duration = Duration::from_millis(20);

/// The crowd, and what its children look like now.
pub(super) struct LivingCrowd {
    cluster: Arc<DemoCluster>,
    members: Vec<(CrowdMember, ChildState)>,
}

impl LivingCrowd {
    /// Creates the crowd's namespaces, parents and children.
    pub(super) fn create_all(cluster: Arc<DemoCluster>) -> anyhow::Result<LivingCrowd> {
        let all = CrowdMember::list_all();
        let namespaces: BTreeSet<_> = all.iter().map(|member| member.parent_object().namespace).collect();
        for name in namespaces {
            let metadata = json!({ "name": name });
            cluster
                .create_object(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }))?;
        }
        let mut members = Vec::new();
        for member in all {
            let owner = member.shop_object().map(|shop| owner_references(&cluster, shop)).transpose()?;
            create_with_owner(
                &cluster,
                parent_manifest(&member, member.fate != ParentFate::Unhandled),
                owner,
            )?;
            let state = member.fate.child_state(0);
            if state != ChildState::Absent {
                let is_group = member.parent_object().kind == "ReadinessGroup";
                let owner =
                    (!is_group).then(|| owner_references(&cluster, member.parent_object())).transpose()?;
                create_with_owner(&cluster, child_manifest(&member, state), owner)?;
            }
            if member.fate == ParentFate::Leaving {
                hold_and_delete(&cluster, member.parent_object())?;
            }
            members.push((member, state));
        }
        Ok(LivingCrowd { cluster, members })
    }

    /// Lets the children change as their parents' fates say, for ever.
    pub(super) async fn keep_alive(mut self, pace: StoryPace) -> anyhow::Error {
        for second in 1.. {
            tokio::time::sleep(pace.scale_duration(CROWD_TICK).max(MIN_CROWD_TICK)).await;
            if let Err(error) = self.change_children(second) {
                return error;
            }
        }
        anyhow::anyhow!("the crowd has outlived its clock")
    }

    fn change_children(&mut self, second: u64) -> anyhow::Result<()> {
        for (member, state) in &mut self.members {
            let next = member.fate.child_state(second + member.ahead);
            if next == *state {
                continue;
            }
            let child = member.child_object();
            if next == ChildState::Held {
                hold_and_delete(&self.cluster, child)?;
            } else {
                self.cluster.patch_status(child, &child_status(child, next))?;
            }
            *state = next;
        }
        Ok(())
    }
}

/// Deletes an object that a finalizer of somebody else holds.
fn hold_and_delete(cluster: &DemoCluster, object: DemoObject<'_>) -> anyhow::Result<()> {
    cluster.add_finalizer(object, "backup", BACKUP_FINALIZER)?;
    cluster.delete_object(object)
}

fn owner_references(cluster: &DemoCluster, owner: DemoObject<'_>) -> anyhow::Result<Value> {
    Ok(owner_patch(owner, &cluster.object_uid(owner)?)["metadata"]["ownerReferences"].take())
}

fn create_with_owner(cluster: &DemoCluster, mut object: Value, owner: Option<Value>) -> anyhow::Result<()> {
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = owner;
    }
    cluster.create_object(object)
}

/// A kubeconfig of the demo's cluster in the folder of temporary files; removed when dropped.
pub(super) struct DemoKubeconfig(PathBuf);

impl DemoKubeconfig {
    /// Writes the file.
    pub(super) fn write_file(server: &str) -> anyhow::Result<DemoKubeconfig> {
        let path = std::env::temp_dir().join(format!("rollcall-demo-{}.kubeconfig", std::process::id()));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "demo",
            "clusters": [{ "name": "demo", "cluster": { "server": server } }],
            "users": [{ "name": "demo", "user": {} }],
            "contexts": [{ "name": "demo", "context": { "cluster": "demo", "user": "demo" } }],
        });
        std::fs::write(&path, config.to_string())
            .with_context(|| format!("failed to write {}", path.display()))?;
        Ok(DemoKubeconfig(path))
    }

    /// Returns what to do with the crowd, a line each.
    pub(super) fn hints(&self, listening: &str, url: &str) -> String {
        format!(
            "{listening}\n\
             metrics: {url}/metrics\n\
             cluster: export KUBECONFIG={}\n\
             \x20        kubectl get shops,databases,caches,pipelines,readinessgroups -A\n\
             \x20        rollcall tree -A\n\
             \x20        rollcall explain -n europe shop/books\n\
             50 parents live until Ctrl-C.",
            self.0.display()
        )
    }
}

impl Drop for DemoKubeconfig {
    fn drop(&mut self) {
        // Where it cannot be removed, the folder's owner removes it in time.
        std::fs::remove_file(&self.0).ok();
    }
}
