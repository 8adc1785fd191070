//! A parent whose status another aggregator keeps, as its controller leaves it: how it is made, judged and spoken of.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::kind::{ManifestKind, ObjectAddress};
use acceptance::objects::owner_reference;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rollcall::RollcallProcess;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

/// By what another aggregator's parent is recognized.
#[derive(Clone, Copy)]
pub(crate) enum PeerEvidence {
    /// Its API group: the policy is in shadow mode.
    Group,
    /// A finalizer that only its objects carry, whatever their group: the policy's status has these words.
    Finalizer(&'static str),
    /// Nothing: it only bears a name.
    None,
}

/// How the policy finds the child of a parent.
#[derive(Clone, Copy)]
pub(crate) enum PeerLink {
    OwnerReference,
    /// A label with the parent's UID: kro sets no ownerReference.
    Label,
    /// A reference in the parent: a claim does not own its composite.
    Reference,
}

/// One object as its controller leaves it.
pub(crate) struct PeerParent {
    pub(crate) name: &'static str,
    /// Group, version and kind.
    pub(crate) api: (String, &'static str, &'static str),
    pub(crate) metadata: Value,
    pub(crate) spec: Value,
    pub(crate) status: Value,
    /// The field manager of the status.
    pub(crate) manager: &'static str,
    /// Argo CD's Application has none.
    pub(crate) has_status_subresource: bool,
    /// The condition type of the policy.
    pub(crate) condition: &'static str,
    /// The parent itself says that it is ready, by a condition of that type or where its kind says it.
    pub(crate) says_true: bool,
    pub(crate) link: PeerLink,
    pub(crate) evidence: PeerEvidence,
}

impl PeerParent {
    pub(crate) fn new(
        name: &'static str,
        api: (&str, &'static str, &'static str),
        manager: &'static str,
    ) -> PeerParent {
        PeerParent {
            name,
            api: (api.0.to_owned(), api.1, api.2),
            metadata: json!({}),
            spec: json!({}),
            status: json!({}),
            manager,
            has_status_subresource: true,
            condition: "Ready",
            says_true: true,
            link: PeerLink::OwnerReference,
            evidence: PeerEvidence::Group,
        }
    }

    pub(crate) fn finalizers(mut self, finalizers: &[&str]) -> PeerParent {
        self.metadata["finalizers"] = json!(finalizers);
        self
    }

    pub(crate) fn definition(&self) -> Value {
        let (group, version, kind) = &self.api;
        let builder = CrdBuilder::new(kind).shapeless();
        let builder =
            if self.has_status_subresource { builder } else { builder.without_status_subresource() };
        let mut crd = builder.manifest(group);
        crd["spec"]["versions"][0]["name"] = json!(version);
        crd
    }

    fn manifest(&self) -> Value {
        let (group, version, kind) = &self.api;
        let mut object = json!({ "apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": self.metadata,
            "spec": self.spec });
        object["metadata"]["name"] = json!(self.name);
        object
    }

    pub(crate) fn policy(&self, tenant: &TestTenant) -> Value {
        let mut child = tenant.child(self.child());
        match self.link {
            PeerLink::OwnerReference => {}
            PeerLink::Label => {
                child["find"] = json!({ "labels": { "kro.run/instance-id": "{parent.metadata.uid}" } });
            }
            PeerLink::Reference => child["find"] = json!({ "refs": "spec.resourceRef" }),
        }
        let spec = json!({ "children": [child], "settle": "100ms", "condition": { "type": self.condition } });
        let mut policy = tenant.policy_manifest(self.name, "Part", spec);
        policy["spec"]["parent"] = json!({ "group": self.api.0, "kind": self.api.2 });
        policy
    }

