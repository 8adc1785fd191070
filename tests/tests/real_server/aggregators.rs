//! Parents whose status another aggregator keeps, as its controllers leave them: recognized by their group or by a finalizer,
//! evaluated, and not written. What only bears such names is a parent like any other.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::peer_parent::{PeerEvidence, PeerLink, PeerParent};

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
            link: PeerLink::Label,
            ..PeerParent::new(name, (group, "v1alpha1", "WebApp"), "kro").finalizers(&["kro.run/finalizer"])
        };
        parent.metadata["labels"] = json!({ "kro.run/owned": "true", "kro.run/resource-graph-definition-name": "apps",
            "applyset.kubernetes.io/id": "applyset-lCmFVfKCSRZs5ckA1Hw9kya8xhRgOfzUcyF5J-eSmI4-v1" });
        parent
    };
    let crossplane = |name, kind, finalizer: &'static str, words| PeerParent {
        status: json!({ "conditions": conditions(&[("Synced", "ReconcileSuccess"), ("Ready", "Available")]) }),
        evidence: PeerEvidence::Finalizer(words),
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
    claim.link = PeerLink::Reference;
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
    let elsewhere = PeerParent {
        evidence: PeerEvidence::Finalizer(kro),
        ..instance("kro-other-group", "apps.example.org")
    };
    vec![of_kro, elsewhere, composite, claim, managed]
}

/// Kinds of a user's own, deployed by these tools or named like theirs.
fn taken_for_nobodys() -> Vec<PeerParent> {
    let own = |name, group: &str, kind| PeerParent {
        evidence: PeerEvidence::None,
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
