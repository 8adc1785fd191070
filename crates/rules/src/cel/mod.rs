//! Rules in CEL: Flux's `healthCheckExprs` ([`HealthCheck`]), kro's `readyWhen` ([`ReadyWhen`]), and an expression that
//! counts ([`Count`]). Compiled once, to be evaluated on any thread, in bounds that no expression can leave.
//!
//! **Names.** The top-level fields of the object, as in Flux: `status.phase == 'Running'`. Those of Kubernetes' own kinds
//! and the common ones of custom resources are known; any other is reached by way of `self`, the object itself
//! (`object` is the same). In `readyWhen` the one name that is used is the object's id.
//!
//! **Types.** JSON integers are `int`, never `uint`, and what no `int` can hold is `double`, as Kubernetes decodes it. What is
//! known of types before the object is there is checked when an expression is compiled; `dyn(x)` postpones that.
//!
//! **Functions.** The standard ones, and of cel-go: strings, sets, encoders, lists, optional types, bindings, two-variable
//! comprehensions; of Kubernetes: lists, quantity, url, ip, cidr, semver, regex. Missing, and refused by name: cel-go's math,
//! regex and protocol buffers; Kubernetes' authorizer, named formats and JSON patches; kro's own random, hash, json, maps,
//! omit, runtime and its changes to lists; messages (`Type{…}`). Differences: time zones are UTC and offsets, not names of
//! places; a pattern cannot name Unicode classes (`\pL`); a map is walked in the order of its keys, where cel-go has none; a
//! quantity, version, address or URL beside a value of another type is unequal, where Kubernetes has an error.
//!
//! **Bounds.** When an expression is compiled: its length (8 KiB), its depth (100), loops within loops (5). While it runs:
//! 100,000 steps (an operation, an element walked, 64 bytes read) and 8 MiB made, and as a last resort 100 ms. A limit ends the
//! evaluation; `&&`, `||`, `all` and `exists`, which absorb errors, do not absorb that.
//!
//! **Why the parser of the `cel` crate and not its interpreter.** Tried: `cel` 0.15 and `kube-cel` 0.8. Neither interpreter has a
//! hook for costs, and it cannot be had from outside: `[[1]].map(x, x + x)` with 24 such maps takes 6 s and makes 16 million
//! values, in 400 bytes. Three small expressions take 11 µs over ready values and 16 µs with the conversion, which alone breaks the budget
//! of 10 µs. Both evaluate by name, so that a mistyped function is found when an object arrives. `kube-cel` has all of
//! Kubernetes' functions, but they are private, take only values of `cel` 0.13, and its own copy of that; `cel` lacks
//! them. The parser is Google's grammar, knows where each node stands, and in half a million random inputs neither
//! crashed nor took longer than 10 ms; what it lacks is a guard of its stack, which `parse` gives it.

mod eval;
mod functions;
mod loops;
mod lower;
mod macros;
mod meter;
mod names;
mod node;
mod operators;
mod ops;
mod parse;
mod tree;
mod value;

use std::fmt;
use std::sync::LazyLock;

use crate::lua::{Limit, Object};
use eval::Frame;
use lower::Lower;
use meter::Meter;
use node::Node;
use tree::{Fields, Needs, Tree, Unreadable};
use value::{Fault, Ty, Val};

/// Why an expression is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct CompileError {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
    /// Not wrong, but more than is taken.
    pub limit: bool,
}

impl CompileError {
    fn new(line: u32, column: u32, message: String) -> CompileError {
        CompileError { line, column, message, limit: false }
    }
}

