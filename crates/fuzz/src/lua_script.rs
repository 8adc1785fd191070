//! Lua: what a policy's author wrote, over what a child's author wrote.

use readiness::{Reason, Time};
use rollcall_cel::{CostLimit, ObjectJson};
use rules::lua::HealthScript;
use rules::{CompiledRule, RuleDefinition};
use serde_json::Value;

use crate::input_parts::split_parts;

/// Longest message that a script may give, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Time of every evaluation.
const NOW: Time = Time(1_767_225_600_000);

pub(crate) const LUA_SCRIPT_WORDS: &[&str] = &[
    "obj.status",
    "obj.metadata.",
    "return hs",
    "hs.status = \"Healthy\"",
    "for i, c in ipairs(obj.status.conditions) do ",
    "for k, v in pairs(obj) do ",
    "while true do ",
    "if ",
    " then ",
    " end ",
    "goto continue ::continue::",
    "string.rep('a', 1e9)",
    "string.format('%s', ",
    "string.gsub(",
    "string.find(",
    "table.concat(",
    "table.sort(",
    "table.getn(",
    "os.time(",
    "os.date('%c')",
    "coroutine.wrap(",
    "setmetatable({}, {__index = ",
    "pcall(",
    "error(",
    "tostring(",
    "[[",
    "]]",
    "--[==[",
    "nil",
    "\n---\n",
];

/// What compiles ends within its bounds and never crashes, and says the same each time.
pub(crate) fn run(data: &[u8]) {
    let Some((source, object)) = split_parts(data) else { return };
    let tree = serde_json::from_str::<Value>(object).unwrap_or(Value::Null);
    let text = tree.to_string();
    let Ok(script) = HealthScript::compile("script", source, true) else { return };
    let of_tree = script.judge_object(ObjectJson::Tree(&tree), NOW);
    let again = script.judge_object(ObjectJson::Tree(&tree), NOW);
    assert!(of_tree.verdict.message.len() <= MAX_MESSAGE_BYTES, "{} bytes", of_tree.verdict.message.len());
    // The clock is the last resort where a busy machine may stop a script that another time would end.
    let was_slow = [&of_tree, &again].iter().any(|outcome| outcome.limit == Some(CostLimit::Time));
    if !was_slow && !names_an_address(&of_tree.verdict.message) {
        assert_eq!(of_tree.verdict, again.verdict, "each time the same");
    }
    let rule = CompiledRule::compile(&RuleDefinition::Lua { name: "script", source }).unwrap();
    let judged = rule.judge_object(ObjectJson::Text(&text), NOW);
    assert_ne!(judged.assessment.verdict.reason, Reason::RuleCrashed);
}

/// `tostring` of a table or a function is its address.
fn names_an_address(message: &str) -> bool {
    message.contains("0x")
}
