//! Structural schemas of custom resources.

use serde_json::Value;

/// A structural schema, interpreted in place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StructuralSchema(pub(crate) Value);
