//! The built-in kinds.

use super::kind::{KindTraits, SandboxKind, StorageId};

/// Table of built-in kinds: `group/version kind plural shortnames flags`; `-` is none. Flags: `N` namespaced, `S`
/// status subresource, `G` generation, `B` PUT without resourceVersion, `C` PUT creates, `D` DELETE answers the object,
/// `P` deleted with a grace period, `O` orphans its dependents by default, `R` review, `A` category `all`.
const BUILTIN_KIND_TABLE: &str = "
v1 Binding bindings - NR
v1 ConfigMap configmaps cm NB
v1 Endpoints endpoints ep NBC
v1 Event events ev NBC
v1 LimitRange limitranges limits NBC
v1 Namespace namespaces ns SB
v1 Node nodes no SB
v1 PersistentVolume persistentvolumes pv SBD
v1 PersistentVolumeClaim persistentvolumeclaims pvc NSBD
v1 Pod pods po NSGBDPA
v1 PodTemplate podtemplates - NGBCD
v1 ReplicationController replicationcontrollers rc NSGBA
v1 ResourceQuota resourcequotas quota NSBD
v1 Secret secrets - NB
v1 Service services svc NSBCDA
v1 ServiceAccount serviceaccounts sa NBD
apps/v1 ControllerRevision controllerrevisions - NB
apps/v1 DaemonSet daemonsets ds NSGBA
apps/v1 Deployment deployments deploy NSGBA
apps/v1 ReplicaSet replicasets rs NSGBA
apps/v1 StatefulSet statefulsets sts NSGBA
batch/v1 CronJob cronjobs cj NSGBA
batch/v1 Job jobs - NSGBOA
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers hpa NSGBA
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers hpa NSGBA
policy/v1 PodDisruptionBudget poddisruptionbudgets pdb NSG
networking.k8s.io/v1 Ingress ingresses ing NSGB
networking.k8s.io/v1 IngressClass ingressclasses - GB
networking.k8s.io/v1 NetworkPolicy networkpolicies netpol NGB
coordination.k8s.io/v1 Lease leases - NC
events.k8s.io/v1 Event events ev NBC
discovery.k8s.io/v1 EndpointSlice endpointslices - NGB
storage.k8s.io/v1 StorageClass storageclasses sc B
storage.k8s.io/v1 VolumeAttachment volumeattachments - S
scheduling.k8s.io/v1 PriorityClass priorityclasses pc GB
rbac.authorization.k8s.io/v1 ClusterRole clusterroles - BC
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings - BC
rbac.authorization.k8s.io/v1 Role roles - NBC
rbac.authorization.k8s.io/v1 RoleBinding rolebindings - NBC
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions crd,crds SG
apiregistration.k8s.io/v1 APIService apiservices - S
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations - GB
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations - GB
authentication.k8s.io/v1 TokenReview tokenreviews - R
authentication.k8s.io/v1 SelfSubjectReview selfsubjectreviews - R
authorization.k8s.io/v1 LocalSubjectAccessReview localsubjectaccessreviews - NR
authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews - R
authorization.k8s.io/v1 SelfSubjectRulesReview selfsubjectrulesreviews - R
authorization.k8s.io/v1 SubjectAccessReview subjectaccessreviews - R
";

/// Returns the storage id that follows those of this number of kinds.
pub(super) fn next_storage(kinds: usize) -> StorageId {
    StorageId::try_from(kinds).expect("invariant: the built-in kinds are few")
}

/// Returns the built-in kinds. Kinds that share a storage (Events, the two versions of HorizontalPodAutoscaler) have
/// the same id.
pub(super) fn builtin_kinds() -> Vec<SandboxKind> {
    let mut kinds: Vec<SandboxKind> = Vec::new();
    for line in BUILTIN_KIND_TABLE.lines().filter(|line| !line.is_empty()) {
        let [api_version, kind, plural, short, flags] = line.split(' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let twin =
            kinds.iter().find(|other| other.plural == plural && (other.group == group || plural == "events"));
        let storage = twin.map_or_else(|| next_storage(kinds.len()), |twin| twin.storage);
        kinds.push(SandboxKind {
            storage,
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            list_kind: format!("{kind}List"),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short_names: short.split(',').filter(|name| *name != "-").map(Into::into).collect(),
            categories: if flags.contains('A') { vec!["all".into()] } else { Vec::new() },
            namespaced: flags.contains('N'),
            status: flags.contains('S'),
            traits: parse_traits(flags),
            schema: None,
            columns: Vec::new(),
        });
    }
    kinds
}

fn parse_traits(flags: &str) -> KindTraits {
    let has = |flag| flags.contains(flag);
    KindTraits {
        custom: false,
        generation: has('G'),
        blind_put: has('B'),
        create_on_put: has('C'),
        graceful: has('P'),
        returns_deleted: has('D'),
        orphans: has('O'),
        review: has('R'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_kind() {
        assert_eq!(builtin_kinds().len(), BUILTIN_KIND_TABLE.lines().filter(|line| !line.is_empty()).count());
    }

    #[test]
    fn both_event_apis_are_one_storage() {
        let events: Vec<_> = builtin_kinds().into_iter().filter(|kind| kind.plural == "events").collect();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].storage, events[1].storage);
    }
}
