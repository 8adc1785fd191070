//! Advice by reason: the event that would change a verdict, and the commands to inspect or fix the object.

use inspect::kubectl::{KubectlObject, shell_quote};
use inspect::owned::{OwnedObject, OwnedTrouble};

/// Describes the rule that decided about a parent.
pub(super) fn describe_branch(reason: &str) -> &'static str {
    match reason {
        "ChildrenMissing" => "there are fewer children than the policy expects",
        "TooManyChildren" => "there are more children than the policy allows",
        "ChildrenPending" | "OperatorSilent" => {
            "the operator has not reported handling the current generation"
        }
        "OperatorFailed" => "the operator reports that it failed to handle the current generation",
        "KindNotVisible" => "a kind in the policy may not be listed",
        "PolicyRefused" => "its policy is refused, and no accepted version of that is known",
        "TemplateFailed" => "a template of the policy cannot be rendered for it",
        "DeadlineExceeded" => "it has not been ready for longer than limits.deadline of the policy",
        "Terminating" => "metadata.deletionTimestamp is set",
        "DeletionStuck" => "metadata.deletionTimestamp is older than limits.terminating of the policy",
        _ => "the worst of its children, by the policy's counts and quorums",
    }
}

/// Describes the event that would change the verdict.
pub(super) fn describe_changes(reason: &str) -> &'static str {
    match reason {
        "ReplicasNotCreated" | "ReplicaFailure" => "its controller must be able to create its pods",
        "ReplicasNotUpdated"
        | "ReplicasNotReady"
        | "ReplicasNotAvailable"
        | "ReplicasNotLabeled"
        | "ContainersNotReady" => "its pods must become ready",
        "ReplicasLeftOver" => "the pods of the old revision must terminate",
        "ProgressDeadlineExceeded" => {
            "start a new rollout, or wait for its pods to become ready; its controller has given up on this rollout"
        }
        "NoProgress" => {
            "something of its spec or status must change; nothing has for limits.progress of the policy"
        }
        "Paused" => "resume it",
        "Suspended" => "unset spec.suspend",
        "Cordoned" => "uncordon it",
        "StaleGeneration" => {
            "its controller must write the current generation into status.observedGeneration"
        }
        "NotStarted" | "Running" | "Finishing" | "CompletionsMissing" | "NeverRan" => {
            "wait: it is in progress"
        }
        "JobFailed" => "delete and recreate it: a failed Job stays failed",
        "LastRunFailed" => "its next run must succeed",
        "Unschedulable" => "provide a node that the pod can be scheduled on",
        "Pending" => "the pod must be scheduled and its images pulled",
        "ContainerWaiting" | "ContainerFailed" => "the container must start and keep running",
        "PodFailed" => "delete it: a failed pod stays failed",
        "PendingLoadBalancer" => "the load balancer's controller must assign an address",
        "VolumePending" => "a volume must be provisioned or bound",
        "WaitingForFirstConsumer" => "a pod that uses the claim must be scheduled",
        "VolumeLost" | "VolumeReleased" => "restore or replace the volume",
        "Finalizers" => "the controllers of its finalizers must remove them",
        "Terminating" | "DeletionStuck" => "its deletion must complete",
        "NoSignal" => {
            "its controller must write a condition or a phase, or add a rule for it to the policy (children[].ready)"
        }
        "OutcomeUnseen" => {
            "wait for its next run, or set its known outcome in the ReadinessRecord of its parent"
        }
        "RuleFailed" | "RuleLimit" | "RuleCrashed" | "RuleTooSlow" => "correct the rule in the policy",
        "ChildrenMissing" => "its operator must create the missing children, or lower `expect.min`",
        "TooManyChildren" => "delete the surplus children or raise `expect.max`",
        "ChildrenPending" | "OperatorSilent" => "its operator must handle the current generation",
        "OperatorFailed" => {
            "its operator must succeed: correct what its message names, and change the spec for another try"
        }
        "KindNotVisible" => "grant the right to list and watch that kind",
        "PolicyRefused" => "a policy that can be accepted",
        "TemplateFailed" => "correct the template in the policy so that it can be rendered for this object",
        "DeadlineExceeded" => "its children must become ready",
        _ => "the controller of this object must write another status",
    }
}

