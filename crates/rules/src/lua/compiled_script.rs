//! Compilation of scripts.

use std::sync::atomic::{AtomicU64, Ordering};

use mlua::chunk::Compiler;

use super::dialect;

/// Maximum size of a script, in bytes.
const MAX_SCRIPT_BYTES: usize = 256 * 1024;

/// A script, compiled once and run on any thread.
#[derive(Debug)]
pub(super) struct CompiledScript {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) code: Vec<u8>,
    pub(super) open: bool,
    /// Its text: errors quote nothing else.
    pub(super) source: Box<str>,
}

/// A script that does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}: {message}")]
pub struct ScriptSyntaxError {
    /// Name of the script.
    pub name: String,
    /// 1-based line.
    pub line: u32,
    /// Description of the error.
    pub message: String,
}

impl CompiledScript {
    /// Compiles `source`. `open` gives it the string, math, coroutine and os libraries (`useOpenLibs`).
    pub(super) fn compile(name: &str, source: &str, open: bool) -> Result<CompiledScript, ScriptSyntaxError> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let error = |line, message: String| ScriptSyntaxError { name: name.to_owned(), line, message };
        if source.len() > MAX_SCRIPT_BYTES {
            return Err(error(1, format!("longer than {MAX_SCRIPT_BYTES} bytes")));
        }
        let luau = dialect::translate_to_luau(source)
            .map_err(|untranslatable| error(untranslatable.line(), untranslatable.to_string()))?;
        let compiler =
            Compiler::new().set_optimization_level(1).set_debug_level(1).set_mutable_globals(["obj"]);
        let code = compiler.compile(luau).map_err(|failed| {
            let (line, message) = parse_compiler_message(&failed.to_string());
            error(line, message)
        })?;
        Ok(CompiledScript {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            code,
            open,
            source: source.into(),
        })
    }
}

/// Splits a compiler message such as `12: message` into line and message.
fn parse_compiler_message(text: &str) -> (u32, String) {
    let text = text.trim_start_matches("syntax error: ");
    let parts = text.split_once(':').and_then(|(line, message)| Some((line.trim().parse().ok()?, message)));
    parts.map_or((1, text.to_owned()), |(line, message): (u32, &str)| (line, message.trim().to_owned()))
}
