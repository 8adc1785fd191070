//! Reads everything that policies select, with the user's own rights, and aggregates it in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::bail;
use api::ReadinessPolicySpec;
use api::policy::ParentSpec;
use inspect::client::InspectClient;
use policy::offline::roll_up_since;
use policy::{CompiledPolicy, FoundPolicy, GroupRule, PolicySettings, compile, read_file};
use readiness::rollup::ParentReason;
use readiness::{RuleKind, StuckLimits, Time, assess};
use rollcall_core::{NodeReason, NodeToken, TreeNode};
use rules::lua::ScriptLibrary;
use rules::{CompiledRule, RuleDefinition};
use watcher::plan::AllowedNamespaces;
use watcher::{ApiFailureCause, ApiKind, LiveReadError, ParentObject, resolve_kind};

pub(super) use inspect::api_group;

use super::pick::TreeObjectIndex;
use super::scope_args::ScopeArgs;
use super::target::{KindName, ObjectTarget};
use crate::limits::STUCK_AFTER;
use crate::text::print_error_line;

/// Kind in which the outcomes of deleted objects are recorded.
const RECORD_KIND: (&str, &str) = ("rollcall.dev", "ReadinessRecord");
/// Maximum number of kinds listed concurrently.
pub(super) const MAX_CONCURRENT_LISTS: usize = 4;

/// A cluster as seen by a set of policies.
pub(super) struct PolicyCluster {
    pub(super) client: kube::Client,
    pub(super) policies: Vec<(String, CompiledPolicy)>,
    /// Only this namespace, and cluster-scoped objects.
    namespace: Option<String>,
    /// Kinds without a policy, for which a default policy is used.
    kinds_without_policy: BTreeSet<KindName>,
    /// Built-in kinds, which are evaluated by themselves.
    standalone_kinds: BTreeSet<KindName>,
    /// Why policies of the cluster are not known: of all kinds, and of single ones whose policies do not compile.
    unknown_policies: Option<String>,
    refused_policies: BTreeMap<KindName, String>,
    /// Kinds that could not be read, with the error; each is reported once.
    unread: BTreeMap<String, String>,
    /// Kinds that are not visible: group and kind.
    hidden: BTreeSet<(String, String)>,
}

/// A kind to be read, and its namespace.
pub(super) struct KindToRead {
    pub(super) api: ApiKind,
    pub(super) namespace: Option<String>,
    /// `true` if the full text is needed: the object may be a parent, or a rule of a policy evaluates it.
    pub(super) whole: bool,
}

impl PolicyCluster {
    /// Reads the policies of the cluster or of files. A target kind that is no parent in any policy gets a default
    /// policy that selects common workloads it owns.
    pub(super) async fn new(
        client: kube::Client,
        scope: &ScopeArgs,
        default_namespace: &str,
        targets: &[ObjectTarget],
    ) -> anyhow::Result<PolicyCluster> {
        let own = scope.namespace.clone().unwrap_or_else(|| default_namespace.to_owned());
        // Children of a cluster-scoped object may be in any namespace.
        let all = scope.all_namespaces || targets.iter().any(|target| !target.namespaced);
        let mut cluster = PolicyCluster::of_policies(client, Vec::new());
        cluster.namespace = (!all).then_some(own);
        for found in cluster.read_policies(scope).await? {
            match found.compile_spec(&PolicySettings::with_stuck_after(STUCK_AFTER)) {
                Ok(compiled) => cluster.policies.push((found.name, compiled)),
                Err(why) => cluster.note_refused(&found, why),
            }
        }
        cluster.load_libraries().await;
        for target in targets {
            cluster.add_target_kind(&target.kind)?;
        }
        if cluster.policies.is_empty() && cluster.standalone_kinds.is_empty() {
            bail!(
                "no ReadinessPolicy in the cluster: pass one with -f FILE, or name a kind, as in `rollcall tree database/orders`"
            );
        }
        Ok(cluster)
    }

    /// A cluster as seen by these policies, in all namespaces.
    pub(super) fn of_policies(
        client: kube::Client,
        policies: Vec<(String, CompiledPolicy)>,
    ) -> PolicyCluster {
        PolicyCluster {
            client,
            policies,
            namespace: None,
            kinds_without_policy: BTreeSet::new(),
            standalone_kinds: BTreeSet::new(),
            unknown_policies: None,
            refused_policies: BTreeMap::new(),
            unread: BTreeMap::new(),
            hidden: BTreeSet::new(),
        }
    }

    async fn read_policies(&mut self, scope: &ScopeArgs) -> anyhow::Result<Vec<FoundPolicy>> {
        if scope.files.is_empty() {
            return Ok(controller::release::list_policies(&self.client).await.unwrap_or_else(|error| {
                self.unread.insert("ReadinessPolicy.rollcall.dev".to_owned(), format!("{error:#}"));
                self.unknown_policies =
                    Some(format!("policies could not be read ({error:#}): pass them with -f"));
                Vec::new()
            }));
        }
        let mut found = Vec::new();
        for file in &scope.files {
            found.extend(read_file(file)?);
        }
        Ok(found)
    }

