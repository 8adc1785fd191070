//! Tables of objects and of what is said about them. Objects are read by the decoder that the service reads them with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod conventions;
mod endings;
mod kinds;
mod messy;
mod object;
mod progress;
mod steady;
mod totality;
