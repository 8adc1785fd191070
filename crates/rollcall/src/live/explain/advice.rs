//! Advice by reason: the event that would change a verdict, and the commands to inspect or fix the object.

use inspect::kubectl::{KubectlObject, shell_quote};
use inspect::owned::{OwnedObject, OwnedTrouble};
use readiness::ReasonToken;
use readiness::rollup::ParentReason;
use rollcall_core::{NodeToken, TreeNode};

use super::group_advice::{
    IN_A_CYCLE, describe_group_branch, describe_group_changes, group_reason, suggest_group_commands,
};

/// Describes the rule that decided about a parent.
pub(super) fn describe_branch(node: &TreeNode) -> &'static str {
    if let Some(branch) = group_reason(node).and_then(describe_group_branch) {
        return branch;
    }
    let NodeToken::Parent(reason) = node.reason.token() else { return WORST_CHILD };
    match reason {
        ParentReason::ChildrenMissing => "there are fewer children than the policy expects",
        ParentReason::TooManyChildren => "there are more children than the policy allows",
        ParentReason::ChildrenPending | ParentReason::OperatorSilent => {
            "the operator has not reported handling the current generation, or the policy's proof does not hold"
        }
        ParentReason::OperatorFailed => {
            "its operator reports that it failed to handle the current generation, or its own status says that it has failed"
        }
        ParentReason::KindNotVisible => "a kind in the policy may not be listed",
        ParentReason::WatchStale => "a kind in the policy could not be listed or watched for two minutes",
        ParentReason::RuleChanged => "a rule of the policy changed, and its kind was not listed again yet",
        ParentReason::PolicyRefused => "its policy is refused, and there is no accepted version to judge by",
        ParentReason::TemplateFailed => "a template of the policy cannot be rendered for it",
        ParentReason::DeadlineExceeded => {
            "it has not been ready for longer than limits.deadline of the policy"
        }
        ParentReason::Terminating => "metadata.deletionTimestamp is set",
        ParentReason::DeletionStuck => {
            "metadata.deletionTimestamp is older than limits.terminating of the policy"
        }
        ParentReason::ChildrenSettling => {
            "all children are ready, but not yet for as long as the policy's settle and hold require"
        }
        ParentReason::AllChildrenReady
        | ParentReason::ChildrenProgressing
        | ParentReason::ChildrenTerminating
        | ParentReason::ChildrenFailed
        | ParentReason::ChildrenStuck
        | ParentReason::ChildrenUnknown
        | ParentReason::ChildrenSuspended => WORST_CHILD,
    }
}

const WORST_CHILD: &str = "the worst of its children, by the policy's counts and quorums";
const WRITES_STATUS: &str = "the controller of this object must write another status";
const DELETION_COMPLETES: &str = "its deletion must complete";

/// Describes the event that would change the verdict.
pub(super) fn describe_changes(node: &TreeNode) -> &'static str {
    let message = &*node.detail;
    if let Some(changes) = group_reason(node).and_then(|reason| describe_group_changes(reason, message)) {
        return changes;
    }
    match node.reason.token() {
        NodeToken::Parent(reason) => describe_parent_changes(reason, message),
        NodeToken::Object(reason) => describe_object_changes(reason),
    }
}

