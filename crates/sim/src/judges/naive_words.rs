//! The naive judge of words: puts the message of one parent together from all objects, quotes at every depth included.
//!
//! It shares no code with the product's renderer, and keeps nothing: only the reason of one object's own verdict is read from
//! the reflector.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use aggregator::{GroupRole, ObjectId, Quorum, UnreadyChild};
use readiness::rollup::ParentReason;
use readiness::{Level, Steadiness, Time};

use super::judged_moment::JudgedMoment;
use super::naive_deletion::naive_deletion_message;
use super::naive_judge::{NaiveJudge, is_child};
use crate::scenario::{GroupDef, PolicyDef, expected_child_name, kind_id, small_number};
use crate::world::{ModelMark, ModelObject};

/// Number of kinds of trouble, and of names of each, that a message has room for.
const MAX_SHOWN: usize = 3;

/// One cause: its severity, the kind of its objects, its text.
type NaiveCause = (Level, String, String);

/// Returns the message that a parent is to carry under a policy; `None` where that is not put together from its children, or
/// where it is not known what is said of some of them.
pub(super) fn naive_message(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
) -> Option<String> {
    let id = at.core.reflector.find_object(&parent.uid)?;
    let answer = at.core.engine.answer_of(id, policy.id)?;
    if parent.deleted.is_some() {
        return naive_deletion_message(at, policy, parent, models, answer.reason);
    }
    let words = NaiveWords {
        at,
        models,
        judge: NaiveJudge {
            scenario: at.scenario,
            models,
            now: at.now,
            unjudged: BTreeMap::new(),
            counted: None,
        },
    };
    let sum = at.naive_sum(policy, parent, models).reason;
    let is_ready = answer.reason == ParentReason::AllChildrenReady;
    // Whether it may stand over children that are not ready others judge.
    let stands = is_ready && parent.failure.is_none() && at.core.engine.is_tolerating(id, policy.id);
    if !stands && sum != (!is_ready).then_some(answer.reason) {
        return None;
    }
    if let Some(failure) = parent.failure {
        let generation = parent.generation;
        let says = failure.text;
        return Some(format!(
            "the operator failed to handle generation {generation}: its status says {says}"
        ));
    }
    let critical = words.weights(policy, parent, GroupRole::Critical);
    let (total, ready) = (critical.len(), critical.iter().filter(|level| **level == Level::Ready).count());
    if is_ready {
        let churn = if stands { words.churn(policy, parent)? } else { String::new() };
        let optional = words.causes(policy, parent, GroupRole::Optional, &BTreeSet::new())?;
        let optional =
            if optional.is_empty() { String::new() } else { format!("; optional: {}", listed(&optional)) };
        return Some(format!("{ready} of {total} ready{churn}{optional}"));
    }
    let causes = listed(&words.causes(policy, parent, GroupRole::Critical, &BTreeSet::new())?);
    Some(if ready == total { causes } else { format!("{} of {total} not ready: {causes}", total - ready) })
}

/// Returns the first few of these causes as one text.
fn listed(causes: &[NaiveCause]) -> String {
    let mut texts: Vec<String> = causes.iter().take(MAX_SHOWN).map(|(_, _, text)| text.clone()).collect();
    if causes.len() > MAX_SHOWN {
        texts.push(format!("and {} more kinds of trouble", causes.len() - MAX_SHOWN));
    }
    texts.join(", ")
}

struct NaiveWords<'a> {
    at: &'a JudgedMoment<'a>,
    models: &'a [Rc<ModelObject>],
    judge: NaiveJudge<'a>,
}

