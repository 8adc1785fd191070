//! A visit of an operator to a parent.

/// An operator's handling of a parent, from the moment at which it heard of it.
#[derive(Clone, Debug)]
pub(crate) struct OperatorVisit {
    pub(crate) kind: usize,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The generation that it knew.
    pub(crate) generation: i64,
}
