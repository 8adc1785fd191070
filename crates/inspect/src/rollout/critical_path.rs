//! The walk from the end of a rollout back to its beginning.

use readiness::Time;

use super::rollout_object::RolloutObject;
use super::rollout_step::{RolloutStep, WaitCause};

/// A part of the critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPart {
    /// Kind and name of the object that was waited for, as in `Pod web-0`.
    pub object: String,
    /// What its time was spent on.
    pub cause: WaitCause,
    /// More of it; may be empty.
    pub detail: String,
    /// Its beginning.
    pub from: Time,
    /// Its end: the beginning of the next part.
    pub to: Time,
}

impl PathPart {
    /// What the time was spent on, in words, with the detail.
    pub fn cause_text(&self) -> String {
        let is_own = matches!(self.cause, WaitCause::Operator | WaitCause::Applying | WaitCause::Controller);
        let between = if is_own { ", " } else { " " };
        let detail = if self.detail.is_empty() { "" } else { between };
        format!("{}{detail}{}", self.cause.text(), self.detail)
    }
}

/// The critical path of the rollout of `root` between these moments, oldest first.
pub fn critical_path(root: &RolloutObject, from: Time, to: Time) -> Vec<PathPart> {
    let mut parts = Vec::new();
    let mut walk = PathWalk { parts: &mut parts, from };
    let last = root.children.iter().filter_map(RolloutObject::ready_since).filter(|end| *end <= to).max();
    // What is after the last child is Rollcall's time, and the operator's if nothing was there to wait for.
    let settled = last.filter(|end| *end > from).unwrap_or(to);
    walk.add_own(root, WaitCause::Settling, "", settled, to);
    walk.walk_back(root, from, settled);
    parts.reverse();
    join_equal(parts)
}

/// What ended, and when.
enum EndedPart<'o> {
    Step(&'o RolloutStep),
    Child(&'o RolloutObject),
}

struct PathWalk<'p> {
    /// Latest first.
    parts: &'p mut Vec<PathPart>,
    /// Beginning of the whole.
    from: Time,
}

impl PathWalk<'_> {
    /// Explains the time of `object` between these moments, latest first.
    fn walk_back(&mut self, object: &RolloutObject, from: Time, to: Time) {
        let (mut explained, mut cursor) = (to, to);
        while let Some((end, last)) = last_ended(object, from, cursor) {
            self.add_own(object, object.own_cause, &detail_before(object, explained), end, explained);
            explained = match last {
                EndedPart::Step(step) => {
                    let begin = step.from.max(from);
                    self.add_own(object, step.cause, &step.detail, begin, end);
                    begin
                }
                EndedPart::Child(child) => {
                    // Nobody tells when the rollout of a child began that was there before: it is waited for since the beginning.
                    let begin = child.began.unwrap_or(from).clamp(from, end);
                    self.walk_back(child, begin, end);
                    begin
                }
            };
            // Timestamps have whole seconds: what took none is not found again.
            cursor = explained.min(Time(cursor.0 - 1));
        }
        self.add_own(object, object.own_cause, &detail_before(object, explained), from, explained);
    }

    fn add_own(&mut self, object: &RolloutObject, cause: WaitCause, detail: &str, from: Time, to: Time) {
        let from = from.max(self.from);
        if to > from {
            let (object, detail) = (object.object.clone(), detail.to_owned());
            self.parts.push(PathPart { object, cause, detail, from, to });
        }
    }
}

/// What of an object ended last, after `from` and not after `to`.
fn last_ended(object: &RolloutObject, from: Time, to: Time) -> Option<(Time, EndedPart<'_>)> {
    let steps = object.steps.iter().map(|step| (step.to, EndedPart::Step(step)));
    let children =
        object.children.iter().filter_map(|child| Some((child.ready_since()?, EndedPart::Child(child))));
    steps.chain(children).filter(|(end, _)| *end > from && *end <= to).max_by_key(|(end, _)| *end)
}

/// Which child the object had not made yet: the one that began then.
fn detail_before(object: &RolloutObject, at: Time) -> String {
    let begun = object.children.iter().find(|child| child.began == Some(at));
    begun.map_or_else(String::new, |child| format!("until it had {}", child.object))
}

/// Joins parts of one object and cause that follow each other.
fn join_equal(parts: Vec<PathPart>) -> Vec<PathPart> {
    let mut joined: Vec<PathPart> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if (&last.object, last.cause) == (&part.object, part.cause) => {
                last.to = part.to;
                if last.detail.is_empty() {
                    last.detail = part.detail;
                }
            }
            _ => joined.push(part),
        }
    }
    joined
}