fn describe_parent_changes(reason: ParentReason, message: &str) -> &'static str {
    match reason {
        ParentReason::ChildrenMissing if message.contains(IN_A_CYCLE) => {
            "break the cycle of owners or references: children in it do not count"
        }
        ParentReason::ChildrenMissing => {
            "its operator must create the missing children, or lower `expect.min`"
        }
        ParentReason::TooManyChildren => "delete the surplus children or raise `expect.max`",
        ParentReason::ChildrenPending | ParentReason::OperatorSilent => {
            "its operator must handle the current generation, and the children be as the policy's proof asks"
        }
        ParentReason::OperatorFailed => {
            "its operator must succeed: correct what its message names, and change the spec for another try; where its status means \
             no failure by that, `ownStatus: ignore` in the policy"
        }
        ParentReason::KindNotVisible => "grant the right to list and watch that kind",
        ParentReason::WatchStale => "the API server must serve that kind again: its message names it",
        ParentReason::RuleChanged => "wait: its children are being evaluated by the new rule",
        ParentReason::PolicyRefused => "a policy that can be accepted",
        ParentReason::TemplateFailed => {
            "correct the template in the policy so that it can be rendered for this object"
        }
        ParentReason::ChildrenSettling => "wait: its children must stay ready",
        ParentReason::ChildrenSuspended => "resume its children",
        ParentReason::ChildrenTerminating => "the deletion of its children must complete",
        ParentReason::AllChildrenReady
        | ParentReason::ChildrenProgressing
        | ParentReason::ChildrenFailed
        | ParentReason::ChildrenStuck
        | ParentReason::ChildrenUnknown
        | ParentReason::DeadlineExceeded => "its children must become ready",
        ParentReason::Terminating | ParentReason::DeletionStuck => DELETION_COMPLETES,
    }
}