    /// Creates it with its child, which is not ready, and lets its controller say what it says. Returns what stands then.
    pub(crate) async fn create(&self, tenant: &TestTenant) -> Result<Value> {
        let mut manifest = self.manifest();
        if matches!(self.link, PeerLink::Reference) {
            manifest["spec"]["resourceRef"] = json!({ "apiVersion": format!("{}/v1", tenant.group), "kind": self.child(), "name": self.name });
        }
        let parent = tenant.create(manifest).await?;
        let mut child = tenant.custom(self.child(), self.name);
        match self.link {
            PeerLink::OwnerReference => {
                child["metadata"]["ownerReferences"] = json!([owner_reference(&parent)]);
            }
            PeerLink::Label => {
                child["metadata"]["labels"] = json!({ "kro.run/instance-id": parent["metadata"]["uid"] });
            }
            PeerLink::Reference => {}
        }
        tenant.create(child).await?;
        self.turn_child(tenant, "False").await?;
        let address = ObjectAddress::of(&parent)?;
        let part = if self.has_status_subresource { "/status" } else { "" };
        let path = format!("{}{part}?fieldManager={}", address.path(), self.manager);
        let body = serde_json::to_vec(&json!({ "status": self.status }))?;
        tenant.admin.send(Method::PATCH, &path, "application/merge-patch+json", body).await
    }

    /// Kind of its child: of the cluster where the parent is.
    fn child(&self) -> &'static str {
        let (group, version, kind) = &self.api;
        let kind = ManifestKind::new(&format!("{group}/{version}"), kind);
        if kind.is_cluster_scoped() { "ClusterPart" } else { "Part" }
    }

    pub(crate) async fn turn_child(&self, tenant: &TestTenant, status: &str) -> Result<()> {
        let entry = json!({ "type": "Ready", "status": status, "reason": "Said", "observedGeneration": 1 });
        let place = format!("{}/{}", self.child(), self.name);
        tenant.change_status(&place, json!({ "conditions": [entry] })).await?;
        Ok(())
    }

    /// Waits until the policy has judged it so, and until the metric counts whether it disagrees.
    pub(crate) async fn until_judged(
        &self,
        tenant: &TestTenant,
        running: &RollcallProcess,
        ready: bool,
    ) -> Result<()> {
        let policy = format!("policy=\"{}\"", tenant.policy_name(self.name));
        let is_ready = move |parents: f64| (parents > 0.5) == ready;
        running.until_metric("rollcall_parents", &[&policy, "verdict=\"Ready\""], is_ready).await?;
        let metric = match self.evidence {
            PeerEvidence::Group => "rollcall_shadow_disagreements",
            PeerEvidence::Finalizer(_) => "rollcall_parents_owned_disagreeing",
            PeerEvidence::None => return Ok(()),
        };
        let disagrees = self.says_true && !ready;
        running.until_metric(metric, &[&policy], move |parents| (parents > 0.5) == disagrees).await?;
        Ok(())
    }

    /// Waits until the policy says by what its parent was recognized, and counts it as not ready.
    pub(crate) async fn until_policy_says_why(&self, tenant: &TestTenant) -> Result<()> {
        let said = match self.evidence {
            PeerEvidence::Finalizer(words) => because("Ready", "ConditionOwned")
                .and(mentions("Ready", &format!("1 parents {words}")))
                .and(mentions("Ready", "(1 of them say otherwise than their children)")),
            _ => says("Accepted", "True").and(because("Accepted", "Shadow")).and(mentions(
                "Accepted",
                &format!("the status of {} objects is not for others to write", self.api.2),
            )),
        };
        let counted = StateExpectation::new("its parent is counted as not ready", |policy: &Value| {
            policy["status"]["parents"] == 1 && policy["status"]["ready"] == 0
        });
        tenant.until_at(&policy_address(tenant, self.name)?, &said.and(counted)).await?;
        Ok(())
    }

    pub(crate) fn address(&self, tenant: &TestTenant) -> Result<ObjectAddress> {
        let mut manifest = self.manifest();
        manifest["metadata"]["namespace"] = json!(tenant.name);
        ObjectAddress::of(&manifest)
    }
}
