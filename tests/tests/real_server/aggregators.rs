//! Parents whose status another aggregator keeps, as its controllers leave them: recognized by their group or by a finalizer,
//! evaluated, and not written. What only bears such names is a parent like any other.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::kind::{ManifestKind, ObjectAddress};
use acceptance::objects::owner_reference;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

/// By what another aggregator's parent is recognized.
#[derive(Clone, Copy)]
enum Evidence {
    /// Its API group: the policy is in shadow mode.
    Group,
    /// A finalizer that only its objects carry, whatever their group: the policy's status has these words.
    Finalizer(&'static str),
    /// Nothing: it only bears a name.
    None,
}

/// How the policy finds the child of a parent.
#[derive(Clone, Copy)]
enum Link {
    OwnerReference,
    /// A label with the parent's UID: kro sets no ownerReference.
    Label,
    /// A reference in the parent: a claim does not own its composite.
    Reference,
}

/// One object as its controller leaves it.
struct PeerParent {
    name: &'static str,
    /// Group, version and kind.
    api: (String, &'static str, &'static str),
    metadata: Value,
    spec: Value,
    status: Value,
    /// The field manager of the status.
    manager: &'static str,
    /// Argo CD's Application has none.
    has_status_subresource: bool,
    /// The condition type of the policy.
    condition: &'static str,
    /// The parent itself says that it is ready, by a condition of that type or where its kind says it.
    says_true: bool,
    link: Link,
    evidence: Evidence,
}

impl PeerParent {
    fn new(name: &'static str, api: (&str, &'static str, &'static str), manager: &'static str) -> PeerParent {
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
            link: Link::OwnerReference,
            evidence: Evidence::Group,
        }
    }

    fn finalizers(mut self, finalizers: &[&str]) -> PeerParent {
        self.metadata["finalizers"] = json!(finalizers);
        self
    }

