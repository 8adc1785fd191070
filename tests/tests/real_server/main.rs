//! The built binary against a real control plane. One program, so that all tests share one control plane.

mod deploy;
mod generation;
mod outage;
mod policies;
mod service;
mod stage;
