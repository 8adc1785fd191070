//! One sign that an object gives: what it says, how much that weighs, and where it stands.

use super::lexicon::{Sense, ends, message_sense, sense, wrong_if_not};
use super::names::{Role, is_error};
use super::tokens::first;
use crate::facts::{Condition, Facts, Place, Truth, Word};
use crate::kind::Kind;

/// How much a sign weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Force {
    /// Of something below it, or beside the point.
    Hint,
    /// Of a first step.
    Step,
    /// Of a part of it.
    Part,
    /// Of the whole, in one respect.
    Core,
    /// Of the whole.
    Verdict,
}

/// Where a sign stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Condition(&'a Condition),
    /// A condition about another generation.
    Stale(&'a Condition),
    Word(&'a Word),
    /// So many of so many are ready, by these fields.
    Counts(&'a str, i64, &'a str, i64),
}

/// One sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal<'a> {
    pub(super) sense: Sense,
    pub(super) force: Force,
    pub(super) source: Source<'a>,
}

/// What a condition or a boolean field says.
pub(super) fn condition<'a>(c: &'a Condition, facts: &Facts, kind: Kind) -> Option<Signal<'a>> {
    if c.info {
        return None;
    }
    let role = Role::of(&c.name)?;
    let (sense, force) = match c.place {
        Place::Field(ref below) => boolean(c, role, below.is_some())?,
        _ if role.positive() => positive(c, role)?,
        _ => abnormal(c, role)?,
    };
    let mut signal = Signal { sense, force, source: Source::Condition(c) };
    if kind == Kind::Run && signal.sense == Sense::Good && !ends(&c.name) {
        signal.sense = Sense::Busy;
        signal.force = Force::Step;
    }
    if let (Some(observed), Some(generation)) = (c.observed, facts.generation)
        && observed != generation
    {
        signal.sense = Sense::Busy;
        signal.source = Source::Stale(c);
    }
    if matches!(c.place, Place::Below(_)) {
        signal.force = signal.force.min(Force::Part);
    }
    if first(&c.name).as_str() == "last" {
        signal.force = Force::Hint;
    }
    Some(signal)
}

fn positive(c: &Condition, role: Role) -> Option<(Sense, Force)> {
    let force = match role {
        Role::Verdict => Force::Verdict,
        Role::Core => Force::Core,
        Role::FirstStep => Force::Step,
        _ => Force::Part,
    };
    match c.status {
        Truth::True => Some((Sense::Good, force)),
        Truth::False => {
            let sense = refusal(c);
            // Some are false in a healthy object that has nothing to do.
            let idle = matches!(&*c.name, "Active" | "Running" | "Online" | "Updated" | "Bound" | "Released");
            let force = if idle && sense != Sense::Bad { Force::Step } else { force };
            Some((sense, force))
        }
        Truth::Unknown => {
            let paused = sense(&c.reason) == Some(Sense::Paused);
            Some((if paused { Sense::Paused } else { Sense::Busy }, force))
        }
        Truth::Absent => None,
    }
}

/// Why a positive condition is false: by its reason, else by its message, else by what its name asks for.
fn refusal(c: &Condition) -> Sense {
    match sense(&c.reason) {
        Some(sense) if sense != Sense::Good && sense != Sense::Unknown => sense,
        _ => match message_sense(&c.message) {
            Some(sense) => sense,
            None if wrong_if_not(&c.name) => Sense::Bad,
            None => Sense::Busy,
        },
    }
}

fn abnormal(c: &Condition, role: Role) -> Option<(Sense, Force)> {
    let reason = sense(&c.reason);
    let single = super::tokens::tokens(&c.name).nth(1).is_none();
    match (role, c.status) {
        (Role::Wrong, Truth::True) => Some((Sense::Bad, Force::Core)),
        (Role::Resting, Truth::True) => Some((Sense::Paused, Force::Core)),
        (Role::Leaving, Truth::True) => Some((Sense::Leaving, Force::Core)),
        // `Progressing=True, NewReplicaSetAvailable` has arrived.
        (Role::Working, Truth::True) if reason == Some(Sense::Good) => None,
        (Role::Working, Truth::True | Truth::Unknown)
            if matches!(reason, Some(Sense::Paused | Sense::Bad)) =>
        {
            Some((reason?, Force::Core))
        }
        (Role::Working, Truth::True) => Some((Sense::Busy, if single { Force::Core } else { Force::Part })),
        // `Progressing=False, ProgressDeadlineExceeded` has given up.
        (Role::Working, Truth::False) if reason == Some(Sense::Bad) => Some((Sense::Bad, Force::Core)),
        _ => None,
    }
}

/// A boolean field: only its plainest names are taken at their word.
fn boolean(c: &Condition, role: Role, below: bool) -> Option<(Sense, Force)> {
    let plain = if below { Force::Hint } else { Force::Core };
    match (role, c.status) {
        (Role::Verdict, Truth::True) => Some((Sense::Good, plain)),
        (Role::Core, Truth::True) => Some((Sense::Good, plain.min(Force::Part))),
        (Role::Verdict, Truth::False) => Some((refusal(c), plain)),
        (Role::Core, Truth::False) if wrong_if_not(&c.name) || &*c.name == "synced" => {
            Some((refusal(c), plain.min(Force::Part)))
        }
        (Role::Wrong, Truth::True) => Some((Sense::Bad, plain)),
        (Role::Resting, Truth::True) => Some((Sense::Paused, plain)),
        (Role::Leaving, Truth::True) => Some((Sense::Leaving, plain)),
        _ => None,
    }
}

