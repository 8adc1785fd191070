//! A Kubernetes API server in memory: for `rollcall demo`, for tests, for benchmarks, and (the store alone) for the
//! simulator.
//!
//! [`store::Store`] is the server without a socket and without a clock: requests and responses are values and the time
//! is an input, so the same seed and the same requests give the same bytes. [`Server`] (feature `http`) puts it behind
//! plain HTTP, with [`Faults`] that misbehave on purpose, and a [`Replay`] that serves recorded bytes at wire speed.
//!
//! It answers as kube-apiserver 1.36 does; what it does not know it refuses with 501 naming it, it never pretends.

pub mod store;

#[cfg(feature = "conformance")]
pub mod conformance;

#[cfg(feature = "http")]
mod http;

#[cfg(feature = "http")]
pub use http::{
    Act, Clock, Fault, FaultHandle, Faults, Logged, Options, Replay, ReplayServer, Server, StoreGuard, Verb,
};
