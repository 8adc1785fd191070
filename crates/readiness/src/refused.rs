//! A workload that lacks pods because the API server refuses them: a quota, a limit range, an admission policy.
//!
//! Of a StatefulSet, a DaemonSet and a Job no condition says so. Their controllers say it in Events, which stay behind for an
//! hour after they have stopped being true: so what an old one says must still hold to count.

use std::time::Duration;

use crate::assess::{Limits, stale};
use crate::facts::Facts;
use crate::kind::Kind;
use crate::text::Text;
use crate::{Assessment, Level, Reason, Time, Verdict};

/// Who is refused tries again after 1,000 s at the latest (the longest wait of client-go's work queues), and an Event about it
/// may be held back for 300 s (client-go lets one through in that time). What was last said longer ago is not said any more.
const SAID_AGAIN: Duration = Duration::from_secs(1_500);

/// What a controller said of creating something that a workload needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it said so first.
    pub first: Time,
    /// When it said so last: the same words may have been said in between, and something else.
    pub last: Time,
    /// Why it could not; `None` where it could.
    pub refused: Option<Text>,
}

/// What is known beside these words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lack {
    /// What time it is where the words come from.
    pub now: Time,
    /// When the youngest of the workload's pods was created.
    pub youngest: Option<Time>,
    /// When the workload was seen to stop being ready. What was said before it was said of another lack.
    pub since: Option<Time>,
}

/// Should its controller be creating pods for it? `any`: there is a pod of it.
///
/// Of kinds whose own conditions say what was refused this is not asked.
pub fn lacks_pods(kind: Kind, f: &Facts, any: bool) -> bool {
    let s = &f.status;
    let wanted = match kind {
        Kind::StatefulSet => f.spec.replicas.or(Some(1)),
        Kind::DaemonSet => s.desired,
        Kind::Job => Some(at_once(f)),
        _ => return false,
    };
    // Numbers of another generation do not count what is wanted now; that there is nothing needs no number.
    if !any {
        return wanted != Some(0);
    }
    let have = if kind == Kind::Job { s.active } else { s.replicas };
    stale(f).is_none() && wanted.is_some_and(|wanted| have.unwrap_or(0) < wanted)
}

/// How many pods of a Job should run now. Without a number of completions, none is added after the first that succeeded.
fn at_once(f: &Facts) -> i64 {
    let (active, succeeded) = (f.status.active.unwrap_or(0), f.status.succeeded.unwrap_or(0));
    let parallelism = f.spec.parallelism.unwrap_or(1);
    match f.spec.completions {
        Some(completions) => parallelism.min(completions - succeeded),
        None if succeeded > 0 => active,
        None => parallelism,
    }
}

