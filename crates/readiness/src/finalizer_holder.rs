//! The likely holder of a finalizer: the component whose domain it carries, and the work that component waits for.
//!
//! A finalizer is only a name; the API does not record who set it. The names are taken from the sources of the
//! components that set them. No holder is guessed for an unknown domain.

use std::fmt;

use crate::Time;
use crate::text::BoundedText;

/// Component that likely holds a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikelyFinalizerHolder {
    /// Common name of the component.
    pub who: &'static str,
    /// Work that the component waits for before it removes the finalizer, or the place to look.
    pub waits: &'static str,
}

/// A finalizer name, or a domain before the slash, alone or after a dot.
#[derive(Clone, Copy)]
enum FinalizerPattern {
    Name(&'static str),
    Domain(&'static str),
}
use FinalizerPattern::{Domain, Name};

const OPERATOR_HINT: &str = "the operator; check that it runs, and its log for this object";

/// Known finalizers. The first match wins: a name stands before the domain that it belongs to.
const KNOWN_FINALIZERS: [(FinalizerPattern, &str, &str); 54] = [
    (Name("foregroundDeletion"), "Kubernetes garbage collector", "the dependents that block its deletion"),
    (Name("orphan"), "Kubernetes garbage collector", "its dependents, which are being orphaned"),
    (Name("kubernetes.io/pvc-protection"), "Kubernetes", "the last Pod that uses the claim"),
    (Name("kubernetes.io/pv-protection"), "Kubernetes", "the claim that is bound to the volume"),
    (
        Name("batch.kubernetes.io/job-tracking"),
        "Kubernetes Job controller",
        "the Job, which has to count the Pod",
    ),
    (
        Name("customresourcecleanup.apiextensions.k8s.io"),
        "Kubernetes API server",
        "the remaining objects of this kind",
    ),
    (
        Name("service.kubernetes.io/load-balancer-cleanup"),
        "the cloud's service controller",
        "the load balancer, which has to be deleted",
    ),
    (
        Name("argocd.argoproj.io/hook-finalizer"),
        "Argo CD",
        "the sync that the hook belongs to; some Argo CD releases leave the finalizer behind",
    ),
    (Name("resources-finalizer.argocd.argoproj.io"), "Argo CD", "the resources of the Application"),
    (Domain("argocd.argoproj.io"), "Argo CD", "the status of its Application in Argo CD"),
    (Domain("workflows.argoproj.io"), "Argo Workflows", "its workflow controller"),
    (Domain("kopf.zalando.org"), "a Kopf operator", OPERATOR_HINT),
    (Domain("kopf.dev"), "a Kopf operator", OPERATOR_HINT),
    (Domain("fluxcd.io"), "Flux", "the Flux controller of that kind"),
    (Domain("kro.run"), "kro", "kro and the resources of the instance"),
    (Name("in-use.crossplane.io"), "Crossplane", "the Usage that protects it"),
    (Domain("crossplane.io"), "Crossplane", "the external resource and its provider"),
    (Domain("upbound.io"), "Crossplane", "the external resource and its provider"),
    (Domain("cert-manager.io"), "cert-manager", "the ACME challenge, which has to be cleaned up"),
    (Domain("cluster.x-k8s.io"), "Cluster API", "the machines and infrastructure that it owns"),
    (
        Domain("snapshot.storage.kubernetes.io"),
        "the CSI snapshot controller",
        "the snapshot, or a volume being restored from it",
    ),
    (Domain("external-provisioner.volume.kubernetes.io"), "the CSI provisioner", "the storage backend"),
    (Name("kubernetes.io/external-attacher"), "the CSI attacher", "the volume, which has to be detached"),
    (Domain("external-attacher"), "the CSI attacher", "the volume, which has to be detached"),
    (Domain("k8s.aws"), "the AWS load balancer controller", "the resources in AWS"),
    (Domain("services.k8s.aws"), "AWS Controllers for Kubernetes", "the resources in AWS"),
    (Domain("networking.gke.io"), "GKE", "the resources in Google Cloud"),
    (Domain("cnrm.cloud.google.com"), "Config Connector", "the resources in Google Cloud"),
    (Domain("serviceoperator.azure.com"), "Azure Service Operator", "the resources in Azure"),
    (Domain("karpenter.sh"), "Karpenter", "the node, which has to be drained"),
    (Domain("keda.sh"), "KEDA", OPERATOR_HINT),
    (Domain("cattle.io"), "Rancher", OPERATOR_HINT),
    (Domain("longhorn.io"), "Longhorn", OPERATOR_HINT),
    (Domain("ceph.rook.io"), "Rook", "the workloads that still use the storage"),
    (Domain("rook.io"), "Rook", "the workloads that still use the storage"),
    (Domain("cnpg.io"), "CloudNativePG", OPERATOR_HINT),
    (Domain("acid.zalan.do"), "the Zalando Postgres operator", OPERATOR_HINT),
    (Domain("strimzi.io"), "Strimzi", OPERATOR_HINT),
    (Domain("k8s.elastic.co"), "Elastic Cloud on Kubernetes", OPERATOR_HINT),
    (Domain("velero.io"), "Velero", OPERATOR_HINT),
    (Domain("tekton.dev"), "Tekton", OPERATOR_HINT),
    (Domain("knative.dev"), "Knative", OPERATOR_HINT),
    (Domain("istio.io"), "Istio", OPERATOR_HINT),
    (Domain("gateway.networking.k8s.io"), "the Gateway API implementation", "the Gateways that use it"),
    (Domain("external-secrets.io"), "External Secrets", OPERATOR_HINT),
    (Domain("kubevirt.io"), "KubeVirt", OPERATOR_HINT),
    (Domain("traefik.io"), "Traefik", OPERATOR_HINT),
    (Domain("projectcontour.io"), "Contour", OPERATOR_HINT),
    (Domain("kyverno.io"), "Kyverno", OPERATOR_HINT),
    (Domain("open-cluster-management.io"), "Open Cluster Management", OPERATOR_HINT),
    (Domain("volcano.sh"), "Volcano", OPERATOR_HINT),
    (Domain("kueue.x-k8s.io"), "Kueue", OPERATOR_HINT),
    (Domain("k8s.io"), "Kubernetes", "the Kubernetes controller of that name"),
    (Domain("kubernetes.io"), "Kubernetes", "the Kubernetes controller of that name"),
];

/// Returns the component that likely holds this finalizer, if its name is known.
pub fn likely_holder(finalizer: &str) -> Option<LikelyFinalizerHolder> {
    let domain = finalizer.split('/').next().unwrap_or(finalizer);
    let under = |of: &str| domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let fits = |is: FinalizerPattern| match is {
        Name(name) => name == finalizer || (name == domain && !name.contains('/')),
        Domain(of) => under(of),
    };
    KNOWN_FINALIZERS
        .iter()
        .find(|(is, ..)| fits(*is))
        .map(|(_, who, waits)| LikelyFinalizerHolder { who, waits })
}

/// Largest number of finalizers that are named.
const MAX_NAMED_FINALIZERS: usize = 3;
/// Longest kept part of a finalizer name, in bytes: enough to recognise it.
const MAX_FINALIZER_NAME_BYTES: usize = 96;

/// The finalizers that block the deletion of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FinalizerHold {
    since: Time,
    names: BoundedText,
    brief: BoundedText,
}

impl FinalizerHold {
    /// Creates the reason from the time of the deletion request, the finalizers and the managers that set them.
    pub fn new(since: Time, finalizers: &[Box<str>], setters: &[(Box<str>, Box<str>)]) -> FinalizerHold {
        let told = finalizers.iter().take(MAX_NAMED_FINALIZERS).map(|name| {
            let likely = likely_holder(name).map(|holder| format!(" (likely {})", holder.who));
            let set_by = || Some(format!(" (set by {})", shorten_name(sole_setter(name, setters)?)));
            format!("{}{}", shorten_name(name), likely.or_else(set_by).unwrap_or_default())
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let more = finalizers.len().saturating_sub(MAX_NAMED_FINALIZERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let word = if finalizers.len() == 1 { "finalizer" } else { "finalizers" };
        let first = finalizers.first().map_or("", |name| shorten_name(name));
        let others = match finalizers.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        FinalizerHold {
            since,
            names: BoundedText::from_bounded(&format!("{word} {told}{more}")),
            brief: BoundedText::from_bounded(&format!("{word} {first}{others}")),
        }
    }

    /// Returns the first finalizer and the number of the others: for a place where several objects are told of.
    pub fn brief(&self) -> &str {
        &self.brief
    }
}

fn shorten_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_FINALIZER_NAME_BYTES)]
}

/// Returns the manager that set the finalizer; `None` if several managers did, because then none is known to own it.
fn sole_setter<'s>(finalizer: &str, setters: &'s [(Box<str>, Box<str>)]) -> Option<&'s str> {
    let mut of_it = setters.iter().filter(|(name, _)| **name == *finalizer).map(|(_, manager)| &**manager);
    of_it.next().filter(|first| of_it.all(|other| other == *first))
}

