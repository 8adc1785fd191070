//! ReadinessPolicies and ReadinessGroups as a cluster has them, as far as this user may read them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use controller::needed_kinds::{fill_in_served_kinds, read_kinds_or_why};
use policy::{
    FoundGroup, FoundPolicy, GROUP_KIND, PolicySettings, policies_of_groups, read_file, read_group,
    read_policy,
};
use watcher::plan::LabelMatcher;
use watcher::{ApiFailureCause, LiveReadError, ParentObject, ServedKinds, list_live, resolve_kind};

use super::read_error::read_error_text;
use super::target::KindName;
use crate::limits::STUCK_AFTER;

/// Namespace and name of a group.
pub(super) type GroupKey = (Box<str>, Box<str>);

/// Policies that were found, and the groups that make further ones.
#[derive(Default)]
pub(super) struct ListedPolicies {
    policies: Vec<FoundPolicy>,
    groups: BTreeMap<GroupKey, FoundGroup>,
    /// The policies that stand for the groups.
    of_groups: Vec<FoundPolicy>,
    /// The kinds that the server served when groups were read first, for what these select by them.
    served: ServedKinds,
    /// Why policies could not be read.
    pub(super) unread_policies: Option<String>,
    groups_read: GroupsRead,
}

/// Which groups were read.
#[derive(Debug, Default, PartialEq, Eq)]
enum GroupsRead {
    #[default]
    All,
    /// Those of this namespace: the user may list no others.
    InNamespace(String),
    /// None, for this reason.
    Failed(String),
}

impl ListedPolicies {
    /// Reads what the cluster has. Whoever may not list the groups of all namespaces gets those of this one.
    pub(super) async fn read(client: &kube::Client, namespace: &str) -> ListedPolicies {
        let mut listed = ListedPolicies::default();
        match list_policies(client).await {
            Ok(policies) => listed.policies = policies,
            Err(error) => listed.unread_policies = Some(read_error_text(&error)),
        }
        let mut groups = list_own_kind(client, GROUP_KIND.1, None).await;
        if groups.as_ref().is_err_and(|error| error.cause == ApiFailureCause::Forbidden) {
            groups = list_own_kind(client, GROUP_KIND.1, Some(namespace)).await;
            listed.groups_read = GroupsRead::InNamespace(namespace.to_owned());
        }
        if groups.is_ok() {
            listed.served = read_kinds_or_why(client).await;
        }
        match groups {
            Ok(groups) => _ = listed.replace_groups(None, groups.iter()),
            Err(error) => listed.groups_read = GroupsRead::Failed(read_error_text(&error)),
        }
        listed
    }

    /// Reads files. Groups that select in the same ways are judged by one policy.
    fn from_files(files: &[PathBuf]) -> anyhow::Result<ListedPolicies> {
        let mut listed = ListedPolicies::default();
        for file in files {
            for policy in read_file(file)? {
                let is_same = |known: &FoundPolicy| known.groups.is_some() && known.name == policy.name;
                if policy.groups.is_none() || !listed.policies.iter().any(is_same) {
                    listed.policies.push(policy);
                }
            }
        }
        Ok(listed)
    }

    /// Reads files, and from the server which kinds it serves.
    pub(super) async fn from_files_for(
        client: &kube::Client,
        files: &[PathBuf],
    ) -> anyhow::Result<ListedPolicies> {
        let listed = ListedPolicies::from_files(files)?;
        Ok(ListedPolicies {
            policies: fill_in_served_kinds(client, listed.policies).await,
            ..ListedPolicies::default()
        })
    }

    /// The kinds that the server serves, where there may be groups.
    pub(super) fn served(&self) -> &ServedKinds {
        &self.served
    }

    /// The policies themselves, without those that stand for groups.
    pub(super) fn policies(&self) -> &[FoundPolicy] {
        &self.policies
    }

