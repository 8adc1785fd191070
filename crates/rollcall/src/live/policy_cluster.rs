//! Reads everything that policies select, with the user's own rights, and aggregates it in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::bail;
use policy::offline::OfflineRollup;
use policy::{CompiledPolicy, KindKey, PolicyBook, UnreadLibraries};
use readiness::Time;
use rollcall_core::TreeNode;
use watcher::{ApiFailureCause, ApiKind, ParentObject};

use super::cluster_libraries::ClusterLibraries;
use super::cluster_rollup::ClusterRollup;
use super::decided_policies::DecidedPolicies;
use super::default_policies::DefaultPolicies;
use super::kinds_to_read::{AskedKinds, KindPlaces, KindToRead};
use super::listed_policies::{ListedPolicies, is_group_kind};
use super::scope_args::ScopeArgs;
use super::target::{KindName, ObjectTarget};
use crate::text::print_error_line;

/// Maximum number of kinds listed concurrently.
pub(super) const MAX_CONCURRENT_LISTS: usize = 4;

/// A cluster as seen by a set of policies.
pub(super) struct PolicyCluster {
    pub(super) client: kube::Client,
    /// The policies as they were found, and the scripts that they name.
    listed: ListedPolicies,
    libraries: ClusterLibraries,
    /// They are those of the cluster, and not of files.
    is_of_cluster: bool,
    /// Groups are read even where no policy stands for one: they make policies.
    asks_for_groups: bool,
    policies: DecidedPolicies,
    /// What targets are judged by that no policy chooses.
    defaults: DefaultPolicies,
    places: KindPlaces,
    /// Why policies of the cluster are not known: they could not be read, or one does not tell what it is about.
    unknown_policies: Option<String>,
    /// Kinds that could not be read, with the error; each is reported once.
    unread: BTreeMap<String, String>,
    /// Targets that no policy chooses; each is reported once.
    unchosen: Vec<String>,
}

impl PolicyCluster {
    /// Reads the policies of the cluster or of files, and decides as the service does which of them are in force. A target kind
    /// that is no parent in any policy gets a default policy that selects common workloads it owns.
    pub(super) async fn new(
        client: kube::Client,
        scope: &ScopeArgs,
        default_namespace: &str,
        targets: &[ObjectTarget],
    ) -> anyhow::Result<PolicyCluster> {
        let own = scope.namespace.clone().unwrap_or_else(|| default_namespace.to_owned());
        // Children of a cluster-scoped object may be in any namespace.
        let all = scope.all_namespaces || targets.iter().any(|target| !target.namespaced);
        let is_of_cluster = scope.files.is_empty();
        let listed = if is_of_cluster {
            ListedPolicies::read(&client, &own).await
        } else {
            ListedPolicies::from_files_for(&client, &scope.files).await?
        };
        let targets_group = targets.iter().any(|target| is_group_kind(&target.kind));
        let unknown = listed.unknown_text(targets.is_empty() || targets_group, all);
        let mut cluster = PolicyCluster::of_policies(client, Vec::new(), (!all).then_some(own.clone()));
        cluster.places.set_own_namespace(own);
        cluster.unread.extend(listed.unread());
        cluster.libraries = ClusterLibraries::read(&cluster.client, listed.found().iter()).await;
        cluster.unread.extend(cluster.libraries.unread());
        (cluster.listed, cluster.is_of_cluster) = (listed, is_of_cluster);
        cluster.asks_for_groups = targets_group && is_of_cluster;
        cluster.decide_policies();
        cluster.unknown_policies = unknown.or_else(|| cluster.policies.nameless.clone());
        for target in targets {
            cluster.add_target_kind(&target.kind)?;
        }
        let has_policies = cluster.policies.in_use().next().is_some() || !cluster.defaults.is_empty();
        if !has_policies && !cluster.asks_for_groups {
            bail!(cluster.unknown_policies.unwrap_or_else(|| {
                "no ReadinessPolicy in the cluster: pass one with -f FILE, or name a kind, as in `rollcall tree database/orders`"
                    .to_owned()
            }));
        }
        Ok(cluster)
    }

