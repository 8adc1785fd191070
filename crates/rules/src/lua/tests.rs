use readiness::Time;
use rollcall_cel::ObjectJson;
use serde_json::{Value, json};

use super::*;

const NOW: Time = Time(1_709_209_845_000);

fn run(source: &str, open: bool, object: &Value) -> ScriptOutcome {
    HealthScript::compile("test", source, open).expect("compiles").judge_object(ObjectJson::Tree(object), NOW)
}

fn said(source: &str) -> (Option<&'static str>, String) {
    let object =
        json!({"kind": "Database", "metadata": {"name": "db"}, "status": {"phase": "Up", "count": 3}});
    let outcome = run(source, true, &object);
    assert_eq!(outcome.limit, None, "{source}");
    (outcome.verdict.status, outcome.verdict.message)
}

fn message(expression: &str) -> String {
    let (status, message) = said(&format!("return {{status = 'Healthy', message = {expression}}}"));
    assert_eq!(status, Some("Healthy"), "{expression}: {message}");
    message
}

#[test]
fn results_are_read_as_argo_cd_reads_them() {
    let invalid = (Some("Unknown"), "Lua returned an invalid health status".to_owned());
    for (source, expected) in [
        (
            "return {status = 'Healthy', message = ' two\\nlines '}",
            (Some("Healthy"), " two\nlines ".to_owned()),
        ),
        ("return {status = 'Missing'}", (Some("Missing"), String::new())),
        ("return nil", (None, String::new())),
        ("local x = 1", (None, String::new())),
        ("return {}", (None, String::new())),
        ("return {'Healthy'}", (None, String::new())),
        ("return {status = 5}", (None, String::new())),
        ("return {status = 'Healthy', message = {}}", (None, String::new())),
        ("return {message = 'no status'}", invalid.clone()),
        ("return {status = 'healthy'}", invalid),
        ("return {Status = 'Degraded', MESSAGE = 'any case'}", (Some("Degraded"), "any case".to_owned())),
        ("return {status = 'Healthy', extra = {1, 2, {a = true}}}", (Some("Healthy"), String::new())),
        ("return 'first', {status = 'Healthy'}", (Some("Healthy"), String::new())),
    ] {
        assert_eq!(said(source), expected, "{source}");
    }
}

#[test]
fn what_cannot_be_encoded_is_unknown() {
    for source in [
        "return 'Healthy'",
        "return 1",
        "return {status = 'Healthy', f = function() end}",
        "return {status = 'Healthy', 1}",
        "return {status = 'Healthy', list = {[1] = 1, [3] = 3}}",
        "local t = {} return {status = 'Healthy', a = t, b = t}",
        "local t = {status = 'Healthy'} t.t = t return t",
        "return {status = 'Healthy', n = 0/0}",
        "error('no')",
        "error({code = 1})",
        "return obj.status.missing.deeper",
    ] {
        assert_eq!(said(source).0, Some("Unknown"), "{source}");
    }
}

#[test]
fn numbers_print_as_gopher_lua_prints_them() {
    for (expression, expected) in [
        ("tostring(obj.status.count)", "3"),
        ("'n=' .. obj.status.count", "n=3"),
        ("tostring(1e15)", "1000000000000000"),
        ("tostring(2^53)", "9007199254740992"),
        ("tostring(2^60)", "1152921504606846976"),
        ("tostring(0.1)", "0.1"),
        ("tostring(1234567.5)", "1.2345675e+06"),
        ("tostring(0.00001)", "1e-05"),
        ("tostring(1e300)", "1e+300"),
        ("tostring(1/0)", "+Inf"),
        ("string.format('%d of %d, %s', 1, 2, 'x')", "1 of 2, x"),
        ("tostring(tonumber('0x10'))", "16"),
    ] {
        assert_eq!(message(expression), expected, "{expression}");
    }
}

#[test]
fn the_library_is_that_of_lua_5_1() {
    for (expression, expected) in [
        ("tostring(table.getn({1, 2, 3}))", "3"),
        ("('abc'):upper()", "ABC"),
        ("(string.gsub('a-b', '-', '+'))", "a+b"),
        ("tostring(select(2, string.find('abc', 'c', 1, true)))", "3"),
        ("table.concat({'a', 'b'}, ', ')", "a, b"),
        ("os.date('!%Y-%m-%d', os.time())", "2024-02-29"),
        ("require('os').date('%H:%M', 0)", "00:00"),
        ("tostring(table.time())", "1709209845"),
        ("tostring(_G.obj == obj)", "true"),
        ("tostring(math.mod(7, 4))", "3"),
        ("type(io) .. type(debug) .. type(load) .. type(getfenv) .. type(os.getenv)", "nilnilnilnilnil"),
        ("type(obj.metadata.absent) .. type(actionParams)", "niltable"),
    ] {
        assert_eq!(message(expression), expected, "{expression}");
    }
}