/// What a text says; `None` where the words are not known.
pub(super) fn word(word: &Word, kind: Kind) -> Option<Signal<'_>> {
    let signal = |sense, force| Some(Signal { sense, force, source: Source::Word(word) });
    let field = word.path.rsplit('.').next().unwrap_or("");
    let top = field.len() == word.path.len();
    if is_error(field) {
        let none =
            matches!(&*word.word.to_ascii_lowercase(), "none" | "null" | "nil" | "n/a" | "-" | "0" | "false");
        let late = !top || first(field).as_str() == "last";
        let quiet = none || matches!(sense(&word.word), Some(Sense::Good));
        return if quiet { None } else { signal(Sense::Bad, if late { Force::Hint } else { Force::Core }) };
    }
    if let Some(role) = Role::of(field).filter(|_| !states(field)) {
        return named(word, role, top);
    }
    let force = if summary(&word.path) { Force::Core } else { Force::Hint };
    match sense(&word.word)? {
        Sense::Good if kind == Kind::Run && !ends(&word.word) => signal(Sense::Busy, force),
        sense => signal(sense, force),
    }
}

/// Is this the name of a state, and not of something that is so or not?
fn states(field: &str) -> bool {
    matches!(
        field,
        "" | "phase"
            | "state"
            | "status"
            | "health"
            | "stage"
            | "condition"
            | "result"
            | "outcome"
            | "lifecycle"
            | "conclusion"
    )
}

/// Does the field sum the object up?
fn summary(path: &str) -> bool {
    let whole =
        |part: &str| matches!(part, "" | "health" | "overall" | "state" | "status" | "summary" | "phase");
    path.split('.').all(|part| states(part) || whole(part))
}

/// A text under the name of a condition: `ready: "True"`, `ready: 2/3`.
fn named(word: &Word, role: Role, top: bool) -> Option<Signal<'_>> {
    let force = if top && role == Role::Verdict { Force::Core } else { Force::Hint };
    let signal = |sense| Some(Signal { sense, force, source: Source::Word(word) });
    let numbers = word.word.split_once('/').map(|(n, m)| (n.trim().parse::<u32>(), m.trim().parse::<u32>()));
    match (Truth::of(&word.word), numbers) {
        (Truth::True, _) if role.positive() => signal(Sense::Good),
        (Truth::False, _) if role.positive() => {
            signal(if wrong_if_not(&word.path) { Sense::Bad } else { Sense::Busy })
        }
        (Truth::True, _) if role == Role::Wrong => signal(Sense::Bad),
        (Truth::True, _) if role == Role::Resting => signal(Sense::Paused),
        (Truth::Absent, Some((Ok(ready), Ok(all)))) if role.positive() => {
            signal(if ready >= all && all > 0 { Sense::Good } else { Sense::Busy })
        }
        (Truth::Absent, None) => {
            Some(Signal { sense: sense(&word.word)?, force: Force::Hint, source: Source::Word(word) })
        }
        _ => None,
    }
}

/// How many of what is wanted are ready, where numbers tell both.
pub(super) fn counts(facts: &Facts) -> Option<Signal<'_>> {
    let status = &facts.status;
    let signal = |field, have: i64, of, want: i64| {
        let sense = if have < want { Sense::Busy } else { Sense::Good };
        Signal { sense, force: Force::Part, source: Source::Counts(field, have, of, want) }
    };
    let (field, have) = match (status.ready, status.available) {
        (Some(ready), _) => ("status.readyReplicas", ready),
        (None, Some(available)) => ("status.availableReplicas", available),
        (None, None) => return named_counts(facts),
    };
    let (of, want) = match (facts.spec.replicas, status.desired, status.replicas) {
        (Some(wanted), ..) => ("spec.replicas", wanted),
        (None, Some(desired), _) => ("status.desiredNumberScheduled", desired),
        (None, None, replicas) => ("status.replicas", replicas?),
    };
    let behind = status.updated.filter(|updated| *updated < want);
    Some(
        behind.map_or(signal(field, have, of, want), |updated| {
            signal("status.updatedReplicas", updated, of, want)
        }),
    )
}

/// `readyNodes` against `nodes`, `desiredNodes`, `totalNodes`, … in status or spec.
fn named_counts(facts: &Facts) -> Option<Signal<'_>> {
    let status = &facts.status.counts;
    status.iter().find_map(|have| {
        let noun =
            ["ready", "available", "healthy", "running"].iter().find_map(|p| have.name.strip_prefix(p))?;
        let wanted = |name: &str| {
            let rest =
                ["desired", "total", "expected"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
            name != &*have.name && rest.eq_ignore_ascii_case(noun)
        };
        let want = facts.spec.counts.iter().chain(status).find(|count| wanted(&count.name))?;
        let sense = if have.value < want.value { Sense::Busy } else { Sense::Good };
        let source = Source::Counts(&have.name, have.value, &want.name, want.value);
        Some(Signal { sense, force: Force::Part, source })
    })
}
