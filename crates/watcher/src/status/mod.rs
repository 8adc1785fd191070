//! Our own entries in a parent's status: what they say, how they are recognised, and the one way of writing them.

mod entry;
mod patch;
pub mod raw;
mod read;
pub mod time;

pub use entry::{Entry, MANAGER, Wanted, digest};
pub use patch::{Guarded, guarded_patch, patch_body};
pub use read::{ListShape, Owned, ParentStatus};