#[test]
fn a_script_has_no_files_no_network_no_environment_and_no_way_to_load_any() {
    for name in ["io", "package", "debug", "load", "loadstring", "loadfile", "dofile", "getfenv", "setfenv"] {
        assert_eq!(message(&format!("type({name})")), "nil", "{name}");
    }
    for name in ["io", "socket", "debug", "package", "ffi"] {
        assert_eq!(message(&format!("tostring(pcall(require, '{name}'))")), "false", "{name}");
    }
    // What the system is asked for by name is the time.
    let names = "(function() local n = {} for k in pairs(os) do n[#n + 1] = k end table.sort(n) return table.concat(n, ' ') end)()";
    assert_eq!(message(names), "clock date difftime time");
}

#[test]
fn without_open_libraries_there_are_no_string_methods() {
    let object = json!({"kind": "X"});
    for source in
        ["return {status = ('Healthy'):gsub('x', 'y')}", "return {status = string.upper('x')}", "os.time()"]
    {
        assert_eq!(run(source, false, &object).verdict.status, Some("Unknown"), "{source}");
    }
    let source = "local os = require('os') if table.getn({}) == 0 and os.time() > 0 then return {status = 'Healthy'} end";
    assert_eq!(run(source, false, &object).verdict.status, Some("Healthy"));
}

#[test]
fn it_is_noted_whether_a_script_asked_for_the_time() {
    let object = json!({"kind": "X", "status": {"beat": "2024-02-29T12:30:00Z"}});
    for (source, reads_clock) in [
        ("if os.time() > 0 then return {status = 'Healthy'} end", true),
        ("local t = os.time return {status = 'Healthy', message = '' .. t()}", true),
        ("return {status = 'Healthy', message = os.date('%c')}", true),
        ("return {status = 'Healthy', message = os.date()}", true),
        ("return {status = 'Healthy', message = '' .. table.time()}", true),
        ("pcall(function() os.time() error('no') end) return {status = 'Healthy'}", true),
        ("os.time() error('no')", true),
        ("os.time() while true do end", true),
        ("return {status = 'Healthy', message = '' .. os.time({year = 2024, month = 2, day = 29})}", false),
        ("return {status = 'Healthy', message = os.date('%c', 0)}", false),
        ("if obj.kind == 'Y' then os.time() end return {status = 'Healthy'}", false),
        ("return {status = 'Healthy'}", false),
    ] {
        assert_eq!(run(source, true, &object).reads_clock, reads_clock, "{source}");
    }
}

#[test]
fn pairs_goes_in_order() {
    let source = "local s = '' for k, v in pairs({b = 1, a = 2, [2] = 'y', [1] = 'x', c = 3}) do s = s .. k end \
                  return {status = 'Healthy', message = s}";
    assert_eq!(said(source).1, "12abc");
}

#[test]
fn a_null_is_nil_and_leaves_its_list() {
    let object = json!({"status": {"list": [null, "a", null, "b"], "empty": null}});
    let source = "return {status = 'Healthy', message = #obj.status.list .. obj.status.list[2] .. type(obj.status.empty)}";
    assert_eq!(run(source, true, &object).verdict.message, "2bnil");
}

