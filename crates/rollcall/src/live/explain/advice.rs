//! What would change a verdict, and what a person can look at or do, by the reason that it carries.

use controller::inspect::command::Object;

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
