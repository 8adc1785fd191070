//! What is wrong with a policy, collected while its parts are compiled, and the parts that many fields share.

use std::time::Duration;

use api::policy::{LabelSelector, ReadyRule, SelectorOperator};
use watcher::plan::{LabelMatchTerm, LabelMatcher, ParentTemplate};

use super::problem::PolicyProblem;
use super::protected_kinds::PolicySettings;
use super::ready_rule::{GroupRule, compile_ready_rule};

/// What is wrong so far. The API server's own checks come first; what they allow is checked only by what it says to a
/// compiler.
pub(super) struct PolicyChecker<'s> {
    pub(super) problems: Vec<PolicyProblem>,
    pub(super) settings: &'s PolicySettings,
    /// Rules that were compiled, each once: the entries of a group's member have the same.
    pub(super) rules: Vec<(ReadyRule, Result<GroupRule, Vec<PolicyProblem>>)>,
    /// Kind of the parent, if no rule may read more of it than its metadata.
    pub(super) protected_parent: Option<String>,
}

impl PolicyChecker<'_> {
    /// Adds a problem; none of a field that the rules of the schema refuse already.
    pub(super) fn add_problem(&mut self, field: &str, what: impl Into<String>) {
        if !self.problems.iter().any(|known| known.field == field) {
            self.problems.push(PolicyProblem { field: field.to_owned(), what: what.into(), at: None });
        }
    }

    pub(super) fn compile_ready(&mut self, ready: &ReadyRule) -> Result<GroupRule, Vec<PolicyProblem>> {
        if let Some((_, known)) = self.rules.iter().find(|(rule, _)| rule == ready) {
            return known.clone();
        }
        let compiled = compile_ready_rule(ready);
        self.rules.push((ready.clone(), compiled.clone()));
        compiled
    }

    /// Parses a duration; zero where it is none.
    pub(super) fn parse_duration(&mut self, field: &str, text: &str) -> Duration {
        humantime::parse_duration(text).unwrap_or_else(|error| {
            self.add_problem(field, format!("{text:?} is not a duration: {error}"));
            Duration::ZERO
        })
    }

    /// Parses a duration that may be left out.
    pub(super) fn parse_limit(&mut self, field: &str, text: Option<&str>, default: Duration) -> Duration {
        text.map_or(default, |text| self.parse_duration(field, text))
    }

    pub(super) fn compile_template(&mut self, field: &str, text: &str) -> Option<ParentTemplate> {
        let template =
            ParentTemplate::parse(text).map_err(|error| self.add_problem(field, error.to_string())).ok()?;
        if let Some(kind) = &self.protected_parent
            && template.root_fields().any(|root| root != "metadata")
        {
            let what =
                format!("policies never read a {kind} beyond its metadata: use {{parent.metadata.…}} alone");
            self.add_problem(field, what);
        }
        Some(template)
    }

    pub(super) fn compile_templates(&mut self, field: &str, texts: &[String]) -> Vec<ParentTemplate> {
        texts
            .iter()
            .enumerate()
            .filter_map(|(at, text)| self.compile_template(&format!("{field}[{at}]"), text))
            .collect()
    }
}

pub(super) fn compile_selector(selector: Option<&LabelSelector>) -> Option<LabelMatcher> {
    let selector = selector?;
    let one = |(key, value): (&String, &String)| {
        LabelMatchTerm::In(key.as_str().into(), vec![value.as_str().into()])
    };
    let mut requirements: Vec<_> = selector.match_labels.iter().map(one).collect();
    requirements.extend(selector.match_expressions.iter().map(|requirement| {
        let key = requirement.key.as_str().into();
        let values = requirement.values.iter().map(|v| v.as_str().into()).collect();
        match requirement.operator {
            SelectorOperator::In => LabelMatchTerm::In(key, values),
            SelectorOperator::NotIn => LabelMatchTerm::NotIn(key, values),
            SelectorOperator::Exists => LabelMatchTerm::Exists(key),
            SelectorOperator::DoesNotExist => LabelMatchTerm::DoesNotExist(key),
        }
    }));
    Some(LabelMatcher { requirements })
}
