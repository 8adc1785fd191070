//! From a policy as written to what the engine, the reflector and the renderer need: pure, and every problem at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Group, Quorum, Role};
use api::policy::{
    AfterDeletion, ChildRole, ChildSpec, FindSpec, KindRef, LabelSelector, Mode, ObservedGenerationMode,
    ReadinessPolicySpec, ReadyRule, SelectorOperator,
};
use readiness::Limits;
use rules::cel::Count;
use watcher::plan::{ObservedGeneration, References, Requirement, Selector, Template};

use super::ready::GroupRule;

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

/// One of its `children`.
#[derive(Clone, Debug)]
pub struct CompiledGroup {
    /// The kind.
    pub kind: KindRef,
    /// By labels: key and value. Empty: by ownerReference.
    pub labels: Vec<(String, Template)>,
    /// In these namespaces; empty for the parent's own.
    pub namespaces: Vec<Template>,
    /// By references in the parent.
    pub references: Option<References>,
    /// As many as this computes from the parent, at least.
    pub count: Option<GroupCount>,
    /// These by name.
    pub names: Vec<Template>,
    /// Those with such labels do not count.
    pub ignore: Option<Selector>,
    /// Its role.
    pub role: Role,
    /// At least so many.
    pub min: u32,
    /// At most so many.
    pub max: Option<u32>,
    /// How many must be ready.
    pub quorum: Quorum,
    /// How they are judged, where not by the native rules.
    pub rule: Option<GroupRule>,
}

/// An expression over the parent that yields how many children are expected.
#[derive(Clone)]
pub struct GroupCount {
    /// The expression.
    pub count: Arc<Count>,
    /// What it was compiled from.
    pub source: Arc<str>,
}

impl std::fmt::Debug for GroupCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GroupCount({:?})", self.source)
    }
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

/// The kinds that stand for `children` where a policy names none.
const COMMON: [(&str, &str); 7] = [
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("", "Pod"),
];

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
        debounce: timer::Debounce { quiet, cap },
        settle: check.duration("spec.settle", &spec.settle),
        hold: check.duration("spec.hold", &spec.hold),
        limits,
        deadline,
        shadow: spec.mode == Mode::Shadow || belongs_to_others(&spec.parent.group),
    };
    if check.problems.is_empty() { Ok(compiled) } else { Err(check.problems) }
}

/// Groups whose objects' status belongs to others: judged, never written.
pub fn belongs_to_others(group: &str) -> bool {
    let built_in = group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io");
    built_in || group == "argoproj.io" || group == "kro.run" || group.ends_with(".toolkit.fluxcd.io")
}

fn common() -> Vec<CompiledGroup> {
    let group = |(group, kind): (&str, &str)| CompiledGroup {
        kind: KindRef { group: group.into(), version: None, kind: kind.into() },
        labels: Vec::new(),
        namespaces: Vec::new(),
        references: None,
        count: None,
        names: Vec::new(),
        ignore: None,
        role: Role::Critical,
        min: 0,
        max: None,
        quorum: Quorum::All,
        rule: None,
    };
    COMMON.into_iter().map(group).collect()
}

