//! What `follow`, `look` and `resolve` promise, against servers that misbehave.

#![expect(clippy::unwrap_used, reason = "a helper of a test may end it")]

mod broken;
mod cluster;
mod discover;
mod look;
mod lost;
mod pace;
mod played;
mod shutdown;
