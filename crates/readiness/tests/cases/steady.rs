//! How far a parent that was ready with a workload can still count on it.
//!
//! `STEADINESS/REASON apiVersion Kind | parts…`.

use readiness::{
    DisruptionBudget, KnownBeside, Level, ReplicaAmount, StuckLimits, assess, steadiness_beside,
    whole_replicas,
};

use crate::object::{decode, kind_of, parse_line, table_lines};

const STEADY: &str = r#"
# Deployment: scaled up, scaled down, a pod lost; by its condition Available.
Available/ReplicasNotUpdated apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=5 | replicas=4 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
Available/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | updatedReplicas=5 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
Available/ReplicasLeftOver apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=3 | replicas=5 | updatedReplicas=5 | readyReplicas=5 | availableReplicas=5 | +Available | +Progressing:NewReplicaSetAvailable
Available/ReplicasLeftOver apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=0 | replicas=1 | updatedReplicas=1 | +Available | +Progressing:NewReplicaSetAvailable
Unobserved/StaleGeneration apps/v1 Deployment | gen=4 | obs=3 | spec.replicas=5 | replicas=4 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
# A rollout: pods of two templates, or one that has not begun or not ended.
Unsteady/ReplicasLeftOver apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=4 | replicas=5 | updatedReplicas=4 | readyReplicas=5 | availableReplicas=5 | +Available | +Progressing:NewReplicaSetAvailable
Unsteady/ReplicasNotUpdated apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=4 | replicas=4 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
Unsteady/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=3 | availableReplicas=3 | +Available | +Progressing:ReplicaSetUpdated
Unsteady/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=3 | availableReplicas=3 | +Available
Unsteady/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=3 | availableReplicas=3 | +Available | -Progressing:NewReplicaSetAvailable
Unsteady/StaleGeneration apps/v1 Deployment | gen=4 | obs=3 | spec.replicas=5 | replicas=4 | updatedReplicas=2 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
# More is lost than it can bear: by its own word, or all of it.
Unsteady/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=2 | availableReplicas=2 | -Available | +Progressing:NewReplicaSetAvailable
Unsteady/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=1 | replicas=1 | updatedReplicas=1 | +Available | +Progressing:NewReplicaSetAvailable
Unsteady/ReplicasNotReady apps/v1 Deployment | gen=3 | obs=3 | spec.paused=true | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=3 | availableReplicas=3 | +Available | +Progressing:NewReplicaSetAvailable

# StatefulSet: within maxUnavailable, which is 1 and rounds down, but to 1 at least.
Available/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Available/ReplicasNotCreated apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=4 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Available/ReplicasLeftOver apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=4 | readyReplicas=4 | availableReplicas=4 | updatedReplicas=4 | currentRevision=a | updateRevision=a
Available/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=1 | availableReplicas=1 | updatedReplicas=3 | currentRevision=a | updateRevision=a | spec.updateStrategy.rollingUpdate.maxUnavailable=2
Available/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=4 | replicas=4 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=4 | currentRevision=a | updateRevision=a | spec.updateStrategy.rollingUpdate.maxUnavailable="60%"
Available/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=4 | replicas=4 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=4 | currentRevision=a | updateRevision=a | spec.updateStrategy.rollingUpdate.maxUnavailable="10%"
# A pod that is about to end is still ready, and not counted as updated; one that goes back to its old template looks the same.
Available/ReplicasNotUpdated apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=2 | currentRevision=a | updateRevision=a
Unsteady/ReplicasNotUpdated apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=1 | currentRevision=a | updateRevision=a
Unobserved/StaleGeneration apps/v1 StatefulSet | gen=3 | obs=2 | spec.replicas=4 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Unsteady/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=4 | replicas=4 | readyReplicas=1 | availableReplicas=1 | updatedReplicas=4 | currentRevision=a | updateRevision=a | spec.updateStrategy.rollingUpdate.maxUnavailable="60%"
Unsteady/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=1 | availableReplicas=1 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Unsteady/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=1 | replicas=1 | readyReplicas=0 | updatedReplicas=1 | currentRevision=a | updateRevision=a
Unsteady/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=3 | currentRevision=a | updateRevision=b
Unsteady/ReplicasNotReady apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=3 | currentRevision=a | updateRevision=a | spec.updateStrategy.type=OnDelete
Unsteady/StaleGeneration apps/v1 StatefulSet | gen=3 | obs=2 | spec.replicas=6 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=3 | currentRevision=a | updateRevision=a

