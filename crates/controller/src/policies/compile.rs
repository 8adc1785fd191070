//! From a policy as written to what the engine, the reflector and the renderer need: pure, and every problem at once.

use std::time::Duration;

use api::policy::{
    EvidenceMode, KindRef, LabelSelector, Mode, ObservedGenerationMode, ReadinessPolicySpec, SelectorOperator,
};
use readiness::Limits;
use watcher::plan::{After, Marks, ObservedGeneration, Requirement, Selector, Template};

use super::groups::{CompiledGroup, common};

/// A policy, checked and in the terms of the crates that work with it; kinds are still names.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The parents.
    pub parent: KindRef,
    /// Only those with such labels.
    pub selector: Selector,
    /// Only those in namespaces with such labels.
    pub namespace_selector: Option<Selector>,
    /// The children.
    pub groups: Vec<CompiledGroup>,
    /// At least so many critical children in all.
    pub min: u32,
    /// The condition that is written.
    pub condition: String,
    /// The one to fall back to.
    pub fallback: Option<String>,
    /// Take it from others.
    pub takeover: bool,
    /// What to do about `status.observedGeneration`.
    pub observed_generation: ObservedGeneration,
    /// What the absence of a mark means.
    pub marks: Marks,
    /// How changes are gathered.
    pub debounce: timer::Debounce,
    /// See the schema.
    pub settle: Duration,
    /// See the schema.
    pub hold: Duration,
    /// See the schema.
    pub limits: Limits,
    /// See the schema.
    pub deadline: Option<Duration>,
    /// Write nothing.
    pub shadow: bool,
}

/// What is wrong with a field of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, as `spec.children[1].quorum`.
    pub field: String,
    /// What is wrong, and the way out.
    pub what: String,
    /// In the text of the field, where that is a rule: line and column from 1.
    pub at: Option<(u32, u32)>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.at.map_or(String::new(), |(line, column)| format!("line {line}, column {column}: "));
        write!(f, "{}: {place}{}", self.field, self.what)
    }
}