    /// The groups, by namespace and name.
    pub(super) fn groups(&self) -> &BTreeMap<GroupKey, FoundGroup> {
        &self.groups
    }

    /// All policies, with those that stand for groups.
    pub(super) fn found(&self) -> Vec<FoundPolicy> {
        self.policies.iter().chain(&self.of_groups).cloned().collect()
    }

    /// These are the groups of this namespace, or of all. Returns `true` if other policies stand for them than before.
    pub(super) fn replace_groups<'g>(
        &mut self,
        namespace: Option<&str>,
        objects: impl Iterator<Item = &'g ParentObject>,
    ) -> bool {
        let mut groups = self.groups.clone();
        groups.retain(|(of, _), _| namespace.is_some_and(|namespace| **of != *namespace));
        for object in objects {
            let meta = &object.child.meta;
            let key: GroupKey = ((*meta.namespace).into(), (*meta.name).into());
            let known = self.groups.get(&key).filter(|known| known.is_same(&meta.uid, meta.generation));
            groups.insert(key, known.cloned().unwrap_or_else(|| read_group(object)));
        }
        if groups == self.groups {
            return false;
        }
        let settings = PolicySettings::with_stuck_after(STUCK_AFTER);
        let of_groups =
            policies_of_groups(groups.values(), &LabelMatcher::default(), &self.served, &settings);
        let has_changed = of_groups != self.of_groups;
        (self.groups, self.of_groups) = (groups, of_groups);
        has_changed
    }

    /// What could not be read, with the reason.
    pub(super) fn unread(&self) -> impl Iterator<Item = (String, String)> {
        let policies =
            self.unread_policies.clone().map(|why| ("ReadinessPolicy.rollcall.dev".to_owned(), why));
        let groups = "ReadinessGroup.rollcall.dev";
        let groups = match &self.groups_read {
            GroupsRead::All => None,
            GroupsRead::InNamespace(own) => {
                Some((format!("{groups} outside of namespace {own}"), "you may not list it".to_owned()))
            }
            GroupsRead::Failed(why) => Some((groups.to_owned(), why.clone())),
        };
        policies.into_iter().chain(groups)
    }

    /// Why not all policies are known that an answer may rest on. It rests on groups only where these are shown: those of all
    /// namespaces, or of the one that they were read in.
    pub(super) fn unknown_text(&self, shows_groups: bool, all_namespaces: bool) -> Option<String> {
        if let Some(why) = &self.unread_policies {
            return Some(format!("policies could not be read ({why}): pass them with -f"));
        }
        match &self.groups_read {
            GroupsRead::InNamespace(own) if shows_groups && all_namespaces => {
                Some(format!("ReadinessGroups could be read in namespace {own} only: name it with -n"))
            }
            GroupsRead::Failed(why) if shows_groups => {
                Some(format!("ReadinessGroups could not be read ({why}): pass them with -f"))
            }
            _ => None,
        }
    }
}

/// Returns `true` for the kind of ReadinessGroups.
pub(super) fn is_group_kind(kind: &KindName) -> bool {
    (&*kind.group, &*kind.kind) == GROUP_KIND
}

/// Lists the ReadinessPolicies of the cluster, without those that stand for groups.
pub(super) async fn list_policies(client: &kube::Client) -> Result<Vec<FoundPolicy>, LiveReadError> {
    let policies = list_own_kind(client, "ReadinessPolicy", None).await?;
    Ok(policies.iter().map(read_policy).collect())
}

/// Lists objects of a kind of Rollcall's own; none where it is not installed.
async fn list_own_kind(
    client: &kube::Client,
    kind: &str,
    namespace: Option<&str>,
) -> Result<Vec<ParentObject>, LiveReadError> {
    match resolve_kind(client, GROUP_KIND.0, None, kind).await? {
        Some(api) => list_live(client, &api, namespace, None).await,
        None => Ok(Vec::new()),
    }
}