    /// A cluster as seen by these policies, in this namespace or in all.
    pub(super) fn of_policies(
        client: kube::Client,
        policies: Vec<(String, CompiledPolicy)>,
        namespace: Option<String>,
    ) -> PolicyCluster {
        PolicyCluster {
            client,
            listed: ListedPolicies::default(),
            libraries: ClusterLibraries::default(),
            is_of_cluster: false,
            asks_for_groups: false,
            policies: DecidedPolicies::as_given(policies),
            defaults: DefaultPolicies::default(),
            places: KindPlaces::new(namespace),
            unknown_policies: None,
            unread: BTreeMap::new(),
            unchosen: Vec::new(),
        }
    }

    /// Decides which of the policies are in force, and notes what is refused that was not before.
    fn decide_policies(&mut self) {
        let mut policies =
            DecidedPolicies::decide(&self.listed.found(), PolicyBook::default(), &self.libraries);
        policies.read_scripts(&self.libraries);
        let known: BTreeSet<_> = self.policies.refusal_texts().collect();
        self.unread.extend(policies.refusal_texts().filter(|refusal| !known.contains(refusal)));
        self.policies = policies;
    }

    /// From now on groups are read as well, where the policies are those of the cluster: the policies that stand for them change
    /// with them.
    pub(super) fn begin_following_groups(&mut self) {
        self.asks_for_groups |= self.is_of_cluster;
    }