impl NaiveWords<'_> {
    fn children<'m>(
        &'m self,
        policy: &'m PolicyDef,
        group: &'m GroupDef,
        parent: &'m ModelObject,
    ) -> impl Iterator<Item = (&'m ModelObject, Level)> {
        let counted = self.models.iter().filter(|t| is_child(self.at.scenario, policy, group, parent, t));
        counted.map(|child| {
            let weight = self.judge.weigh_child(child, policy, group, &|model| self.at.engine_weight(model));
            (&**child, weight.0)
        })
    }

    fn weights(&self, policy: &PolicyDef, parent: &ModelObject, role: GroupRole) -> Vec<Level> {
        let groups = policy.groups.iter().filter(|group| role_of(group) == role);
        groups.flat_map(|group| self.children(policy, group, parent).map(|(_, level)| level)).collect()
    }

    /// Returns what is said of the critical children that are not ready of a parent that is; `None` if that is not known of one.
    fn churn(&self, policy: &PolicyDef, parent: &ModelObject) -> Option<String> {
        let (mut missing, mut scaling) = (BTreeMap::new(), BTreeMap::new());
        let mut told = BTreeSet::new();
        for group in policy.groups.iter().filter(|group| group.critical) {
            let kind = self.at.scenario.kind_name(group.kind);
            for (child, _) in self.children(policy, group, parent).filter(|(_, level)| *level != Level::Ready)
            {
                if self.trouble(policy, group, parent, child)?.weight.steadiness() != Steadiness::Available {
                    continue;
                }
                let detail = self.detail(policy, group, parent, child)?;
                let counts = |unit: &str| detail.contains(&format!(" replicas {unit}"));
                let workloads = if counts("ready") || counts("available") {
                    &mut missing
                } else if counts("created") || counts("updated") || counts("left over") {
                    &mut scaling
                } else {
                    continue;
                };
                let near = child.namespace == parent.namespace || child.namespace.is_empty();
                let place = if near { String::new() } else { format!("{}/", child.namespace) };
                let name = format!("{kind} {place}{}", child.name);
                if workloads.insert(name.clone(), format!("{name} ({detail})")).is_some() {
                    return None;
                }
                told.insert(child.uid.clone());
            }
        }
        let others = self.causes(policy, parent, GroupRole::Critical, &told)?;
        let mut text = if others.is_empty() { String::new() } else { format!("; {}", listed(&others)) };
        for (workloads, what) in [(missing, "available with pods missing"), (scaling, "scaling")] {
            if !workloads.is_empty() {
                let named = workloads.values().take(MAX_SHOWN).cloned().collect::<Vec<_>>().join(", ");
                _ = write!(text, "; {} {what}: {named}", workloads.len());
            }
            if workloads.len() > MAX_SHOWN {
                _ = write!(text, " and {} more", workloads.len() - MAX_SHOWN);
            }
        }
        Some(text)
    }

    /// Returns all causes for which a parent is not ready, worst first, without the children `left_out`; `None` if it is not known
    /// what is said of one.
    fn causes(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        role: GroupRole,
        left_out: &BTreeSet<String>,
    ) -> Option<Vec<NaiveCause>> {
        let mut heaps = BTreeMap::<(Level, &str), BTreeMap<String, String>>::new();
        for group in policy.groups.iter().filter(|group| role_of(group) == role) {
            let kind = self.at.scenario.kind_name(group.kind);
            let is_counted = |(child, level): &(&ModelObject, Level)| {
                *level != Level::Ready && !left_out.contains(&child.uid)
            };
            for (child, level) in self.children(policy, group, parent).filter(is_counted) {
                let near = child.namespace == parent.namespace || child.namespace.is_empty();
                let name =
                    if near { child.name.clone() } else { format!("{}/{}", child.namespace, child.name) };
                let detail = self.detail(policy, group, parent, child)?;
                let detail = if detail.is_empty() { detail } else { format!(" ({detail})") };
                let said = format!("{kind} {name} {}{detail}", level.as_str().to_lowercase());
                // An object whose end was missed, beside its successor: they are counted, and cannot be told apart by name.
                if heaps.entry((level, kind)).or_default().insert(name, said).is_some() {
                    return None;
                }
            }
        }
        let mut causes: Vec<NaiveCause> = Vec::new();
        for ((level, kind), said) in heaps {
            let mut text = said.values().take(MAX_SHOWN).cloned().collect::<Vec<_>>().join(", ");
            if said.len() > MAX_SHOWN {
                _ = write!(text, " and {} more", said.len() - MAX_SHOWN);
            }
            causes.push((level, kind.to_owned(), text));
        }
        if role == GroupRole::Critical {
            causes.extend(self.missing(policy, parent));
        }
        causes.sort();
        Some(causes)
    }

    /// Returns what is missing, and what is too many.
    fn missing(&self, policy: &PolicyDef, parent: &ModelObject) -> Vec<NaiveCause> {
        let (mut causes, mut total) = (Vec::new(), 0);
        let mut push = |kind: &str, text: String| causes.push((Level::Missing, kind.to_owned(), text));
        for group in &policy.groups {
            let kind = self.at.scenario.kind_name(group.kind);
            let names: Vec<&str> =
                self.children(policy, group, parent).map(|(c, _)| c.name.as_str()).collect();
            let count: u32 = small_number(names.len());
            if group.critical {
                total += count;
                let min = match group.quorum {
                    Quorum::Count(n) => group.min.max(n),
                    Quorum::Percent(_) => group.min.max(1),
                    Quorum::All => group.min,
                };
                if count < min {
                    push(kind, format!("{kind} missing ({count} of at least {min} found)"));
                }
                if let Some(max) = group.max.filter(|max| count > *max) {
                    push(kind, format!("{kind} too many ({count} found, at most {max} expected)"));
                }
            }
            let expected = group.named.map(|suffix| expected_child_name(&parent.name, suffix));
            if let Some(name) = expected.filter(|name| !names.contains(&name.as_str())) {
                push(kind, format!("{kind} {name} missing"));
            }
        }
        if causes.is_empty() && total == 0 {
            causes.push((Level::Missing, String::new(), "no children yet (at least 1 expected)".to_owned()));
        }
        causes
    }

    /// Returns why a child is not ready: as it says itself if it is a parent, else by its own state.
    fn detail(
        &self,
        policy: &PolicyDef,
        group: &GroupDef,
        parent: &ModelObject,
        child: &ModelObject,
    ) -> Option<String> {
        let id = self.at.core.reflector.find_object(&child.uid)?;
        let of_kind = self.at.policies.iter().filter(|p| p.parent == child.kind);
        let answers =
            of_kind.filter_map(|p| Some((p, self.at.core.engine.answer_of(id, p.id)?.counted_reason())));
        let worst = answers.min_by_key(|(p, reason)| (reason.child_level(), p.name(), p.id));
        match worst.filter(|_| child.deleted.is_none()) {
            Some((below, reason)) => self.quote(below, child, reason),
            None => self.own_reason(policy, group, parent, (child, id)),
        }
    }

    /// Returns how a parent is quoted that has this answer under the policy that makes least of it.
    fn quote(&self, policy: &PolicyDef, parent: &ModelObject, reason: ParentReason) -> Option<String> {
        use ParentReason as R;
        let names_children = match reason {
            R::AllChildrenReady => return Some(String::new()),
            // Whether the children are the cause depends on what is known of the operator.
            R::DeadlineExceeded if parent.mark == ModelMark::Silent => return None,
            R::DeadlineExceeded => parent.mark == ModelMark::Handled,
            R::ChildrenProgressing
            | R::ChildrenTerminating
            | R::ChildrenFailed
            | R::ChildrenStuck
            | R::ChildrenMissing
            | R::TooManyChildren
            | R::ChildrenUnknown
            | R::ChildrenSuspended => true,
            _ => false,
        };
        let is_said = names_children && self.at.core.engine.is_accepted(policy.id);
        let first = if is_said {
            self.causes(policy, parent, GroupRole::Critical, &BTreeSet::new())?.into_iter().next()
        } else {
            None
        };
        Some(first.map_or_else(|| reason.as_str().to_owned(), |(_, _, text)| text))
    }

    fn own_reason(
        &self,
        policy: &PolicyDef,
        group: &GroupDef,
        parent: &ModelObject,
        (child, id): (&ModelObject, ObjectId),
    ) -> Option<String> {
        let rule = self.trouble(policy, group, parent, child)?;
        if rule.rule_changed {
            return None;
        }
        let said = self.at.core.reflector.read_row(id, |row| {
            let verdict = row.assessment_for(rule.rule_index).verdict_at(Time(self.at.now));
            (row.version == child.version).then(|| verdict.reason.to_string())
        });
        said.flatten()
    }

    /// Returns how the engine counts a child that is not ready.
    fn trouble(
        &self,
        policy: &PolicyDef,
        group: &GroupDef,
        parent: &ModelObject,
        child: &ModelObject,
    ) -> Option<UnreadyChild> {
        let reflector = &self.at.core.reflector;
        let (owner, id) = (reflector.find_object(&parent.uid)?, reflector.find_object(&child.uid)?);
        let mut unready = self.at.core.engine.unready_children(owner, policy.id, role_of(group));
        unready.find(|trouble| trouble.child == id && trouble.kind == kind_id(group.kind))
    }
}

fn role_of(group: &GroupDef) -> GroupRole {
    if group.critical { GroupRole::Critical } else { GroupRole::Optional }
}
