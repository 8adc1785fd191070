//! Everything that policies are about, read with the user's own rights, and rolled up here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use api::ReadinessPolicySpec;
use api::policy::ParentSpec;
use controller::core::TreeNode;
use controller::inspect::ask::Ask;
use controller::offline::roll_up;
use controller::policies::{Compiled, Found, GroupRule, compile, read_file};
use readiness::{Kind, Limits, Time, assess};
use rules::lua::Library;
use rules::{Rule, Spec};
use watcher::{ApiKind, Cause, LookError, Parent, resolve};

pub(super) use controller::inspect::group;

use super::ScopeArgs;
use super::pick::Index;
use super::target::{KindName, Target};
use crate::text::say;

/// As `rollcall run` has it where nobody says otherwise.
const STUCK_AFTER: Duration = Duration::from_mins(10);
/// Where outcomes of objects that are gone are remembered.
const RECORDS: (&str, &str) = ("rollcall.dev", "ReadinessRecord");
/// So many kinds are listed at a time.
pub(super) const AT_ONCE: usize = 4;

/// A cluster, as far as some policies are about it.
pub(super) struct Cluster {
    pub(super) client: kube::Client,
    pub(super) policies: Vec<(String, Compiled)>,
    /// Only this namespace, and what lives in none.
    namespace: Option<String>,
    /// Kinds without a policy, for which one stands in.
    unruled: BTreeSet<KindName>,
    /// Kinds of Kubernetes' own, which are judged by themselves.
    alone: BTreeSet<KindName>,
    /// What could not be read, and why: said once.
    unread: BTreeMap<String, String>,
    /// Kinds of which nothing is known: group and kind.
    hidden: BTreeSet<(String, String)>,
}

/// A kind to be read, and where.
pub(super) struct Place {
    pub(super) api: ApiKind,
    pub(super) namespace: Option<String>,
    /// Its whole text is read: it may be a parent, or a rule of a policy judges it.
    pub(super) whole: bool,
}

impl Cluster {
    /// With the policies of the cluster or of files; a kind that no policy has for a parent gets one that looks for common
    /// workloads that it owns.
    pub(super) async fn new(
        client: kube::Client,
        scope: &ScopeArgs,
        default_namespace: &str,
        targets: &[Target],
    ) -> anyhow::Result<Cluster> {
        let own = scope.namespace.clone().unwrap_or_else(|| default_namespace.to_owned());
        // What belongs to an object that lives in no namespace may live in any.
        let all = scope.all_namespaces || targets.iter().any(|target| !target.namespaced);
        let mut cluster = Cluster {
            client,
            policies: Vec::new(),
            namespace: (!all).then_some(own),
            unruled: BTreeSet::new(),
            alone: BTreeSet::new(),
            unread: BTreeMap::new(),
            hidden: BTreeSet::new(),
        };
        for found in cluster.found(scope).await? {
            match found.compile(STUCK_AFTER) {
                Ok(compiled) => cluster.policies.push((found.name, compiled)),
                Err(why) => _ = cluster.unread.insert(format!("policy {}", found.name), why),
            }
        }
        cluster.libraries().await;
        for target in targets {
            cluster.know(&target.kind)?;
        }
        if cluster.policies.is_empty() && cluster.alone.is_empty() {
            bail!(
                "no ReadinessPolicy in the cluster: give one by -f FILE, or name a kind, as in `rollcall tree database/orders`"
            );
        }
        Ok(cluster)
    }

    async fn found(&mut self, scope: &ScopeArgs) -> anyhow::Result<Vec<Found>> {
        if scope.files.is_empty() {
            return Ok(controller::release::in_cluster(&self.client).await.unwrap_or_else(|error| {
                self.unread.insert("ReadinessPolicy.rollcall.dev".to_owned(), format!("{error:#}"));
                Vec::new()
            }));
        }
        let mut found = Vec::new();
        for file in &scope.files {
            found.extend(read_file(file)?);
        }
        Ok(found)
    }