    /// These are the groups of this namespace, or of all, now. Returns `true` if other policies are in force for them than before.
    pub(super) fn replace_groups<'g>(
        &mut self,
        namespace: Option<&str>,
        groups: impl Iterator<Item = &'g ParentObject>,
    ) -> bool {
        let has_changed = self.is_of_cluster && self.listed.replace_groups(namespace, groups);
        if has_changed {
            self.decide_policies();
        }
        has_changed
    }

    fn add_target_kind(&mut self, kind: &KindName) -> anyhow::Result<()> {
        let is = |(_, policy): (&str, &CompiledPolicy)| {
            policy.parent.group == kind.group && policy.parent.kind == kind.kind
        };
        // What judges a group is made of the group itself, also where it comes later.
        if self.policies.in_use().any(is) || (is_group_kind(kind) && self.is_of_cluster) {
            return Ok(());
        }
        if is_group_kind(kind) {
            bail!("there is no ReadinessGroup in the files of -f: pass one that has it, or leave out -f");
        }
        self.defaults.add_kind(kind)
    }

    /// Targets that are among these objects and stand in none of these trees are judged as if there were no policy, from now on:
    /// none chooses them. Returns `true` if there are such: by what they are judged then, more may have to be read.
    pub(super) fn adopt_unchosen(
        &mut self,
        targets: &[ObjectTarget],
        trees: &[TreeNode],
        objects: &[&ParentObject],
    ) -> anyhow::Result<bool> {
        let is_unchosen = |target: &&ObjectTarget| {
            !is_group_kind(&target.kind)
                && !self.defaults.has_kind(&target.kind)
                && !self.rests_on_unread_labels(&target.kind)
                && !trees.iter().any(|tree| target.stands_in(tree))
                && objects.iter().any(|object| target.matches_object(object))
        };
        let unchosen: Vec<&ObjectTarget> = targets.iter().filter(is_unchosen).collect();
        for target in &unchosen {
            self.defaults.add_kind(&target.kind)?;
            let is_judged = if target.name.is_some() { "it is judged" } else { "they are judged" };
            self.unchosen.push(format!("no policy chooses {target}: {is_judged} as without policies"));
        }
        Ok(!unchosen.is_empty())
    }

    /// Returns `true` if it is not known which objects of this kind policies choose, because the labels of their namespaces could
    /// not be read.
    fn rests_on_unread_labels(&self, kind: &KindName) -> bool {
        let is_hidden = self.places.hidden.contains(&(String::new(), "Namespace".to_owned()));
        let asks = |(_, policy): (&str, &CompiledPolicy)| {
            let parent = &policy.parent;
            policy.namespace_selector.is_some() && parent.group == kind.group && parent.kind == kind.kind
        };
        is_hidden && self.policies.in_use().any(asks)
    }

    /// Why it is not known what all policies ask for, if it is not.
    pub(super) fn unknown_policies_text(&self) -> Option<&str> {
        self.unknown_policies.as_deref()
    }

    /// The exit code of a command that would end with `code`: by policies that nobody could read, more may be asked for.
    pub(super) fn exit_code(&self, code: u8) -> u8 {
        if code == 0 && self.unknown_policies.is_some() { 2 } else { code }
    }

    /// The policy of this name that is in force.
    pub(super) fn find_policy_in_force(&self, name: &str) -> Option<&CompiledPolicy> {
        self.policies.in_force().find(|(known, _)| *known == name).map(|(_, policy)| policy)
    }

    /// The policy of this name that judges.
    pub(super) fn find_policy(&self, name: &str) -> Option<&CompiledPolicy> {
        let mut judging = self.policies.in_force().chain(self.default_policies());
        judging.find(|(known, _)| *known == name).map(|(_, policy)| policy)
    }

    /// Longest time that policies leave between a change and what they say of it, so that changes close to each other are one.
    pub(super) fn longest_debounce(&self) -> Duration {
        let policies = self.policies.in_use().chain(self.default_policies());
        let debounced = policies.map(|(_, policy)| 2 * (policy.debounce.quiet + policy.debounce.cap));
        debounced.max().unwrap_or_default()
    }

    fn default_policies(&self) -> impl Iterator<Item = (&str, &CompiledPolicy)> {
        self.defaults.compiled.iter().map(|(name, policy)| (name.as_str(), policy))
    }

    /// Reports once what could not be read, and which targets no policy chooses.
    pub(super) fn report_unread(&mut self) {
        for line in std::mem::take(&mut self.unchosen) {
            print_error_line(&line);
        }
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
        self.places.namespace()
    }

    /// Records what could not be read, and why.
    pub(super) fn note_unread(&mut self, what: String, why: String) {
        self.unread.insert(what, why);
    }

    /// Marks a kind as not visible there, or returns where it is read instead: whoever may list a kind in a namespace only sees
    /// that much of it.
    pub(super) fn hide_kind(
        &mut self,
        place: &KindToRead,
        cause: ApiFailureCause,
        why: String,
    ) -> Option<KindToRead> {
        if cause == ApiFailureCause::Forbidden
            && let Some(narrower) = self.places.narrow_kind(place)
        {
            if self.places.lacks_records(&place.api) {
                let own = narrower.namespace.as_deref().unwrap_or_default();
                let why =
                    format!("you may not list it in all namespaces, and there is none in namespace {own}");
                self.unread.insert(place.api.to_string(), why);
            }
            return Some(narrower);
        }
        self.unread.insert(place.api.to_string(), why);
        self.places.hide_kind(&place.api);
        None
    }

    /// Marks a kind as visible again, of which there are objects or none. Without any, records may be in another namespace.
    pub(super) fn show_kind(&mut self, api: &ApiKind, has_objects: bool) {
        if self.places.lacks_records(api) {
            if !has_objects {
                return;
            }
            self.unread.remove(&api.to_string());
        }
        self.places.show_kind(api);
    }

    /// Returns every kind to be read that the cluster serves, with the namespace to read it in.
    pub(super) async fn kinds_to_read(&mut self) -> Vec<KindToRead> {
        let asked = self.asked_kinds();
        let unread = self.places.find_kinds(&self.client, &asked).await;
        self.unread.extend(unread);
        self.places.list_places(&asked)
    }

    /// Returns `true` if the cluster does not serve all kinds that are asked for, as far as is known.
    pub(super) fn lacks_kinds(&self) -> bool {
        self.places.lacks_any(&self.asked_kinds())
    }

    fn asked_kinds(&self) -> AskedKinds {
        let policies = self.policies.in_use().chain(self.default_policies());
        let mut asked =
            AskedKinds::collect(policies.map(|(_, policy)| policy), self.defaults.standalone_kinds());
        if self.asks_for_groups {
            asked.add_groups();
        }
        asked
    }

    /// Kinds that are not visible: group and kind.
    pub(super) fn hidden_kinds(&self) -> &BTreeSet<KindKey> {
        &self.places.hidden
    }

    /// Why nothing can be said of this target, of which no tree has a node, if that is not because there is no such object;
    /// `exists` if there is one among those that were read.
    pub(super) fn unseen_target_text(&self, target: &ObjectTarget, exists: bool) -> Option<String> {
        let hidden = |(group, kind): &KindKey| *group == target.kind.group && *kind == target.kind.kind;
        if self.places.hidden.iter().any(hidden) {
            return Some(format!(
                "{target}: objects of its kind could not be read, so it is not known whether it exists"
            ));
        }
        (exists && self.rests_on_unread_labels(&target.kind)).then(|| {
            format!(
                "{target}: the labels of its namespace could not be read, so it is not known whether a policy chooses it"
            )
        })
    }

    /// What is said of a target of which no tree has a node.
    pub(super) fn missing_target_text(&self, target: &ObjectTarget, exists: bool) -> String {
        self.unseen_target_text(target, exists).unwrap_or_else(|| match &target.namespace {
            Some(namespace) => format!("there is no {target} in namespace {namespace}"),
            None => format!("there is no {target}"),
        })
    }

    /// Returns `true` for a kind that is evaluated by itself.
    pub(super) fn is_standalone(&self, api: &ApiKind) -> bool {
        self.defaults.is_standalone(api)
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
        let mut rollup = self.begin_rollup((since, now));
        for state in rollup.states_mut() {
            for object in objects.iter().filter(|object| &*object.child.meta.kind == "Namespace") {
                state.add_namespace(object);
            }
            for object in objects {
                state.add_object(object);
            }
        }
        self.end_rollup(rollup, objects, now)
    }

    /// Returns an empty state, whose objects have been as they are since then, and no longer.
    pub(super) fn begin_rollup(&self, times: (Time, Time)) -> ClusterRollup {
        let begin = |more: &[(String, CompiledPolicy)]| {
            let mut state = self.policies.begin_rollup(more, &UnreadLibraries, times);
            self.policies.hide_refused(&mut state);
            state
        };
        let defaults = &*self.defaults.compiled;
        ClusterRollup {
            by_policies: begin(&[]),
            with_defaults: (!defaults.is_empty()).then(|| begin(defaults)),
        }
    }

    /// Ends the input: what the policies say, and what is said of targets that stand nowhere in that. The objects are those
    /// that are at hand.
    pub(super) fn end_rollup(
        &self,
        rollup: ClusterRollup,
        objects: &[&ParentObject],
        now: Time,
    ) -> Vec<TreeNode> {
        let (asked, in_use) = (self.asked_kinds(), || self.policies.in_use().chain(self.default_policies()));
        let blind = self.places.blind_policies(&asked, in_use());
        let end = |mut state: OfflineRollup| {
            for (policy, what) in &blind {
                state.hide_policy(policy, what);
            }
            state.into_trees(&self.places.hidden)
        };
        let mut trees = end(rollup.by_policies);
        let judged = rollup.with_defaults.map(end).unwrap_or_default();
        self.defaults.complete_trees(&mut trees, judged, objects, now);
        self.policies.word_refusals(&mut trees);
        trees
    }
}

#[cfg(test)]
mod tests;
