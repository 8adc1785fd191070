//! A health script.

use readiness::Time;
use rollcall_cel::ObjectJson;

use super::compiled_script::{CompiledScript, ScriptSyntaxError};
use super::machine;
use super::outcome::ScriptOutcome;

/// A script that judges objects, compiled once and run on any thread.
#[derive(Debug)]
pub struct HealthScript(CompiledScript);

impl HealthScript {
    /// Compiles `source`. `open` gives it the string, math, coroutine and os libraries (`useOpenLibs`).
    pub fn compile(name: &str, source: &str, open: bool) -> Result<HealthScript, ScriptSyntaxError> {
        CompiledScript::compile(name, source, open).map(HealthScript)
    }

    /// Returns the script's name, which tells its source.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Evaluates `object` at `now` on this thread's interpreter. Bounded in time and memory.
    pub fn judge_object(&self, object: ObjectJson<'_>, now: Time) -> ScriptOutcome {
        machine::run_script(&self.0, object, now)
    }
}
