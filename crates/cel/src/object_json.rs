//! The object that an expression is evaluated on.

use serde_json::Value;

/// The object to evaluate.
#[derive(Clone, Copy, Debug)]
pub enum ObjectJson<'a> {
    /// Decoded JSON: converted as far as it is needed.
    Tree(&'a Value),
    /// JSON text: only the fields that are needed are decoded.
    Text(&'a str),
}

impl ObjectJson<'_> {
    /// Returns the length of the text in bytes; 0 for a tree.
    pub fn text_size(&self) -> usize {
        match self {
            ObjectJson::Tree(_) => 0,
            ObjectJson::Text(text) => text.len(),
        }
    }
}
