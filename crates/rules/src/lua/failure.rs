//! Failures of calls.

use rollcall_cel::CostLimit;

use super::compiled_script::CompiledScript;
use super::error_text::without_values;
use super::result::UnusableResult;

/// How the place of an error begins that a function of the prelude found.
const PRELUDE_PLACE: &str = "prelude:";

/// Failure of a call without a value.
pub(super) enum ScriptFailure {
    /// An error raised by the script.
    Error(String),
    Limit(CostLimit),
}

impl ScriptFailure {
    pub(super) fn from_lua_error(error: &mlua::Error, script: &CompiledScript) -> ScriptFailure {
        let words = error_text(error, &script.name);
        if words.ends_with("stack overflow") {
            ScriptFailure::Limit(CostLimit::Depth)
        } else {
            ScriptFailure::Error(without_values(&words, &script.name, &script.source))
        }
    }
}

impl From<UnusableResult> for ScriptFailure {
    fn from(unusable: UnusableResult) -> ScriptFailure {
        match unusable {
            UnusableResult::Malformed(text) => ScriptFailure::Error(text),
            UnusableResult::Limit(limit) => ScriptFailure::Limit(limit),
        }
    }
}

/// Returns an error's own line, without the stack trace. One that a function of the prelude found is at the line of the script
/// that called it.
fn error_text(error: &mlua::Error, script: &str) -> String {
    let mut error = error;
    while let mlua::Error::CallbackError { cause, .. } = error {
        error = cause;
    }
    let text = match error {
        mlua::Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    };
    let (words, calls) = text.split_once("\nstack traceback:").unwrap_or((&text, ""));
    let of_prelude = words.strip_prefix(PRELUDE_PLACE).and_then(|rest| rest.split_once(": "));
    let caller = || calls.lines().find_map(|call| line_in(script, call.trim_start()));
    match of_prelude.and_then(|(_, words)| Some((caller()?, words))) {
        Some((line, words)) => format!("{script}:{line}: {words}"),
        None => words.to_owned(),
    }
}

/// The line of the script in a line of a stack trace, such as `script:2: in function 'f'`.
fn line_in<'t>(script: &str, call: &'t str) -> Option<&'t str> {
    let (line, _) = call.strip_prefix(script)?.strip_prefix(':')?.split_once([':', ' ']).unwrap_or_default();
    (!line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())).then_some(line)
}