/// Why an expression has no value for this object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// In the words of cel-go, where it has some.
    pub message: String,
    /// A field is not there (yet).
    pub absent: bool,
    /// The bound that stopped it.
    pub limit: Option<Limit>,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl EvalError {
    fn of(fault: &Fault) -> EvalError {
        let limit = if let Fault::Limit(limit) = fault { Some(*limit) } else { None };
        let absent = match fault {
            Fault::NoKey(_) | Fault::NoField(_) => true,
            Fault::Words(words) => words.starts_with("index out of bounds"),
            _ => false,
        };
        EvalError { message: fault.to_string(), absent, limit }
    }

    fn plain(message: impl Into<String>) -> EvalError {
        EvalError { message: message.into(), absent: false, limit: None }
    }

    fn unreadable(why: Unreadable) -> EvalError {
        match why {
            Unreadable::TooDeep => {
                EvalError { limit: Some(Limit::Depth), ..EvalError::plain("the object is nested too deeply") }
            }
            Unreadable::Malformed(words) => EvalError::plain(format!("the object cannot be read: {words}")),
        }
    }
}

/// One expression.
#[derive(Debug)]
struct Program {
    node: Node,
    needs: Needs,
}

impl Program {
    fn compile(source: &str, id: Option<&str>, wanted: Ty) -> Result<Program, CompileError> {
        parse::with_tree(source, |tree, places| {
            let mut lower = Lower::new(places, id);
            let (node, ty) = lower.expression(tree)?;
            if !ty.fits(wanted) {
                let message = format!("the expression yields '{}', not '{}'", ty.name(), wanted.name());
                return lower.error(tree, message);
            }
            Ok(Program { node, needs: lower.needs })
        })
    }

    fn value<'t>(&'t self, object: &'t Fields<'t>, meter: &'t Meter) -> Result<Val<'t>, EvalError> {
        let mut frame = Frame { object, meter, locals: Vec::new() };
        let result = frame.eval(&self.node);
        match (meter.spent(), result) {
            (Some(limit), _) => Err(EvalError::of(&Fault::Limit(limit))),
            (None, Ok(value)) => Ok(value),
            (None, Err(fault)) => Err(EvalError::of(&fault)),
        }
    }

    fn holds(&self, object: &Fields<'_>, meter: &Meter) -> Result<bool, EvalError> {
        match self.value(object, meter)? {
            Val::Bool(flag) => Ok(flag),
            other => {
                Err(EvalError::plain(format!("the expression yields '{}', not 'bool'", other.ty().name())))
            }
        }
    }
}

/// What an object is by Flux's three expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// `current` is true.
    Current,
    /// What was observed is not the generation that is.
    Stale {
        /// `status.observedGeneration`.
        observed: i64,
        /// `metadata.generation`.
        generation: i64,
    },
    /// `inProgress` is true.
    InProgress,
    /// `failed` is true.
    Failed,
    /// None is true, which is in progress.
    None,
}

/// Flux's `healthCheckExprs` for one kind.
#[derive(Debug)]
pub struct HealthCheck {
    in_progress: Option<Program>,
    failed: Option<Program>,
    current: Program,
    needs: Needs,
}

impl HealthCheck {
    /// Compiles the expressions. Where one is wrong, the error comes with its name: `current`, `inProgress` or `failed`.
    pub fn compile(
        current: &str,
        in_progress: Option<&str>,
        failed: Option<&str>,
    ) -> Result<HealthCheck, (&'static str, CompileError)> {
        let program = |name: &'static str, source: &str| {
            Program::compile(source, None, Ty::Bool).map_err(|error| (name, error))
        };
        let in_progress = in_progress.map(|source| program("inProgress", source)).transpose()?;
        let failed = failed.map(|source| program("failed", source)).transpose()?;
        let current = program("current", current)?;
        let mut needs = Needs::default();
        needs.part_of("status", "observedGeneration");
        needs.part_of("metadata", "generation");
        [&in_progress, &failed].into_iter().flatten().for_each(|program| needs.add(&program.needs));
        needs.add(&current.needs);
        Ok(HealthCheck { in_progress, failed, current, needs })
    }

    /// Judges an object in Flux's order: the generation first, then `inProgress`, `failed`, `current`. The first error
    /// ends it, with the name of the expression; a missing field is one.
    pub fn judge(&self, object: Object<'_>) -> Result<Health, (&'static str, EvalError)> {
        let fields = self.needs.read(object).map_err(|why| ("", EvalError::unreadable(why)))?;
        if let Some((observed, generation)) = generations(&fields) {
            return Ok(Health::Stale { observed, generation });
        }
        let meter = Meter::default();
        let in_order = [
            ("inProgress", self.in_progress.as_ref(), Health::InProgress),
            ("failed", self.failed.as_ref(), Health::Failed),
            ("current", Some(&self.current), Health::Current),
        ];
        for (name, program, health) in in_order {
            if let Some(program) = program
                && program.holds(&fields, &meter).map_err(|error| (name, error))?
            {
                return Ok(health);
            }
        }
        Ok(Health::None)
    }

    /// The top-level fields that are read; `None` for the whole object.
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.needs.names()
    }
}

