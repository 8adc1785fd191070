//! Reasons of nodes, of root causes and in metrics: each is from one of two closed sets.

use readiness::rollup::ParentReason;
use readiness::{Reason, ReasonToken};
use serde::{Serialize, Serializer};

/// Reason of a node: of an answer about a parent, or of an object's own verdict. Serialized, it is its word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeReason {
    /// Of a parent, under its policy.
    Parent(ParentReason),
    /// Of an object by itself.
    Object(Reason),
}

/// Word of a [`NodeReason`]: without what the reason contains, and without the words of custom rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeToken {
    /// Of a parent, under its policy.
    Parent(ParentReason),
    /// Of an object by itself.
    Object(ReasonToken),
}

impl NodeReason {
    /// Returns the reason in CamelCase; of a custom rule, the word that the rule chose.
    pub fn as_str(&self) -> &str {
        match self {
            NodeReason::Parent(reason) => reason.as_str(),
            NodeReason::Object(reason) => reason.as_token(),
        }
    }

    /// Returns the word in its closed set.
    pub const fn token(&self) -> NodeToken {
        match self {
            NodeReason::Parent(reason) => NodeToken::Parent(*reason),
            NodeReason::Object(reason) => NodeToken::Object(reason.token()),
        }
    }
}

impl Default for NodeReason {
    /// Nothing is known.
    fn default() -> Self {
        NodeReason::Object(Reason::NoSignal)
    }
}

impl Serialize for NodeReason {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl NodeToken {
    /// Returns the word, in CamelCase.
    pub const fn as_str(self) -> &'static str {
        match self {
            NodeToken::Parent(reason) => reason.as_str(),
            NodeToken::Object(token) => token.as_str(),
        }
    }
}
