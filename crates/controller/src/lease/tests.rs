//! Elections, told in sentences; and two candidates over one lease for many seeds.

use super::*;

const ME: &str = "me";

fn lease(holder: &str, renewed: i64) -> Record {
    Record {
        holder: holder.to_owned(),
        renewed: renewed.to_string(),
        transitions: 3,
        duration: PACE.lease,
        version: renewed.to_string(),
    }
}

fn at(seconds: i64) -> Time {
    Time(1_800_000_000_000 + seconds * 1_000)
}

fn candidate() -> Election {
    Election::new(ME.to_owned(), PACE)
}

/// Hears an answer to what was asked at the same moment.
fn hear(election: &mut Election, answer: Answer, now: Time) {
    election.hear(answer, now, now);
}

fn leader() -> Election {
    let mut election = candidate();
    hear(&mut election, Answer::Written(lease(ME, 0)), at(0));
    election
}

fn claim(version: i64, transitions: i32) -> Ask {
    Ask::Claim { version: version.to_string(), transitions }
}

#[test]
fn where_there_is_no_lease_it_is_made() {
    let mut election = candidate();
    assert_eq!(election.ask(at(0)), Ask::Look);
    hear(&mut election, Answer::Absent, at(0));
    assert_eq!((election.ask(at(0)), election.next()), (Ask::Create, at(0)));
    assert_eq!(election.leads_until(), None);
    hear(&mut election, Answer::Written(lease(ME, 0)), at(0));
    assert_eq!(election.leads_until(), Some(at(10)));
    assert_eq!(election.next(), at(2));
}

#[test]
fn a_lease_that_was_given_up_is_taken_at_once() {
    let mut election = candidate();
    hear(&mut election, Answer::Found(lease("", 0)), at(0));
    assert_eq!((election.ask(at(0)), election.next()), (claim(0, 4), at(0)));
}

#[test]
fn a_lease_of_somebody_else_is_taken_once_it_has_not_changed_for_its_duration() {
    let mut election = candidate();
    for second in 0..15 {
        hear(&mut election, Answer::Found(lease("other", 7)), at(second));
        assert_eq!(election.ask(at(second)), Ask::Look, "{second}");
        assert_eq!(election.next(), at(second + 1));
    }
    hear(&mut election, Answer::Found(lease("other", 7)), at(15));
    assert_eq!(election.ask(at(15)), claim(7, 4));
}

#[test]
fn each_sign_of_life_begins_it_anew_and_the_clock_of_the_other_says_nothing() {
    let mut election = candidate();
    hear(&mut election, Answer::Found(lease("other", -1_000_000)), at(0));
    assert_eq!(election.ask(at(14)), Ask::Look, "a time far in the past is no reason");
    hear(&mut election, Answer::Found(lease("other", 9_000_000)), at(14));
    assert_eq!(election.ask(at(28)), Ask::Look);
    assert!(matches!(election.ask(at(29)), Ask::Claim { .. }), "a time far in the future is none either");
}

#[test]
fn a_label_on_the_lease_is_no_sign_of_life() {
    let mut election = candidate();
    hear(&mut election, Answer::Found(lease("other", 7)), at(0));
    let labelled = Record { version: "8".to_owned(), ..lease("other", 7) };
    hear(&mut election, Answer::Found(labelled), at(14));
    assert_eq!(election.ask(at(15)), claim(8, 4));
}

#[test]
fn who_cannot_renew_stops_before_anybody_else_may_begin() {
    let mut election = leader();
    for second in [2, 4, 6, 8] {
        hear(&mut election, Answer::Failed, at(second));
        assert_eq!(election.next(), at(second + 2));
    }
    assert_eq!(election.leads_until(), Some(at(10)));
    // Another has seen its last renewal no earlier than it was asked for.
    let mut other = Election::new("other".to_owned(), PACE);
    hear(&mut other, Answer::Found(lease(ME, 0)), at(0));
    assert_eq!(other.ask(at(14)), Ask::Look);
}

#[test]
fn what_was_answered_late_counts_from_when_it_was_asked() {
    let mut election = leader();
    election.hear(Answer::Written(lease(ME, 2)), at(2), at(6));
    assert_eq!(election.leads_until(), Some(at(12)));
    assert_eq!(election.next(), at(4), "it is due already");
}

#[test]
fn who_sees_that_another_holds_it_leads_no_more() {
    let mut election = leader();
    hear(&mut election, Answer::Conflict, at(2));
    assert_eq!(election.ask(at(2)), Ask::Look);
    assert_eq!(
        election.leads_until(),
        Some(at(10)),
        "a conflict alone says nothing: somebody may have labelled it"
    );
    hear(&mut election, Answer::Found(lease("other", 2)), at(2));
    assert_eq!((election.leads_until(), election.ask(at(2))), (None, Ask::Look));
}

