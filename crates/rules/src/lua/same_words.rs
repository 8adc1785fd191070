//! A script says the same in every process: no addresses, no order of addresses, and no chance.

use readiness::Time;
use rollcall_cel::{CostLimit, ObjectJson};
use serde_json::json;

use super::*;

/// Expressions of which an interpreter by itself makes another text in each process.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("tostring({})", "table"),
    ("tostring(obj)", "table"),
    ("tostring(_G)", "table"),
    ("tostring(tostring)", "function"),
    ("tostring(function() end)", "function"),
    ("tostring(coroutine.create(function() end))", "thread"),
    ("tostring(setmetatable({}, {__tostring = function() return 'mine' end}))", "mine"),
    ("tostring(setmetatable({}, {__metatable = 'locked'}))", "table"),
    ("tostring('table: 0x0123456789abcdef')", "table: 0x0123456789abcdef"),
    ("tostring(nil) .. tostring(true)", "niltrue"),
    ("string.format('%* %* %d', {}, print, 3)", "table function 3"),
    ("('%*'):format(obj.spec)", "table"),
    ("`{obj.spec} {print}`", "table function"),
    ("string.format('%*', setmetatable({}, {__tostring = function() return 'mine' end}))", "mine"),
    ("string.format('%* %* %*', nil, true, 'x')", "nil true x"),
    ("select(2, pcall(error, {})) and 'no text'", "no text"),
    ("tostring(select(2, pcall(error, {})))", "table"),
    ("tostring(select(2, xpcall(error, tostring, {})))", "table"),
    ("tostring(select(2, pcall(require, {})))", "module table not found"),
];

/// Scripts whose message is the same in every process, whatever it is.
const SCRIPTS: &[&str] = &[
    "return {status = 'Healthy', message = tostring(math.random())}",
    "return {status = 'Healthy', message = math.random(1, 1e9) .. ' ' .. math.random(1e9)}",
    "math.randomseed(os.time()) return {status = 'Healthy', message = math.random(1e9) .. ''}",
    "error({})",
    "error(print)",
    "assert(false, {})",
    "return table.concat({{}})",
    "return {} .. ''",
    "return {} + 1",
    "return {} < {}",
    "return print",
    "return {status = {}, message = print}",
    "string.format('%d', {})",
    "error(setmetatable({}, {__tostring = function() return 'mine' end}))",
    "local ok, why = pcall(os.date, {}) return {status = 'Healthy', message = tostring(why)}",
    "local ok, why = pcall(os.time, 1) return {status = 'Healthy', message = string.format('%s', why)}",
    "coroutine.wrap(function() error({}) end)()",
    "local t, s = {}, '' for i = 1, 40 do t[{}] = i end for _, v in pairs(t) do s = s .. v .. ' ' end
     return {status = 'Healthy', message = s}",
    "local t, s = {}, '' for i = 1, 40 do t[function() return i end] = 'v' .. i end
     for _, v in pairs(t) do s = s .. v .. ' ' end return {status = 'Healthy', message = s}",
    "local t, s = {[true] = 1, [false] = 2, [print] = 3, [{}] = 4, x = 5, [7.5] = 6}, ''
     for _, v in pairs(t) do s = s .. v end return {status = 'Healthy', message = s}",
];

/// What a script says in an interpreter of its own, while this thread's is still there.
fn elsewhere(source: &str) -> String {
    let source = source.to_owned();
    std::thread::spawn(move || said(&source)).join().unwrap()
}

fn said(source: &str) -> String {
    let object = json!({ "kind": "X", "spec": {} });
    let script = HealthScript::compile("test", source, true).unwrap();
    let judge = || script.judge_object(ObjectJson::Text(&object.to_string()), Time(0));
    // A thread that waits for a busy machine spends its time, too.
    let is_late = |outcome: &ScriptOutcome| outcome.limit == Some(CostLimit::Time);
    let outcome = std::iter::repeat_with(judge).take(100).find(|outcome| !is_late(outcome)).unwrap();
    assert_eq!(outcome.limit, None, "{source}");
    format!("{:?} {}", outcome.verdict.status, outcome.verdict.message)
}

#[test]
fn what_has_no_text_of_its_own_is_named_by_its_type() {
    for (expression, expected) in EXPRESSIONS {
        let source = format!("return {{status = 'Healthy', message = {expression}}}");
        assert_eq!(said(&source), format!("Some(\"Healthy\") {expected}"), "{expression}");
    }
}

#[test]
fn a_script_says_the_same_in_two_interpreters_and_twice_in_one() {
    for source in SCRIPTS {
        let first = said(source);
        assert_eq!(elsewhere(source), first, "{source}");
        assert_eq!(said(source), first, "{source}");
        assert!(!first.contains("0x"), "{source}: {first}");
    }
}

#[test]
fn random_numbers_of_one_call_differ_from_each_other() {
    let source = "local seen, n = {}, 0 for _ = 1, 100 do seen[math.random(1e9)] = true end
        for _ in pairs(seen) do n = n + 1 end return {status = 'Healthy', message = n .. ''}";
    assert_eq!(said(source), "Some(\"Healthy\") 100");
}

#[test]
fn the_error_of_a_library_function_names_the_line_of_the_script() {
    for source in ["\nstring.format('%d', 'x')", "\nstring.find('x', '[')", "\nmath.random('x')"] {
        assert!(said(source).starts_with("Some(\"Unknown\") test:2: "), "{}", said(source));
    }
}

#[test]
fn no_script_changes_what_another_sees() {
    let spoil = [
        "getmetatable(_G).__index = {tostring = function() return 'spoilt' end}",
        "rawset(getmetatable(_G), '__index', {})",
        "setmetatable(getmetatable(_G), {})",
        "setmetatable(getmetatable(_G).__index, {__index = function() return 1 end})",
        "getmetatable(_G).__index.tostring = function() return 'spoilt' end",
        "getmetatable('').__index = {}",
        "getmetatable('').__index.format = nil",
        "table.insert(string, 1)",
        "os.time = nil",
        "getmetatable(obj).__index = nil",
    ];
    for source in spoil {
        assert!(said(source).starts_with("Some(\"Unknown\")"), "{source}: {}", said(source));
        let after =
            "return {status = 'Healthy', message = tostring(('%d'):format(1)) .. os.time() .. obj.kind}";
        assert_eq!(said(after), "Some(\"Healthy\") 10X", "after {source}");
    }
}
