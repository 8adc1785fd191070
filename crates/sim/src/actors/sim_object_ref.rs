//! The name of a simulated object.

/// The location of an object.
#[derive(Clone, Debug)]
pub(crate) struct SimObjectRef {
    pub(crate) kind: usize,
    pub(crate) namespace: String,
    pub(crate) name: String,
}
