//! Whether a Kopf operator succeeded with what it handled.

use aggregator::HandledEvidence;
use aggregator::HandledEvidence::{Failed, GivenUp, Handled, NotYet, Unproven};
use readiness::Time;
use serde_json::{Value, json};
use watcher::plan::{Interest, KopfMarkRule};
use watcher::reflector::{KopfLogLine, LoggedLine, Reflector};

use crate::objects::{NOW, apply, parents, uid, widget};

const MARK: &str = "{\"spec\":{\"size\":1}}\n";

fn record(failure: bool) -> String {
    json!({"started": "2026-01-01T00:00:00.0+00:00", "purpose": "update", "retries": 1, "success": false,
        "failure": failure, "message": if failure { "no such image" } else { "" }})
    .to_string()
}

fn under(marks: KopfMarkRule) -> Interest {
    let mut interest = parents(vec![]);
    interest.parent[0].kopf_marks = marks;
    interest
}

/// Reads the parent with these annotations below Kopf's prefix; returns its evidence and what its operator says.
fn read(
    reflector: &Reflector,
    interest: &Interest,
    (version, generation): (u32, u32),
    annotations: &[(&str, &str)],
    status: &Value,
) -> (HandledEvidence, Option<String>) {
    let mut parent = widget(version, generation, status);
    for (name, value) in annotations {
        parent["metadata"]["annotations"][format!("kopf.zalando.org/{name}")] = json!(value);
    }
    apply(reflector, interest, &parent);
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let evidence = reflector.with_view(id, NOW, |view| view.unwrap().parent.unwrap().evidence);
    let said = reflector.read_row(id, |row| row.parent.as_ref().unwrap().progress().map(str::to_owned));
    (evidence, said.flatten())
}

#[test]
fn a_failure_that_was_seen_stands_for_its_generation_though_kopf_takes_all_traces_of_it_away() {
    let says = Some("handler a failed: no such image".to_owned());
    let (reflector, interest) = (Reflector::new(|| ()), under(KopfMarkRule::Learned));
    let (failed, tried) = (record(true), record(false));
    let old = ("last-handled-configuration", "{\"spec\":{\"size\":0}}\n");
    let marked = ("last-handled-configuration", MARK);
    let see = |at, annotations: &[(&str, &str)]| read(&reflector, &interest, at, annotations, &json!({}));
    assert_eq!(see((1, 2), &[old, ("a", &failed), ("b", &tried)]), (Failed, says.clone()));
    assert_eq!(see((2, 2), &[marked]), (GivenUp, says.clone()), "the mark equals the spec");
    assert_eq!(see((3, 2), &[marked]), (GivenUp, says.clone()));
    // Another generation is another matter, and so is one that is handled again.
    assert_eq!(see((4, 3), &[old]).0, NotYet);
    assert_eq!(see((5, 3), &[marked]), (Handled, None));
    // What an earlier process told the parent it has seen.
    let told = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "OperatorFailed",
        "message": "the operator failed to handle generation 3: handler a failed: no such image", "observedGeneration": 3}]});
    let restarted = Reflector::new(|| ());
    assert_eq!(read(&restarted, &interest, (6, 3), &[marked], &told), (GivenUp, says));
    assert_eq!(read(&restarted, &interest, (7, 4), &[marked], &told).0, Handled);
    let succeeded = ("last-outcome", "{\"generation\": 4, \"failed\": {}}");
    assert_eq!(read(&restarted, &interest, (8, 4), &[marked, succeeded], &json!({})), (Handled, None));
}

#[test]
fn where_the_policy_names_kopf_an_equal_mark_alone_proves_nothing() {
    let marked = ("last-handled-configuration", MARK);
    let failed = ("last-outcome", "{\"generation\": 2, \"failed\": {\"a\": \"no\"}}");
    let succeeded = ("last-outcome", "{\"generation\": 2, \"failed\": {}}");
    let older = ("last-outcome", "{\"generation\": 1, \"failed\": {}}");
    for (marks, annotations, expected) in [
        (KopfMarkRule::Expected, vec![marked], Unproven),
        (KopfMarkRule::Expected, vec![marked, older], Unproven),
        (KopfMarkRule::Expected, vec![marked, succeeded], Handled),
        (KopfMarkRule::Expected, vec![marked, failed], GivenUp),
        (KopfMarkRule::Learned, vec![marked], Handled),
        (KopfMarkRule::Learned, vec![marked, failed], GivenUp),
        (KopfMarkRule::Optional, vec![marked], Handled),
    ] {
        let reflector = Reflector::new(|| ());
        let (evidence, _) = read(&reflector, &under(marks), (1, 2), &annotations, &json!({}));
        assert_eq!(evidence, expected, "{marks:?} {annotations:?}");
    }
}