    /// Rules that live in ConfigMaps, as they are there now. One that cannot be read judges nothing.
    async fn libraries(&mut self) {
        let mut ask = Ask::new(self.client.clone());
        let groups = self.policies.iter_mut().flat_map(|(_, policy)| &mut policy.groups);
        for group in groups {
            let Some(GroupRule::Library(name)) = &group.rule else { continue };
            let what = format!("ConfigMap {name}");
            let path = format!("/api/v1/namespaces/{}/configmaps/{}", name.namespace, name.name);
            let Some(map) = ask.get(&what, &path).await else {
                self.unread.entry(what).or_insert_with(|| "not found, or you may not read it".to_owned());
                continue;
            };
            match library(&what, &map) {
                Ok(rule) => group.rule = Some(rule),
                Err(why) => _ = self.unread.insert(what, why),
            }
        }
    }

    fn know(&mut self, kind: &KindName) -> anyhow::Result<()> {
        let is = |(_, policy): &(String, Compiled)| {
            policy.parent.group == kind.group && policy.parent.kind == kind.kind
        };
        if self.policies.iter().any(is) || self.alone.contains(kind) {
            return Ok(());
        }
        if matches!(Kind::of(&kind.group, &kind.kind), Kind::Other | Kind::Run) {
            self.policies.push(common(kind)?);
            self.unruled.insert(kind.clone());
        } else {
            self.alone.insert(kind.clone());
        }
        Ok(())
    }

    /// Says once what could not be read.
    pub(super) fn complain(&mut self) {
        for (what, why) in std::mem::take(&mut self.unread) {
            say(&format!("not read: {what}: {why}"));
        }
    }

    /// Nothing is known of this kind.
    pub(super) fn hide(&mut self, api: &ApiKind, why: String) {
        self.unread.insert(api.to_string(), why);
        if (&*api.group, &*api.kind) == RECORDS {
            // Without them nothing is ready that would not be; what is gone counts as missing.
            return;
        }
        self.hidden.insert((api.group.clone(), api.kind.clone()));
    }

    /// This kind is known after all.
    pub(super) fn show(&mut self, api: &ApiKind) {
        self.hidden.remove(&(api.group.clone(), api.kind.clone()));
    }

    /// Every kind that is to be read, with the namespace in which to look.
    pub(super) async fn places(&mut self) -> Vec<Place> {
        let mut kinds: BTreeMap<(String, Option<String>, String), bool> = BTreeMap::new();
        let mut add = |group: &str, version: Option<&String>, kind: &str, everywhere: bool| {
            *kinds.entry((group.to_owned(), version.cloned(), kind.to_owned())).or_default() |= everywhere;
        };
        for (_, policy) in &self.policies {
            let parent = &policy.parent;
            add(&parent.group, parent.version.as_ref(), &parent.kind, false);
            for group in &policy.groups {
                let everywhere = !group.namespaces.is_empty();
                add(&group.kind.group, group.kind.version.as_ref(), &group.kind.kind, everywhere);
            }
            if policy.remembers() {
                // In the namespace of the service, whichever that is.
                add(RECORDS.0, None, RECORDS.1, true);
            }
            if policy.namespace_selector.is_some() {
                add("", None, "Namespace", true);
            }
        }
        for kind in &self.alone {
            add(&kind.group, None, &kind.kind, false);
        }
        let mut places = Vec::new();
        for ((group, version, kind), everywhere) in kinds {
            match resolve(&self.client, &group, version.as_deref(), &kind).await {
                Ok(Some(api)) => {
                    let namespace = self.namespace.clone().filter(|_| api.namespaced && !everywhere);
                    let whole = self.reads_whole(&api);
                    places.push(Place { api, namespace, whole });
                }
                // Not installed: there are none.
                Ok(None) => {}
                Err(error) => {
                    let label = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
                    self.unread.insert(label, error.to_string());
                    self.hidden.insert((group, kind));
                }
            }
        }
        places
    }

