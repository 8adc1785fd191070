//! What the reflector holds, and what it lets go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod finalizers;
mod links;
mod objects;
mod parents;
mod refused;
mod rows;
mod since;
