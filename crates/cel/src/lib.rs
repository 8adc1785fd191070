//! Bounded CEL over Kubernetes objects: Flux's `healthCheckExprs` ([`HealthCheck`]), kro's `readyWhen` ([`ReadyWhen`]),
//! an expression that yields a count ([`CountExpression`]), and one over a parent and its children ([`ProofExpression`]). Compiled once and evaluated on any thread, within bounds
//! that no expression can exceed.
//!
//! ```
//! use rollcall_cel::{CostLimit, ObjectJson, ReadyWhen};
//!
//! let object = ObjectJson::Text(r#"{"status": {"phase": "Running", "hosts": ["a", "b"]}}"#);
//! let rule = ReadyWhen::compile(&["status.phase == 'Running'", "status.hosts.size() > 2"], None).unwrap();
//! assert_eq!(rule.find_unmet(object), Ok(Some(1)), "two hosts are not more than two");
//!
//! let bomb = format!("[[1]]{}.size() == 1", ".map(x, x + x)".repeat(24));
//! let (_, error) = ReadyWhen::compile(&[&bomb], None).unwrap().find_unmet(object).unwrap_err();
//! assert_eq!(error.limit, Some(CostLimit::Steps), "24 doublings are stopped: {error}");
//! ```
//!
//! **Names.** The top-level fields of the object, as in Flux: `status.phase == 'Running'`. Those of built-in kinds and
//! the common ones of custom resources are known; any other is reached through `self`, the object itself (`object` is
//! the same). In `readyWhen` the only name is the object's id; in a proof they are `parent` and `children`.
//!
//! **Types.** JSON integers are `int`, never `uint`; those beyond the range of `int` are `double`, as Kubernetes
//! decodes them. Types that are known without an object are checked at compile time; `dyn(x)` postpones that.
//!
//! **Functions.** The standard ones, and of cel-go: strings, sets, encoders, lists, optional types, bindings,
//! two-variable comprehensions; of Kubernetes: lists, quantity, url, ip, cidr, semver, regex. Missing, and refused by
//! name: cel-go's math, regex and protocol buffers; Kubernetes' authorizer, named formats and JSON patches; kro's own
//! random, hash, json, maps, omit, runtime and its changes to lists; messages (`Type{…}`). Differences: time zones are
//! UTC and offsets, not zone names; a pattern cannot name Unicode classes (`\pL`); a map is walked in the order of its
//! keys, where cel-go has none; a quantity, version, address or URL compared with a value of another type is unequal,
//! where Kubernetes has an error.
//!
//! **Bounds.** At compile time: length (8 KiB), depth (100), nested loops (5). At run time: 100,000 steps (an
//! operation, an element walked, 64 bytes read) and 8 MiB allocated, and as a last resort 250 ms; counts of one object
//! share 20,000 steps and 4 MiB ([`CountBudget`]), or 4,000 steps where its author has brought them, and a proof has 50,000
//! and 4 MiB. A limit ends the evaluation; `&&`, `||`, `all` and `exists`, which absorb errors, do not absorb that.
//!
//! **Why the parser of the `cel` crate and not its interpreter.** Tried: `cel` 0.15 and `kube-cel` 0.8. Neither
//! interpreter has a cost hook, and costs cannot be limited from outside: `[[1]].map(x, x + x)` with 24 such maps takes
//! 6 s and makes 16 million values, in 400 bytes. Three small expressions take 11 µs over prepared values and 16 µs
//! with the conversion, which alone exceeds the budget of 10 µs. Both evaluate by name, so that a mistyped function is
//! found only when an object arrives. `kube-cel` has all of Kubernetes' functions, but they are private and take only
//! values of its own copy of `cel` 0.13; `cel` lacks them. The parser is Google's grammar, knows the position of each
//! node, and in half a million random inputs neither crashed nor took longer than 10 ms; it lacks a guard of its stack,
//! which `parse` adds.

mod call_candidates;
mod cel_type;
mod count;
mod element_access;
mod errors;
mod eval;
mod eval_result;
mod fault;
mod field_paths;
mod field_projection;
mod flux;
mod functions;
mod json_key;
mod json_tree;
mod kro;
mod kube_types;
mod limit;
mod loops;
mod lower;
mod macros;
mod map_keys;
mod meter;
mod name_scope;
mod names;
mod nesting;
mod node;
mod number_conversions;
mod object_json;
mod operator_kinds;
mod operators;
mod overload;
mod parse;
mod pattern;
mod program;
mod proof;
mod timestamp;
mod type_meta;
mod value;
mod value_ops;

#[cfg(test)]
mod attacks;
#[cfg(any(test, feature = "attack-cost"))]
#[doc(hidden)]
pub mod cost;
#[cfg(test)]
mod tests;

pub use count::{CountBudget, CountExpression};
pub use errors::{CompileError, EvalError};
pub use field_projection::{FieldProjection, ProjectionError};
pub use flux::{HealthCheck, HealthCheckResult};
pub use json_key::JsonKey;
pub use kro::ReadyWhen;
pub use limit::CostLimit;
pub use object_json::ObjectJson;
pub use proof::{ProofExpression, ProofResult};
pub use type_meta::read_type_meta;
