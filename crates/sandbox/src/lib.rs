//! A Kubernetes API server in memory, used by `rollcall demo`, by tests, by benchmarks, and (the store alone) by the
//! simulator.
//!
//! [`store::SandboxStore`] is the server without a socket and without a clock: requests and responses are values and
//! the time is an input, so the same seed and the same requests give the same bytes. [`SandboxServer`] (feature `http`)
//! serves the store over plain HTTP, with a [`FaultInjector`] for scripted misbehaviour; a [`ReplayScript`] serves
//! recorded bytes at wire speed.
//!
//! It answers as kube-apiserver 1.36 does. Anything that it does not implement is refused with a 501 that names it; it
//! never pretends.

pub mod store;

#[cfg(feature = "conformance")]
pub mod conformance;

#[cfg(feature = "http")]
mod http;

#[cfg(feature = "http")]
pub use http::{
    FaultAction, FaultHandle, FaultInjector, InjectedFault, LoggedRequest, ReplayScript, ReplayServer,
    RequestTally, RequestVerb, SandboxClock, SandboxOptions, SandboxServer, StoreGuard,
};
