//! Failures of calls.

use rollcall_cel::CostLimit;

use super::compiled_script::CompiledScript;
use super::error_text::without_values;
use super::result::UnusableResult;

/// Failure of a call without a value.
pub(super) enum ScriptFailure {
    /// An error raised by the script.
    Error(String),
    Limit(CostLimit),
}

impl ScriptFailure {
    pub(super) fn from_lua_error(error: &mlua::Error, script: &CompiledScript) -> ScriptFailure {
        let words = error_text(error);
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

/// Returns an error's own line, without the stack trace.
fn error_text(error: &mlua::Error) -> String {
    let mut error = error;
    while let mlua::Error::CallbackError { cause, .. } = error {
        error = cause;
    }
    let text = match error {
        mlua::Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
}
