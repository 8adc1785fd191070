//! Arguments of `rollcall rbac`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use policy::is_object_name;
use policy::rbac::{RoleOptions, RoleSubject, unique_grant_roles};

/// `rollcall rbac`.
#[derive(Args, Debug)]
#[command(
    after_help = "Without policies it prints what Rollcall needs for itself, and with policies what each of them needs: one \
                  ClusterRole per policy, which is aggregated into Rollcall's own. Rights of several policies add up; delete a \
                  policy's role to take its rights away. Exit codes: 0 printed, or with --check nothing lacks; 1 with --check, \
                  a right lacks, or a policy is not valid; 2 could not tell."
)]
pub(crate) struct RbacArgs {
    /// Policies in the cluster with these names.
    #[arg(value_name = "POLICY", conflicts_with = "all")]
    pub(super) policies: Vec<String>,
    /// Files with ReadinessPolicies. CRDs in them provide the plural names of their kinds, and show which kinds have no
    /// status subresource, so that the whole object must be patched.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Every policy in the cluster.
    #[arg(long)]
    pub(super) all: bool,
    /// Ask the API server instead of printing roles, and print the rights that lack: those of the service account, or
    /// your own with `self`. Without policies: those of Rollcall itself and of every policy in the cluster.
    #[arg(long, value_enum, value_name = "WHOSE", num_args = 0..=1, require_equals = true, default_missing_value = "service-account")]
    pub(super) check: Option<CheckedIdentity>,
    /// Roles in these namespaces instead of ClusterRoles, for `run --namespaces --policies`.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE", value_parser = object_name)]
    pub(super) namespaces: Vec<String>,
    /// Also the right to bind these ClusterRoles to the service account, for `run --grant-roles`: the API server lets it
    /// bind no others. At most 16. Repeat the flag, or separate by commas.
    #[arg(
        long, value_delimiter = ',', value_name = "ROLE", value_parser = policy::rbac::check_grant_role,
        conflicts_with = "namespaces"
    )]
    grant_roles: Vec<String>,
    /// Service account to bind the rights to.
    #[arg(long, default_value = "rollcall", value_name = "NAME", value_parser = object_name)]
    pub(super) service_account: String,
    /// Namespace of the service account.
    #[arg(short = 'n', long = "namespace", default_value = "rollcall-system", value_name = "NAMESPACE", value_parser = object_name)]
    pub(super) namespace: String,
    /// Namespace of the ReadinessRecords, as `run --records-namespace` has it: the rights to keep them, and what is known of the
    /// policies' conditions, are needed there. Defaults to the service account's.
    #[arg(long, value_name = "NAMESPACE", value_parser = object_name)]
    records_namespace: Option<String>,
    /// ClusterRole into which the roles of policies are aggregated: of several releases each has its own.
    #[arg(long, default_value = "rollcall", value_name = "NAME", value_parser = label_value)]
    pub(super) aggregate_to: String,
    /// Lease by which its replicas elect a leader, as `run --lease-name` has it: Rollcall's own rights are on it, and on
    /// ConfigMap NAME-inventory.
    #[arg(long, default_value = "rollcall", value_name = "NAME", value_parser = object_name)]
    pub(super) lease_name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CheckedIdentity {
    /// The service account of Rollcall.
    ServiceAccount,
    /// The identity of the kubeconfig.
    #[value(name = "self")]
    Own,
}

/// Only names that the API server allows become part of a role.
pub(crate) fn object_name(text: &str) -> Result<String, String> {
    if is_object_name(text) { Ok(text.to_owned()) } else { Err(policy::NOT_AN_OBJECT_NAME.to_owned()) }
}

fn label_value(text: &str) -> Result<String, String> {
    if text.len() > 63 {
        return Err("may not be more than 63 bytes, the most of a label's value".to_owned());
    }
    object_name(text)
}

impl RbacArgs {
    pub(super) fn names_policies(&self) -> bool {
        self.all || !self.policies.is_empty() || !self.files.is_empty()
    }

    /// Where the service keeps its records.
    pub(super) fn records_namespace(&self) -> &str {
        self.records_namespace.as_deref().unwrap_or(&self.namespace)
    }

    /// The roles that the service may bind, each once.
    pub(super) fn grant_roles(&self) -> anyhow::Result<Vec<String>> {
        unique_grant_roles(&self.grant_roles).map_err(anyhow::Error::msg)
    }

    pub(super) fn role_options(&self) -> RoleOptions {
        RoleOptions {
            subject: RoleSubject { name: self.service_account.clone(), namespace: self.namespace.clone() },
            namespaces: self.namespaces.clone(),
            aggregate_to: self.aggregate_to.clone(),
            records_namespace: self.records_namespace().to_owned(),
            lease: self.lease_name.clone(),
        }
    }
}