#[test]
fn an_object_read_on_touch_looks_like_one_read_whole() {
    let text =
        r#"{"kind": "A", "status": {"phase": "Up"}, "spec": null, "metadata": {"name": "n"}, "kind": "B"}"#;
    for (source, expected) in [
        ("return {status = 'Healthy', message = obj.kind .. obj.status.phase .. type(obj.spec)}", "BUpnil"),
        (
            "local s = '' for k in pairs(obj) do s = s .. k .. ' ' end return {status = 'Healthy', message = s}",
            "kind metadata status ",
        ),
        ("obj.status = nil return {status = 'Healthy', message = type(obj.status)}", "nil"),
        (
            "local s = obj.status obj.status = nil return {status = 'Healthy', message = s.phase .. type(obj.status)}",
            "Upnil",
        ),
        ("obj.new = 1 return {status = 'Healthy', message = obj.new .. rawget(obj, 'kind')}", "1B"),
        ("return {status = 'Healthy', message = type(getmetatable(obj)) .. type(next(obj))}", "nilstring"),
        (
            "setmetatable(obj, {__index = function() return 'x' end}) return {status = 'Healthy', message = obj.kind .. obj.y}",
            "Bx",
        ),
    ] {
        let script = HealthScript::compile("test", source, true).unwrap();
        assert_eq!(script.judge_object(ObjectJson::Text(text), NOW).verdict.message, expected, "{source}");
        let tree: Value = serde_json::from_str(text).unwrap();
        assert_eq!(script.judge_object(ObjectJson::Tree(&tree), NOW).verdict.message, expected, "{source}");
    }
    let itself = HealthScript::compile("test", "return obj", true).unwrap();
    let healthy = itself.judge_object(ObjectJson::Text(r#"{"status": "Healthy", "message": "me"}"#), NOW);
    assert_eq!((healthy.verdict.status, healthy.verdict.message.as_str()), (Some("Healthy"), "me"));
}

#[test]
fn the_line_that_decided_is_told() {
    let object = json!({"status": {"phase": "Up"}});
    let source = "local function judge(o)\n  if o.status.phase == 'Up' then\n    return {status = 'Healthy'}\n  end\nend\nreturn judge(obj)";
    assert_eq!(run(source, true, &object).line, Some(3));
    let error = run("\n\nreturn obj.a.b", true, &object);
    assert_eq!(error.verdict.message, "test:3: attempt to index nil with 'b'");
}

#[test]
fn a_syntax_error_has_its_line() {
    let error = HealthScript::compile("argocd-cm Database", "local x = 1\nif x then", true).unwrap_err();
    assert_eq!((error.line, error.name.as_str()), (2, "argocd-cm Database"));
    let error =
        HealthScript::compile("x", "while true do\n  goto out\nend\nprint()\n::out::", true).unwrap_err();
    assert_eq!(error.to_string(), "x:2: goto out does not continue a loop");
}

#[test]
fn no_call_sees_what_another_left_behind() {
    let object = json!({"kind": "X"});
    let leave = "seen = 'leak' _G.seen2 = 'leak' obj.kind = 'leak' pcall(function() string.seen = 'leak' end) \
                 pcall(function() table.insert = nil end) pcall(function() getmetatable('').__index = nil end) \
                 pcall(rawset, string, 'seen', 'leak') pcall(setmetatable, string, {}) math.randomseed(1) \
                 return {status = 'Healthy'}";
    let look = "return {status = 'Healthy', message = type(seen) .. type(seen2) .. obj.kind .. type(string.seen) .. \
                type(table.insert) .. ('x'):upper()}";
    for open in [leave, look, leave, look] {
        let outcome = run(open, true, &object);
        assert_eq!(outcome.verdict.status, Some("Healthy"), "{:?}", outcome.verdict);
        if open == look {
            assert_eq!(outcome.verdict.message, "nilnilXnilfunctionX");
        }
    }
}

#[test]
fn threads_judge_beside_each_other() {
    let script =
        HealthScript::compile("test", "return {status = 'Healthy', message = obj.metadata.name}", true)
            .unwrap();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let script = &script;
            scope.spawn(move || {
                let text = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
                for _ in 0..200 {
                    let said = script.judge_object(ObjectJson::Text(&text), NOW).verdict.message;
                    // On a busy machine a call may run out of time, but it never sees another call's data.
                    assert!(said == name || said.contains("it ran for too long"), "{name}: {said}");
                }
            });
        }
    });
}

#[test]
fn a_deeply_nested_object_is_judged_by_what_is_not_nested() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let text = format!(r#"{{"status": {{"phase": "Up"}}, "spec": {deep}}}"#);
    let touches_not =
        HealthScript::compile("test", "return {status = 'Healthy', message = obj.status.phase}", true)
            .unwrap();
    assert_eq!(touches_not.judge_object(ObjectJson::Text(&text), NOW).verdict.message, "Up");
    let touches =
        HealthScript::compile("test", "return {status = 'Healthy', message = #obj.spec}", true).unwrap();
    assert_eq!(touches.judge_object(ObjectJson::Text(&text), NOW).verdict.status, Some("Unknown"));
}