    /// Kinds of which nothing is known: group and kind.
    pub(super) fn hidden(&self) -> &BTreeSet<(String, String)> {
        &self.hidden
    }

    /// It is judged by itself.
    pub(super) fn is_alone(&self, api: &ApiKind) -> bool {
        self.alone.iter().any(|kind| kind.group == api.group && kind.kind == api.kind)
    }

    fn reads_whole(&self, api: &ApiKind) -> bool {
        let is = |group: &str, kind: &str| group == api.group && kind == api.kind;
        is(RECORDS.0, RECORDS.1)
            || self.policies.iter().any(|(_, policy)| {
                let judged =
                    policy.groups.iter().any(|g| g.rule.is_some() && is(&g.kind.group, &g.kind.kind));
                judged || is(&policy.parent.group, &policy.parent.kind)
            })
    }

    /// These objects, rolled up by the policies.
    pub(super) fn trees(&self, objects: &[&Parent], now: Time) -> Vec<TreeNode> {
        self.finish(roll_up(&self.policies, objects, &self.hidden, now), objects, now)
    }

    /// What no policy says: objects that own nothing, and kinds that are judged by themselves.
    pub(super) fn finish(&self, mut trees: Vec<TreeNode>, objects: &[&Parent], now: Time) -> Vec<TreeNode> {
        if !self.unruled.is_empty() {
            let index = Index::new(objects);
            for tree in &mut trees {
                let kind = KindName { group: tree.group.clone(), kind: tree.kind.clone() };
                let childless =
                    matches!(&*tree.reason, "ChildrenMissing" | "ChildrenPending" | "OperatorSilent");
                // Without a policy nobody has said that there are to be children.
                if self.unruled.contains(&kind)
                    && tree.children.is_empty()
                    && childless
                    && let Some(object) = index.get(tree)
                {
                    *tree = leaf(object, now);
                }
            }
        }
        let is_alone = |object: &&&Parent| {
            let kind = &*object.child.meta.kind;
            self.alone.iter().any(|alone| *alone.kind == *kind && alone.group == group(object))
        };
        let alone = objects.iter().filter(is_alone);
        trees.extend(alone.map(|object| leaf(object, now)));
        trees
    }
}

/// The scripts of a ConfigMap as a rule.
fn library(what: &str, map: &serde_json::Value) -> Result<GroupRule, String> {
    let data: BTreeMap<String, String> =
        serde_json::from_value(map["data"].clone()).map_err(|_| "it holds no texts".to_owned())?;
    let scripts = Arc::new(Library::from_config_map(&data).map_err(|error| error.to_string())?);
    let rule = Rule::compile(&Spec::Library { name: what, scripts }).map_err(|error| error.to_string())?;
    Ok(GroupRule::Own { rule: Arc::new(rule), source: what.into() })
}

/// Why a kind could not be read, for people.
pub(super) fn told(error: &LookError) -> String {
    match error.cause {
        Cause::Forbidden => "you may not list it".to_owned(),
        _ => error.to_string(),
    }
}

/// An object judged by itself.
fn leaf(object: &Parent, now: Time) -> TreeNode {
    let meta = &object.child.meta;
    let limits = Limits { pending: STUCK_AFTER, terminating: STUCK_AFTER };
    let assessment = assess(Kind::of(group(object), &meta.kind), &object.child.facts, &limits);
    let verdict = assessment.at(now);
    TreeNode {
        group: group(object).to_owned(),
        kind: meta.kind.to_string(),
        namespace: meta.namespace.to_string(),
        name: meta.name.to_string(),
        verdict: verdict.level.word(),
        reason: verdict.reason.token().to_owned(),
        detail: verdict.reason.to_string(),
        since: now.0,
        stalled: verdict.terminal() || verdict.level == readiness::Level::Stuck,
        ..TreeNode::default()
    }
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

#[cfg(test)]
mod tests;
