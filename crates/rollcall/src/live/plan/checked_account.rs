//! The account whose rights a plan checks.

use controller::access_review::ReviewSubject;
use policy::CompiledPolicy;
use policy::rbac::{DEFAULT_NAME, role_flags};

use super::super::doctor::ServiceAccountName;
use crate::rbac::lacking_policy_rights;

/// A service account, and where it keeps records.
#[derive(Clone, Debug)]
pub(super) struct CheckedAccount {
    account: ServiceAccountName,
    records_namespace: String,
}

impl CheckedAccount {
    /// An account that keeps its records in this namespace, or in its own.
    pub(super) fn new(account: ServiceAccountName, records_namespace: Option<String>) -> CheckedAccount {
        let records_namespace = records_namespace.unwrap_or_else(|| account.to_role_subject().namespace);
        CheckedAccount { account, records_namespace }
    }

    /// As whose rights are reviewed.
    pub(super) fn subject(&self) -> ReviewSubject {
        self.account.to_subject()
    }

    /// Rights that these policies need and the account lacks, one line each.
    pub(super) async fn lacking_rights(
        &self,
        client: &kube::Client,
        policies: Vec<(String, CompiledPolicy)>,
    ) -> anyhow::Result<Vec<String>> {
        lacking_policy_rights(client, self.subject(), &self.records_namespace, policies).await
    }

    /// Flags by which `rollcall rbac` prints roles for it.
    pub(super) fn role_flags(&self) -> String {
        role_flags(&self.account.to_role_subject(), &self.records_namespace, DEFAULT_NAME)
    }
}
