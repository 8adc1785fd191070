//! One sign that an object gives: what it says, how much that weighs, and where it stands.

use super::lexicon::{Sense, begun, ends, message_sense, runs_something, sense, sense_of, wrong_if_not};
use super::names::{Role, is_error, whole};
use super::tokens::{first, last, words};
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

/// What a sign of trouble rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// A word or a reason says it.
    Said,
    /// A message for people reads like it.
    Message,
    /// The name of what does not hold suggests it.
    Name,
}

/// One sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal<'a> {
    pub(super) sense: Sense,
    pub(super) force: Force,
    pub(super) evidence: Evidence,
    pub(super) source: Source<'a>,
}

/// What a condition or a boolean field says.
pub(super) fn condition<'a>(c: &'a Condition, facts: &Facts, kind: Kind) -> Option<Signal<'a>> {
    if c.info {
        return None;
    }
    words(&c.name, |name| named_condition(c, name, facts, kind))
}

fn named_condition<'a>(c: &'a Condition, name: &[&str], facts: &Facts, kind: Kind) -> Option<Signal<'a>> {
    let Some(role) = Role::by(&c.name, name) else { return unnamed(c) };
    let (sense, force, evidence) = match c.place {
        Place::Field(ref below) => boolean(c, name, role, below.is_some(), facts)?,
        _ if role.positive() => positive(c, name, role)?,
        _ => abnormal(c, name, role).map(|(sense, force)| (sense, force, Evidence::Said))?,
    };
    let mut signal = Signal { sense, force, evidence, source: Source::Condition(c) };
    if kind == Kind::Run && signal.sense == Sense::Good && !ends(name) {
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
    if first(name) == "last" {
        signal.force = Force::Hint;
    }
    Some(signal)
}

/// Something of an unknown name that does not hold, with a reason that complains.
fn unnamed(c: &Condition) -> Option<Signal<'_>> {
    // What could be done, and cannot now, is no complaint: `Upgradeable`, `LiveMigratable`.
    if c.status != Truth::False || c.name.ends_with("able") {
        return None;
    }
    let complains = words(&c.reason, |reason| {
        // Nor is that there is none of something: `Fallback=False, NoFallbackFound`.
        !matches!(first(reason), "no" | "none") && sense_of(&c.reason, reason) == Some(Sense::Bad)
    });
    let (sense, force, evidence) = (Sense::Bad, Force::Part, Evidence::Said);
    complains.then_some(Signal { sense, force, evidence, source: Source::Condition(c) })
}

fn positive(c: &Condition, name: &[&str], role: Role) -> Option<(Sense, Force, Evidence)> {
    let force = match role {
        Role::Verdict => Force::Verdict,
        Role::Core => Force::Core,
        Role::FirstStep => Force::Step,
        _ => Force::Part,
    };
    match c.status {
        // An operator that is running its reconciliation, and not what it reconciles.
        Truth::True if &*c.name == "Running" && runs_something(&c.message) => {
            Some((Sense::Busy, Force::Part, Evidence::Message))
        }
        Truth::True => Some((Sense::Good, force, Evidence::Said)),
        Truth::False => {
            let (sense, evidence) = refusal(&c.name, name, &c.reason, &c.message);
            // Some are false in a healthy object that has nothing to do.
            let idle = matches!(&*c.name, "Active" | "Running" | "Online" | "Updated" | "Bound" | "Released");
            let force = if idle && sense != Sense::Bad { Force::Step } else { force };
            Some((sense, force, evidence))
        }
        Truth::Unknown => {
            // Of a part it only means that nobody reports on it any more.
            let paused = sense(&c.reason) == Some(Sense::Paused) && force >= Force::Core;
            Some((if paused { Sense::Paused } else { Sense::Busy }, force, Evidence::Said))
        }
        Truth::Absent => None,
    }
}

/// Why something does not hold that should: by its reason, else by its message, else by what its name asks for.
fn refusal(name: &str, words: &[&str], reason: &str, message: &str) -> (Sense, Evidence) {
    match sense(reason).filter(|_| !echoes(name, reason)) {
        Some(sense) if sense != Sense::Good && sense != Sense::Unknown => (sense, Evidence::Said),
        // Somebody else has it: `DomainAlreadyClaimed`, `AlreadyInUse`.
        _ if self::words(reason, |reason| reason.contains(&"already")) => (Sense::Bad, Evidence::Said),
        _ => match message_sense(message) {
            Some(sense) => (sense, Evidence::Message),
            None if wrong_if_not(words) => (Sense::Bad, Evidence::Name),
            None => (Sense::Busy, Evidence::Name),
        },
    }
}