# DaemonSet: a node was added, a pod lost; maxUnavailable rounds up.
Available/ReplicasNotCreated apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=3 | updatedNumberScheduled=3 | numberReady=3 | numberAvailable=3
Available/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=3 | numberAvailable=3
Available/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=3 | numberAvailable=3 | spec.updateStrategy.rollingUpdate.maxUnavailable="1%"
Unsteady/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=3 | numberAvailable=3 | spec.updateStrategy.rollingUpdate.maxUnavailable=0
Unsteady/ReplicasNotUpdated apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=3 | numberReady=4 | numberAvailable=4
Unsteady/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=2 | numberAvailable=2
Unsteady/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=1 | currentNumberScheduled=1 | updatedNumberScheduled=1 | numberReady=0
Available/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=2 | numberAvailable=2 | spec.updateStrategy.rollingUpdate.maxUnavailable="26%"
Unsteady/ReplicasNotReady apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=2 | numberAvailable=2 | spec.updateStrategy.rollingUpdate.maxUnavailable="25%"
Unobserved/StaleGeneration apps/v1 DaemonSet | gen=3 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=3 | numberAvailable=3
Unsteady/StaleGeneration apps/v1 DaemonSet | gen=3 | obs=2 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=2 | numberAvailable=2

# What failed, and what has no such budget.
Unsteady/ProgressDeadlineExceeded apps/v1 Deployment | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | updatedReplicas=5 | readyReplicas=4 | availableReplicas=4 | +Available | -Progressing:ProgressDeadlineExceeded
Unsteady/ReplicasNotReady apps/v1 ReplicaSet | gen=1 | obs=1 | spec.replicas=2 | replicas=2 | fullyLabeledReplicas=2 | readyReplicas=1 | availableReplicas=1
Unsteady/StaleGeneration x.io/v1 Db | gen=2 | obs=1 | +Ready
"#;