#[expect(clippy::too_many_lines, reason = "a table, with a row for each reason")]
fn describe_object_changes(reason: ReasonToken) -> &'static str {
    match reason {
        ReasonToken::ReplicasNotCreated | ReasonToken::ReplicaFailure => {
            "its controller must be able to create its pods"
        }
        ReasonToken::ReplicasNotUpdated
        | ReasonToken::ReplicasNotReady
        | ReasonToken::ReplicasNotAvailable
        | ReasonToken::ReplicasNotLabeled
        | ReasonToken::ContainersNotReady => "its pods must become ready",
        ReasonToken::EndpointsNotReady => "the pods that it selects must become ready",
        ReasonToken::BudgetNotMet => "the pods that it selects must become healthy",
        ReasonToken::ReplicasLeftOver => "the pods of the old revision must terminate",
        ReasonToken::ProgressDeadlineExceeded => {
            "start a new rollout, or wait for its pods to become ready; its controller has given up on this rollout"
        }
        ReasonToken::NoProgress => {
            "something of its spec or status must change; nothing has for limits.progress of the policy"
        }
        ReasonToken::Paused => "resume it",
        ReasonToken::Suspended => "unset spec.suspend",
        ReasonToken::Cordoned => "uncordon it",
        ReasonToken::StaleGeneration => {
            "its controller must write the current generation into status.observedGeneration"
        }
        ReasonToken::NotStarted
        | ReasonToken::Running
        | ReasonToken::Finishing
        | ReasonToken::CompletionsMissing
        | ReasonToken::NeverRan => "wait: it is in progress",
        ReasonToken::RuleAwaited => "wait: its rule is busy with other objects",
        ReasonToken::RuleChanged => "wait: it is being evaluated by the new rule",
        ReasonToken::JobFailed => "delete and recreate it: a failed Job stays failed",
        ReasonToken::LastRunFailed => "its next run must succeed",
        ReasonToken::Unschedulable => "provide a node that the pod can be scheduled on",
        ReasonToken::Pending => "the pod must be scheduled and its images pulled",
        ReasonToken::ContainerWaiting | ReasonToken::ContainerFailed => {
            "the container must start and keep running"
        }
        ReasonToken::PodFailed => "delete it: a failed pod stays failed",
        ReasonToken::PendingLoadBalancer => "the load balancer's controller must assign an address",
        ReasonToken::VolumePending => "a volume must be provisioned or bound",
        ReasonToken::WaitingForFirstConsumer => "a pod that uses the claim must be scheduled",
        ReasonToken::VolumeLost | ReasonToken::VolumeReleased => "restore or replace the volume",
        ReasonToken::Finalizers => "the controllers of its finalizers must remove them",
        ReasonToken::Terminating => DELETION_COMPLETES,
        ReasonToken::NoSignal => {
            "its controller must write a condition or a phase, or add a rule for it to the policy (children[].ready)"
        }
        ReasonToken::OutcomeUnseen => {
            "wait for its next run, or set its known outcome in the ReadinessRecord of its parent"
        }
        ReasonToken::RuleFailed
        | ReasonToken::RuleLimit
        | ReasonToken::RuleCrashed
        | ReasonToken::RuleTooSlow => "correct the rule in the policy",
        ReasonToken::Missing => "its operator must create it",
        ReasonToken::Ready
        | ReasonToken::Exists
        | ReasonToken::Complete
        | ReasonToken::ScaledToZero
        | ReasonToken::Superseded
        | ReasonToken::PartitionReached
        | ReasonToken::OnDelete
        | ReasonToken::OwnerDecides
        | ReasonToken::SaysFailed
        | ReasonToken::SaysError
        | ReasonToken::SaysProgressing
        | ReasonToken::SaysSuspended
        | ReasonToken::SaysTerminating
        | ReasonToken::SaysUnknown
        | ReasonToken::Custom => WRITES_STATUS,
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
pub(super) fn suggest_commands(node: &TreeNode, object: &KubectlObject<'_>) -> Vec<String> {
    if let Some(tries) = group_reason(node).and_then(|reason| suggest_group_commands(reason, object)) {
        return tries;
    }
    match node.reason.token() {
        NodeToken::Parent(reason) => suggest_parent_commands(reason, object),
        NodeToken::Object(reason) => suggest_object_commands(reason, object),
    }
}

fn suggest_parent_commands(reason: ParentReason, object: &KubectlObject<'_>) -> Vec<String> {
    match reason {
        ParentReason::TemplateFailed | ParentReason::PolicyRefused => vec![CHECK_POLICY.to_owned()],
        ParentReason::KindNotVisible => vec!["rollcall rbac -f POLICY | kubectl apply -f -".to_owned()],
        ParentReason::ChildrenPending | ParentReason::OperatorFailed | ParentReason::OperatorSilent => {
            vec![object.command_for("describe"), READ_OPERATOR_LOG.to_owned()]
        }
        _ => vec![object.command_for("describe")],
    }
}

fn suggest_object_commands(reason: ReasonToken, object: &KubectlObject<'_>) -> Vec<String> {
    let on = |verb: &str| object.command_for(verb);
    let describe = on("describe");
    match reason {
        ReasonToken::ContainerFailed | ReasonToken::PodFailed if object.is_kind("Pod") => {
            vec![object.logs_command("--previous --all-containers"), describe]
        }
        ReasonToken::JobFailed => vec![object.logs_command("--all-containers"), describe],
        ReasonToken::ProgressDeadlineExceeded if object.is_kind("Deployment") => {
            vec![on("rollout status"), on("rollout undo") + "   # back to the previous revision"]
        }
        ReasonToken::Paused => vec![on("rollout resume")],
        ReasonToken::Suspended => vec![on("patch") + " --type=merge -p '{\"spec\":{\"suspend\":false}}'"],
        ReasonToken::Cordoned => vec![format!("kubectl uncordon {}", object.quoted_name())],
        ReasonToken::NoSignal => vec![on("get") + " -o yaml"],
        ReasonToken::OutcomeUnseen => vec![
            "kubectl get readinessrecords -A   # you may set an Unseen outcome to Complete or Failed"
                .to_owned(),
        ],
        ReasonToken::RuleFailed
        | ReasonToken::RuleLimit
        | ReasonToken::RuleCrashed
        | ReasonToken::RuleTooSlow => vec![CHECK_POLICY.to_owned()],
        ReasonToken::StaleGeneration => vec![describe, READ_OPERATOR_LOG.to_owned()],
        _ => vec![describe],
    }
}

const CHECK_POLICY: &str = "rollcall check -f POLICY";
const READ_OPERATOR_LOG: &str = "# check that its operator is running, and read its log about this object";

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
        assert!(
            suggest_object_commands(ReasonToken::OutcomeUnseen, &job)
                .iter()
                .all(|line| !line.contains("describe"))
        );
        // A name cannot break out of its argument.
        assert!(
            told("Pod a;b", OwnedTrouble::Ends("x y".to_owned()))
                .contains("logs 'pod/a;b' -c 'x y' --previous")
        );
    }
}
