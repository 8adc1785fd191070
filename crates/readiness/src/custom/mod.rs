//! Custom resources that nobody wrote a rule for: what do their conventional conditions and fields say together?

mod lexicon;
mod names;
mod signal;
mod tokens;

pub use names::{counts, now, tells, tells_within, weight};

use lexicon::{Sense, failed};
use names::Role;
use signal::{Evidence, Force, Signal, Source};

use crate::assess::{Ruling, stale};
use crate::branch::Branch;
use crate::facts::{Condition, Facts, Truth};
use crate::kind::Kind;
use crate::reason::Counted;
use crate::text::Text;
use crate::{Level, Reason};

/// Suspended → another generation → stalled or at work → all that it says, the worst that matters first → no signal.
pub(crate) fn judge(kind: Kind, f: &Facts) -> Ruling<'_> {
    if let Some(suspended) = suspended(f) {
        return suspended;
    }
    if let Some(ruling) = stale(f).or_else(|| abnormal(f)) {
        return ruling;
    }
    let mut signals: Vec<Signal<'_>> =
        Vec::with_capacity(f.status.conditions.len() + f.status.words.len() + 1);
    signals.extend(f.status.conditions.iter().filter_map(|c| signal::condition(c, f, kind)));
    signals.extend(f.status.words.iter().filter_map(|w| signal::word(w, f, kind)));
    signals.extend(signal::counts(f));
    doubt(&mut signals);
    let best = signals.iter().filter(|s| s.sense == Sense::Good).map(|s| s.force).max();
    let worst = signals.iter().filter(|s| s.sense != Sense::Good && matters(s, best));
    if let Some(worst) = worst.max_by_key(|s| (severity(s.sense), s.force, first_wins(s, &signals))) {
        return trouble(worst, f);
    }
    match best {
        Some(force) if force != Force::Step => well(force, &signals),
        _ => silent(f, &signals),
    }
}

/// Takes back what was only inferred where the object says better.
fn doubt(signals: &mut Vec<Signal<'_>>) {
    let summary = |sense| {
        move |s: &Signal<'_>| {
            s.sense == sense && s.force >= Force::Core && matches!(s.source, Source::Word(_))
        }
    };
    // A phase that is on its way, or at rest, says why a condition does not hold yet.
    let busy = signals.iter().any(summary(Sense::Busy)) || signals.iter().any(summary(Sense::Paused));
    let paused = |s: &Signal<'_>| s.sense == Sense::Paused && matches!(s.source, Source::Word(_));
    let paused = signals.iter().any(paused);
    signals.retain(|s| match s.evidence {
        Evidence::Name => !busy && !paused,
        Evidence::Message => !paused,
        Evidence::Said => true,
    });
    // Conditions that tell a history: a step that was over before it became ready, and the phase agrees.
    let ready = signals.iter().find_map(|s| match s.source {
        Source::Condition(c) if s.sense == Sense::Good && s.force == Force::Verdict => c.since,
        _ => None,
    });
    if let Some(ready) = ready.filter(|_| signals.iter().any(summary(Sense::Good))) {
        signals.retain(|s| match s.source {
            Source::Condition(c) if s.sense == Sense::Busy && c.status == Truth::True => {
                c.since.is_none_or(|since| since >= ready)
            }
            _ => true,
        });
    }
}

/// A controller that is told to rest may never look at this generation, so this comes first.
fn suspended(f: &Facts) -> Option<Ruling<'_>> {
    if f.spec.suspended == Some(true) {
        return Some(Ruling::suspended(Reason::Suspended, Branch::Fact("spec.suspend is true")));
    }
    let paused = f.spec.paused == Some(true);
    paused.then(|| Ruling::suspended(Reason::Paused, Branch::Fact("spec.paused is true")))
}