#[derive(Default)]
struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn add(&mut self, field: &str, what: impl Into<String>) {
        self.problems.push(Problem { field: field.to_owned(), what: what.into(), at: None });
    }

    fn not_built(&mut self, field: &str) {
        self.add(field, "is not supported by this version of Rollcall; leave it out");
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

    fn selector(&mut self, field: &str, selector: Option<&LabelSelector>) -> Option<Selector> {
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

    fn template(&mut self, field: &str, text: &str) -> Option<Template> {
        Template::parse(text).map_err(|error| self.add(field, error.to_string())).ok()
    }

    fn templates(&mut self, field: &str, texts: &[String]) -> Vec<Template> {
        texts
            .iter()
            .enumerate()
            .filter_map(|(at, text)| self.template(&format!("{field}[{at}]"), text))
            .collect()
    }

    fn groups(&mut self, children: &[ChildSpec]) -> Vec<CompiledGroup> {
        if children.len() > 64 {
            self.add("spec.children", "at most 64");
        }
        children
            .iter()
            .take(64)
            .enumerate()
            .map(|(at, child)| self.group(&format!("spec.children[{at}]"), child))
            .collect()
    }

    fn group(&mut self, field: &str, child: &ChildSpec) -> CompiledGroup {
        self.refuse_unbuilt(field, child);
        if child.kind.kind.is_empty() {
            self.add(&format!("{field}.kind.kind"), "must not be empty");
        }
        let find = child.find.clone().unwrap_or_default();
        let expect = child.expect.clone().unwrap_or_default();
        let (labels, namespaces) = self.labels(field, &find.labels, &find.namespaces);
        let names = self.templates(&format!("{field}.expect.names"), &expect.names);
        let quorum = self.quorum(field, child.quorum.as_deref());
        if expect.max.is_some_and(|max| expect.min.unwrap_or(0) > max) {
            self.add(&format!("{field}.expect"), "min must not be above max");
        }
        let selector = child.ignore.as_ref().map(|i| &i.selector);
        let optional = child.role == ChildRole::Optional;
        // Who names names has said how many are expected.
        let said = !names.is_empty() || expect.cel.is_some();
        let default_min = u32::from(!optional && !said && expect.max != Some(0));
        CompiledGroup {
            kind: child.kind.clone(),
            labels,
            namespaces,
            references: self.references(field, &find),
            count: expect.cel.as_deref().and_then(|source| self.count(field, source)),
            names,
            ignore: self.selector(&format!("{field}.ignore.selector"), selector),
            role: if optional { Role::Optional } else { Role::Critical },
            min: expect.min.unwrap_or(default_min),
            max: expect.max,
            quorum,
            rule: child.ready.as_ref().and_then(|ready| self.rule(field, ready)),
        }
    }

    fn rule(&mut self, field: &str, ready: &ReadyRule) -> Option<GroupRule> {
        let compiled = super::ready::compile(ready);
        let place =
            |problem: Problem| Problem { field: format!("{field}.ready{}", problem.field), ..problem };
        compiled.map_err(|problem| self.problems.push(place(problem))).ok()
    }

    fn references(&mut self, field: &str, find: &FindSpec) -> Option<References> {
        let text = find.refs.as_deref()?;
        let field = format!("{field}.find.refs");
        if !find.labels.is_empty() {
            self.add(&field, "labels or refs, not both");
        }
        References::parse(text).map_err(|error| self.add(&field, error.to_string())).ok()
    }

    fn count(&mut self, field: &str, source: &str) -> Option<GroupCount> {
        match Count::compile(source, "parent") {
            Ok(count) => Some(GroupCount { count: Arc::new(count), source: source.into() }),
            Err(error) => {
                let (at, what) = (Some((error.line, error.column)), error.message);
                self.problems.push(Problem { field: format!("{field}.expect.cel"), what, at });
                None
            }
        }
    }

    fn refuse_unbuilt(&mut self, field: &str, child: &ChildSpec) {
        if child.after_deletion.is_some_and(|a| a != AfterDeletion::Forget) {
            self.not_built(&format!("{field}.afterDeletion"));
        }
    }

    fn labels(
        &mut self,
        field: &str,
        labels: &BTreeMap<String, String>,
        namespaces: &[String],
    ) -> (Vec<(String, Template)>, Vec<Template>) {
        let mut compiled = Vec::new();
        for (key, value) in labels {
            let field = format!("{field}.find.labels[{key}]");
            compiled.extend(self.template(&field, value).map(|template| (key.clone(), template)));
        }
        if labels.is_empty() && !namespaces.is_empty() {
            self.add(&format!("{field}.find.namespaces"), "goes with labels");
        }
        (compiled, self.templates(&format!("{field}.find.namespaces"), namespaces))
    }

    fn quorum(&mut self, field: &str, text: Option<&str>) -> Quorum {
        let Some(text) = text.filter(|t| *t != "all") else { return Quorum::All };
        let percent = text.strip_suffix('%');
        match (percent.unwrap_or(text).parse::<u32>(), percent) {
            (Ok(n @ 1..=100), Some(_)) => Quorum::Percent(n),
            (Ok(n @ 1..), None) => Quorum::Count(n),
            _ => {
                self.add(
                    &format!("{field}.quorum"),
                    format!("{text:?}: write all, a number from 1, or 1% to 100%"),
                );
                Quorum::All
            }
        }
    }
}

impl CompiledGroup {
    /// As the engine knows it.
    pub fn group(&self, kind: aggregator::KindId) -> Group {
        Group { kind, role: self.role, min: self.min, max: self.max, quorum: self.quorum }
    }
}
