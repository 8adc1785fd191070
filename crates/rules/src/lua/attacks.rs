//! Hostile scripts, each with its required outcome: stopped in time, or answered within the bounds.

use readiness::Time;
use rollcall_cel::ObjectJson;
use serde_json::json;

use super::*;
use rollcall_cel::cost::{MAX_ATTACK_MILLIS, measure_cost};

mod leaks;
mod libraries;
mod objects;
mod sources;

/// Name and source of a hostile call, and `true` if it terminates by itself.
const ATTACKS: [(&str, &str, bool); 64] = [
    ("endless loop", "while true do end", false),
    ("endless repeat", "repeat until false", false),
    ("endless recursion", "local function f() return f() end f()", false),
    ("deep recursion", "local function f() return 1 + f() end f()", false),
    ("caught again and again", "while true do pcall(function() while true do end end) end", false),
    ("caught in depth", "local function f() while true do pcall(f) end end f()", false),
    ("handler that never ends", "xpcall(function() error() end, function() while true do end end)", false),
    ("coroutines without end", "while true do coroutine.wrap(function() coroutine.yield() end)() end", false),
    ("a coroutine that never yields", "coroutine.wrap(function() while true do end end)()", false),
    ("coroutine in coroutine", "local function f() coroutine.wrap(f)() end f()", false),
    ("text bomb", "local s = 'x' while true do s = s .. s end", false),
    ("text bomb, caught", "local s = 'x' while true do pcall(function() s = s .. s end) end", false),
    ("rep bomb", "return {status = 'Healthy', message = ('x'):rep(2^30)}", false),
    ("rep of rep", "local s = ('x'):rep(2^20) while true do local t = s:rep(7) end", false),
    ("rep of nothing", "return {status = 'Healthy', message = (''):rep(2^31 - 1)}", true),
    ("joined without end", "local t = {} for i = 1, 1e9 do t[i] = i end", false),
    ("table bomb", "local t = {} while true do t = {t, t, {}, {}} end", false),
    ("big table at once", "return table.concat({}, 'x', 1, 2^30)", true),
    ("closures", "local t = {} while true do t[#t + 1] = function() return t end end", false),
    ("pattern that backtracks", "return (('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')", false),
    ("pattern over pattern", "return (('a'):rep(2^19)):find('.-.-.-.-.-b')", false),
    ("set as large as the text", "return (('x'):rep(2^20)):find('[' .. ('a'):rep(2^20) .. ']*')", false),
    ("find of half a text", "local s = ('a'):rep(2^21) return s:find(('a'):rep(2^20) .. 'b', 1, true)", true),
    ("gsub that grows", "local s = ('a'):rep(2^16) while true do s = s:gsub('a', 'aa') end", false),
    ("gsub with a loop inside", "return (('a'):rep(9)):gsub('a', function() while true do end end)", false),
    ("gmatch without end", "for _ in (('a'):rep(2^20)):gmatch('') do end", false),
    ("brackets", "return (('('):rep(2^20)):find('%b()')", false),
    (
        "sort with a bad comparator",
        "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() return true end)",
        true,
    ),
    ("sort that never ends", "table.sort({3, 2, 1}, function() while true do end end)", false),
    ("sort of many", "local t = {} for i = 1, 6e4 do t[i] = -i end while true do table.sort(t) end", false),
    (
        "index that calls itself",
        "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return t.x",
        false,
    ),
    (
        "metatable as its own index",
        "local t = {} setmetatable(t, {__index = t}) t.__index = t return t.x",
        true,
    ),
    (
        "tostring that never ends",
        "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
        false,
    ),
    ("format of a giant", "return {status = 'Healthy', message = string.format('%99999999d', 1)}", true),
    ("unpack of many", "return unpack({}, 1, 1e8)", true),
    (
        "a result that is a bomb",
        "local t = {} for i = 1, 5e4 do t[i] = 1 end return {status = 'Healthy', t = t}",
        false,
    ),
    (
        "a result without bottom",
        "local t = {} local u = t for i = 1, 1e4 do u.n = {} u = u.n end t.status = 'Healthy' return t",
        false,
    ),
    ("date of a giant", "return {status = 'Healthy', message = os.date(('%c'):rep(2^20))}", false),
    ("date again and again", "while true do os.date(('%c'):rep(512)) end", false),
    ("date of a table", "return {status = 'Healthy', message = os.date('*t', 1e300).year .. ''}", true),
    (
        "time of long texts",
        "local y = ('0'):rep(2^20) while true do os.time({year = y, month = y, day = y}) end",
        false,
    ),
    (
        "concat of many",
        "local t = {} for i = 1, 9e4 do t[i] = 'x' end while true do table.concat(t, ('x'):rep(64)) end",
        false,
    ),
    (
        "concat of long ones",
        "local s, t = ('x'):rep(2^20), {} for i = 1, 64 do t[i] = s end return table.concat(t)",
        false,
    ),
    (
        "format of long texts",
        "local s = ('x'):rep(2^20) while true do string.format('%s%s%s', s, s, s) end",
        false,
    ),
    (
        "format of many tables",
        "local t = {} for i = 1, 7000 do t[i] = {} end while true do string.format(('%*'):rep(7000), unpack(t)) end",
        false,
    ),
    (
        "tables in the order of their values",
        "local t = {} for i = 1, 3e4 do t[{}] = -i end while true do pairs(t) end",
        false,
    ),
    ("match over match", "return (('a'):rep(2^19)):match('.-.-.-.-.-b')", false),
    ("parts of a long text", "local s = ('x'):rep(2^21) while true do s:sub(2) end", false),
    ("format of many", "return string.format(('%99.99f'):rep(2^17), 1)", true),
    (
        "format of all that fit",
        "local t = {} for i = 1, 200 do t[i] = 1e308 end while true do string.format(('%.99f'):rep(200), unpack(t)) end",
        false,
    ),
    ("rep with a long separator", "local s = ('x'):rep(2^20) while true do s:rep(7, s) end", false),
    ("gsub with a long text for each", "return (('a'):rep(2^20)):gsub('a', ('x'):rep(2^20))", false),
    (
        "gsub with captures for each",
        "local s = ('a'):rep(2^12) while true do s = s:gsub('(a)', '%1%1%1%1%1%1%1%1') end",
        false,
    ),
    (
        "gsub with a table",
        "local t = setmetatable({}, {__index = function(_, k) return k .. k end}) local s = 'ab' while true do s = s:gsub('.', t) end",
        false,
    ),
    (
        "sort of long texts",
        "local s, t = ('x'):rep(2^12), {} for i = 1, 1500 do t[i] = s .. (i * 7919 % 1500) end while true do table.sort(t) end",
        false,
    ),
    (
        "sort that contradicts itself",
        "local t = {} for i = 1, 4e4 do t[i] = i end while true do table.sort(t, function(a, b) return a ~= b end) end",
        false,
    ),
    ("insert at the front", "local t = {} while true do table.insert(t, 1, 1) end", false),
    (
        "remove at the front",
        "local t = {} for i = 1, 8e4 do t[i] = i end while true do table.remove(t, 1) t[#t + 1] = 1 end",
        false,
    ),
    (
        "lower of a long text",
        "local s = ('X'):rep(2^21) while true do s:lower():upper():reverse() end",
        false,
    ),
    (
        "number of a long text",
        "local s = ('0'):rep(2^21) while true do tonumber(s) tonumber(s, 16) end",
        false,
    ),
    (
        "bytes of a long text",
        "local s = ('0'):rep(2^21) while true do pcall(string.byte, s, 1, -1) end",
        false,
    ),
    ("pack of a giant", "return string.pack(('i16'):rep(2^20), 1)", true),
    ("a buffer of a giant", "return buffer.create(2^30)", true),
    ("a message without end", "return {status = 'Healthy', message = ('x'):rep(2^18)}", false),
];

