//! What would change a verdict, and what a person can look at or do, by the reason that it carries.

use controller::inspect::below::{Owned, Trouble};
use controller::inspect::command::{Object, quoted};

/// What decided about a parent.
pub(super) fn branch(reason: &str) -> &'static str {
    match reason {
        "ChildrenMissing" => "there are fewer children than the policy expects",
        "TooManyChildren" => "there are more children than the policy allows",
        "ChildrenPending" | "OperatorSilent" => {
            "what its operator says to have handled is not the generation that it has, or it says nothing"
        }
        "KindNotVisible" => "a kind that the policy names may not be listed",
        "TemplateFailed" => "a template of the policy cannot be rendered for it",
        "DeadlineExceeded" => "it has not been ready for longer than limits.deadline of the policy",
        "Terminating" => "metadata.deletionTimestamp is set",
        _ => "the worst of its children, by the policy's counts and quorums",
    }
}

/// What would change it.
pub(super) fn changes(reason: &str) -> &'static str {
    match reason {
        "ReplicasNotCreated" | "ReplicaFailure" => "its controller being able to create its pods",
        "ReplicasNotUpdated"
        | "ReplicasNotReady"
        | "ReplicasNotAvailable"
        | "ReplicasNotLabeled"
        | "ContainersNotReady" => "its pods becoming ready",
        "ReplicasLeftOver" => "the pods of the old revision going away",
        "ProgressDeadlineExceeded" => {
            "its pods becoming ready after all, or a new rollout; its controller has given this one up"
        }
        "Paused" => "somebody resuming it",
        "Suspended" => "somebody taking spec.suspend away",
        "Cordoned" => "somebody uncordoning it",
        "StaleGeneration" => {
            "its controller writing the generation that it has into status.observedGeneration"
        }
        "NotStarted" | "Running" | "Finishing" | "CompletionsMissing" | "NeverRan" => "time: it is at work",
        "JobFailed" => {
            "nothing by itself: a Job that has failed stays so until it is deleted and created anew"
        }
        "LastRunFailed" => "its next run succeeding",
        "Unschedulable" => "a node that takes the pod",
        "Pending" => "the pod being scheduled and its images being pulled",
        "ContainerWaiting" | "ContainerFailed" => "the container starting, and staying up",
        "PodFailed" => "nothing by itself: a pod that has failed stays so",
        "PendingLoadBalancer" => "the load balancer's controller assigning an address",
        "VolumePending" => "a volume being provisioned or bound",
        "WaitingForFirstConsumer" => "a pod that uses the claim being scheduled",
        "VolumeLost" | "VolumeReleased" => "nothing by itself: the volume has to be restored or replaced",
        "Finalizers" => "whoever set the finalizers taking them off",
        "Terminating" => "its deletion coming to an end",
        "NoSignal" => {
            "a condition or a phase that it writes, or a rule for it in the policy (children[].ready)"
        }
        "OutcomeUnseen" => {
            "its next run, or somebody who knows setting its outcome in the ReadinessRecord of its parent"
        }
        "RuleFailed" | "RuleLimit" | "RuleCrashed" => "a rule in the policy that can be evaluated",
        "ChildrenMissing" => "its operator creating what is missing, or the policy expecting less",
        "TooManyChildren" => "what is too much going away, or the policy allowing more",
        "ChildrenPending" | "OperatorSilent" => "its operator handling the generation that it has",
        "KindNotVisible" => "the right to list and watch that kind",
        "TemplateFailed" => "a template in the policy that can be rendered for this object",
        "DeadlineExceeded" => "its children becoming ready after all",
        _ => "the controller of this object writing another status",
    }
}

