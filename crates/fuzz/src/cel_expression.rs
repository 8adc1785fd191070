//! CEL: what a policy's author wrote, over what a child's author wrote.

use rollcall_cel::{
    CostLimit, CountExpression, EvalError, HealthCheck, HealthCheckResult, ObjectJson, ReadyWhen,
};
use serde_json::Value;

use crate::input_parts::split_parts;

/// Longest message of an error, in bytes: an expression is at most 8 KiB and may be quoted.
const MAX_ERROR_BYTES: usize = 64 * 1024;

pub(crate) const CEL_EXPRESSION_WORDS: &[&str] = &[
    "self.",
    "status.",
    "metadata.name",
    ".map(x, ",
    ".all(x, ",
    ".exists(i, v, ",
    ".filter(x, ",
    "has(self.status.",
    " == ",
    " && ",
    " || ",
    " ? ",
    " in ",
    "size(",
    "string(",
    "int(",
    "double(",
    "timestamp(",
    "duration(",
    "quantity(",
    "ip(",
    "cidr(",
    "url(",
    "semver(",
    ".matches('",
    ".replace(",
    ".split(",
    ".format([",
    ".substring(",
    "optional.of(",
    "cel.bind(x, ",
    "base64.decode(",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "b'\\xff'",
    "[[1]]",
    "{'a': 1}",
    "dyn(",
    "'",
    "\n---\n",
];

/// What compiles is evaluated within its bounds, and says the same of an object as text and as a tree.
pub(crate) fn run(data: &[u8]) {
    let Some((source, object)) = split_parts(data) else { return };
    let tree = serde_json::from_str::<Value>(object).unwrap_or(Value::Null);
    let text = tree.to_string();
    let both = [ObjectJson::Tree(&tree), ObjectJson::Text(&text)];
    if let Ok(check) = HealthCheck::compile(source, None, None) {
        let [of_tree, of_text] = both.map(|object| check.evaluate_health(object).map_err(|(_, error)| error));
        check_same(&of_tree, &of_text, |health: &HealthCheckResult| *health);
    }
    if let Ok(ready) = ReadyWhen::compile(&[source, source], Some("self")) {
        let [of_tree, of_text] = both.map(|object| ready.find_unmet(object).map_err(|(_, error)| error));
        check_same(&of_tree, &of_text, |unmet: &Option<usize>| *unmet);
    }
    if let Ok(count) = CountExpression::compile(source, "parent") {
        let [of_tree, of_text] = both.map(|object| count.evaluate_count(object));
        check_same(&of_tree, &of_text, |count: &u32| *count);
    }
}

/// A tree and its text cost different steps to read, so that a limit may stop one of them only.
fn check_same<T, K: PartialEq + std::fmt::Debug>(
    of_tree: &Result<T, EvalError>,
    of_text: &Result<T, EvalError>,
    key: impl Fn(&T) -> K,
) {
    for error in [of_tree, of_text].into_iter().filter_map(|result| result.as_ref().err()) {
        assert!(error.message.len() <= MAX_ERROR_BYTES, "an error of {} bytes", error.message.len());
        assert_ne!(
            error.limit,
            Some(CostLimit::Time),
            "steps and bytes end an evaluation before the clock does"
        );
    }
    let was_stopped =
        |result: &Result<T, EvalError>| result.as_ref().is_err_and(|error| error.limit.is_some());
    if !was_stopped(of_tree) && !was_stopped(of_text) {
        assert_eq!(of_tree.as_ref().map(&key), of_text.as_ref().map(&key));
    }
}
