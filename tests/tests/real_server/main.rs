//! The built binary against a real control plane. One program, so that all tests share one control plane.

mod stage;
