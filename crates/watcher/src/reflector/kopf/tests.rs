use super::*;
use serde_json::json;

fn says(annotations: &Value, status: &Value) -> (Option<bool>, Option<String>) {
    let object =
        json!({"metadata": {"annotations": annotations}, "spec": {"size": 1}, "status": {"kopf": status}});
    let read = read_kopf_state(&RawValue::from_string(object.to_string()).unwrap());
    (read.handled, read.progress.map(String::from))
}

fn progress(retries: u32, message: &str) -> Value {
    json!({"started": "2026-01-01T00:00:00.0+00:00", "stopped": null, "delayed": "2026-01-01T00:01:00.0+00:00",
        "purpose": "create", "retries": retries, "success": false, "failure": false, "message": message})
}

#[test]
fn a_handler_that_is_tried_again_has_not_handled_it_and_says_why() {
    let tried = |n| json!({"kopf.zalando.org/create_fn": progress(n, "no such\n secret").to_string()});
    let said = Some("handler create_fn is retrying: no such secret".to_owned());
    assert_eq!(says(&tried(1), &json!({})), (Some(false), said.clone()));
    assert_eq!(says(&tried(9), &json!({})), (Some(false), said.clone()), "no word for another try");
    assert_eq!(
        says(&json!({}), &json!({"progress": {"create_fn": progress(3, "no such secret")}})),
        (Some(false), said)
    );
}

#[test]
fn a_prefix_of_the_operators_own_is_known_by_its_marker_or_its_mark() {
    let note = progress(1, "busy").to_string();
    let said = (Some(false), Some("handler up is retrying: busy".to_owned()));
    assert_eq!(
        says(&json!({"ops.example.com/up": note, "ops.example.com/kopf-managed": "yes"}), &json!({})),
        said
    );
    let mark = "{\"spec\":{\"size\":0}}\n";
    assert_eq!(
        says(
            &json!({"ops.example.com/up": note, "ops.example.com/last-handled-configuration": mark}),
            &json!({})
        ),
        said
    );
    assert_eq!(says(&json!({"ops.example.com/up": note}), &json!({})), (None, None), "anybody's annotation");
}

#[test]
fn several_handlers_are_named_in_order_and_the_rest_counted() {
    let mut failed = progress(2, "gave up");
    failed["failure"] = json!(true);
    let mut done = progress(1, "");
    done["success"] = json!(true);
    let notes = json!({"kopf.zalando.org/a": failed.to_string(), "kopf.zalando.org/b": progress(1, "x").to_string(),
        "kopf.zalando.org/c": progress(1, "y").to_string(), "kopf.zalando.org/d": done.to_string()});
    let said = "handler a failed: gave up, handler b is retrying: x and 1 more";
    assert_eq!(says(&notes, &json!({})), (Some(false), Some(said.to_owned())));
}

fn outcome(annotations: &Value, status: &Value) -> (Option<KopfOutcome>, Option<String>) {
    let metadata = json!({"generation": 2, "annotations": annotations});
    let object = json!({"metadata": metadata, "spec": {"size": 1}, "status": {"kopf": status}});
    let read = read_kopf_state(&RawValue::from_string(object.to_string()).unwrap());
    (read.outcome, read.progress.map(String::from))
}

#[test]
fn how_handlers_ended_is_known_by_their_records_while_these_stand() {
    use KopfOutcome::{Failing, GivenUp};
    let mut failed = progress(2, "no such image");
    failed["failure"] = json!(true);
    let (tried, says) = (progress(1, ""), Some("handler a failed: no such image".to_owned()));
    let both = json!({"kopf.zalando.org/a": failed.to_string(), "kopf.zalando.org/b": tried.to_string()});
    assert_eq!(outcome(&both, &json!({})), (Some(Failing), says.clone()));
    let alone = json!({"kopf.zalando.org/a": failed.to_string()});
    assert_eq!(outcome(&alone, &json!({})), (Some(GivenUp), says.clone()));
    // Left over in the status, beside the mark that Kopf stored all the same.
    let left = json!({"progress": {"a": failed}, "last-handled-configuration": "{\"spec\":{\"size\":1}}\n"});
    assert_eq!(outcome(&json!({}), &left), (Some(GivenUp), says));
    assert_eq!(outcome(&json!({"kopf.zalando.org/b": tried.to_string()}), &json!({})).0, None);
}