    /// A policy that does not compile: by the one that was accepted before it, which the service keeps, more may be asked for.
    fn note_refused(&mut self, found: &FoundPolicy, why: String) {
        if let Ok(spec) = &found.spec {
            let kind = KindName { group: spec.parent.group.clone(), kind: spec.parent.kind.clone() };
            self.refused_policies.insert(kind, format!("policy {} does not compile: {why}", found.name));
        }
        self.unread.insert(format!("policy {}", found.name), why);
    }

    /// Why it is not known what all policies ask of these objects, if it is not.
    pub(super) fn unknown_policies_text(&self, targets: &[ObjectTarget]) -> Option<String> {
        let refused = targets.iter().find_map(|target| self.refused_policies.get(&target.kind));
        self.unknown_policies.as_ref().or(refused).cloned()
    }

    /// Reads the health scripts of ConfigMaps. A ConfigMap that cannot be read yields a rule that evaluates nothing.
    async fn load_libraries(&mut self) {
        let mut ask = InspectClient::new(self.client.clone());
        let groups = self.policies.iter_mut().flat_map(|(_, policy)| &mut policy.groups);
        for group in groups {
            let Some(GroupRule::Library(name)) = &group.rule else { continue };
            let what = format!("ConfigMap {name}");
            let path = format!("/api/v1/namespaces/{}/configmaps/{}", name.namespace, name.name);
            let Some(map) = ask.get(&what, &path).await else {
                self.unread.entry(what).or_insert_with(|| "not found, or you may not read it".to_owned());
                continue;
            };
            match library_rule(&what, &map) {
                Ok(rule) => group.rule = Some(rule),
                Err(why) => _ = self.unread.insert(what, why),
            }
        }
    }

    fn add_target_kind(&mut self, kind: &KindName) -> anyhow::Result<()> {
        let is = |(_, policy): &(String, CompiledPolicy)| {
            policy.parent.group == kind.group && policy.parent.kind == kind.kind
        };
        if self.policies.iter().any(is) || self.standalone_kinds.contains(kind) {
            return Ok(());
        }
        if matches!(RuleKind::from_group_kind(&kind.group, &kind.kind), RuleKind::Other | RuleKind::Run) {
            self.policies.push(default_policy(kind)?);
            self.kinds_without_policy.insert(kind.clone());
        } else {
            self.standalone_kinds.insert(kind.clone());
        }
        Ok(())
    }

    /// Reports once what could not be read.
    pub(super) fn report_unread(&mut self) {
        for (what, why) in std::mem::take(&mut self.unread) {
            print_error_line(&format!("not read: {what}: {why}"));
        }
    }

    /// What could not be read and has not been reported yet, with the error.
    pub(super) fn unread_texts(&self) -> impl Iterator<Item = String> {
        self.unread.iter().map(|(what, why)| format!("{what}: {why}"))
    }

    /// The namespace whose objects are read; `None` for all.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Records what could not be read, and why.
    pub(super) fn note_unread(&mut self, what: String, why: String) {
        self.unread.insert(what, why);
    }

    /// Marks a kind as not visible.
    pub(super) fn hide_kind(&mut self, api: &ApiKind, why: String) {
        self.unread.insert(api.to_string(), why);
        if (&*api.group, &*api.kind) == RECORD_KIND {
            // Outcomes are optional: without them nothing becomes ready that would not be; deleted objects count as
            // missing.
            return;
        }
        self.hidden.insert((api.group.clone(), api.kind.clone()));
    }

    /// Marks a kind as visible again.
    pub(super) fn show_kind(&mut self, api: &ApiKind) {
        self.hidden.remove(&(api.group.clone(), api.kind.clone()));
    }

