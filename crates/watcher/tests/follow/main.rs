//! Tests of `follow`, live reads and discovery against misbehaving servers.

#![expect(clippy::unwrap_used, reason = "a helper of a test may end it")]

mod blind;
mod broken;
mod cluster;
mod discover;
mod look;
mod lost;
mod pace;
mod scripted_server;
mod shutdown;
