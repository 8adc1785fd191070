//! Workloads that lack pods because the API server refuses them: a quota, a limit range, an admission policy.
//!
//! A StatefulSet, a DaemonSet or a Job has no condition for this. Their controllers report it in Events, which remain
//! for an hour after they have stopped being true, so an old Event counts only if it must still hold.

use std::time::Duration;

use crate::facts::Facts;
use crate::kind::RuleKind;
use crate::stale_generation::rule_on_stale_generation;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Assessment, Level, Reason, Time, Verdict};

/// Oldest refusal that still counts. A refused controller retries after 1,000 s at the latest (the longest delay of
/// client-go's work queues), and an Event about it may be delayed by 300 s (client-go lets one through in that time). A
/// refusal that was last reported longer ago no longer holds.
const MAX_REFUSAL_EVENT_AGE: Duration = Duration::from_secs(1_500);

/// One Event series of a controller about creating an object that a workload needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCreationAttempt {
    /// Time of the first Event.
    pub first: Time,
    /// Time of the last Event; the controller may have reported other results in between.
    pub last: Time,
    /// Reason for the refusal; `None` if the creation succeeded.
    pub refused: Option<BoundedText>,
}

/// Facts about the workload that decide whether the Events still hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodShortage {
    /// Current time on the clock that the Events were written by.
    pub now: Time,
    /// Creation time of the workload's youngest pod.
    pub youngest: Option<Time>,
    /// Time since which the workload has not been ready. Earlier Events are about an earlier shortage.
    pub since: Option<Time>,
}

/// Returns `true` if the controller should be creating pods for the workload. `any`: the workload has at least one pod.
///
/// Returns `false` for kinds whose own conditions report refusals.
pub fn lacks_pods(kind: RuleKind, f: &Facts, any: bool) -> bool {
    let s = &f.status;
    let wanted = match kind {
        RuleKind::StatefulSet => f.spec.replicas.or(Some(1)),
        RuleKind::DaemonSet => s.desired,
        RuleKind::Job => Some(wanted_concurrent_pods(f)),
        _ => return false,
    };
    // Counts of another generation do not apply to the current spec; the absence of all pods needs no count.
    if !any {
        return wanted != Some(0);
    }
    let have = if kind == RuleKind::Job { s.active } else { s.replicas };
    rule_on_stale_generation(f).is_none() && wanted.is_some_and(|wanted| have.unwrap_or(0) < wanted)
}

/// Number of pods of a Job that should run now. Without `completions`, none is added after the first that succeeded.
fn wanted_concurrent_pods(f: &Facts) -> i64 {
    let (active, succeeded) = (f.status.active.unwrap_or(0), f.status.succeeded.unwrap_or(0));
    let parallelism = f.spec.parallelism.unwrap_or(1);
    match f.spec.completions {
        Some(completions) => parallelism.min(completions.saturating_sub(succeeded)),
        None if succeeded > 0 => active,
        None => parallelism,
    }
}

/// Assesses a workload that lacks pods by the Events of its controller: stuck once it has been refused for longer than
/// the limit without a successful creation in between.
///
/// Times are whole seconds. Within one second a creation counts as the later one: a controller that is still refused
/// reports it again.
pub fn assess_refused_pods(
    said: &[PodCreationAttempt],
    lack: PodShortage,
    limits: &StuckLimits,
) -> Option<Assessment> {
    let created = said.iter().filter(|attempt| attempt.refused.is_none()).map(|attempt| attempt.last);
    let created = created.chain(lack.youngest).max();
    let stands = |attempt: &&PodCreationAttempt| created.is_none_or(|created| attempt.last > created);
    let words = said.iter().filter(stands).filter_map(|a| Some((a.first, a.last, a.refused.as_ref()?)));
    let last = words.clone().map(|(_, last, _)| last).max()?;
    if lack.now - last > MAX_REFUSAL_EVENT_AGE {
        return None;
    }
    // The oldest reason, so that the next attempt gives the same text.
    let (first, _, why) = words.min_by_key(|(first, _, why)| (*first, why.to_string()))?;
    let since = [Some(first), created, lack.since].into_iter().flatten().max()?;
    let reason = Reason::ReplicaFailure(why.clone());
    let stuck = Verdict::new(Level::Stuck, reason.clone());
    let then = Some(Box::new((since + limits.pending, stuck)));
    Some(Assessment { verdict: Verdict::new(Level::Progressing, reason), then })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{SpecFacts, StatusFacts};

    const PENDING_LIMIT_SECONDS: i64 = 600;

    fn at(second: i64) -> Time {
        Time(second * 1_000)
    }

    fn denied(first: i64, last: i64, why: &str) -> PodCreationAttempt {
        PodCreationAttempt { first: at(first), last: at(last), refused: Some(BoundedText::new(why)) }
    }

    fn created(second: i64) -> PodCreationAttempt {
        PodCreationAttempt { first: at(second), last: at(second), refused: None }
    }

    /// Start of the refusal in seconds and its reason; `None` if it does not count.
    fn counts(said: &[PodCreationAttempt], lack: PodShortage) -> Option<(i64, String)> {
        let found = assess_refused_pods(said, lack, &StuckLimits::default())?;
        let (stuck, then) = *found.then?;
        assert_eq!((found.verdict.level, then.level), (Level::Progressing, Level::Stuck));
        assert_eq!(found.verdict.reason, then.reason);
        Some((stuck.0 / 1_000 - PENDING_LIMIT_SECONDS, then.reason.to_string()))
    }

    const NOW: PodShortage = PodShortage { now: Time(2_000_000), youngest: None, since: None };

    fn quota() -> PodCreationAttempt {
        denied(1_000, 1_900, "quota")
    }

    #[test]
    fn only_a_refusal_that_still_stands_counts() {
        let came = PodShortage { youngest: Some(at(1_950)), ..NOW };
        let later = |second| PodShortage { now: at(second), ..NOW };
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
        let unready = |second| PodShortage { since: Some(at(second)), ..NOW };
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

    fn facts(generation: i64, spec: SpecFacts, status: StatusFacts) -> Facts {
        Facts { generation: Some(generation), spec, status, ..Facts::default() }
    }

    #[test]
    fn a_stateful_set_lacks_what_is_not_created_and_a_daemon_set_what_has_no_node() {
        let set = |replicas, have| {
            let status = StatusFacts {
                observed: Some(1),
                replicas: have,
                desired: replicas,
                ..StatusFacts::default()
            };
            facts(1, SpecFacts { replicas, ..SpecFacts::default() }, status)
        };
        for kind in [RuleKind::StatefulSet, RuleKind::DaemonSet] {
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
            lacks_pods(RuleKind::DaemonSet, &facts(1, SpecFacts::default(), StatusFacts::default()), false),
            "not yet seen"
        );
        assert!(
            !lacks_pods(RuleKind::DaemonSet, &facts(1, SpecFacts::default(), StatusFacts::default()), true),
            "not yet seen"
        );
        for kind in [RuleKind::Deployment, RuleKind::ReplicaSet, RuleKind::Pod, RuleKind::Other] {
            assert!(!lacks_pods(kind, &set(Some(3), Some(1)), false), "{kind:?} has conditions of its own");
        }
    }

    #[test]
    fn a_job_lacks_what_should_run_beside_what_runs() {
        let job = |parallelism, completions, active, succeeded| {
            let spec = SpecFacts { completions, parallelism, ..SpecFacts::default() };
            facts(1, spec, StatusFacts { active, succeeded, ..StatusFacts::default() })
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
            assert_eq!(lacks_pods(RuleKind::Job, &of, true), expected, "{what}");
        }
    }
}