#[test]
fn a_workload_that_is_rolled_out_is_steady_while_its_replicas_move_within_its_budget() {
    let mut wrong = Vec::new();
    for line in table_lines(STEADY) {
        let (expected, object) = parse_line(line);
        let child = decode(&object);
        let verdict = assess(kind_of(&child), &child.facts, &StuckLimits::default()).verdict;
        assert_ne!(verdict.level, Level::Ready, "{line}: nothing becomes ready by being steady");
        let told = format!("{:?}/{}", verdict.steadiness, verdict.reason.as_token());
        if told != expected {
            wrong.push(format!("- {line}\n+ {}", line.replacen(expected, &told, 1)));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

/// `STEADINESS/WHOLE apiVersion Kind | parts…`: with so many replicas when it was ready last; `=` where only their number is
/// another since.
const SCALED: &str = r"
# Beyond its budget, and nothing is lost.
Unobserved/4 apps/v1 Deployment | gen=4 | obs=3 | spec.replicas=8 | replicas=4 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
Available/=4 apps/v1 Deployment | gen=4 | obs=3 | spec.replicas=8 | replicas=4 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
Available/=4 apps/v1 Deployment | gen=4 | obs=3 | spec.replicas=2 | replicas=4 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4 | +Available | +Progressing:NewReplicaSetAvailable
Unsteady/=4 apps/v1 Deployment | gen=4 | obs=3 | spec.replicas=8 | replicas=4 | updatedReplicas=4 | readyReplicas=2 | availableReplicas=2 | -Available | +Progressing:NewReplicaSetAvailable
Available/4 apps/v1 Deployment | gen=4 | obs=4 | spec.replicas=8 | replicas=8 | updatedReplicas=8 | readyReplicas=4 | availableReplicas=4 | -Available | +Progressing:NewReplicaSetAvailable
Unsteady/4 apps/v1 Deployment | gen=4 | obs=4 | spec.replicas=8 | replicas=8 | updatedReplicas=8 | readyReplicas=3 | availableReplicas=3 | -Available | +Progressing:NewReplicaSetAvailable
Unsteady/4 apps/v1 Deployment | gen=4 | obs=4 | spec.replicas=8 | replicas=8 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4 | -Available | +Progressing:ReplicaSetUpdated
Unsteady/4 apps/v1 Deployment | gen=4 | obs=4 | spec.replicas=8 | replicas=8 | updatedReplicas=8 | readyReplicas=4 | availableReplicas=4 | -Available | -Progressing:ProgressDeadlineExceeded
Unobserved/3 apps/v1 StatefulSet | gen=3 | obs=2 | spec.replicas=6 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Available/=3 apps/v1 StatefulSet | gen=3 | obs=2 | spec.replicas=6 | replicas=3 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Unsteady/=3 apps/v1 StatefulSet | gen=3 | obs=2 | spec.replicas=6 | replicas=3 | readyReplicas=1 | availableReplicas=1 | updatedReplicas=3 | currentRevision=a | updateRevision=a
Available/3 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=6 | replicas=4 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=4 | currentRevision=a | updateRevision=a
# One may be lost beside.
Available/3 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=6 | replicas=4 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=4 | currentRevision=a | updateRevision=a
Unsteady/3 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=6 | replicas=4 | readyReplicas=1 | availableReplicas=1 | updatedReplicas=4 | currentRevision=a | updateRevision=a
Unsteady/3 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=6 | replicas=4 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=1 | currentRevision=a | updateRevision=b
Available/2 apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=5 | currentNumberScheduled=2 | updatedNumberScheduled=2 | numberReady=2 | numberAvailable=2
Unsteady/4 apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=8 | currentNumberScheduled=8 | updatedNumberScheduled=8 | numberReady=2 | numberAvailable=2
# Scaled down, it is by what is wanted now.
Available/6 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=3 | replicas=4 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=4 | currentRevision=a | updateRevision=a
Unsteady/2 apps/v1 ReplicaSet | gen=1 | obs=1 | spec.replicas=4 | replicas=4 | fullyLabeledReplicas=4 | readyReplicas=2 | availableReplicas=2
Unsteady/1 x.io/v1 Db | gen=2 | obs=1 | +Ready
";

#[test]
fn a_workload_that_is_scaled_by_any_number_is_steady_while_it_has_what_it_had() {
    for line in table_lines(SCALED) {
        let (head, object) = parse_line(line);
        let (expected, whole) = head.split_once('/').unwrap();
        let is_only_scaled = whole.starts_with('=');
        let whole = Some(whole.trim_start_matches('=').parse().unwrap());
        let known = KnownBeside { whole, is_only_scaled, budgets: &[] };
        let child = decode(&object);
        let kind = kind_of(&child);
        let verdict = assess(kind, &child.facts, &StuckLimits::default()).verdict;
        let told = format!("{:?}", steadiness_beside(kind, &child.facts, &verdict, known));
        assert_eq!(told, expected, "{line}");
    }
}

/// `STEADINESS/BUDGET apiVersion Kind | parts…`: of the pods; `2` and `40%` may be missing, `>=2` and `>=40%` have to be there.
const DISRUPTED: &str = r"
Unsteady/0 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=5 | currentRevision=a | updateRevision=a
Available/2 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=5 | currentRevision=a | updateRevision=a
Unsteady/2 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=5 | currentRevision=a | updateRevision=a
Available/>=2 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=4 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=4 | currentRevision=a | updateRevision=a
Available/>=40% apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=4 | readyReplicas=2 | availableReplicas=2 | updatedReplicas=4 | currentRevision=a | updateRevision=a
# A narrower one takes nothing of its own budget away, and none lets all of them go.
Available/0 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | readyReplicas=4 | availableReplicas=4 | updatedReplicas=5 | currentRevision=a | updateRevision=a
Unsteady/5 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | readyReplicas=0 | availableReplicas=0 | updatedReplicas=5 | currentRevision=a | updateRevision=a
# A rollout, and what fails, is no disruption.
Unsteady/5 apps/v1 StatefulSet | gen=3 | obs=3 | spec.replicas=5 | replicas=5 | readyReplicas=3 | availableReplicas=3 | updatedReplicas=1 | currentRevision=a | updateRevision=b
Available/2 apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=5 | currentNumberScheduled=5 | updatedNumberScheduled=5 | numberReady=3 | numberAvailable=3
Unsteady/0 apps/v1 DaemonSet | gen=2 | obs=2 | desiredNumberScheduled=5 | currentNumberScheduled=5 | updatedNumberScheduled=5 | numberReady=3 | numberAvailable=3
# A Deployment has a word for it of its own.
Unsteady/60% apps/v1 Deployment | gen=4 | obs=4 | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=2 | availableReplicas=2 | -Available | +Progressing:NewReplicaSetAvailable
Available/0 apps/v1 Deployment | gen=4 | obs=4 | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=3 | availableReplicas=3 | +Available | +Progressing:NewReplicaSetAvailable
";

fn budget(text: &str) -> DisruptionBudget {
    let amount = |text: &str| {
        ReplicaAmount::from_text(text).unwrap_or_else(|| ReplicaAmount::Count(text.parse().unwrap()))
    };
    match text.strip_prefix(">=") {
        Some(least) => DisruptionBudget::MinAvailable(amount(least)),
        None => DisruptionBudget::MaxUnavailable(amount(text)),
    }
}

#[test]
fn a_workload_is_steady_while_a_disruption_keeps_within_the_budget_of_its_pods() {
    for line in table_lines(DISRUPTED) {
        let (head, object) = parse_line(line);
        let (expected, text) = head.split_once('/').unwrap();
        let budgets = [budget(text)];
        let known = KnownBeside { budgets: &budgets, ..KnownBeside::default() };
        let child = decode(&object);
        let kind = kind_of(&child);
        let verdict = assess(kind, &child.facts, &StuckLimits::default()).verdict;
        let told = format!("{:?}", steadiness_beside(kind, &child.facts, &verdict, known));
        assert_eq!(told, expected, "{line}");
    }
}

#[test]
fn of_several_budgets_the_narrowest_for_the_pods_that_count_is_used() {
    // Of the six that are wanted two may be missing by the first and three by the second; of the three that there were, two and one.
    let budgets = [budget("2"), budget(">=50%")];
    for (available, expected) in [(2, "Available"), (1, "Unsteady")] {
        let status = format!("updatedReplicas=3 | readyReplicas={available} | availableReplicas={available}");
        let line = format!(
            "- apps/v1 StatefulSet | spec.replicas=6 | replicas=3 | {status} | currentRevision=a | updateRevision=a"
        );
        let (_, object) = parse_line(&line);
        let child = decode(&object);
        let verdict = assess(kind_of(&child), &child.facts, &StuckLimits::default()).verdict;
        let known = KnownBeside { whole: Some(3), is_only_scaled: false, budgets: &budgets };
        let told = format!("{:?}", steadiness_beside(kind_of(&child), &child.facts, &verdict, known));
        assert_eq!(told, expected, "{line}");
    }
}

#[test]
fn what_a_workload_has_is_known_where_all_of_it_is_ready() {
    for (line, expected) in [
        (
            "- apps/v1 Deployment | spec.replicas=8 | replicas=4 | updatedReplicas=4 | readyReplicas=4 | availableReplicas=4",
            Some(4),
        ),
        (
            "- apps/v1 Deployment | spec.replicas=4 | replicas=4 | updatedReplicas=3 | readyReplicas=4 | availableReplicas=4",
            None,
        ),
        (
            "- apps/v1 StatefulSet | spec.replicas=4 | replicas=4 | updatedReplicas=4 | readyReplicas=3 | availableReplicas=3",
            None,
        ),
        ("- apps/v1 StatefulSet | spec.replicas=4", None),
        (
            "- apps/v1 DaemonSet | desiredNumberScheduled=5 | currentNumberScheduled=2 | updatedNumberScheduled=2 | numberReady=2 | numberAvailable=2",
            Some(2),
        ),
        (
            "- apps/v1 ReplicaSet | spec.replicas=2 | replicas=2 | updatedReplicas=2 | readyReplicas=2 | availableReplicas=2",
            None,
        ),
    ] {
        let (_, object) = parse_line(line);
        let child = decode(&object);
        assert_eq!(whole_replicas(kind_of(&child), &child.facts), expected, "{line}");
    }
}
