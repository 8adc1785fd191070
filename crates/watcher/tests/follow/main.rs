//! What `follow` and `look` promise, against servers that misbehave.

#![expect(clippy::unwrap_used, reason = "a helper of a test may end it")]

mod pace;
mod played;