/// Checks a policy. `stuck_after` stands for limits that it leaves out.
pub fn compile(spec: &ReadinessPolicySpec, stuck_after: Duration) -> Result<Compiled, Vec<Problem>> {
    let mut check = Check::default();
    let limits = Limits {
        pending: check.limit("spec.limits.pending", spec.limits.pending.as_deref(), stuck_after),
        terminating: check.limit("spec.limits.terminating", spec.limits.terminating.as_deref(), stuck_after),
    };
    let deadline = spec.limits.deadline.as_deref().map(|text| check.duration("spec.limits.deadline", text));
    if spec.parent.kind.is_empty() {
        check.add("spec.parent.kind", "must not be empty");
    }
    if spec.parent.group == "rollcall.dev" {
        check.add("spec.parent.group", "rollcall.dev objects are no parents");
    }
    let quiet = check.duration("spec.debounce.quiet", &spec.debounce.quiet);
    let cap = check.duration("spec.debounce.cap", &spec.debounce.cap);
    if cap < quiet {
        check.add("spec.debounce.cap", "must not be shorter than spec.debounce.quiet");
    }
    let (groups, min) =
        if spec.children.is_empty() { (common(), 1) } else { (check.groups(&spec.children), 0) };
    let compiled = Compiled {
        parent: KindRef {
            group: spec.parent.group.clone(),
            version: spec.parent.version.clone(),
            kind: spec.parent.kind.clone(),
        },
        selector: check.selector("spec.parent.selector", spec.parent.selector.as_ref()).unwrap_or_default(),
        namespace_selector: check
            .selector("spec.parent.namespaceSelector", spec.parent.namespace_selector.as_ref()),
        groups,
        min,
        condition: check.condition("spec.condition.type", &spec.condition.r#type),
        fallback: spec.condition.fallback.as_ref().map(|f| check.condition("spec.condition.fallback", f)),
        takeover: spec.condition.takeover,
        observed_generation: match spec.observed_generation {
            ObservedGenerationMode::Auto => ObservedGeneration::Auto,
            ObservedGenerationMode::Write => ObservedGeneration::Write,
            ObservedGenerationMode::Never => ObservedGeneration::Never,
        },
        marks: match spec.evidence {
            EvidenceMode::Auto => Marks::Learned,
            EvidenceMode::Kopf => Marks::Expected,
            EvidenceMode::Own => Marks::Optional,
        },
        debounce: timer::Debounce { quiet, cap },
        settle: check.duration("spec.settle", &spec.settle),
        hold: check.duration("spec.hold", &spec.hold),
        limits,
        deadline,
        shadow: spec.mode == Mode::Shadow || belongs_to_others(&spec.parent.group),
    };
    if check.problems.is_empty() { Ok(compiled) } else { Err(check.problems) }
}

impl Compiled {
    /// It remembers how some children ended that are gone.
    pub fn remembers(&self) -> bool {
        self.groups.iter().any(|group| group.after != After::Forget)
    }
}

/// Groups whose objects' status belongs to others: judged, never written.
pub fn belongs_to_others(group: &str) -> bool {
    let built_in = group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io");
    built_in || group == "argoproj.io" || group == "kro.run" || group.ends_with(".toolkit.fluxcd.io")
}

#[derive(Default)]
pub(super) struct Check {
    pub(super) problems: Vec<Problem>,
}

impl Check {
    pub(super) fn add(&mut self, field: &str, what: impl Into<String>) {
        self.problems.push(Problem { field: field.to_owned(), what: what.into(), at: None });
    }

    fn duration(&mut self, field: &str, text: &str) -> Duration {
        humantime::parse_duration(text).unwrap_or_else(|error| {
            self.add(field, format!("{text:?} is not a duration such as 100ms, 5s, 10m: {error}"));
            Duration::ZERO
        })
    }

    fn limit(&mut self, field: &str, text: Option<&str>, default: Duration) -> Duration {
        text.map_or(default, |text| self.duration(field, text))
    }

    fn condition(&mut self, field: &str, text: &str) -> String {
        if matches!(text, "Reconciling" | "Stalled") {
            self.add(field, format!("{text} is written beside Ready; choose another type"));
        }
        if text.is_empty() || text.len() > 316 {
            self.add(field, "must have 1 to 316 characters");
        }
        text.to_owned()
    }

    pub(super) fn selector(&mut self, field: &str, selector: Option<&LabelSelector>) -> Option<Selector> {
        let selector = selector?;
        let one = |(key, value): (&String, &String)| {
            Requirement::In(key.as_str().into(), vec![value.as_str().into()])
        };
        let mut requirements: Vec<_> = selector.match_labels.iter().map(one).collect();
        for (at, requirement) in selector.match_expressions.iter().enumerate() {
            let (key, values) = (requirement.key.as_str().into(), &requirement.values);
            let needs_values = matches!(requirement.operator, SelectorOperator::In | SelectorOperator::NotIn);
            if needs_values == values.is_empty() {
                let field = format!("{field}.matchExpressions[{at}].values");
                self.add(&field, "values are for In and NotIn, and only for them");
            }
            let values = values.iter().map(|v| v.as_str().into()).collect();
            requirements.push(match requirement.operator {
                SelectorOperator::In => Requirement::In(key, values),
                SelectorOperator::NotIn => Requirement::NotIn(key, values),
                SelectorOperator::Exists => Requirement::Exists(key),
                SelectorOperator::DoesNotExist => Requirement::DoesNotExist(key),
            });
        }
        Some(Selector { requirements })
    }

    pub(super) fn template(&mut self, field: &str, text: &str) -> Option<Template> {
        Template::parse(text).map_err(|error| self.add(field, error.to_string())).ok()
    }

    pub(super) fn templates(&mut self, field: &str, texts: &[String]) -> Vec<Template> {
        texts
            .iter()
            .enumerate()
            .filter_map(|(at, text)| self.template(&format!("{field}[{at}]"), text))
            .collect()
    }
}