#[test]
fn every_attack_is_stopped_or_ends_and_spoils_nothing() {
    let object = json!({"kind": "X", "status": {"phase": "Up"}});
    let innocent =
        HealthScript::compile("test", "return {status = 'Healthy', message = obj.status.phase}", true)
            .unwrap();
    let mut others = Vec::new();
    for (name, source, ends) in &ATTACKS {
        let attack = HealthScript::compile(name, source, true).unwrap();
        let (outcome, took) = measure_cost(|| attack.judge_object(ObjectJson::Tree(&object), Time(0)));
        let said = outcome.verdict.message.chars().take(60).collect::<String>();
        println!("{name:32} {took:>9.3} ms  {said}");
        // A script that terminates by itself may still be stopped on a slow machine.
        if outcome.limit.is_none() && !ends {
            others.push(format!("{name}: {said}"));
        }
        if took > MAX_ATTACK_MILLIS {
            others.push(format!("{name} cost {took} ms"));
        }
        assert!(outcome.limit.is_none() || outcome.verdict.status == Some("Unknown"), "{name}");
        let after = innocent.judge_object(ObjectJson::Tree(&object), Time(0));
        assert_eq!(after.verdict.message, "Up", "after {name}");
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// Functions whose single call takes no longer for hostile arguments than for others, or never returns a large value.
const CONSTANT_TIME: &[&str] = &[
    "assert",
    "collectgarbage",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "print",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "type",
    "require",
    "coroutine.resume",
    "coroutine.running",
    "coroutine.status",
    "math.abs",
    "math.acos",
    "math.asin",
    "math.atan",
    "math.atan2",
    "math.ceil",
    "math.cos",
    "math.cosh",
    "math.deg",
    "math.exp",
    "math.floor",
    "math.fmod",
    "math.frexp",
    "math.ldexp",
    "math.log",
    "math.log10",
    "math.max",
    "math.min",
    "math.mod",
    "math.modf",
    "math.pow",
    "math.rad",
    "math.random",
    "math.randomseed",
    "math.sin",
    "math.sinh",
    "math.sqrt",
    "math.tan",
    "math.tanh",
    "os.clock",
    "os.difftime",
    "string.char",
    "string.len",
    "table.getn",
    "table.maxn",
];

/// The names of all functions that a script can reach.
fn reachable_functions() -> Vec<String> {
    let source = "local names = {}
        local function walk(t, before)
            for name, value in pairs(t) do
                if type(value) == 'table' then
                    if value ~= _G and value ~= obj then walk(value, before .. name .. '.') end
                elseif type(value) == 'function' then
                    names[#names + 1] = before .. name
                end
            end
        end
        walk(getmetatable(_G).__index, '')
        walk(_G, '')
        return {status = 'Healthy', message = table.concat(names, ' ')}";
    let script = HealthScript::compile("test", source, true).unwrap();
    let said = script.judge_object(ObjectJson::Tree(&json!({})), Time(0)).verdict.message;
    said.split(' ').map(str::to_owned).collect()
}

#[test]
fn every_function_that_a_script_can_reach_is_attacked_or_takes_constant_time() {
    let sources: Vec<_> = ATTACKS.iter().map(|(_, source, _)| *source).collect();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_attacked = |name: &str| {
        let name = name.rsplit('.').next().unwrap_or(name);
        sources.iter().any(|source| source.split(|c| !is_part(c)).any(|word| word == name))
    };
    let reachable = reachable_functions();
    assert!(reachable.len() > 60, "{reachable:?}");
    let unknown: Vec<_> = reachable
        .iter()
        .filter(|name| !is_attacked(name) && !CONSTANT_TIME.contains(&name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "attack these, or say why they need no attack: {unknown:?}");
    let gone: Vec<_> =
        CONSTANT_TIME.iter().filter(|name| !reachable.iter().any(|there| there == *name)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}
