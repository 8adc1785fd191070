//! Who is likely to hold a finalizer: whose domain it carries, and what that one waits for.
//!
//! A finalizer is a name and nothing else; the API does not say who set it. Names are taken from the sources of those who
//! set them. A domain that nobody here knows is not guessed at.

use std::fmt;

use crate::Time;
use crate::text::Text;

/// Who is likely to hold a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What people call it.
    pub who: &'static str,
    /// What it waits for before it lets go, or what to look at.
    pub waits: &'static str,
}

/// A finalizer itself, or a domain that stands before its slash, alone or behind a dot.
#[derive(Clone, Copy)]
enum Is {
    Name(&'static str),
    Of(&'static str),
}
use Is::{Name, Of};

const OPERATOR: &str = "whether that operator runs, and what its log says about this object";

/// First come, first served: a name stands before the domain that it belongs to.
const KNOWN: [(Is, &str, &str); 54] = [
    (Name("foregroundDeletion"), "Kubernetes garbage collector", "the dependents that block its deletion"),
    (Name("orphan"), "Kubernetes garbage collector", "that its dependents are let go of"),
    (Name("kubernetes.io/pvc-protection"), "Kubernetes", "the last Pod that uses the claim"),
    (Name("kubernetes.io/pv-protection"), "Kubernetes", "the claim that is bound to the volume"),
    (
        Name("batch.kubernetes.io/job-tracking"),
        "Kubernetes Job controller",
        "that the Pod is counted for its Job",
    ),
    (
        Name("customresourcecleanup.apiextensions.k8s.io"),
        "Kubernetes API server",
        "objects of this kind that are still there",
    ),
    (
        Name("service.kubernetes.io/load-balancer-cleanup"),
        "the cloud's service controller",
        "that the load balancer is taken down",
    ),
    (
        Name("argocd.argoproj.io/hook-finalizer"),
        "Argo CD",
        "the sync that the hook belongs to; some releases forget it",
    ),
    (Name("resources-finalizer.argocd.argoproj.io"), "Argo CD", "the resources of the Application"),
    (Of("argocd.argoproj.io"), "Argo CD", "what Argo CD says about its Application"),
    (Of("workflows.argoproj.io"), "Argo Workflows", "its workflow controller"),
    (Of("kopf.zalando.org"), "a Kopf operator", OPERATOR),
    (Of("kopf.dev"), "a Kopf operator", OPERATOR),
    (Of("fluxcd.io"), "Flux", "the Flux controller of that kind"),
    (Of("kro.run"), "kro", "kro and the resources of the instance"),
    (Name("in-use.crossplane.io"), "Crossplane", "the Usage that protects it"),
    (Of("crossplane.io"), "Crossplane", "the external resource and its provider"),
    (Of("upbound.io"), "Crossplane", "the external resource and its provider"),
    (Of("cert-manager.io"), "cert-manager", "the challenge that is to be cleaned up"),
    (Of("cluster.x-k8s.io"), "Cluster API", "the machines and infrastructure below it"),
    (
        Of("snapshot.storage.kubernetes.io"),
        "the CSI snapshot controller",
        "the snapshot or what is restored from it",
    ),
    (Of("external-provisioner.volume.kubernetes.io"), "the CSI provisioner", "the storage backend"),
    (Name("kubernetes.io/external-attacher"), "the CSI attacher", "that the volume is detached"),
    (Of("external-attacher"), "the CSI attacher", "that the volume is detached"),
    (Of("k8s.aws"), "the AWS load balancer controller", "the resources in AWS"),
    (Of("services.k8s.aws"), "AWS Controllers for Kubernetes", "the resources in AWS"),
    (Of("networking.gke.io"), "GKE", "the resources in Google Cloud"),
    (Of("cnrm.cloud.google.com"), "Config Connector", "the resources in Google Cloud"),
    (Of("serviceoperator.azure.com"), "Azure Service Operator", "the resources in Azure"),
    (Of("karpenter.sh"), "Karpenter", "that the node is drained"),
    (Of("keda.sh"), "KEDA", OPERATOR),
    (Of("cattle.io"), "Rancher", OPERATOR),
    (Of("longhorn.io"), "Longhorn", OPERATOR),
    (Of("ceph.rook.io"), "Rook", "what still uses the storage"),
    (Of("rook.io"), "Rook", "what still uses the storage"),
    (Of("cnpg.io"), "CloudNativePG", OPERATOR),
    (Of("acid.zalan.do"), "the Zalando Postgres operator", OPERATOR),
    (Of("strimzi.io"), "Strimzi", OPERATOR),
    (Of("k8s.elastic.co"), "Elastic Cloud on Kubernetes", OPERATOR),
    (Of("velero.io"), "Velero", OPERATOR),
    (Of("tekton.dev"), "Tekton", OPERATOR),
    (Of("knative.dev"), "Knative", OPERATOR),
    (Of("istio.io"), "Istio", OPERATOR),
    (Of("gateway.networking.k8s.io"), "the Gateway API implementation", "the Gateways that use it"),
    (Of("external-secrets.io"), "External Secrets", OPERATOR),
    (Of("kubevirt.io"), "KubeVirt", OPERATOR),
    (Of("traefik.io"), "Traefik", OPERATOR),
    (Of("projectcontour.io"), "Contour", OPERATOR),
    (Of("kyverno.io"), "Kyverno", OPERATOR),
    (Of("open-cluster-management.io"), "Open Cluster Management", OPERATOR),
    (Of("volcano.sh"), "Volcano", OPERATOR),
    (Of("kueue.x-k8s.io"), "Kueue", OPERATOR),
    (Of("k8s.io"), "Kubernetes", "the Kubernetes controller of that name"),
    (Of("kubernetes.io"), "Kubernetes", "the Kubernetes controller of that name"),
];

/// Who is likely to hold this finalizer, where its name tells.
pub fn holder(finalizer: &str) -> Option<Holder> {
    let domain = finalizer.split('/').next().unwrap_or(finalizer);
    let under = |of: &str| domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let fits = |is: Is| match is {
        Name(name) => name == finalizer || (name == domain && !name.contains('/')),
        Of(of) => under(of),
    };
    KNOWN.iter().find(|(is, ..)| fits(*is)).map(|(_, who, waits)| Holder { who, waits })
}

/// So many finalizers are named.
const NAMED: usize = 3;
/// So many bytes of each are kept: enough to know it by.
const LONGEST: usize = 96;

/// What keeps an object that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    since: Time,
    names: Text,
}

impl Held {
    /// Since its deletion was asked for, by these finalizers, which these managers have set.
    pub fn new(since: Time, finalizers: &[Box<str>], setters: &[(Box<str>, Box<str>)]) -> Held {
        let told = finalizers.iter().take(NAMED).map(|name| {
            let likely = holder(name).map(|holder| format!(" (likely {})", holder.who));
            let set_by = || Some(format!(" (set by {})", short(setter(name, setters)?)));
            format!("{}{}", short(name), likely.or_else(set_by).unwrap_or_default())
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let more = finalizers.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let word = if finalizers.len() == 1 { "finalizer" } else { "finalizers" };
        Held { since, names: Text::whole(&format!("{word} {told}{more}")) }
    }
}

fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST)]
}

/// The one who has set it; of several, nobody is known to be its owner.
fn setter<'s>(finalizer: &str, setters: &'s [(Box<str>, Box<str>)]) -> Option<&'s str> {
    let mut of_it = setters.iter().filter(|(name, _)| **name == *finalizer).map(|(_, manager)| &**manager);
    of_it.next().filter(|first| of_it.all(|other| other == *first))
}

impl fmt::Display for Held {
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
            assert_eq!(holder(finalizer).map(|holder| holder.who), who, "{finalizer}");
        }
    }

    #[test]
    fn what_holds_an_object_is_told_with_its_likely_owner_and_since_when() {
        let held = |names: &[&str]| {
            let names: Vec<Box<str>> = names.iter().map(|name| (*name).into()).collect();
            let set = |name: &str, by: &str| (name.into(), by.into());
            let setters = [
                set("b", "shop-controller"),
                set("foregroundDeletion", "kubectl"),
                set("c", "x"),
                set("c", "y"),
            ];
            Held::new(Time(1_767_225_600_000), &names, &setters).to_string()
        };
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
