//! How something ended, what goes before every rule, and since when something has not been ready.

use readiness::{
    BoundedText, Level, SinceSource, StuckLimits, Verdict, assess, assess_before_rules, final_outcome,
    unready_since,
};

use crate::object::{CREATED, decode, kind_of, parse_line, table_lines};

const SINCE: &str = include_str!("tables/since.txt");

fn said(verdict: Option<&Verdict>) -> String {
    verdict.map_or("-".to_owned(), |verdict| format!("{}/{}", verdict.level, verdict.reason.as_token()))
}

#[test]
fn only_what_ran_to_an_end_has_an_outcome() {
    const ENDS: &str = r#"
Ready/Complete batch/v1 Job | +Complete
Ready/Complete batch/v1 Job | gen=2 | obs=1 | +Complete | metadata.deletionTimestamp="2026-01-01T00:00:00Z"
Failed/JobFailed batch/v1 Job | +Failed:BackoffLimitExceeded | metadata.deletionTimestamp="2026-01-01T00:00:00Z"
- batch/v1 Job | active=1 | startTime="2026-01-01T00:00:00Z"
- batch/v1 Job | +SuccessCriteriaMet
- batch/v1 Job | spec.suspend=true
Ready/Complete v1 Pod | phase=Succeeded | metadata.deletionTimestamp="2026-01-01T00:00:00Z"
Failed/PodFailed v1 Pod | phase=Failed
- v1 Pod | phase=Running | +Ready
- v1 Pod | phase=Running | containerStatuses=[{"name":"a","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]
- v1 Pod | phase=Failed | metadata.ownerReferences=[{"apiVersion":"batch/v1","kind":"Job","name":"a","uid":"1","controller":true}]
Ready/Ready x.io/v1 DbBackup | phase=Completed | metadata.deletionTimestamp="2026-01-01T00:00:00Z"
Failed/SaysFailed x.io/v1 DbBackup | phase=Failed
- x.io/v1 DbBackup | phase=Error
- x.io/v1 DbBackup | phase=Running
- x.io/v1 Db | phase=Completed
- apps/v1 Deployment | obs=1 | -Progressing:ProgressDeadlineExceeded
- v1 ConfigMap | metadata.labels={}
"#;
    for line in ENDS.lines().filter(|line| !line.is_empty()) {
        let (expected, object) = parse_line(line);
        let child = decode(&object);
        assert_eq!(said(final_outcome(kind_of(&child), &child.facts).as_ref()), expected, "{line}");
    }
}

#[test]
fn a_deletion_and_another_generation_go_before_every_rule() {
    const FIRST: &str = r#"
Terminating/Terminating x.io/v1 Db | gen=2 | obs=1 | metadata.deletionTimestamp="2026-01-01T00:00:00Z"
Terminating/Terminating v1 ConfigMap | metadata.deletionTimestamp="2026-01-01T00:00:00Z"
Progressing/StaleGeneration x.io/v1 Db | gen=2 | obs=1 | spec.suspend=true
Progressing/StaleGeneration apps/v1 Deployment | gen=1 | obs=2
- x.io/v1 Db | gen=2 | obs=2 | +Stalled
- x.io/v1 Db | gen=2
- x.io/v1 Db | obs=2
"#;
    for line in FIRST.lines().filter(|line| !line.is_empty()) {
        let (expected, object) = parse_line(line);
        let child = decode(&object);
        let first = assess_before_rules(kind_of(&child), &child.facts, &StuckLimits::default());
        assert_eq!(said(first.as_ref().map(|first| &first.verdict)), expected, "{line}");
    }
}

#[test]
fn each_kind_has_a_moment_since_which_it_is_not_ready_or_none() {
    for line in table_lines(SINCE) {
        let (expected, object) = line.split_once(" <- ").unwrap();
        let object = format!("? {object}");
        let (_, object) = parse_line(&object);
        let child = decode(&object);
        let verdict = assess(kind_of(&child), &child.facts, &StuckLimits::default()).verdict;
        assert_ne!(verdict.level, Level::Ready, "{line}");
        let found = unready_since(kind_of(&child), &child.facts, &verdict);
        let found = found.map(|found| format!("{} {}", (found.at.0 - CREATED.0) / 1_000, found.from));
        assert_eq!(found.unwrap_or("-".to_owned()), expected, "{line}");
    }
}

#[test]
fn a_moment_names_where_it_was_read_and_some_are_final() {
    let name = || BoundedText::new("X");
    let table = [
        (SinceSource::Deletion, "metadata.deletionTimestamp", true),
        (SinceSource::Creation, "metadata.creationTimestamp", false),
        (SinceSource::Start, "status.startTime", false),
        (SinceSource::End, "status.completionTime", false),
        (SinceSource::Condition(name()), "conditions[X].lastTransitionTime", false),
        (SinceSource::Failure(name()), "conditions[X].lastTransitionTime", true),
        (SinceSource::Seen, "seen", false),
        (SinceSource::FirstSeen, "firstSeen", false),
    ];
    for (moment, field, is_final) in table {
        assert_eq!((moment.to_string().as_str(), moment.is_final()), (field, is_final), "{moment:?}");
    }
}
