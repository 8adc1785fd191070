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
//! 100,000 steps (an operation, an element walked, 64 bytes read) and 8 MiB made, and as a last resort 250 ms. A limit ends the
//! evaluation; `&&`, `||`, `all` and `exists`, which absorb errors, do not absorb that.
//!
//! **Why the parser of the `cel` crate and not its interpreter.** Tried: `cel` 0.15 and `kube-cel` 0.8. Neither interpreter has a
//! hook for costs, and it cannot be had from outside: `[[1]].map(x, x + x)` with 24 such maps takes 6 s and makes 16 million
//! values, in 400 bytes. Three small expressions take 11 µs over ready values and 16 µs with the conversion, which alone breaks the budget
//! of 10 µs. Both evaluate by name, so that a mistyped function is found when an object arrives. `kube-cel` has all of
//! Kubernetes' functions, but they are private, take only values of `cel` 0.13, and its own copy of that; `cel` lacks
//! them. The parser is Google's grammar, knows where each node stands, and in half a million random inputs neither
//! crashed nor took longer than 10 ms; what it lacks is a guard of its stack, which `parse` gives it.

mod errors;
mod eval;
mod flux;
mod functions;
mod kro;
mod loops;
mod lower;
mod macros;
mod meter;
mod names;
mod node;
mod operators;
mod ops;
mod parse;
mod shape;
mod tree;
mod value;

use std::sync::LazyLock;

pub use errors::{CompileError, EvalError};
pub use flux::{Health, HealthCheck};
pub use kro::ReadyWhen;

use crate::lua::Object;
use eval::Frame;
use lower::Lower;
use meter::Meter;
use node::Node;
use tree::{Fields, Needs, Tree};
use value::{Fault, Ty, Val};

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