/// What a workload that lacks pods is told to be by what its controller said: stuck, once it has been refused for longer than
/// the limit without anything being created in between.
///
/// Moments are whole seconds. Within one a creation counts as the later: whoever is still refused says so again.
pub fn refused(said: &[Attempt], lack: Lack, limits: &Limits) -> Option<Assessment> {
    let created = said.iter().filter(|attempt| attempt.refused.is_none()).map(|attempt| attempt.last);
    let created = created.chain(lack.youngest).max();
    let stands = |attempt: &&Attempt| created.is_none_or(|created| attempt.last > created);
    let words = said.iter().filter(stands).filter_map(|a| Some((a.first, a.last, a.refused.as_ref()?)));
    let last = words.clone().map(|(_, last, _)| last).max()?;
    if lack.now - last > SAID_AGAIN {
        return None;
    }
    // The oldest word, so that the next try says the same.
    let (first, _, why) = words.min_by_key(|(first, _, why)| (*first, why.to_string()))?;
    let since = [Some(first), created, lack.since].into_iter().flatten().max()?;
    let reason = Reason::ReplicaFailure(why.clone());
    let stuck = Verdict { level: Level::Stuck, reason: reason.clone() };
    let then = Some(Box::new((since + limits.pending, stuck)));
    Some(Assessment { verdict: Verdict { level: Level::Progressing, reason }, then })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Spec, Status};

    const LIMIT: i64 = 600;

    fn at(second: i64) -> Time {
        Time(second * 1_000)
    }

    fn denied(first: i64, last: i64, why: &str) -> Attempt {
        Attempt { first: at(first), last: at(last), refused: Some(Text::new(why)) }
    }

    fn created(second: i64) -> Attempt {
        Attempt { first: at(second), last: at(second), refused: None }
    }

    /// Since when it counts, in seconds, and why; `None` where it does not count.
    fn counts(said: &[Attempt], lack: Lack) -> Option<(i64, String)> {
        let found = refused(said, lack, &Limits::default())?;
        let (stuck, then) = *found.then?;
        assert_eq!((found.verdict.level, then.level), (Level::Progressing, Level::Stuck));
        assert_eq!(found.verdict.reason, then.reason);
        Some((stuck.0 / 1_000 - LIMIT, then.reason.to_string()))
    }

    const NOW: Lack = Lack { now: Time(2_000_000), youngest: None, since: None };

    fn quota() -> Attempt {
        denied(1_000, 1_900, "quota")
    }

    #[test]
    fn only_a_refusal_that_still_stands_counts() {
        let came = Lack { youngest: Some(at(1_950)), ..NOW };
        let later = |second| Lack { now: at(second), ..NOW };
        for (what, said, lack, expected) in [
            ("nothing was said", vec![], NOW, false),
            ("it is refused", vec![quota()], NOW, true),
            ("one was created before", vec![created(900), quota()], NOW, true),
            ("one was created after", vec![quota(), created(1_901)], NOW, false),
            ("or in the same second", vec![quota(), created(1_900)], NOW, false),
            ("or is there, and nothing was said of it", vec![quota()], came, false),
            ("just said again in time", vec![quota()], later(3_400), true),
            ("not said any more", vec![quota()], later(3_401), false),
            ("by a clock that is ahead", vec![quota()], later(1), true),
        ] {
            assert_eq!(counts(&said, lack).is_some(), expected, "{what}");
        }
    }

    #[test]
    fn it_counts_from_when_it_began_and_in_its_first_words() {
        let unready = |second| Lack { since: Some(at(second)), ..NOW };
        let over = || vec![denied(1_000, 1_100, "a"), created(1_400), denied(1_500, 1_900, "b")];
        for (what, said, lack, expected) in [
            ("as it was said", vec![quota()], NOW, (1_000, "quota")),
            ("as at first", vec![denied(1_500, 1_900, "b"), denied(1_200, 1_210, "a")], NOW, (1_200, "a")),
            ("said at once", vec![denied(1_200, 1_900, "b"), denied(1_200, 1_900, "a")], NOW, (1_200, "a")),
            ("created between, and refused again", vec![quota(), created(1_400)], NOW, (1_400, "quota")),
            ("what was refused before the last creation is over", over(), NOW, (1_500, "b")),
            ("it was ready until then", vec![quota()], unready(1_800), (1_800, "quota")),
            ("not ready for longer", vec![quota()], unready(1), (1_000, "quota")),
        ] {
            assert_eq!(counts(&said, lack), Some((expected.0, expected.1.to_owned())), "{what}");
        }
    }

    fn facts(generation: i64, spec: Spec, status: Status) -> Facts {
        Facts { generation: Some(generation), spec, status, ..Facts::default() }
    }

    #[test]
    fn a_stateful_set_lacks_what_is_not_created_and_a_daemon_set_what_has_no_node() {
        let set = |replicas, have| {
            let status = Status { observed: Some(1), replicas: have, desired: replicas, ..Status::default() };
            facts(1, Spec { replicas, ..Spec::default() }, status)
        };
        for kind in [Kind::StatefulSet, Kind::DaemonSet] {
            for (what, of, any, expected) in [
                ("some", set(Some(3), Some(1)), true, true),
                ("all are there", set(Some(3), Some(3)), true, false),
                ("too many", set(Some(1), Some(2)), true, false),
                ("none", set(Some(3), None), false, true),
                ("none is wanted", set(Some(0), None), false, false),
                ("as of an older spec", Facts { generation: Some(2), ..set(Some(3), Some(1)) }, true, false),
                ("none, whatever the spec", Facts { generation: Some(2), ..set(Some(3), None) }, false, true),
            ] {
                assert_eq!(lacks_pods(kind, &of, any), expected, "{kind:?}: {what}");
            }
        }
        assert!(
            lacks_pods(Kind::DaemonSet, &facts(1, Spec::default(), Status::default()), false),
            "not yet seen"
        );
        assert!(
            !lacks_pods(Kind::DaemonSet, &facts(1, Spec::default(), Status::default()), true),
            "not yet seen"
        );
        for kind in [Kind::Deployment, Kind::ReplicaSet, Kind::Pod, Kind::Other] {
            assert!(!lacks_pods(kind, &set(Some(3), Some(1)), false), "{kind:?} has conditions of its own");
        }
    }

    #[test]
    fn a_job_lacks_what_should_run_beside_what_runs() {
        let job = |parallelism, completions, active, succeeded| {
            let spec = Spec { completions, parallelism, ..Spec::default() };
            facts(1, spec, Status { active, succeeded, ..Status::default() })
        };
        for (what, of, expected) in [
            ("one of three runs", job(Some(3), Some(3), Some(1), None), true),
            ("all three run", job(Some(3), Some(3), Some(3), None), false),
            ("two are done, one runs", job(Some(3), Some(3), Some(1), Some(2)), false),
            ("one is done, one of two runs", job(Some(3), Some(3), Some(1), Some(1)), true),
            ("one at a time", job(None, Some(5), Some(1), Some(2)), false),
            ("between two", job(None, Some(5), None, Some(2)), true),
            ("a queue of three workers", job(Some(3), None, Some(1), None), true),
            ("whose first has found it empty", job(Some(3), None, Some(1), Some(1)), false),
            ("none is wanted", job(Some(0), Some(3), None, None), false),
        ] {
            assert_eq!(lacks_pods(Kind::Job, &of, true), expected, "{what}");
        }
    }
}
