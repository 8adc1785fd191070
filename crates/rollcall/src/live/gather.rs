//! Everything that policies are about, read once, with the user's own rights.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use api::ReadinessPolicySpec;
use api::policy::ParentSpec;
use controller::core::TreeNode;
use controller::offline::roll_up;
use controller::policies::{Compiled, Found, compile, read_file};
use readiness::Time;
use watcher::{Cause, LookError, Parent, look_all, resolve};

use super::ScopeArgs;
use super::target::KindName;

/// As `rollcall run` has it where nobody says otherwise.
const STUCK_AFTER: Duration = Duration::from_mins(10);

/// A cluster, as far as some policies are about it.
pub(super) struct Cluster {
    client: kube::Client,
    namespace: Option<String>,
    policies: Vec<(String, Compiled)>,
    /// What could not be read, and why: said once.
    pub(super) unread: BTreeMap<String, String>,
}

impl Cluster {
    /// With the policies of the cluster or of files; a kind that no policy has for a parent gets one that looks for common
    /// workloads that it owns.
    pub(super) async fn new(
        client: kube::Client,
        scope: &ScopeArgs,
        default_namespace: &str,
        kinds: &[KindName],
    ) -> anyhow::Result<Cluster> {
        let mut unread = BTreeMap::new();
        let found = if scope.files.is_empty() {
            controller::release::in_cluster(&client).await.unwrap_or_else(|error| {
                unread.insert("ReadinessPolicy.rollcall.dev".to_owned(), format!("{error:#}"));
                Vec::new()
            })
        } else {
            let mut found = Vec::new();
            for file in &scope.files {
                found.extend(read_file(file)?);
            }
            found
        };
        let mut policies: Vec<_> = found.iter().filter_map(|found| accepted(found, &mut unread)).collect();
        for kind in kinds {
            let known = |(_, policy): &(String, Compiled)| {
                policy.parent.group == kind.group && policy.parent.kind == kind.kind
            };
            if !policies.iter().any(known) {
                policies.push(common(kind)?);
            }
        }
        if policies.is_empty() {
            bail!(
                "no ReadinessPolicy in the cluster: give one by -f FILE, or name a kind, as in `rollcall tree database/orders`"
            );
        }
        let own = scope.namespace.clone().unwrap_or_else(|| default_namespace.to_owned());
        let namespace = (!scope.all_namespaces).then_some(own);
        Ok(Cluster { client, namespace, policies, unread })
    }

    /// Reads everything anew and rolls it up.
    pub(super) async fn trees(&mut self, now: Time) -> Vec<TreeNode> {
        let mut kinds = std::collections::BTreeSet::new();
        for (_, policy) in &self.policies {
            kinds.insert((
                policy.parent.group.clone(),
                policy.parent.version.clone(),
                policy.parent.kind.clone(),
            ));
            for group in &policy.groups {
                kinds.insert((group.kind.group.clone(), group.kind.version.clone(), group.kind.kind.clone()));
            }
        }
        let mut objects = Vec::new();
        for (group, version, kind) in kinds {
            match self.list(&group, version.as_deref(), &kind).await {
                Ok(listed) => objects.extend(listed),
                Err(error) => {
                    let why = match error.cause {
                        Cause::Forbidden => "you may not list it".to_owned(),
                        _ => error.to_string(),
                    };
                    self.unread.insert(label(&group, &kind), why);
                }
            }
        }
        roll_up(&self.policies, &objects.iter().collect::<Vec<_>>(), now)
    }

    async fn list(&self, group: &str, version: Option<&str>, kind: &str) -> Result<Vec<Parent>, LookError> {
        let Some(api) = resolve(&self.client, group, version, kind).await? else { return Ok(Vec::new()) };
        let namespace = self.namespace.as_deref().filter(|_| api.namespaced);
        let listed = look_all::<Parent>(&self.client, &api, namespace, None).await?;
        Ok(listed.into_iter().map(|object| object.typed(&api.api_version(), &api.kind)).collect())
    }
}

fn label(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

fn accepted(found: &Found, unread: &mut BTreeMap<String, String>) -> Option<(String, Compiled)> {
    let refused = |why| _ = unread.insert(format!("policy {}", found.name), why);
    found.compile(STUCK_AFTER).map_err(refused).ok().map(|compiled| (found.name.clone(), compiled))
}

/// What stands for a policy where there is none: common workloads that the parent owns.
fn common(kind: &KindName) -> anyhow::Result<(String, Compiled)> {
    let spec: ReadinessPolicySpec = serde_json::from_value(serde_json::json!({
        "parent": ParentSpec { group: kind.group.clone(), kind: kind.kind.clone(), ..ParentSpec::default() },
    }))?;
    match compile(&spec, STUCK_AFTER) {
        Ok(compiled) => Ok(("(none)".to_owned(), compiled)),
        Err(problems) => bail!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}