impl fmt::Display for FinalizerHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, terminating since {}", self.names, self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_known_by_its_name_or_its_domain() {
        for (finalizer, who) in [
            ("foregroundDeletion", Some("Kubernetes garbage collector")),
            ("kubernetes.io/pvc-protection", Some("Kubernetes")),
            ("argocd.argoproj.io/hook-finalizer", Some("Argo CD")),
            ("resources-finalizer.argocd.argoproj.io/background", Some("Argo CD")),
            ("post-delete-finalizer.argocd.argoproj.io", Some("Argo CD")),
            ("kopf.zalando.org/KopfFinalizerMarker", Some("a Kopf operator")),
            ("finalizers.fluxcd.io", Some("Flux")),
            ("finalizer.managedresource.crossplane.io", Some("Crossplane")),
            ("acme.cert-manager.io/finalizer", Some("cert-manager")),
            ("machine.cluster.x-k8s.io", Some("Cluster API")),
            ("service.k8s.aws/resources", Some("the AWS load balancer controller")),
            ("example.org/backup", None),
            ("notfluxcd.io", None),
            ("", None),
        ] {
            assert_eq!(likely_holder(finalizer).map(|holder| holder.who), who, "{finalizer}");
        }
    }

    #[test]
    fn what_holds_an_object_is_told_with_its_likely_owner_and_since_when() {
        let hold = |names: &[&str]| {
            let names: Vec<Box<str>> = names.iter().map(|name| (*name).into()).collect();
            let set = |name: &str, by: &str| (name.into(), by.into());
            let setters = [
                set("b", "shop-controller"),
                set("foregroundDeletion", "kubectl"),
                set("c", "x"),
                set("c", "y"),
            ];
            FinalizerHold::new(Time(1_767_225_600_000), &names, &setters)
        };
        let (one, many) = (hold(&["c"]), hold(&["a.io/x", "b", "c"]));
        assert_eq!((one.brief(), many.brief()), ("finalizer c", "finalizers a.io/x and 2 more"));
        let held = |names: &[&str]| hold(names).to_string();
        assert_eq!(
            held(&["argocd.argoproj.io/hook-finalizer"]),
            "finalizer argocd.argoproj.io/hook-finalizer (likely Argo CD), terminating since 2026-01-01T00:00:00Z"
        );
        assert_eq!(
            held(&["a.io/x", "foregroundDeletion", "b", "c", "d"]),
            "finalizers a.io/x, foregroundDeletion (likely Kubernetes garbage collector), b (set by shop-controller) and 2 more, terminating since 2026-01-01T00:00:00Z"
        );
        assert_eq!(
            held(&["c"]),
            "finalizer c, terminating since 2026-01-01T00:00:00Z",
            "one of two, which is nobody"
        );
        assert!(held(&["x".repeat(300).as_str(); 3]).len() < 400, "bounded");
    }
}