/// Does the reason only negate the name: `Available=False, Unavailable`?
fn echoes(name: &str, reason: &str) -> bool {
    let rest = ["Not", "Un", "not", "un"].iter().find_map(|prefix| reason.strip_prefix(prefix));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(name))
}

/// The same of a field, which has no reason of its own but that of the whole.
fn field_refusal(name: &str, words: &[&str], below: bool, facts: &Facts) -> (Sense, Evidence) {
    let whole =
        |text: &'_ Option<Box<str>>| -> Box<str> { text.clone().filter(|_| !below).unwrap_or_default() };
    refusal(name, words, &whole(&facts.status.reason), &whole(&facts.status.message))
}

fn abnormal(c: &Condition, name: &[&str], role: Role) -> Option<(Sense, Force)> {
    if c.status == Truth::False && role != Role::Working {
        return None;
    }
    let reason = if role == Role::Working { sense(&c.reason) } else { None };
    let whole = if whole(name) { Force::Core } else { Force::Part };
    match (role, c.status) {
        (Role::Wrong, Truth::True) => Some((Sense::Bad, Force::Core)),
        (Role::Resting, Truth::True) => Some((Sense::Paused, whole)),
        (Role::Leaving, Truth::True) => Some((Sense::Leaving, Force::Core)),
        // `Progressing=True, NewReplicaSetAvailable` has arrived.
        (Role::Working, Truth::True) if reason == Some(Sense::Good) => None,
        (Role::Working, Truth::True | Truth::Unknown)
            if matches!(reason, Some(Sense::Paused | Sense::Bad)) =>
        {
            Some((reason?, Force::Core))
        }
        (Role::Working, Truth::True) => Some((Sense::Busy, whole)),
        // `Progressing=False, ProgressDeadlineExceeded` has given up.
        (Role::Working, Truth::False) if reason == Some(Sense::Bad) => Some((Sense::Bad, Force::Core)),
        _ => None,
    }
}

/// A boolean field: only its plainest names are taken at their word.
fn boolean(
    c: &Condition,
    name: &[&str],
    role: Role,
    below: bool,
    facts: &Facts,
) -> Option<(Sense, Force, Evidence)> {
    let plain = if below { Force::Hint } else { Force::Core };
    let said = |sense, force| Some((sense, force, Evidence::Said));
    match (role, c.status) {
        (Role::Verdict, Truth::True) => said(Sense::Good, plain),
        (Role::Core, Truth::True) => said(Sense::Good, plain.min(Force::Part)),
        (Role::Verdict, Truth::False) => {
            let (sense, evidence) = field_refusal(&c.name, name, below, facts);
            Some((sense, plain, evidence))
        }
        (Role::Core, Truth::False) if wrong_if_not(name) || matches!(&*c.name, "synced" | "applied") => {
            let (sense, evidence) = field_refusal(&c.name, name, below, facts);
            Some((sense, plain.min(Force::Part), evidence))
        }
        (Role::Wrong, Truth::True) => said(Sense::Bad, plain),
        (Role::Resting, Truth::True) if whole(name) => said(Sense::Paused, plain),
        (Role::Leaving, Truth::True) => said(Sense::Leaving, plain),
        _ => None,
    }
}

/// What a text says; `None` where the words are not known.
pub(super) fn word<'a>(word: &'a Word, facts: &Facts, kind: Kind) -> Option<Signal<'a>> {
    let (above, field) = word.path.rsplit_once('.').unwrap_or(("", &word.path));
    let top = above.is_empty();
    // `error.message` is as good as `errorMessage`.
    if !top && words(above, is_error) {
        return error(word, true, first_is_last(above));
    }
    words(field, |name| {
        if is_error(name) {
            return error(word, top, first(name) == "last");
        }
        if !states(name)
            && let Some(role) = Role::by(field, name)
        {
            return named(word, role, top, facts);
        }
        let force = if summary(&word.path) { Force::Core } else { Force::Hint };
        state(word, field, force, facts, kind)
    })
}

fn first_is_last(text: &str) -> bool {
    words(text, |words| first(words) == "last")
}

/// A text that is there only where something is wrong.
fn error(word: &Word, top: bool, last: bool) -> Option<Signal<'_>> {
    let none =
        matches!(&*word.word.to_ascii_lowercase(), "none" | "null" | "nil" | "n/a" | "-" | "0" | "false");
    let quiet = none || matches!(sense(&word.word), Some(Sense::Good));
    let force = if !top || last { Force::Hint } else { Force::Core };
    let (sense, evidence, source) = (Sense::Bad, Evidence::Said, Source::Word(word));
    (!quiet).then_some(Signal { sense, force, evidence, source })
}