    fn definition(&self) -> Value {
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

    fn policy(&self, tenant: &TestTenant) -> Value {
        let mut child = tenant.child(self.child());
        match self.link {
            Link::OwnerReference => {}
            Link::Label => {
                child["find"] = json!({ "labels": { "kro.run/instance-id": "{parent.metadata.uid}" } });
            }
            Link::Reference => child["find"] = json!({ "refs": "spec.resourceRef" }),
        }
        let spec = json!({ "children": [child], "settle": "100ms", "condition": { "type": self.condition } });
        let mut policy = tenant.policy_manifest(self.name, "Part", spec);
        policy["spec"]["parent"] = json!({ "group": self.api.0, "kind": self.api.2 });
        policy
    }

    /// Creates it with its child, which is not ready, and lets its controller say what it says. Returns what stands then.
    async fn create(&self, tenant: &TestTenant) -> Result<Value> {
        let mut manifest = self.manifest();
        if matches!(self.link, Link::Reference) {
            manifest["spec"]["resourceRef"] = json!({ "apiVersion": format!("{}/v1", tenant.group), "kind": self.child(), "name": self.name });
        }
        let parent = tenant.create(manifest).await?;
        let mut child = tenant.custom(self.child(), self.name);
        match self.link {
            Link::OwnerReference => child["metadata"]["ownerReferences"] = json!([owner_reference(&parent)]),
            Link::Label => {
                child["metadata"]["labels"] = json!({ "kro.run/instance-id": parent["metadata"]["uid"] });
            }
            Link::Reference => {}
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

    async fn turn_child(&self, tenant: &TestTenant, status: &str) -> Result<()> {
        let entry = json!({ "type": "Ready", "status": status, "reason": "Said", "observedGeneration": 1 });
        let place = format!("{}/{}", self.child(), self.name);
        tenant.change_status(&place, json!({ "conditions": [entry] })).await?;
        Ok(())
    }

    /// Waits until the policy has judged it so, and until the metric counts whether it disagrees.
    async fn until_judged(&self, tenant: &TestTenant, running: &RollcallProcess, ready: bool) -> Result<()> {
        let policy = format!("policy=\"{}\"", tenant.policy_name(self.name));
        let is_ready = move |parents: f64| (parents > 0.5) == ready;
        running.until_metric("rollcall_parents", &[&policy, "verdict=\"Ready\""], is_ready).await?;
        let metric = match self.evidence {
            Evidence::Group => "rollcall_shadow_disagreements",
            Evidence::Finalizer(_) => "rollcall_parents_owned_disagreeing",
            Evidence::None => return Ok(()),
        };
        let disagrees = self.says_true && !ready;
        running.until_metric(metric, &[&policy], move |parents| (parents > 0.5) == disagrees).await?;
        Ok(())
    }

    /// Waits until the policy says by what its parent was recognized, and counts it as not ready.
    async fn until_policy_says_why(&self, tenant: &TestTenant) -> Result<()> {
        let said = match self.evidence {
            Evidence::Finalizer(words) => because("Ready", "ConditionOwned")
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

    fn address(&self, tenant: &TestTenant) -> Result<ObjectAddress> {
        let mut manifest = self.manifest();
        manifest["metadata"]["namespace"] = json!(tenant.name);
        ObjectAddress::of(&manifest)
    }
}

fn conditions(of: &[(&str, &str)]) -> Value {
    let entry = |(kind, reason): &(&str, &str)| {
        json!({ "type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    of.iter().map(entry).collect()
}

fn of_argo_cd() -> [PeerParent; 2] {
    let application = PeerParent {
        status: json!({ "health": { "status": "Healthy" }, "sync": { "status": "Synced", "revision": "a1b2c3" },
            "resources": [{ "group": "example.com", "kind": "Part", "name": "part", "status": "Synced", "version": "v1" }] }),
        has_status_subresource: false,
        ..PeerParent::new(
            "application",
            ("argoproj.io", "v1alpha1", "Application"),
            "argocd-application-controller",
        )
        .finalizers(&["resources-finalizer.argocd.argoproj.io"])
    };
    let set = PeerParent {
        status: json!({ "conditions": conditions(&[("ParametersGenerated", "ParametersGenerated"),
            ("ResourcesUpToDate", "ApplicationSetUpToDate")]) }),
        condition: "ResourcesUpToDate",
        ..PeerParent::new(
            "application-set",
            ("argoproj.io", "v1alpha1", "ApplicationSet"),
            "argocd-applicationset-controller",
        )
    };
    [application, set]
}

fn of_flux() -> [PeerParent; 2] {
    let kustomization = PeerParent {
        status: json!({ "observedGeneration": 1, "lastAppliedRevision": "main@sha1:a1b2c3",
            "inventory": { "entries": [{ "id": "default_part_example.com_Part", "v": "v1" }] },
            "conditions": conditions(&[("Ready", "ReconciliationSucceeded")]) }),
        ..PeerParent::new(
            "kustomization",
            ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
            "kustomize-controller",
        )
        .finalizers(&["finalizers.fluxcd.io"])
    };
    let release = PeerParent {
        status: json!({ "observedGeneration": 1, "lastAttemptedGeneration": 1,
            "history": [{ "name": "shop", "namespace": "default", "status": "deployed", "version": 1 }],
            "conditions": conditions(&[("Ready", "InstallSucceeded"), ("Released", "InstallSucceeded")]) }),
        ..PeerParent::new("helm-release", ("helm.toolkit.fluxcd.io", "v2", "HelmRelease"), "helm-controller")
            .finalizers(&["finalizers.fluxcd.io"])
    };
    [kustomization, release]
}

fn of_cluster_api() -> [PeerParent; 2] {
    // The contract v1beta2 has Available in place of Ready.
    let cluster = PeerParent {
        status: json!({ "phase": "Provisioned", "initialization": { "controlPlaneInitialized": true },
            "conditions": conditions(&[("Available", "Available"), ("InfrastructureReady", "Ready")]) }),
        condition: "Available",
        ..PeerParent::new("cluster", ("cluster.x-k8s.io", "v1beta2", "Cluster"), "manager")
            .finalizers(&["cluster.cluster.x-k8s.io"])
    };
    let control_plane = PeerParent {
        status: json!({ "observedGeneration": 1, "initialized": true, "ready": true, "readyReplicas": 1,
            "conditions": conditions(&[("Ready", "Ready"), ("CertificatesAvailable", "Available")]) }),
        ..PeerParent::new(
            "kubeadm-control-plane",
            ("controlplane.cluster.x-k8s.io", "v1beta1", "KubeadmControlPlane"),
            "manager",
        )
        .finalizers(&["kubeadm.controlplane.cluster.x-k8s.io"])
    };
    [cluster, control_plane]
}

fn of_olm() -> [PeerParent; 2] {
    // Its conditions are a history of phases, without types.
    let version = PeerParent {
        status: json!({ "phase": "Succeeded", "reason": "InstallSucceeded",
            "conditions": [{ "phase": "InstallReady", "reason": "AllRequirementsMet" },
                { "phase": "Succeeded", "reason": "InstallSucceeded" }] }),
        ..PeerParent::new(
            "cluster-service-version",
            ("operators.coreos.com", "v1alpha1", "ClusterServiceVersion"),
            "olm",
        )
        .finalizers(&["operators.coreos.com/csv-cleanup"])
    };
    let extension = PeerParent {
        status: json!({ "install": { "bundle": { "name": "shop.v1.0.0", "version": "1.0.0" } },
            "conditions": conditions(&[("Progressing", "Succeeded"), ("Installed", "Succeeded")]) }),
        condition: "Installed",
        ..PeerParent::new(
            "cluster-extension",
            ("olm.operatorframework.io", "v1", "ClusterExtension"),
            "operator-controller",
        )
    };
    [version, extension]
}

/// Instances of kro and objects of Crossplane, which have any group that their authors chose.
fn recognized_by_finalizer() -> Vec<PeerParent> {
    let kro = "by kro (finalizer kro.run/finalizer), which replaces the whole status";
    let instance = |name, group| {
        let mut parent = PeerParent {
            status: json!({ "state": "ACTIVE", "available": 1, "conditions": conditions(&[
                ("InstanceManaged", "Managed"), ("GraphResolved", "Resolved"),
                ("ResourcesReady", "AllResourcesReady"), ("Ready", "Ready")]) }),
            link: Link::Label,
            ..PeerParent::new(name, (group, "v1alpha1", "WebApp"), "kro").finalizers(&["kro.run/finalizer"])
        };
        parent.metadata["labels"] = json!({ "kro.run/owned": "true", "kro.run/resource-graph-definition-name": "apps",
            "applyset.kubernetes.io/id": "applyset-lCmFVfKCSRZs5ckA1Hw9kya8xhRgOfzUcyF5J-eSmI4-v1" });
        parent
    };
    let crossplane = |name, kind, finalizer: &'static str, words| PeerParent {
        status: json!({ "conditions": conditions(&[("Synced", "ReconcileSuccess"), ("Ready", "Available")]) }),
        evidence: Evidence::Finalizer(words),
        ..PeerParent::new(name, ("sql.example.org", "v1alpha1", kind), "crossplane").finalizers(&[finalizer])
    };
    let mut composite = crossplane(
        "composite",
        "XDatabase",
        "composite.apiextensions.crossplane.io",
        "by Crossplane (finalizer composite.apiextensions.crossplane.io)",
    );
    composite.metadata["labels"] = json!({ "crossplane.io/composite": "composite" });
    composite.spec = json!({ "crossplane": { "compositionRef": { "name": "databases" },
        "resourceRefs": [{ "apiVersion": "example.com/v1", "kind": "Part", "name": "composite" }] } });
    let mut claim = crossplane(
        "claim",
        "DatabaseClaim",
        "finalizer.apiextensions.crossplane.io",
        "by Crossplane (finalizer finalizer.apiextensions.crossplane.io)",
    );
    claim.link = Link::Reference;
    claim.spec = json!({ "compositionRef": { "name": "databases" } });
    let mut managed = crossplane(
        "managed",
        "Instance",
        "finalizer.managedresource.crossplane.io",
        "by Crossplane (finalizer finalizer.managedresource.crossplane.io)",
    );
    managed.metadata["annotations"] = json!({ "crossplane.io/external-name": "managed" });
    managed.spec = json!({ "forProvider": { "size": 1 }, "providerConfigRef": { "name": "default" } });
    let of_kro = instance("kro-own-group", "kro.run");
    let elsewhere =
        PeerParent { evidence: Evidence::Finalizer(kro), ..instance("kro-other-group", "apps.example.org") };
    vec![of_kro, elsewhere, composite, claim, managed]
}

/// Kinds of a user's own, deployed by these tools or named like theirs.
fn taken_for_nobodys() -> Vec<PeerParent> {
    let own = |name, group: &str, kind| PeerParent {
        evidence: Evidence::None,
        says_true: false,
        ..PeerParent::new(name, (group, "v1", kind), "shop-operator")
    };
    let mut application = own("own-application", "argoproj.io.example.com", "Application")
        .finalizers(&["example.com/resources-finalizer.argocd.argoproj.io"]);
    application.metadata["annotations"] = json!({ "argocd.argoproj.io/tracking-id": "shop:argoproj.io.example.com/Application:default/own-application" });
    application.status = json!({ "health": { "status": "Healthy" } });
    let mut kustomization = own("own-kustomization", "toolkit.fluxcd.io.example.com", "Kustomization");
    kustomization.metadata["labels"] = json!({ "kustomize.toolkit.fluxcd.io/name": "shop",
        "helm.toolkit.fluxcd.io/name": "shop" });
    let mut instance =
        own("own-webapp", "kro.run.example.com", "WebApp").finalizers(&["kro.run.example.com/finalizer"]);
    // kro sets these on what an instance has made.
    instance.metadata["labels"] = json!({ "kro.run/owned": "true", "kro.run/node-id": "app",
        "applyset.kubernetes.io/part-of": "applyset-lCmFVfKCSRZs5ckA1Hw9kya8xhRgOfzUcyF5J-eSmI4-v1" });
    instance.status = json!({ "state": "ACTIVE" });
    let mut composed = own("own-composed", "crossplane.io.example.com", "XDatabase")
        .finalizers(&["example.com/composite.apiextensions.crossplane.io"]);
    composed.metadata["labels"] = json!({ "crossplane.io/composite": "shop" });
    composed.metadata["annotations"] = json!({ "crossplane.io/composition-resource-name": "database" });
    composed.spec = json!({ "compositionRef": { "name": "databases" }, "crossplane": { "paused": false } });
    // Not a group of Cluster API, though it ends like one.
    let mut export = own("own-export", "multicluster.x-k8s.io", "ServiceExport");
    export.metadata["labels"] = json!({ "cluster.x-k8s.io/cluster-name": "shop" });
    let mut version = own("own-version", "coreos.com.example.com", "ClusterServiceVersion");
    version.metadata["labels"] =
        json!({ "olm.owner": "shop.v1.0.0", "operators.coreos.com/shop.default": "" });
    version.status = json!({ "phase": "Succeeded" });
    vec![application, kustomization, instance, composed, export, version]
}

#[tokio::test]
async fn parents_of_other_aggregators_are_recognized_evaluated_and_not_written_and_their_namesakes_are_parents_like_any()
-> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane, "aggregators").await?;
    for kind in ["Part", "ClusterPart"] {
        tenant.crd(&CrdBuilder::new(kind)).await?;
    }
    let by_group = [of_argo_cd(), of_flux(), of_cluster_api(), of_olm()];
    let theirs: Vec<PeerParent> = by_group.into_iter().flatten().chain(recognized_by_finalizer()).collect();
    let own = taken_for_nobodys();
    let mut policies = Vec::new();
    for parent in theirs.iter().chain(&own) {
        tenant.define(&parent.definition()).await?;
        policies.push(parent.policy(&tenant));
    }
    acceptance::policies::apply_crds(&tenant, &acceptance::places::rollcall()?).await?;
    for policy in &policies {
        tenant.admin.create(policy).await?;
    }
    let running = tenant.rollcall(&[]).await?;
    let mut left_by_controllers = Vec::new();
    for parent in &theirs {
        left_by_controllers.push(parent.create(&tenant).await?);
    }
    for parent in &own {
        parent.create(&tenant).await?;
    }

    for parent in &theirs {
        parent.until_judged(&tenant, &running, false).await?;
        parent.until_policy_says_why(&tenant).await?;
    }
    for parent in &own {
        let named = mentions("Ready", &format!("Part {}", parent.name));
        tenant.until_at(&parent.address(&tenant)?, &says("Ready", "False").and(named)).await?;
        let accepted = because("Accepted", "Accepted");
        tenant.until_at(&policy_address(&tenant, parent.name)?, &accepted).await?;
    }

    // Both sides agree, and still nothing is said on what is not for Rollcall to write.
    for parent in theirs.iter().chain(&own) {
        parent.turn_child(&tenant, "True").await?;
    }
    for parent in theirs.iter().chain(&own) {
        parent.until_judged(&tenant, &running, true).await?;
    }
    for parent in &own {
        tenant.until_at(&parent.address(&tenant)?, &says("Ready", "True")).await?;
    }
    for (parent, left) in theirs.iter().zip(&left_by_controllers) {
        let now = tenant.admin.get(&ObjectAddress::of(left)?).await?;
        ensure!(now.as_ref() == Some(left), "{} was written: {now:#?}", parent.name);
        let policy = format!("policy=\"{}\"", tenant.policy_name(parent.name));
        ensure!(
            running.metric("rollcall_writes_total", &[&policy]).await? < 0.5,
            "{} was written",
            parent.name
        );
    }
    Ok(())
}
