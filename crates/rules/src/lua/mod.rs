//! Argo CD's health scripts, run unchanged: a function body over a global `obj` that returns `{status, message}`.
//!
//! The machine is Luau: of the Lua implementations it alone can be stopped everywhere, even inside a pattern match. A
//! script sees what gopher-lua's Lua 5.1 offers, less what reaches outside: no files, no processes, no `load`, no
//! `getfenv`. `os.time` and `os.date` know the moment of the judgement, in UTC. Each call has globals of its own.
//!
//! Known differences from Argo CD: `pairs` goes through keys in order (there in the order of insertion, which for an
//! object is random); `string.format` has the formats of C, not Go's `%v`; a fraction from a
//! million on, or a number beyond 2^53, that is joined to a text with `..` has other digits (`tostring` has the same).

mod budget;
mod clock;
mod config;
mod dialect;
mod glob;
mod library;
mod machine;
mod object;
mod result;
mod tokens;

use std::sync::atomic::{AtomicU64, Ordering};

use mlua::chunk::Compiler;
use readiness::Time;
use serde_json::Value;

pub use budget::Limit;
pub use config::ConfigError;
pub use library::{Library, LoadError};

use crate::PeerVerdict;

/// Source beyond this is no health script.
const SOURCE: usize = 256 * 1024;

/// A script, compiled once, to be run on any thread.
#[derive(Debug)]
pub struct Script {
    id: u64,
    name: String,
    code: Vec<u8>,
    open: bool,
}

/// The object that a script is to judge.
#[derive(Clone, Copy, Debug)]
pub enum Object<'a> {
    /// As decoded JSON: handed over whole.
    Tree(&'a Value),
    /// As JSON text: a top-level field is read when the script first touches it.
    Text(&'a str),
}

impl Object<'_> {
    fn size(&self) -> usize {
        match self {
            Object::Tree(_) => 0,
            Object::Text(text) => text.len(),
        }
    }
}

/// What came of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The word of the script, or `Unknown` with what went wrong. No status where it returned nothing.
    pub verdict: PeerVerdict,
    /// The line of the `return` that ended it.
    pub line: Option<u32>,
    /// The bound that stopped it.
    pub limit: Option<Limit>,
    /// It could not be run, failed, was stopped, or returned what is no verdict: the word is ours, not the script's.
    pub failed: bool,
    steps: u32,
}

/// Why a script cannot be run at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}: {message}")]
pub struct SyntaxError {
    /// The script.
    pub name: String,
    /// 1-based.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

impl Script {
    /// Compiles `source`. `open` gives it the string, math, coroutine and os libraries (`useOpenLibs`).
    pub fn compile(name: &str, source: &str, open: bool) -> Result<Script, SyntaxError> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let error = |line, message: String| SyntaxError { name: name.to_owned(), line, message };
        if source.len() > SOURCE {
            return Err(error(1, format!("longer than {SOURCE} bytes")));
        }
        let luau = dialect::bridge(source)
            .map_err(|goto| error(goto.line, format!("goto {} does not continue a loop", goto.label)))?;
        let compiler =
            Compiler::new().set_optimization_level(1).set_debug_level(1).set_mutable_globals(["obj"]);
        let code = compiler.compile(luau).map_err(|failed| {
            let (line, message) = place(&failed.to_string());
            error(line, message)
        })?;
        Ok(Script { id: IDS.fetch_add(1, Ordering::Relaxed), name: name.to_owned(), code, open })
    }

    /// Where it comes from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says of `object` at `now`. Bounded in time and memory, whatever it does.
    pub fn judge(&self, object: Object<'_>, now: Time) -> Outcome {
        machine::run(self, object, now)
    }
}

/// Line and message of a compiler's `12: message`.
fn place(text: &str) -> (u32, String) {
    let text = text.trim_start_matches("syntax error: ");
    let parts = text.split_once(':').and_then(|(line, message)| Some((line.trim().parse().ok()?, message)));
    parts.map_or((1, text.to_owned()), |(line, message): (u32, &str)| (line, message.trim().to_owned()))
}

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;
