//! Rules by which a policy judges the children of a group.

use std::sync::Arc;

use readiness::Level;
use rules::{CompiledRule, RuleDefinition};
use watcher::ApiKind;
use watcher::plan::{RuleSharing, UserRule};

/// Rule of a group. Those in CEL read nothing but the generation, so that a naive reader knows what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildRuleDef {
    /// The built-in rule of the kind.
    Native,
    /// Ready as soon as the current generation is observed.
    Observed,
    /// Ready with an even generation, else in progress.
    Even,
    /// Ready with an odd generation, else failed.
    Odd,
}

impl ChildRuleDef {
    /// All rules.
    pub(crate) const ALL: [ChildRuleDef; 4] =
        [ChildRuleDef::Native, ChildRuleDef::Observed, ChildRuleDef::Even, ChildRuleDef::Odd];

    /// Compiles the rule for the reflector; `None` for the built-in one.
    pub(crate) fn to_user_rule(self, api: &ApiKind) -> Option<UserRule> {
        let (current, failed) = match self {
            ChildRuleDef::Native => return None,
            ChildRuleDef::Observed => ("metadata.generation > 0", None),
            ChildRuleDef::Even => ("metadata.generation % 2 == 0", None),
            ChildRuleDef::Odd => ("metadata.generation % 2 == 1", Some("metadata.generation % 2 == 0")),
        };
        let definition = RuleDefinition::Cel { current, in_progress: None, failed };
        let rule = CompiledRule::compile(&definition).expect("invariant: the simulation's own rules compile");
        Some(UserRule {
            rule: Arc::new(rule),
            source: format!("{current};{failed:?}").into(),
            shared_by: RuleSharing::Kind,
            of: (api.api_version().into(), api.kind.as_str().into()),
        })
    }

    /// Returns the level of an object whose controller has observed this generation; `None` where the built-in rule
    /// judges it.
    pub(crate) fn level_of(self, generation: i64) -> Option<Level> {
        let is_even = generation % 2 == 0;
        Some(match self {
            ChildRuleDef::Native => return None,
            ChildRuleDef::Even if is_even => Level::Ready,
            ChildRuleDef::Even => Level::Progressing,
            ChildRuleDef::Odd if is_even => Level::Failed,
            ChildRuleDef::Observed | ChildRuleDef::Odd => Level::Ready,
        })
    }
}