/// A text that names a state.
fn state<'a>(word: &'a Word, field: &str, force: Force, facts: &Facts, kind: Kind) -> Option<Signal<'a>> {
    let signal =
        |sense, force| Some(Signal { sense, force, evidence: Evidence::Said, source: Source::Word(word) });
    words(&word.word, |said| match sense_of(&word.word, said)? {
        Sense::Good if kind == Kind::Run && !ends(said) && !concludes(field) => signal(Sense::Busy, force),
        Sense::Good if !word.word.contains(' ') && runs_something(&word.word) => signal(Sense::Busy, force),
        Sense::Good if begun(said) && (force == Force::Hint || said.len() > 1) => signal(Sense::Busy, force),
        // What the whole suffers from it says of a part.
        Sense::Bad if force == Force::Hint && field.starts_with("health") => signal(Sense::Bad, Force::Part),
        // `NotReady` with a message that tells why.
        Sense::Busy if force == Force::Core && negates(said) && complains(facts) => signal(Sense::Bad, force),
        sense => signal(sense, force),
    })
}

fn negates(text: &[&str]) -> bool {
    matches!(first(text), "not" | "no" | "unready")
}

fn complains(facts: &Facts) -> bool {
    facts.status.message.as_deref().and_then(message_sense) == Some(Sense::Bad)
}

/// Does a text in this field say how something ended, so that there is nothing left to run?
fn concludes(field: &str) -> bool {
    words(field, |field| matches!(last(field), "conclusion" | "outcome" | "result" | "verdict"))
}

/// Is this the name of a state, and not of something that is so or not?
fn states(field: &[&str]) -> bool {
    field.iter().all(|word| {
        matches!(
            *word,
            "phase"
                | "state"
                | "status"
                | "health"
                | "stage"
                | "condition"
                | "result"
                | "outcome"
                | "lifecycle"
                | "conclusion"
                // Whose state it is, or which: the object's own, and now.
                | "aggregate"
                | "cluster"
                | "current"
                | "operational"
                | "overall"
                | "printable"
                | "provisioning"
                | "resource"
        )
    })
}

/// Does the field sum the object up?
fn summary(path: &str) -> bool {
    path.split('.').all(|part| part == "summary" || words(part, states))
}

/// A text under the name of a condition: `ready: "True"`, `ready: 2/3`.
fn named<'a>(word: &'a Word, role: Role, top: bool, facts: &Facts) -> Option<Signal<'a>> {
    let force = if top && role == Role::Verdict { Force::Core } else { Force::Hint };
    let signal = |sense| Some(Signal { sense, force, evidence: Evidence::Said, source: Source::Word(word) });
    let numbers = word.word.split_once('/').map(|(n, m)| (n.trim().parse::<u32>(), m.trim().parse::<u32>()));
    match (Truth::of(&word.word), numbers) {
        (Truth::True, _) if role.positive() => signal(Sense::Good),
        (Truth::False, _) if role.positive() => {
            signal(words(&word.path, |path| field_refusal(&word.path, path, !top, facts).0))
        }
        (Truth::True, _) if role == Role::Wrong => signal(Sense::Bad),
        (Truth::True, _) if role == Role::Resting => signal(Sense::Paused),
        (Truth::Absent, Some((Ok(ready), Ok(all)))) if role.positive() => {
            signal(if ready >= all && all > 0 { Sense::Good } else { Sense::Busy })
        }
        (Truth::Absent, None) => {
            signal(sense(&word.word)?).map(|signal| Signal { force: Force::Hint, ..signal })
        }
        _ => None,
    }
}

/// How many of what is wanted are ready, where numbers tell both.
pub(super) fn counts(facts: &Facts) -> Option<Signal<'_>> {
    let status = &facts.status;
    let signal = |field, have: i64, of, want: i64| {
        let sense = if have < want { Sense::Busy } else { Sense::Good };
        let source = Source::Counts(field, have, of, want);
        Signal { sense, force: Force::Part, evidence: Evidence::Said, source }
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
            let rest = ["desired", "total", "expected", "matched"]
                .iter()
                .find_map(|p| name.strip_prefix(p))
                .unwrap_or(name);
            name != &*have.name && rest.eq_ignore_ascii_case(noun)
        };
        let want = facts.spec.counts.iter().chain(status).find(|count| wanted(&count.name))?;
        let sense = if have.value < want.value { Sense::Busy } else { Sense::Good };
        let source = Source::Counts(&have.name, have.value, &want.name, want.value);
        Some(Signal { sense, force: Force::Part, evidence: Evidence::Said, source })
    })
}
