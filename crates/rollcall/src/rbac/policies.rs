//! The policies whose rights are asked for, and what is known of their kinds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::bail;
use controller::args::ClusterArgs;
use controller::needed_kinds::fill_in_served_kinds;
use controller::release::ReadablePolicies;
use policy::rbac::CrdNames;
use policy::{
    CompiledPolicy, FoundPolicy, GroupSelection, PolicyManifest, PolicySettings, categories_of_policy,
    read_manifests,
};
use watcher::resolve_kind;

use super::args::RbacArgs;
use crate::limits::STUCK_AFTER;
use crate::live::connect_cluster;
use crate::text::print_error_line;

/// Policies by name, with what is known of their kinds.
#[derive(Default)]
pub(crate) struct RbacPolicies {
    pub(crate) valid: Vec<(String, CompiledPolicy)>,
    /// Policies that are not valid, or could not be read, each with the error.
    pub(crate) invalid: Vec<String>,
    pub(crate) crds: CrdNames,
    /// Groups of files that leave kinds to the API server.
    pub(super) open: Vec<(PathBuf, FoundPolicy)>,
}

impl RbacPolicies {
    /// Reads the policies that the arguments name. An invalid one in a file is an error; in the cluster the others are
    /// still told.
    pub(super) async fn read(cluster: &ClusterArgs, args: &RbacArgs) -> anyhow::Result<RbacPolicies> {
        let mut found = RbacPolicies::from_files(&args.files)?;
        if args.all || !args.policies.is_empty() {
            let (client, _) = connect_cluster(cluster).await?;
            found.fill_in_kinds(&client).await?;
            found.add_policies_of_cluster(&client, &args.policies).await?;
            found.resolve_kinds(&client).await?;
        }
        found.leave_out_open();
        Ok(found)
    }

    /// Reads the policies of the files only.
    pub(crate) fn from_files(files: &[PathBuf]) -> anyhow::Result<RbacPolicies> {
        let (mut found, mut crds) = (RbacPolicies::default(), Vec::new());
        for file in files {
            for manifest in read_manifests(file)? {
                match manifest {
                    PolicyManifest::Policy(policy) if !categories_of_policy(&policy).is_empty() => {
                        found.open.push((file.clone(), *policy));
                    }
                    PolicyManifest::Policy(policy) => {
                        let compiled = compile_policy(file, &policy)?;
                        found.valid.push((policy.name, compiled));
                    }
                    PolicyManifest::Crd(crd) => crds.push(crd),
                }
            }
        }
        found.crds = CrdNames::from_crds(&crds);
        Ok(found)
    }

    /// Asks the server for the kinds that groups of files leave to it.
    pub(crate) async fn fill_in_kinds(&mut self, client: &kube::Client) -> anyhow::Result<()> {
        let (files, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open).into_iter().unzip();
        for (file, policy) in files.iter().zip(fill_in_served_kinds(client, open).await) {
            let compiled = compile_policy(file, &policy)?;
            self.valid.push((policy.name, compiled));
        }
        Ok(())
    }

    /// Without a server nobody knows which kinds a category has: what groups need that name one is left out, and said to be.
    pub(crate) fn leave_out_open(&mut self) {
        for (file, policy) in std::mem::take(&mut self.open) {
            let name =
                policy.groups.as_ref().and_then(GroupSelection::group).map_or("", |group| &*group.name);
            self.invalid.push(format!(
                "{}: ReadinessGroup {name}: which kinds are in category {} only the API server knows, and the rights for them \
                 are left out: apply the group, and run `rollcall rbac --all` with a kubeconfig",
                file.display(),
                categories_of_policy(&policy).join(" and in category "),
            ));
        }
    }

    /// Adds the named policies of the cluster, or all of them if none is named.
    pub(crate) async fn add_policies_of_cluster(
        &mut self,
        client: &kube::Client,
        names: &[String],
    ) -> anyhow::Result<()> {
        let ReadablePolicies { mut policies, unread_groups } =
            controller::release::list_policies(client).await?;
        let unread = unread_groups.filter(|_| names.is_empty());
        let missing =
            |why| format!("ReadinessGroups could not be read, and what they need is left out: {why}");
        self.invalid.extend(unread.map(missing));
        policies.sort_by(|a, b| a.name.cmp(&b.name));
        for name in names {
            if !policies.iter().any(|policy| policy.name == *name) {
                bail!("there is no policy {name} in the cluster");
            }
        }
        policies.retain(|policy| names.is_empty() || names.contains(&policy.name));
        for policy in policies {
            match policy.compile_spec(&PolicySettings::with_stuck_after(STUCK_AFTER)) {
                Ok(compiled) => self.valid.push((policy.name, compiled)),
                Err(why) => self.invalid.push(format!("policy {}: {why}", policy.name)),
            }
        }
        Ok(())
    }

    /// Asks the server for the plurals of the kinds, and whether they have a status subresource. Kinds that are not
    /// installed keep the usual ones.
    pub(crate) async fn resolve_kinds(&mut self, client: &kube::Client) -> anyhow::Result<()> {
        let kinds: BTreeSet<_> = self
            .valid
            .iter()
            .flat_map(|(_, policy)| policy.groups.iter().map(|group| &group.kind).chain([&policy.parent]))
            .cloned()
            .collect();
        for kind in kinds {
            let api = resolve_kind(client, &kind.group, kind.version.as_deref(), &kind.kind).await?;
            if let Some(api) = api {
                self.crds.add_kind(&api.group, &api.kind, &api.plural, api.has_status);
            }
        }
        Ok(())
    }

    /// Prints what is wrong with invalid policies; returns `true` if there are any.
    pub(crate) fn report_invalid(&self) -> bool {
        self.invalid.iter().for_each(|what| print_error_line(what));
        !self.invalid.is_empty()
    }
}

fn compile_policy(file: &Path, found: &FoundPolicy) -> anyhow::Result<CompiledPolicy> {
    found
        .compile_spec(&PolicySettings::with_stuck_after(STUCK_AFTER))
        .map_err(|why| anyhow::anyhow!("{}: policy {}: {why}", file.display(), found.name))
}
