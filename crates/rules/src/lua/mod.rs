//! Argo CD's health scripts, run unchanged: a function body over a global `obj` that returns `{status, message}`.
//!
//! The interpreter is Luau: the only Lua implementation that can be stopped everywhere, even inside a pattern match. A
//! script sees the functions of gopher-lua's Lua 5.1 except those that reach outside: no files, no processes, no
//! `load`, no `getfenv`. `os.time` and `os.date` use the time of the evaluation, in UTC. Each call has globals of its
//! own. What a script says is the same in every process: no addresses, and the same random numbers in each call.
//!
//! Known differences from Argo CD: `pairs` iterates over keys in order (there in insertion order, which for an object
//! is random); `string.format` has the formats of C, not Go's `%v`; a fraction from a million on, or a number beyond
//! 2^53, that is joined to a string with `..` has other digits (`tostring` has the same).

mod budget;
mod clock;
mod compiled_script;
mod config;
mod dialect;
mod error_text;
mod failure;
mod glob;
mod library;
mod machine;
mod object;
mod outcome;
mod result;
mod script;
mod tokens;

pub use compiled_script::ScriptSyntaxError;
pub use config::ArgocdConfigError;
pub use library::{LibraryLoadError, ScriptLibrary};
pub use outcome::ScriptOutcome;
pub use script::HealthScript;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod same_words;
#[cfg(test)]
mod tests;
