//! What `follow` and `look` promise, against servers that misbehave.

mod pace;
mod played;