/// The parent's evidence, and what its operator says.
fn held(reflector: &Reflector) -> (HandledEvidence, Option<String>) {
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let evidence = reflector.with_view(id, NOW, |view| view.unwrap().parent.unwrap().evidence);
    let said = reflector.read_row(id, |row| row.parent.as_ref().unwrap().progress().map(str::to_owned));
    (evidence, said.flatten())
}

/// A line of the operator's log about the parent, this many seconds after its generation began.
fn logged(seconds: i64, line: KopfLogLine) -> LoggedLine {
    LoggedLine { uid: uid(1_000).into(), at: Time(STARTED.0 + seconds * 1_000), line }
}

const STARTED: Time = Time(1_767_225_600_000);

/// The parent, whose mark equals its spec, and which was created when its generation began.
fn marked_parent(version: u32, generation: u32) -> Value {
    let mut parent = widget(version, generation, &json!({}));
    parent["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    parent["metadata"]["annotations"] = json!({ "kopf.zalando.org/last-handled-configuration": MARK });
    parent
}

#[test]
fn where_the_policy_names_kopf_a_failure_that_its_operator_logged_counts_whenever_it_is_read() {
    let failed = || {
        let (handler, message) = ("a".into(), "no such image".into());
        [KopfLogLine::HandlerFailed { handler, message }, KopfLogLine::ChangeEnded(false)]
    };
    let (nothing, says) = ((Unproven, None), (GivenUp, Some("handler a failed: no such image".to_owned())));
    let interest = under(KopfMarkRule::Expected);
    // The log is known before the parent is read, and after.
    for is_first in [true, false] {
        let reflector = Reflector::new(|| ());
        let tell = || reflector.note_kopf_lines(failed().map(|line| logged(1, line)));
        if is_first {
            tell();
        }
        apply(&reflector, &interest, &marked_parent(1, 1));
        if !is_first {
            assert_eq!(held(&reflector), nothing);
            tell();
        }
        assert_eq!(held(&reflector), says, "the log comes first: {is_first}");
        apply(&reflector, &interest, &marked_parent(2, 1));
        assert_eq!(held(&reflector), says);
        // It was tried again, and nobody says that this succeeded but the log.
        reflector.note_kopf_lines([logged(2, KopfLogLine::ChangeEnded(true))]);
        assert_eq!(held(&reflector), nothing, "a log proves nothing");
        apply(&reflector, &interest, &marked_parent(3, 1));
        assert_eq!(held(&reflector), nothing);
        // What has failed before is not about the next generation, though that began in the same second.
        tell();
        assert_eq!(held(&reflector), says);
        apply(&reflector, &interest, &marked_parent(4, 2));
        assert_eq!(held(&reflector), nothing);
    }
    // It takes back what it has told, not what was seen on the parent.
    let reflector = Reflector::new(|| ());
    let mut failing = marked_parent(1, 1);
    failing["metadata"]["annotations"]["kopf.zalando.org/a"] = json!(record(true));
    apply(&reflector, &interest, &failing);
    assert_eq!(held(&reflector), says);
    reflector.note_kopf_lines([logged(2, KopfLogLine::ChangeEnded(true))]);
    apply(&reflector, &interest, &marked_parent(2, 1));
    assert_eq!(held(&reflector), says);
}

#[test]
fn what_was_logged_of_another_generation_or_of_no_kopf_operator_counts_for_nothing() {
    for (marks, seconds, expected) in [
        (KopfMarkRule::Expected, 0, GivenUp),
        (KopfMarkRule::Expected, -1, Unproven),
        (KopfMarkRule::Learned, 1, Handled),
        (KopfMarkRule::Optional, 1, Handled),
    ] {
        let reflector = Reflector::new(|| ());
        apply(&reflector, &under(marks), &marked_parent(1, 1));
        reflector.note_kopf_lines([logged(seconds, KopfLogLine::ChangeEnded(false))]);
        assert_eq!(held(&reflector).0, expected, "{marks:?} {seconds}");
    }
}