/// Returns advice from the owned objects if they tell more than the object's own reason.
pub(super) fn advise_from_owned(
    owned: &OwnedObject,
    above: &KubectlObject<'_>,
) -> Option<(String, Vec<String>)> {
    let (kind, name) = owned.object.split_once(' ')?;
    let it = KubectlObject { group: "", kind, namespace: above.namespace, name };
    let log = |container: &str, how: &str| it.logs_command(&format!("-c {}{how}", shell_quote(container)));
    let describe = it.command_for("describe");
    Some(match owned.trouble.as_ref()? {
        OwnedTrouble::Ends(container) => (
            format!("container {container} of {} must keep running: its log shows its output before it ended", owned.object),
            vec![log(container, " --previous"), describe],
        ),
        OwnedTrouble::Image(container) => (
            format!("correct the image of container {container}: check its name and tag, its registry, imagePullSecrets"),
            vec![describe],
        ),
        OwnedTrouble::Config(container) => (
            format!("create the ConfigMap or Secret that container {container} of {} needs", owned.object),
            vec![describe],
        ),
        OwnedTrouble::Probe(container) => {
            (format!("the readiness probe of container {container} must succeed"), vec![log(container, ""), describe])
        }
        OwnedTrouble::Unscheduled => (
            "provide a node with free capacity and matching labels and taints, or bind the pod's claims".to_owned(),
            vec![describe, "kubectl describe nodes".to_owned()],
        ),
        OwnedTrouble::Unbound => (
            format!("{} must be bound: check that its storage class exists and that the provisioner works", owned.object),
            vec![describe, "kubectl get storageclass".to_owned()],
        ),
        OwnedTrouble::NotCreated => (
            "its pods must be created: check for a quota, an admission policy, or a missing service account that rejects them".to_owned(),
            vec![
                KubectlObject { group: if kind == "Job" { "batch" } else { "apps" }, ..it }.command_for("describe"),
                KubectlObject { kind: "ResourceQuota", name: "", ..it }.command_for_all("describe"),
            ],
        ),
    })
}

/// Returns commands to try, to be read before they are run.
pub(super) fn suggest_commands(reason: &str, object: &KubectlObject<'_>) -> Vec<String> {
    let on = |verb: &str| object.command_for(verb);
    let describe = on("describe");
    match reason {
        "ContainerWaiting" | "Pending" | "Unschedulable" if object.is_kind("Pod") => vec![describe],
        "ContainerFailed" | "PodFailed" if object.is_kind("Pod") => {
            vec![object.logs_command("--previous --all-containers"), describe]
        }
        "JobFailed" => vec![object.logs_command("--all-containers"), describe],
        "ProgressDeadlineExceeded" if object.is_kind("Deployment") => {
            vec![on("rollout status"), on("rollout undo") + "   # back to the previous revision"]
        }
        "Paused" => vec![on("rollout resume")],
        "Suspended" => vec![on("patch") + " --type=merge -p '{\"spec\":{\"suspend\":false}}'"],
        "Cordoned" => vec![format!("kubectl uncordon {}", object.quoted_name())],
        "NoSignal" => vec![on("get") + " -o yaml"],
        "OutcomeUnseen" => vec![
            "kubectl get readinessrecords -A   # you may set an Unseen outcome to Complete or Failed"
                .to_owned(),
        ],
        "RuleFailed" | "RuleLimit" | "RuleCrashed" | "RuleTooSlow" | "TemplateFailed" | "PolicyRefused" => {
            vec!["rollcall check -f POLICY".to_owned()]
        }
        "KindNotVisible" => vec!["rollcall rbac -f POLICY | kubectl apply -f -".to_owned()],
        "ChildrenPending" | "OperatorFailed" | "OperatorSilent" | "StaleGeneration" => {
            vec![
                describe,
                "# check that its operator is running, and read its log about this object".to_owned(),
            ]
        }
        _ => vec![describe],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(object: &str, trouble: OwnedTrouble) -> String {
        let owned = OwnedObject {
            object: object.to_owned(),
            says: String::new(),
            uid: String::new(),
            trouble: Some(trouble),
        };
        let above = KubectlObject { group: "apps", kind: "Deployment", namespace: "shop", name: "web" };
        let (changes, tries) = advise_from_owned(&owned, &above).unwrap();
        format!("{changes} | {}", tries.join(" | "))
    }

    #[test]
    fn what_is_below_says_what_to_try_and_where() {
        let main = || "main".to_owned();
        assert_eq!(
            told("Pod web-0", OwnedTrouble::Ends(main())),
            "container main of Pod web-0 must keep running: its log shows its output before it ended | kubectl -n shop logs pod/web-0 -c main --previous | kubectl -n shop describe pod web-0"
        );
        assert!(told("Pod web-0", OwnedTrouble::Image(main())).contains("imagePullSecrets"));
        assert!(
            told("PersistentVolumeClaim data", OwnedTrouble::Unbound)
                .contains("describe persistentvolumeclaim data")
        );
        let quota = told("ReplicaSet web-5d", OwnedTrouble::NotCreated);
        assert!(
            quota.contains("describe replicaset.apps web-5d | kubectl -n shop describe resourcequota"),
            "{quota}"
        );
        // A deleted object cannot be described.
        let job = KubectlObject { group: "batch", kind: "Job", namespace: "shop", name: "seed" };
        assert!(suggest_commands("OutcomeUnseen", &job).iter().all(|line| !line.contains("describe")));
        // A name cannot break out of its argument.
        assert!(
            told("Pod a;b", OwnedTrouble::Ends("x y".to_owned()))
                .contains("logs 'pod/a;b' -c 'x y' --previous")
        );
    }
}