    /// Returns every kind to be read, with the namespace to read it in.
    pub(super) async fn kinds_to_read(&mut self) -> Vec<KindToRead> {
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
            if policy.remembers_outcomes() {
                // Records are in the namespace of the service, which is not known here.
                add(RECORD_KIND.0, None, RECORD_KIND.1, true);
            }
            if policy.namespace_selector.is_some() {
                add("", None, "Namespace", true);
            }
        }
        for kind in &self.standalone_kinds {
            add(&kind.group, None, &kind.kind, false);
        }
        let mut places = Vec::new();
        for ((group, version, kind), everywhere) in kinds {
            match resolve_kind(&self.client, &group, version.as_deref(), &kind).await {
                Ok(Some(api)) => {
                    let namespace = self.namespace.clone().filter(|_| api.namespaced && !everywhere);
                    let whole = self.is_read_whole(&api);
                    places.push(KindToRead { api, namespace, whole });
                }
                // Not installed: it has no objects.
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

    /// Kinds that are not visible: group and kind.
    pub(super) fn hidden_kinds(&self) -> &BTreeSet<(String, String)> {
        &self.hidden
    }

    /// Returns `true` for a kind that is evaluated by itself.
    pub(super) fn is_standalone(&self, api: &ApiKind) -> bool {
        self.standalone_kinds.iter().any(|kind| kind.group == api.group && kind.kind == api.kind)
    }

    fn is_read_whole(&self, api: &ApiKind) -> bool {
        let is = |group: &str, kind: &str| group == api.group && kind == api.kind;
        is(RECORD_KIND.0, RECORD_KIND.1)
            || self.policies.iter().any(|(_, policy)| {
                let judged =
                    policy.groups.iter().any(|g| g.rule.is_some() && is(&g.kind.group, &g.kind.kind));
                judged || is(&policy.parent.group, &policy.parent.kind)
            })
    }

    /// Aggregates these objects by the policies.
    pub(super) fn build_trees(&self, objects: &[&ParentObject], now: Time) -> Vec<TreeNode> {
        self.build_trees_since(objects, (Time(i64::MIN), now))
    }

    /// The same, if the objects have been as they are since then, and no longer.
    pub(super) fn build_trees_since(
        &self,
        objects: &[&ParentObject],
        (since, now): (Time, Time),
    ) -> Vec<TreeNode> {
        let trees = roll_up_since(&self.policies, objects, &self.hidden, (since, now));
        self.complete_trees(trees, objects, now)
    }

    /// Adds what no policy covers: objects that own nothing, and kinds that are evaluated by themselves.
    pub(super) fn complete_trees(
        &self,
        mut trees: Vec<TreeNode>,
        objects: &[&ParentObject],
        now: Time,
    ) -> Vec<TreeNode> {
        if !self.kinds_without_policy.is_empty() {
            let index = TreeObjectIndex::new(objects);
            for tree in &mut trees {
                let kind = KindName { group: tree.group.clone(), kind: tree.kind.clone() };
                let childless = matches!(
                    tree.reason.token(),
                    NodeToken::Parent(
                        ParentReason::ChildrenMissing
                            | ParentReason::ChildrenPending
                            | ParentReason::OperatorSilent
                    )
                );
                // Without a policy, no children are required.
                if self.kinds_without_policy.contains(&kind)
                    && tree.children.is_empty()
                    && childless
                    && let Some(object) = index.get(tree)
                {
                    *tree = leaf_node(object, now);
                }
            }
        }
        let is_alone = |object: &&&ParentObject| {
            let kind = &*object.child.meta.kind;
            self.standalone_kinds.iter().any(|alone| *alone.kind == *kind && alone.group == api_group(object))
        };
        let alone = objects.iter().filter(is_alone);
        trees.extend(alone.map(|object| leaf_node(object, now)));
        trees
    }
}

/// Builds a rule from the scripts of a ConfigMap.
fn library_rule(what: &str, map: &serde_json::Value) -> Result<GroupRule, String> {
    let data: BTreeMap<String, String> =
        serde_json::from_value(map["data"].clone()).map_err(|_| "it holds no texts".to_owned())?;
    let scripts = Arc::new(ScriptLibrary::from_config_map(&data).map_err(|error| error.to_string())?);
    let rule = CompiledRule::compile(&RuleDefinition::Library { name: what, scripts })
        .map_err(|error| error.to_string())?;
    Ok(GroupRule::Own { rule: Arc::new(rule), source: what.into() })
}

/// Returns the reason why a kind could not be read, for people.
pub(super) fn read_error_text(error: &LiveReadError) -> String {
    match error.cause {
        ApiFailureCause::Forbidden => "you may not list it".to_owned(),
        _ => error.to_string(),
    }
}

/// Evaluates an object by itself.
pub(super) fn leaf_node(object: &ParentObject, now: Time) -> TreeNode {
    let meta = &object.child.meta;
    let limits = StuckLimits { pending: STUCK_AFTER, progress: STUCK_AFTER, terminating: STUCK_AFTER };
    let assessment =
        assess(RuleKind::from_group_kind(api_group(object), &meta.kind), &object.child.facts, &limits);
    let verdict = assessment.verdict_at(now);
    TreeNode {
        group: api_group(object).to_owned(),
        kind: meta.kind.to_string(),
        namespace: meta.namespace.to_string(),
        name: meta.name.to_string(),
        verdict: verdict.level.as_str(),
        reason: NodeReason::Object(verdict.reason.clone()),
        detail: verdict.reason.to_string(),
        since: now.0,
        stalled: verdict.is_terminal() || verdict.level == readiness::Level::Stuck,
        ..TreeNode::default()
    }
}

/// Returns the default policy: common workloads that the parent owns.
fn default_policy(kind: &KindName) -> anyhow::Result<(String, CompiledPolicy)> {
    let spec: ReadinessPolicySpec = serde_json::from_value(serde_json::json!({
        "parent": ParentSpec { group: kind.group.clone(), kind: kind.kind.clone(), ..ParentSpec::default() },
    }))?;
    match compile(&spec, STUCK_AFTER) {
        Ok(mut compiled) => {
            // Who looks has rights of their own, and sees no more than these allow.
            compiled.groups.iter_mut().for_each(|group| group.allowed = AllowedNamespaces::any());
            Ok(("(none)".to_owned(), compiled))
        }
        Err(problems) => bail!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

#[cfg(test)]
mod tests;