/// The two conditions that mean the same for every kind.
pub(crate) fn abnormal(f: &Facts) -> Option<Ruling<'_>> {
    if let Some(c) = f.status.holds("Stalled") {
        return Some(Ruling::failed(Reason::SaysFailed(quote(c)), Branch::Condition(c)));
    }
    let c = f.status.holds("Reconciling")?;
    Some(Ruling::progressing(Reason::SaysProgressing(quote(c)), Branch::Condition(c)))
}

/// How bad it is; what is wrong outweighs a pause, a pause outweighs being late.
fn severity(sense: Sense) -> u8 {
    match sense {
        Sense::Bad => 5,
        Sense::Paused => 4,
        Sense::Leaving => 3,
        Sense::Busy => 2,
        Sense::Unknown => 1,
        Sense::Good => 0,
    }
}

/// Of equals the first one, in the object's own order.
fn first_wins(signal: &Signal<'_>, all: &[Signal<'_>]) -> std::cmp::Reverse<usize> {
    std::cmp::Reverse(all.iter().position(|s| std::ptr::eq(s, signal)).unwrap_or(usize::MAX))
}

/// Does this stand against the best that the object says of itself?
fn matters(signal: &Signal<'_>, best: Option<Force>) -> bool {
    match (best, signal.sense) {
        (Some(Force::Verdict), Sense::Bad) => signal.force >= Force::Part,
        (Some(Force::Core), Sense::Busy) => signal.force != Force::Step,
        (Some(Force::Verdict), _)
        | (Some(Force::Core | Force::Part), Sense::Paused | Sense::Leaving | Sense::Unknown) => {
            signal.force >= Force::Core
        }
        _ => true,
    }
}

fn trouble<'a>(signal: &Signal<'a>, f: &'a Facts) -> Ruling<'a> {
    let (text, branch) = match signal.source {
        Source::Stale(c) => {
            let branch = Branch::Generation { at: Some(c), observed: c.observed, generation: f.generation };
            return Ruling::progressing(Reason::StaleGeneration, branch);
        }
        Source::Counts(field, have, of, want) => {
            let count = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
            let reason = Reason::Count(Counted::Ready, count(have), count(want));
            return Ruling::progressing(reason, Branch::Counts(field, have, of, want));
        }
        Source::Condition(c) => (quote(c), Branch::Condition(c)),
        Source::Word(w) => {
            let path = if w.path.is_empty() { "status" } else { &*w.path };
            (Text::foreign(&format!("{path} {}", w.word)), Branch::Word(w))
        }
    };
    match signal.sense {
        Sense::Bad if terminal(signal) => Ruling::failed(Reason::SaysFailed(text), branch),
        Sense::Bad => match (&f.status.reason, signal.source) {
            (Some(reason), Source::Word(w)) if !reason.is_empty() => {
                let text = Text::foreign(&format!("{} {}: {reason}", w.path, w.word));
                Ruling::failed(Reason::SaysError(text), branch)
            }
            _ => Ruling::failed(Reason::SaysError(text), branch),
        },
        Sense::Paused => Ruling::suspended(Reason::SaysSuspended(text), branch),
        Sense::Leaving => Ruling::new(Level::Terminating, Reason::SaysTerminating(text), branch),
        Sense::Unknown => Ruling::unknown(Reason::SaysUnknown(text), branch),
        Sense::Busy | Sense::Good => Ruling::progressing(Reason::SaysProgressing(text), branch),
    }
}

/// Does it say that it failed, not only that something is wrong?
fn terminal(signal: &Signal<'_>) -> bool {
    match signal.source {
        Source::Condition(c) if c.status == Truth::True => {
            failed(&c.name) && Role::of(&c.name) == Some(Role::Wrong)
        }
        Source::Condition(c) => &*c.name == "Succeeded",
        Source::Word(w) => signal.force >= Force::Core && failed(&w.word),
        Source::Stale(_) | Source::Counts(..) => false,
    }
}