#[test]
fn how_handlers_ended_is_known_by_what_was_kept_of_this_generation() {
    use KopfOutcome::{GivenUp, Succeeded};
    let mark = "{\"spec\":{\"size\":1}}\n";
    let kept =
        |generation: i64, failed: Value| json!({"generation": generation, "failed": failed}).to_string();
    let object = |kept: String| json!({"kopf.zalando.org/last-handled-configuration": mark, "kopf.zalando.org/last-outcome": kept});
    let failed = json!({"set_up": "no such\n image"});
    let says = Some("handler set_up failed: no such image".to_owned());
    assert_eq!(outcome(&object(kept(2, failed.clone())), &json!({})), (Some(GivenUp), says));
    assert_eq!(outcome(&object(kept(2, json!({}))), &json!({})), (Some(Succeeded), None));
    for other in [kept(1, failed.clone()), "not json".to_owned(), "{}".to_owned()] {
        assert_eq!(outcome(&object(other.clone()), &json!({})), (None, None), "{other}");
    }
    // It is tried again.
    let mut again = object(kept(2, failed));
    again["kopf.zalando.org/set_up"] = json!(progress(1, "").to_string());
    assert_eq!(outcome(&again, &json!({})), (None, None));
}

#[test]
fn what_is_handled_is_handled_whatever_is_still_noted() {
    let noted = json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":1}}\n",
        "kopf.zalando.org/resume_fn": progress(4, "cannot resume").to_string()});
    assert_eq!(says(&noted, &json!({})), (Some(true), None));
}

#[test]
fn what_kopf_itself_could_not_read_is_named_and_was_not_handled() {
    for note in ["not json", "[1]", "{}", "17", "{\"started\": 5, \"retries\": 1}", ""] {
        let named = "annotation kopf.zalando.org/create_fn cannot be read".to_owned();
        assert_eq!(
            says(&json!({"kopf.zalando.org/create_fn": note}), &json!({})),
            (Some(false), Some(named)),
            "{note}"
        );
    }
    for mark in ["not json", "[1]", "17", "{", ""] {
        let named = "annotation kopf.zalando.org/last-handled-configuration cannot be read".to_owned();
        let marked = json!({"kopf.zalando.org/last-handled-configuration": mark});
        assert_eq!(says(&marked, &json!({})), (Some(false), Some(named)), "{mark}");
    }
    let anybodys = json!({"ops.example.com/team": "blue", "ops.example.com/kopf-managed": "yes"});
    assert_eq!(says(&anybodys, &json!({})), (None, None));
    let touched = json!({"kopf.zalando.org/touch-dummy": "2026-01-01T00:00:00"});
    assert_eq!(says(&touched, &json!({})), (None, None));
    assert_eq!(
        says(&json!({}), &json!({"progress": {"f": 3}})),
        (Some(false), Some("status.kopf.f cannot be read".to_owned()))
    );
}

#[test]
fn a_long_note_is_read_and_quoted_in_short() {
    for message in ["x".repeat(200_000), "ä".repeat(9_000)] {
        let long = progress(1, &message).to_string();
        let (handled, said) = says(&json!({"kopf.zalando.org/create_fn": long}), &json!({}));
        assert_eq!(handled, Some(false));
        assert!(said.unwrap_or_default().chars().count() < 250);
    }
    let beyond = progress(1, &"x".repeat(MAX_PROGRESS_BYTES)).to_string();
    let (handled, said) = says(&json!({}), &json!({"progress": {"create_fn": beyond}}));
    assert_eq!((handled, said.as_deref()), (Some(false), Some("status.kopf.create_fn cannot be read")));
}

#[test]
fn nothing_that_is_quoted_of_a_handler_changes_how_the_rest_is_read() {
    let noted = json!({"progress": {"create\u{1b}[2J": progress(1, "no\r\n\u{202e}ecalp\u{7}\u{2066} in \u{1b}]0;x")}});
    let said = says(&json!({}), &noted).1;
    assert_eq!(said.as_deref(), Some("handler create [2J is retrying: no ecalp in ]0;x"));
}

#[test]
fn of_two_operators_both_must_have_handled_it() {
    let mark = |size: u32| format!("{{\"spec\":{{\"size\":{size}}}}}\n");
    let both = |first: u32, second: u32| {
        json!({"a.example.com/last-handled-configuration": mark(first),
            "kopf.zalando.org/last-handled-configuration": mark(second)})
    };
    for (first, second, handled) in [(1, 1, true), (1, 0, false), (0, 1, false)] {
        assert_eq!(says(&both(first, second), &json!({})).0, Some(handled), "{first} {second}");
    }
    let mut trying = both(1, 1);
    trying["b.example.com/kopf-managed"] = json!("yes");
    trying["b.example.com/create_fn"] = json!(progress(1, "busy").to_string());
    assert_eq!(
        says(&trying, &json!({})),
        (Some(false), Some("handler create_fn is retrying: busy".to_owned()))
    );
    // Record of a handler that resumes; such records are stored in another place than the mark.
    let mut resuming = progress(3, "cannot resume");
    resuming["purpose"] = json!("resume");
    assert_eq!(says(&both(1, 1), &json!({"progress": {"f": resuming}})), (Some(true), None));
}
