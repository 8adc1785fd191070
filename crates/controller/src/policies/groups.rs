//! `children`: which kinds, how they are found, how many are expected, and how they are judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::{Group, Quorum, Role};
use api::policy::{AfterDeletion, ChildRole, ChildSpec, FindSpec, KindRef, ReadyRule};
use rules::cel::Count;
use watcher::plan::{After, References, Selector, Template};

use super::compile::{Check, Problem};
use super::ready::GroupRule;

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
    /// What becomes of how one ended when it is gone.
    pub after: After,
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

impl CompiledGroup {
    /// As the engine knows it.
    pub fn group(&self, kind: aggregator::KindId) -> Group {
        Group { kind, role: self.role, min: self.min, max: self.max, quorum: self.quorum }
    }
}

pub(super) fn common() -> Vec<CompiledGroup> {
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
        after: After::Forget,
    };
    COMMON.into_iter().map(group).collect()
}

impl Check {
    pub(super) fn groups(&mut self, children: &[ChildSpec]) -> Vec<CompiledGroup> {
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
            after: self.after(field, child),
        }
    }

    fn rule(&mut self, field: &str, ready: &ReadyRule) -> Option<GroupRule> {
        let compiled = super::ready::compile(ready);
        let place =
            |problem: Problem| Problem { field: format!("{field}.ready{}", problem.field), ..problem };
        compiled.map_err(|problems| self.problems.extend(problems.into_iter().map(place))).ok()
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

    /// Only of Jobs it is known what their end is; only an owner is still known once they are gone.
    fn after(&mut self, field: &str, child: &ChildSpec) -> After {
        let after = match child.after_deletion {
            None | Some(AfterDeletion::Forget) => return After::Forget,
            Some(AfterDeletion::Remember) => After::Remember,
            Some(AfterDeletion::RememberGeneration) => After::RememberGeneration,
        };
        let field = format!("{field}.afterDeletion");
        if (child.kind.group.as_str(), child.kind.kind.as_str()) != ("batch", "Job") {
            self.add(&field, "only the outcome of a Job (group batch) is remembered; leave it out");
        }
        if child.find.as_ref().is_some_and(|find| !find.labels.is_empty() || find.refs.is_some()) {
            self.add(&field, "only Jobs that are found by ownerReference are remembered; leave find out");
        }
        if child.ready.is_some() {
            self.add(&field, "what is remembered is how the Job itself ended; leave ready out");
        }
        after
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
