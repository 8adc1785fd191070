//! Hostile objects, judged by harmless scripts.

use std::fmt::Write;

use rollcall_cel::{CostLimit, ObjectJson};

use super::*;

/// An object of about a megabyte, most of it fields of its own.
fn with_root_fields(count: usize) -> String {
    let mut text = r#"{"kind": "X""#.to_owned();
    for at in 0..count {
        write!(text, r#", "field{at}": {at}"#).unwrap();
    }
    text + r#", "status": {"phase": "Up"}}"#
}

/// A call with a budget that a hostile object may use up, and that is no larger for a larger object.
fn judge(source: &str, text: &str) -> (ScriptOutcome, f64) {
    let script = HealthScript::compile("test", source, true).unwrap();
    measure_cost(|| script.judge_object(ObjectJson::Text(text), Time(0)))
}

#[test]
fn an_object_with_62_000_root_fields_costs_what_it_is_long() {
    let (small, large) = (with_root_fields(6_200), with_root_fields(62_000));
    for source in [
        "return {status = 'Healthy', message = obj.status.phase}",
        "return {status = 'Healthy', message = type(obj.field61999) .. type(obj.none)}",
        "local n = 0 for i = 1, 5000 do n = n + obj['field' .. i] end return {status = 'Healthy'}",
        "local n = 0 for k, v in pairs(obj) do n = n + 1 end return {status = 'Healthy'}",
        "for i = 1, 5000 do obj['field' .. i] = nil end return {status = 'Healthy'}",
        "return obj",
    ] {
        let (_, less) = judge(source, &small);
        let (outcome, took) = judge(source, &large);
        println!("{took:>9.3} ms, {less:>9.3} ms for a tenth  {source}  {:?}", outcome.limit);
        // Quadratic, it was 13 s.
        assert!(took < 12.0 * MAX_ATTACK_MILLIS, "{source} cost {took} ms");
    }
}

#[test]
fn reading_is_stopped_before_the_object_is_in_memory() {
    let values = |count: usize| format!(r#"{{"spec": [{}0]}}"#, "[],".repeat(count));
    let source = "local n = #obj.spec return {status = 'Healthy', message = n .. ''}";
    assert_eq!(judge(source, &values(100_000)).0.verdict.message, "100001", "any object of a server");
    let (outcome, took) = judge(source, &values(600_000));
    assert_eq!(outcome.limit, Some(CostLimit::Size));
    assert!(took < 12.0 * MAX_ATTACK_MILLIS, "{took} ms");
    let tree: serde_json::Value = serde_json::from_str(&values(600_000)).unwrap();
    let script = HealthScript::compile("test", source, true).unwrap();
    let outcome = script.judge_object(ObjectJson::Tree(&tree), Time(0));
    assert_eq!(outcome.limit, Some(CostLimit::Size));
    let huge = format!(r#"{{"spec": "{}", "status": {{}}}}"#, "x".repeat(14 << 20));
    let untouched = judge("return {status = 'Healthy'}", &huge).0;
    assert_eq!(untouched.limit, Some(CostLimit::Size), "its length is charged before it is copied");
}

#[test]
fn what_was_stopped_while_reading_cannot_be_caught() {
    let text = format!(r#"{{"spec": [{}0], "status": {{"phase": "Up"}}}}"#, "[],".repeat(600_000));
    let source =
        "pcall(function() return obj.spec end) return {status = 'Healthy', message = obj.status.phase}";
    assert_eq!(judge(source, &text).0.limit, Some(CostLimit::Size));
}

#[test]
fn an_object_nested_deeper_than_any_is_an_error_on_any_stack() {
    let deep = format!(r#"{{"spec": {}1{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let maps = format!(r#"{{"spec": {}1{}}}"#, r#"{"a":"#.repeat(299), "}".repeat(299));
    let run = move || {
        let outcome = judge("return {status = 'Healthy', message = type(obj.spec)}", &deep).0;
        assert_eq!(outcome.verdict.message, "the object is nested too deeply");
        assert_eq!(
            judge("return {status = 'Healthy', message = type(obj.spec)}", &maps).0.verdict.message,
            "table"
        );
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}
