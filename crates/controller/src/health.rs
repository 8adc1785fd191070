//! See [`crate::core`].

pub(crate) use crate::core::Health;
