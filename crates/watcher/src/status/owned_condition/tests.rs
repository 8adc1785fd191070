use super::*;

fn entry() -> ConditionEntry {
    ConditionEntry {
        r#type: "Ready".into(),
        status: "False".into(),
        observed_generation: Some(7),
        last_transition_time: "2026-01-01T00:00:00Z".into(),
        reason: "ChildrenFailed".into(),
        message: "1 of 2 not ready: Pod \"é\" failed".into(),
    }
}

fn read(text: &Value) -> OwnedCondition {
    let text = RawValue::from_string(text.to_string()).unwrap();
    OwnedCondition::new(3, read_entry(&text), &text, false)
}

fn is_plain(condition: &OwnedCondition) -> bool {
    matches!(condition.0, StoredForm::Plain(_))
}

#[test]
fn what_rollcall_wrote_is_kept_in_little_room_and_comes_back_word_by_word() {
    let held = read(&json!(entry()));
    assert!(is_plain(&held), "{held:?}");
    assert_eq!((held.to_entry(), held.index()), (entry(), 3));
    assert_eq!(held.to_precondition(), Some(json!(entry())));
    assert_eq!((held.kind(), held.message()), ("Ready", &*entry().message));
    assert_eq!(held.last_transition_time(), entry().last_transition_time);
}

#[test]
fn what_anybody_changed_is_a_precondition_as_it_stands_there() {
    for (field, value) in [
        ("status", json!("Perhaps")),
        ("reason", json!("Done")),
        ("lastTransitionTime", json!("2026-01-01T00:00:00.5Z")),
        ("lastTransitionTime", json!("2026-01-01T01:00:00+01:00")),
        ("lastTransitionTime", json!("yesterday")),
        ("lastTransitionTime", json!("1969-12-31T23:59:59Z")),
        ("lastTransitionTime", json!("2200-01-01T00:00:00Z")),
        ("severity", json!("Error")),
        ("observedGeneration", json!(null)),
    ] {
        let mut text = json!(entry());
        text[field] = value;
        let held = read(&text);
        assert_eq!(held.to_precondition(), Some(text.clone()), "{held:?}");
        assert_eq!(held.to_entry(), serde_json::from_value(text).unwrap());
    }
    for field in ["message", "lastTransitionTime", "observedGeneration"] {
        let mut text = json!(entry());
        text.as_object_mut().unwrap().remove(field);
        assert_eq!(read(&text).to_precondition(), Some(text));
    }
}

#[test]
fn what_the_server_dropped_is_known_and_no_part_of_the_precondition() {
    let dropped = ["observedGeneration", "lastTransitionTime", "message"];
    for lacks in 0_usize..8 {
        let mut text = json!(entry());
        for (_, field) in dropped.iter().enumerate().filter(|(at, _)| lacks >> at & 1 == 1) {
            text.as_object_mut().unwrap().remove(*field);
        }
        let mut held = read(&text);
        assert_eq!(held.lacks_of(&entry()), lacks > 0, "{text}");
        let before = held.to_entry();
        held.restore_dropped(&[ConditionEntry { reason: "ChildrenStuck".into(), ..entry() }]);
        assert_eq!(held.to_entry(), before, "that was another word: {text}");
        held.restore_dropped(&[ConditionEntry { r#type: "Stalled".into(), ..entry() }, entry()]);
        assert_eq!(held.to_entry(), entry(), "{text}");
        assert_eq!(is_plain(&held), lacks < 2, "a generation alone costs nothing: {text}");
        assert_eq!(held.to_precondition(), Some(text));
    }
}

#[test]
fn an_entry_is_one_whatever_is_left_of_it() {
    for (field, value) in [
        ("reason", json!(null)),
        ("message", json!(5)),
        ("status", json!(true)),
        ("lastTransitionTime", json!({})),
    ] {
        let mut text = json!(entry());
        text[field] = value;
        let held = read(&text);
        assert_eq!((held.kind(), held.to_precondition()), ("Ready", Some(text)));
    }
}