/// Observed and real generation, where they differ. What is no integer is passed over, as Flux does it.
fn generations(object: &Fields<'_>) -> Option<(i64, i64)> {
    let integer = |root: &str, field: &str| match object.get(root) {
        Some(Tree::Map(fields)) => match fields.get(field) {
            Some(Tree::Int(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    };
    let (observed, generation) =
        (integer("status", "observedGeneration")?, integer("metadata", "generation")?);
    (observed != generation).then_some((observed, generation))
}

/// kro's `readyWhen`: expressions that must all be true.
#[derive(Debug)]
pub struct ReadyWhen {
    programs: Vec<Program>,
    needs: Needs,
}

impl ReadyWhen {
    /// Compiles the expressions, with or without kro's `${…}` around them. `id` is the name of the object in them; without
    /// it the names are those of [`HealthCheck`]. An error comes with the place of its expression.
    pub fn compile(expressions: &[&str], id: Option<&str>) -> Result<ReadyWhen, (usize, CompileError)> {
        let mut programs = Vec::with_capacity(expressions.len());
        let mut needs = Needs::default();
        for (at, source) in expressions.iter().enumerate() {
            let inner = source.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            let program =
                Program::compile(inner.unwrap_or(source), id, Ty::Bool).map_err(|error| (at, error))?;
            needs.add(&program.needs);
            programs.push(program);
        }
        Ok(ReadyWhen { programs, needs })
    }

    /// The place of the first expression that is not true, if there is one; or of the first that has no value.
    pub fn judge(&self, object: Object<'_>) -> Result<Option<usize>, (usize, EvalError)> {
        let fields = self.needs.read(object).map_err(|why| (0, EvalError::unreadable(why)))?;
        let meter = Meter::default();
        for (at, program) in self.programs.iter().enumerate() {
            if !program.holds(&fields, &meter).map_err(|error| (at, error))? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The top-level fields that are read; `None` for the whole object.
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.needs.names()
    }
}

/// An expression over one named object that yields how many.
#[derive(Debug)]
pub struct Count(Program);

impl Count {
    /// Compiles `source`, in which the object has the name `id`.
    pub fn compile(source: &str, id: &str) -> Result<Count, CompileError> {
        Program::compile(source, Some(id), Ty::Int).map(Count)
    }

    /// How many, for this object. Less than none is none.
    pub fn judge(&self, object: Object<'_>) -> Result<u32, EvalError> {
        let fields = self.0.needs.read(object).map_err(EvalError::unreadable)?;
        let meter = Meter::default();
        match self.0.value(&fields, &meter)? {
            Val::Int(number) => Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX)),
            other => {
                Err(EvalError::plain(format!("the expression yields '{}', not 'int'", other.ty().name())))
            }
        }
    }
}

/// `apiVersion` and `kind` of an object; empty where they are no texts.
pub(crate) fn type_of(object: Object<'_>) -> Result<(String, String), EvalError> {
    static TYPE: LazyLock<Needs> = LazyLock::new(|| {
        let mut needs = Needs::default();
        needs.all_of("apiVersion");
        needs.all_of("kind");
        needs
    });
    let fields = TYPE.read(object).map_err(EvalError::unreadable)?;
    let text = |field: &str| match fields.get(field) {
        Some(Tree::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    Ok((text("apiVersion"), text("kind")))
}

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;