/// The same where what it owns tells more than its own reason does.
pub(super) fn below(owned: &Owned, above: &Object<'_>) -> Option<(String, Vec<String>)> {
    let (kind, name) = owned.object.split_once(' ')?;
    let it = Object { group: "", kind, namespace: above.namespace, name };
    let log = |container: &str, how: &str| it.logs(&format!("-c {}{how}", quoted(container)));
    let describe = it.kubectl("describe");
    Some(match owned.trouble.as_ref()? {
        Trouble::Ends(container) => (
            format!("container {container} of {} staying up: what it said before it ended is in its log", owned.object),
            vec![log(container, " --previous"), describe],
        ),
        Trouble::Image(container) => (
            format!("an image for container {container} that can be pulled: its name and tag, its registry, imagePullSecrets"),
            vec![describe],
        ),
        Trouble::Config(container) => (
            format!("the ConfigMap or Secret that container {container} of {} is made from", owned.object),
            vec![describe],
        ),
        Trouble::Probe(container) => {
            (format!("the readiness probe of container {container} saying yes"), vec![log(container, ""), describe])
        }
        Trouble::Unscheduled => (
            "a node that takes the pod: one with room, whose labels and taints it asks for, or its claims being bound".to_owned(),
            vec![describe, "kubectl describe nodes".to_owned()],
        ),
        Trouble::Unbound => (
            format!("{} being bound: a storage class that exists, and whose provisioner works", owned.object),
            vec![describe, "kubectl get storageclass".to_owned()],
        ),
        Trouble::NotCreated => (
            "its pods being created: what refuses them is a quota, an admission policy, or a service account that is not there".to_owned(),
            vec![
                Object { group: if kind == "Job" { "batch" } else { "apps" }, ..it }.kubectl("describe"),
                Object { kind: "ResourceQuota", name: "", ..it }.all("describe"),
            ],
        ),
    })
}

/// What to try, as commands to be read before they are run.
pub(super) fn tries(reason: &str, object: &Object<'_>) -> Vec<String> {
    let on = |verb: &str| object.kubectl(verb);
    let describe = on("describe");
    match reason {
        "ContainerWaiting" | "Pending" | "Unschedulable" if object.is("Pod") => vec![describe],
        "ContainerFailed" | "PodFailed" if object.is("Pod") => {
            vec![object.logs("--previous --all-containers"), describe]
        }
        "JobFailed" => vec![object.logs("--all-containers"), describe],
        "ProgressDeadlineExceeded" if object.is("Deployment") => {
            vec![on("rollout status"), on("rollout undo") + "   # back to the revision before"]
        }
        "Paused" => vec![on("rollout resume")],
        "Suspended" => vec![on("patch") + " --type=merge -p '{\"spec\":{\"suspend\":false}}'"],
        "Cordoned" => vec![format!("kubectl uncordon {}", object.name())],
        "NoSignal" => vec![on("get") + " -o yaml"],
        "OutcomeUnseen" => vec![
            "kubectl get readinessrecords -A   # an outcome that says Unseen may be set to Complete or Failed"
                .to_owned(),
        ],
        "RuleFailed" | "RuleLimit" | "RuleCrashed" | "TemplateFailed" => {
            vec!["rollcall check -f POLICY".to_owned()]
        }
        "KindNotVisible" => vec!["rollcall rbac -f POLICY | kubectl apply -f -".to_owned()],
        "ChildrenPending" | "OperatorSilent" | "StaleGeneration" => {
            vec![
                describe,
                "# is its operator running, and what does its log say about this object?".to_owned(),
            ]
        }
        _ => vec![describe],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(object: &str, trouble: Trouble) -> String {
        let owned = Owned {
            object: object.to_owned(),
            says: String::new(),
            uid: String::new(),
            trouble: Some(trouble),
        };
        let above = Object { group: "apps", kind: "Deployment", namespace: "shop", name: "web" };
        let (changes, tries) = below(&owned, &above).unwrap();
        format!("{changes} | {}", tries.join(" | "))
    }

    #[test]
    fn what_is_below_says_what_to_try_and_where() {
        let main = || "main".to_owned();
        assert_eq!(
            told("Pod web-0", Trouble::Ends(main())),
            "container main of Pod web-0 staying up: what it said before it ended is in its log | kubectl -n shop logs pod/web-0 -c main --previous | kubectl -n shop describe pod web-0"
        );
        assert!(told("Pod web-0", Trouble::Image(main())).contains("imagePullSecrets"));
        assert!(
            told("PersistentVolumeClaim data", Trouble::Unbound)
                .contains("describe persistentvolumeclaim data")
        );
        let quota = told("ReplicaSet web-5d", Trouble::NotCreated);
        assert!(
            quota.contains("describe replicaset.apps web-5d | kubectl -n shop describe resourcequota"),
            "{quota}"
        );
        // What is gone cannot be described.
        let job = Object { group: "batch", kind: "Job", namespace: "shop", name: "seed" };
        assert!(tries("OutcomeUnseen", &job).iter().all(|line| !line.contains("describe")));
        // A name cannot leave its place in a command.
        assert!(
            told("Pod a;b", Trouble::Ends("x y".to_owned())).contains("logs 'pod/a;b' -c 'x y' --previous")
        );
    }
}