fn well<'a>(force: Force, signals: &[Signal<'a>]) -> Ruling<'a> {
    let good = signals.iter().find(|s| s.sense == Sense::Good && s.force == force).map(|s| s.source);
    match good {
        Some(Source::Counts(field, have, of, want)) => {
            let reason = if want == 0 { Reason::ScaledToZero } else { Reason::Ready };
            Ruling::ready(reason, Branch::Counts(field, have, of, want))
        }
        Some(Source::Condition(c) | Source::Stale(c)) => Ruling::ready(Reason::Ready, Branch::Condition(c)),
        Some(Source::Word(w)) => Ruling::ready(Reason::Ready, Branch::Word(w)),
        None => Ruling::unknown(Reason::NoSignal, Branch::Nothing),
    }
}

/// Nothing that it says decides. Not to be at work on the current generation is a sign; a first step alone is none.
fn silent<'a>(f: &'a Facts, signals: &[Signal<'a>]) -> Ruling<'a> {
    let current = f.status.observed.is_some() && f.status.observed == f.generation;
    let at_rest = |c: &&Condition| c.status == Truth::False && Role::of(&c.name) == Some(Role::Working);
    if let Some(Source::Condition(step)) = signals.first().map(|s| s.source) {
        return Ruling::progressing(Reason::SaysProgressing(quote(step)), Branch::Condition(step));
    }
    match f.status.conditions.iter().find(at_rest) {
        Some(rests) if current => Ruling::ready(Reason::Ready, Branch::Condition(rests)),
        _ => match f.status.words.first() {
            Some(word) => {
                let text = Text::foreign(&format!("{} {}", word.path, word.word));
                Ruling::unknown(Reason::SaysUnknown(text), Branch::Word(word))
            }
            None => Ruling::unknown(Reason::NoSignal, Branch::Nothing),
        },
    }
}

/// What a condition says, in a few words: its reason, or else its message.
fn quote(c: &Condition) -> Text {
    let name = &c.name;
    let status = if c.status == Truth::True { String::new() } else { format!("={}", c.status.word()) };
    match (&*c.reason, &*c.message) {
        ("", "") => Text::new(&format!("{name}{status}")),
        ("", message) => Text::foreign(&format!("{name}{status}: {message}")),
        (reason, _) => Text::new(&format!("{name}{status}: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::facts::{Place, Status, Word};

    fn condition(name: &'static str, status: Truth, reason: &str, since: i64) -> Condition {
        let (place, since) = (Place::Conditions, Some(Time(since)));
        Condition { name: name.into(), status, reason: reason.into(), place, since, ..Condition::default() }
    }

    fn facts(phase: &str, conditions: Vec<Condition>) -> Facts {
        let words = vec![Word { path: "phase".into(), word: phase.into() }];
        Facts { status: Status { present: true, conditions, words, ..Status::default() }, ..Facts::default() }
    }

    fn level(facts: &Facts) -> Level {
        judge(Kind::Other, facts).assessment.verdict.level
    }

    #[test]
    fn conditions_that_tell_a_history_are_read_as_one() {
        let history = |started, ready| {
            vec![
                condition("initializing", Truth::True, "", started),
                condition("ready", Truth::True, "", ready),
            ]
        };
        assert_eq!(level(&facts("ready", history(1, 2))), Level::Ready);
        // What began after it was ready is going on.
        assert_eq!(level(&facts("ready", history(2, 1))), Level::Progressing);
        // The phase does not agree that it is over.
        assert_eq!(level(&facts("initializing", history(1, 2))), Level::Progressing);
    }

    #[test]
    fn a_phase_says_why_something_does_not_hold_yet_unless_the_condition_says_it_itself() {
        let unhealthy = |reason: &str| vec![condition("Healthy", Truth::False, reason, 1)];
        assert_eq!(level(&facts("Progressing", unhealthy(""))), Level::Progressing);
        assert_eq!(level(&facts("Paused", unhealthy(""))), Level::Suspended);
        assert_eq!(level(&facts("Progressing", unhealthy("ProbeFailed"))), Level::Failed);
        assert_eq!(level(&facts("Running", unhealthy(""))), Level::Failed);
    }
}
