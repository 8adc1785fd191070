//! What is suggested for a cluster.

use std::collections::BTreeMap;

use serde_json::Value;
use watcher::ApiKind;

use super::suggested_policy::PolicySuggestion;

/// What is suggested for the kinds of a cluster, and what could not be read.
pub(super) struct SuggestionRun {
    pub(super) suggestions: Vec<PolicySuggestion>,
    pub(super) served: Vec<ApiKind>,
    /// Definitions of the kinds for which a policy is suggested, as far as they could be read.
    pub(super) definitions: Vec<Value>,
    pub(super) unread: BTreeMap<String, String>,
    /// Kinds that were named and for which nothing is suggested, with the reason.
    pub(super) without: Vec<String>,
    /// The policies that there are could not be read.
    pub(super) lacks_policies: bool,
}

impl SuggestionRun {
    /// Nothing is suggested, and that may be so because kinds could not be read.
    pub(super) fn saw_nothing_readable(&self) -> bool {
        self.suggestions.is_empty() && !self.unread.is_empty()
    }
}