#[test]
fn a_lease_that_was_deleted_is_led_by_nobody_until_it_is_made_anew() {
    let mut election = leader();
    hear(&mut election, Answer::Absent, at(2));
    assert_eq!((election.leads_until(), election.ask(at(2))), (None, Ask::Create));
    hear(&mut election, Answer::Conflict, at(2));
    assert_eq!(election.ask(at(2)), Ask::Look, "somebody else made it");
}

#[test]
fn a_claim_whose_answer_was_lost_is_known_again_by_its_holder() {
    let mut election = candidate();
    hear(&mut election, Answer::Found(lease("", 0)), at(0));
    hear(&mut election, Answer::Failed, at(5));
    assert_eq!(election.leads_until(), None);
    hear(&mut election, Answer::Conflict, at(6));
    hear(&mut election, Answer::Found(lease(ME, 1)), at(6));
    assert_eq!(election.leads_until(), None, "it is not known how long ago that was");
    assert_eq!(election.ask(at(6)), claim(1, 3));
}

#[test]
fn a_lease_without_a_duration_holds_as_long_as_ours() {
    let read = |seconds| {
        let spec = LeaseSpec { lease_duration_seconds: seconds, ..LeaseSpec::default() };
        record(&Lease { spec: Some(spec), ..Lease::default() }).duration
    };
    assert_eq!([read(None), read(Some(0)), read(Some(-5))], [PACE.lease; 3]);
    assert_eq!(read(Some(60)), Duration::from_secs(60));
}

/// One replica: its candidate, a clock that is wrong by so much, and a request under way.
struct Replica {
    election: Election,
    skew: Duration,
    asked: Option<(Ask, Time, i64)>,
    paused_until: i64,
}

/// One Lease, two replicas, virtual milliseconds. Requests and answers are slow or lost, processes freeze, clocks are off.
/// Whatever happens, never may two begin to write; and once all is well, one leads.
#[test]
fn two_never_write_at_once() {
    let mut handovers = 0;
    for seed in 0..300 {
        handovers += play(Seed(seed));
    }
    assert!(handovers > 300, "nothing happened: {handovers} handovers");
}

fn play(seed: Seed) -> usize {
    let mut draw = 0;
    let mut dice = move |below: u64| {
        draw += 1;
        seed.number(draw) % below
    };
    let (mut stored, mut version): (Option<Record>, i64) = (None, 0);
    let mut replicas: Vec<Replica> = (0..2)
        .map(|at| Replica {
            election: Election::new(format!("r{at}"), PACE),
            skew: Duration::from_secs(dice(100_000)),
            asked: None,
            paused_until: 0,
        })
        .collect();
    let (mut leader, mut handovers) = (None, 0);
    for now in (0..240_000_i64).step_by(50) {
        let faults = now < 180_000;
        for (at, replica) in replicas.iter_mut().enumerate() {
            if faults && dice(600) == 0 {
                replica.paused_until = now + dice(30_000) as i64;
            }
            if now < replica.paused_until {
                continue;
            }
            let local = at_millis(now) + replica.skew;
            if replica.asked.is_none() && replica.election.next() <= local {
                let slow = if faults && dice(4) == 0 { dice(12_000) } else { dice(100) };
                replica.asked = Some((replica.election.ask(local), local, now + slow as i64));
            }
            if let Some((ask, asked, due)) = replica.asked.take() {
                if due > now {
                    replica.asked = Some((ask, asked, due));
                    continue;
                }
                let answer = serve(&mut stored, &mut version, &ask, &format!("r{at}"));
                let lost = faults && dice(10) == 0;
                let answer = if lost { Answer::Failed } else { answer };
                replica.election.hear(answer, asked, local);
            }
        }
        let writes = |r: &Replica| {
            r.paused_until <= now
                && r.election.leads_until().is_some_and(|until| at_millis(now) + r.skew < until)
        };
        let writing: Vec<usize> = (0..2).filter(|at| writes(&replicas[*at])).collect();
        assert!(writing.len() < 2, "seed {seed:?}, {now} ms: both may write");
        if let [one] = writing[..] {
            handovers += usize::from(leader.replace(one) != Some(one));
        }
        assert!(now < 230_000 || writing.len() == 1, "seed {seed:?}: nobody leads although all is well");
    }
    handovers
}

fn at_millis(millis: i64) -> Time {
    Time(1_800_000_000_000 + millis)
}

/// What an API server does: a claim about an older version is refused.
fn serve(stored: &mut Option<Record>, version: &mut i64, ask: &Ask, who: &str) -> Answer {
    let transitions = match (ask, &*stored) {
        (Ask::Look, Some(record)) => return Answer::Found(record.clone()),
        (Ask::Look, None) => return Answer::Absent,
        (Ask::Claim { version, transitions }, Some(record)) if *version == record.version => *transitions,
        (Ask::Create, None) => 0,
        _ => return Answer::Conflict,
    };
    *version += 1;
    let record = Record { transitions, ..lease(who, *version) };
    *stored = Some(record.clone());
    Answer::Written(record)
}
