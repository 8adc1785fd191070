//! What the error of a script tells of the object: the types of its values, and nothing else.

use serde_json::json;

use super::*;

/// Values that must not be seen, in the clear or in part.
const VALUES: [&str; 4] = ["hunter2", "hunter", "471147", "aHVudGVy"];

/// Every way to make an error out of a value.
const EXPRESSIONS: &[&str] = &[
    "obj.data.map[obj.data.token].x",
    "obj.data.map[obj.data.pin].x",
    "obj[obj.data.token].x",
    "obj.data[obj.data.token]()",
    "obj.data.map[obj.data.token]:upper()",
    "(obj.data.token)[obj.data.token].x",
    "obj.data.token + 1",
    "obj.data.token < obj.data.pin",
    "obj.data.token .. {}",
    "obj.data.token()",
    "-obj.data.token",
    "#obj.data.pin",
    "error(obj.data.token)",
    "error(obj.data.token, 0)",
    "error('bad token ' .. obj.data.token)",
    "error('test:' .. obj.data.pin .. ': x', 0)",
    "error({obj.data.token})",
    "error(obj.data.pin)",
    "assert(false, obj.data.token)",
    "assert(nil, obj.data.pin)",
    "require(obj.data.token)",
    "tostring(nil, obj.data.token)()",
    "setmetatable(obj.data.token, obj.data.token)",
    "string.format('%d', obj.data.token)",
    "string.format('%' .. obj.data.token, 1)",
    "string.rep(obj.data.token, obj.data.token)",
    "string.rep(obj.data.token, 1e9)",
    "string.find('x', '[' .. obj.data.token)",
    "string.gsub('x', 'x', '%' .. obj.data.token)",
    "string.char(obj.data.pin)",
    "table.concat({obj.data.map}, obj.data.token)",
    "table.concat({{}}, obj.data.token, obj.data.pin, obj.data.pin)",
    "table.insert(obj.data.token, 1)",
    "table.insert({}, obj.data.token, obj.data.pin)",
    "table.sort({obj.data.token, obj.data.pin})",
    "table.getn(obj.data.token)",
    "unpack(obj.data.token)",
    "select(obj.data.token)",
    "select(-obj.data.pin, 1)",
    "ipairs(nil, obj.data.token)",
    "rawset(obj.data.token, obj.data.token, 1)",
    "next({}, obj.data.token)",
    "os.time(obj.data.token)",
    "os.date(obj.data.map)",
    "os.date('%c', obj.data.token)",
    "math.floor(obj.data.token)",
    "coroutine.resume(obj.data.token)",
    "coroutine.wrap(function() error(obj.data.token) end)()",
    "xpcall(function() error(obj.data.token) end, function(e) error(e .. obj.data.pin) end)()",
    "pcall(error, obj.data.token)()",
    "setmetatable({}, {__index = function(_, key) error(key) end})[obj.data.token]",
    "tostring(setmetatable({}, {__tostring = function() error(obj.data.token) end}))",
    "(function() local t = {} t[obj.data.token] = t return t end)()",
];

#[test]
fn no_error_quotes_a_value_of_the_object() {
    let object = json!({"data": {"token": "hunter2", "b64": "aHVudGVyMg==", "pin": 471_147, "map": {}}});
    let mut failed = 0;
    for expression in EXPRESSIONS {
        for source in [format!("return {expression}"), format!("local x = {expression}")] {
            let script = HealthScript::compile("test", &source, true).unwrap();
            for outcome in [
                script.judge_object(ObjectJson::Tree(&object), Time(0)),
                script.judge_object(ObjectJson::Text(&object.to_string()), Time(0)),
            ] {
                failed += usize::from(outcome.failed);
                let said = &outcome.verdict.message;
                for value in VALUES {
                    assert!(!outcome.failed || !said.contains(value), "{source}: {said}");
                }
            }
        }
    }
    assert!(failed > 160, "{failed} of these fail");
}

#[test]
fn an_error_still_tells_what_is_wrong_with_the_script() {
    let object = json!({"status": {"phase": "Up"}});
    for (source, words) in [
        ("return obj.metadata.name", "test:1: attempt to index nil with 'name'"),
        ("\nreturn obj.status.phase + 1", "test:2: attempt to perform arithmetic (add) on string and number"),
        ("return string.rep()", "test:1: missing argument #1 to 'rep' (string expected)"),
        ("error('no such phase: ' .. obj.status.phase)", "test:1: no such phase: …"),
        ("obj.status.go()", "test:1: attempt to call a nil value"),
    ] {
        let script = HealthScript::compile("test", source, true).unwrap();
        assert_eq!(script.judge_object(ObjectJson::Tree(&object), Time(0)).verdict.message, words);
    }
}

#[test]
fn an_object_that_is_none_is_not_quoted() {
    let script = HealthScript::compile("test", "return obj", true).unwrap();
    for text in [r#""hunter2""#, "471147", r#"{"a": hunter2}"#, r#"{"hunter2": "#, r#"["hunter2"]"#] {
        let said = script.judge_object(ObjectJson::Text(text), Time(0)).verdict.message;
        assert!(VALUES.iter().all(|value| !said.contains(value)), "{said}");
    }
}
