//! Proofs of policies: the expression over a parent and its children, and what is kept of each object for it.

use std::fmt;
use std::sync::Arc;

use rollcall_cel::{FieldProjection, ProofExpression};

/// Most bytes that are kept of one object for proofs.
pub const MAX_EXCERPT_BYTES: usize = 16 << 10;

/// Expression that must hold before a generation of a parent counts as handled.
#[derive(Clone)]
pub struct ProofRule {
    /// The expression.
    pub expression: Arc<ProofExpression>,
    /// Source text.
    pub source: Arc<str>,
}

impl PartialEq for ProofRule {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for ProofRule {}

impl fmt::Debug for ProofRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProofRule({:?})", self.source)
    }
}

/// What is kept of each object of a kind for the proofs of policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcerptRule {
    /// Fields that the proofs read.
    pub fields: FieldProjection,
    /// `apiVersion` and `kind` of the objects, which items in lists of built-in kinds lack.
    pub of: (Box<str>, Box<str>),
}
