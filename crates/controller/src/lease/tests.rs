//! Leader election as sentences, and two candidates competing for one lease under many seeds.

use super::*;

const ME: &str = "me";

fn lease(holder: &str, renewed: i64) -> LeaseRecord {
    LeaseRecord {
        holder: holder.to_owned(),
        renewed: renewed.to_string(),
        transitions: 3,
        duration: LEASE_TIMINGS.lease_duration,
        version: renewed.to_string(),
    }
}

fn at(seconds: i64) -> Time {
    Time(1_800_000_000_000 + seconds * 1_000)
}

fn candidate() -> Election {
    Election::new(ME.to_owned(), LEASE_TIMINGS)
}

/// Delivers a response to a request that was sent at the same moment.
fn hear(election: &mut Election, answer: LeaseResponse, now: Time) {
    election.observe_response(answer, now, now);
}

fn leader() -> Election {
    let mut election = candidate();
    hear(&mut election, LeaseResponse::Written(lease(ME, 0)), at(0));
    election
}

fn claim(version: i64, transitions: i32) -> LeaseRequest {
    LeaseRequest::Claim { version: version.to_string(), transitions }
}

#[test]
fn where_there_is_no_lease_it_is_made() {
    let mut election = candidate();
    assert_eq!(election.next_request(at(0)), LeaseRequest::Get);
    hear(&mut election, LeaseResponse::Absent, at(0));
    assert_eq!((election.next_request(at(0)), election.next_request_at()), (LeaseRequest::Create, at(0)));
    assert_eq!(election.leads_until(), None);
    hear(&mut election, LeaseResponse::Written(lease(ME, 0)), at(0));
    assert_eq!(election.leads_until(), Some(at(10)));
    assert_eq!(election.next_request_at(), at(2));
}

#[test]
fn a_lease_that_was_given_up_is_taken_at_once() {
    let mut election = candidate();
    hear(&mut election, LeaseResponse::Found(lease("", 0)), at(0));
    assert_eq!((election.next_request(at(0)), election.next_request_at()), (claim(0, 4), at(0)));
}

#[test]
fn a_lease_of_somebody_else_is_taken_once_it_has_not_changed_for_its_duration() {
    let mut election = candidate();
    for second in 0..15 {
        hear(&mut election, LeaseResponse::Found(lease("other", 7)), at(second));
        assert_eq!(election.next_request(at(second)), LeaseRequest::Get, "{second}");
        assert_eq!(election.next_request_at(), at(second + 1));
    }
    hear(&mut election, LeaseResponse::Found(lease("other", 7)), at(15));
    assert_eq!(election.next_request(at(15)), claim(7, 4));
}

#[test]
fn each_sign_of_life_begins_it_anew_and_the_clock_of_the_other_says_nothing() {
    let mut election = candidate();
    hear(&mut election, LeaseResponse::Found(lease("other", -1_000_000)), at(0));
    assert_eq!(election.next_request(at(14)), LeaseRequest::Get, "a time far in the past is no reason");
    hear(&mut election, LeaseResponse::Found(lease("other", 9_000_000)), at(14));
    assert_eq!(election.next_request(at(28)), LeaseRequest::Get);
    assert!(
        matches!(election.next_request(at(29)), LeaseRequest::Claim { .. }),
        "a time far in the future is none either"
    );
}

#[test]
fn a_label_on_the_lease_is_no_sign_of_life() {
    let mut election = candidate();
    hear(&mut election, LeaseResponse::Found(lease("other", 7)), at(0));
    let labelled = LeaseRecord { version: "8".to_owned(), ..lease("other", 7) };
    hear(&mut election, LeaseResponse::Found(labelled), at(14));
    assert_eq!(election.next_request(at(15)), claim(8, 4));
}

#[test]
fn who_cannot_renew_stops_before_anybody_else_may_begin() {
    let mut election = leader();
    for second in [2, 4, 6, 8] {
        hear(&mut election, LeaseResponse::Failed, at(second));
        assert_eq!(election.next_request_at(), at(second + 2));
    }
    assert_eq!(election.leads_until(), Some(at(10)));
    // Another replica cannot have observed the last renewal before it was requested.
    let mut other = Election::new("other".to_owned(), LEASE_TIMINGS);
    hear(&mut other, LeaseResponse::Found(lease(ME, 0)), at(0));
    assert_eq!(other.next_request(at(14)), LeaseRequest::Get);
}

#[test]
fn what_was_answered_late_counts_from_when_it_was_asked() {
    let mut election = leader();
    election.observe_response(LeaseResponse::Written(lease(ME, 2)), at(2), at(6));
    assert_eq!(election.leads_until(), Some(at(12)));
    assert_eq!(election.next_request_at(), at(4), "it is due already");
}

#[test]
fn who_sees_that_another_holds_it_leads_no_more() {
    let mut election = leader();
    hear(&mut election, LeaseResponse::Conflict, at(2));
    assert_eq!(election.next_request(at(2)), LeaseRequest::Get);
    assert_eq!(
        election.leads_until(),
        Some(at(10)),
        "a conflict alone says nothing: somebody may have labelled it"
    );
    hear(&mut election, LeaseResponse::Found(lease("other", 2)), at(2));
    assert_eq!((election.leads_until(), election.next_request(at(2))), (None, LeaseRequest::Get));
}

#[test]
fn a_lease_that_was_deleted_is_led_by_nobody_until_it_is_made_anew() {
    let mut election = leader();
    hear(&mut election, LeaseResponse::Absent, at(2));
    assert_eq!((election.leads_until(), election.next_request(at(2))), (None, LeaseRequest::Create));
    hear(&mut election, LeaseResponse::Conflict, at(2));
    assert_eq!(election.next_request(at(2)), LeaseRequest::Get, "somebody else made it");
}

#[test]
fn a_claim_whose_answer_was_lost_is_known_again_by_its_holder() {
    let mut election = candidate();
    hear(&mut election, LeaseResponse::Found(lease("", 0)), at(0));
    hear(&mut election, LeaseResponse::Failed, at(5));
    assert_eq!(election.leads_until(), None);
    hear(&mut election, LeaseResponse::Conflict, at(6));
    hear(&mut election, LeaseResponse::Found(lease(ME, 1)), at(6));
    assert_eq!(election.leads_until(), None, "it is not known how long ago that was");
    assert_eq!(election.next_request(at(6)), claim(1, 3));
}

#[test]
fn a_lease_without_a_duration_holds_as_long_as_ours() {
    let read = |seconds| {
        let spec = LeaseSpec { lease_duration_seconds: seconds, ..LeaseSpec::default() };
        lease_record(&Lease { spec: Some(spec), ..Lease::default() }).duration
    };
    assert_eq!([read(None), read(Some(0)), read(Some(-5))], [LEASE_TIMINGS.lease_duration; 3]);
    assert_eq!(read(Some(60)), Duration::from_secs(60));
}

/// One replica: its candidate, a clock with an offset, and a request in flight.
struct LeaseReplica {
    election: Election,
    skew: Duration,
    asked: Option<(LeaseRequest, Time, i64)>,
    paused_until: i64,
}

/// One Lease, two replicas, virtual milliseconds. Requests and responses are slow or lost, processes freeze, clocks
/// have offsets. Two replicas must never be allowed to start a write at the same time; and once all faults end, one
/// leads.
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
        seed.number_for(draw) % below
    };
    let (mut stored, mut version): (Option<LeaseRecord>, i64) = (None, 0);
    let mut replicas: Vec<LeaseReplica> = (0..2)
        .map(|at| LeaseReplica {
            election: Election::new(format!("r{at}"), LEASE_TIMINGS),
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
                replica.paused_until = now + dice(30_000).cast_signed();
            }
            if now < replica.paused_until {
                continue;
            }
            let local = at_millis(now) + replica.skew;
            if replica.asked.is_none() && replica.election.next_request_at() <= local {
                let slow = if faults && dice(4) == 0 { dice(12_000) } else { dice(100) };
                replica.asked = Some((replica.election.next_request(local), local, now + slow.cast_signed()));
            }
            if let Some((ask, asked, due)) = replica.asked.take() {
                if due > now {
                    replica.asked = Some((ask, asked, due));
                    continue;
                }
                let answer = serve(&mut stored, &mut version, &ask, &format!("r{at}"));
                let lost = faults && dice(10) == 0;
                let answer = if lost { LeaseResponse::Failed } else { answer };
                replica.election.observe_response(answer, asked, local);
            }
        }
        let writes = |r: &LeaseReplica| {
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

/// Models the API server: an update with an outdated resourceVersion is rejected.
fn serve(
    stored: &mut Option<LeaseRecord>,
    version: &mut i64,
    ask: &LeaseRequest,
    who: &str,
) -> LeaseResponse {
    let transitions = match (ask, &*stored) {
        (LeaseRequest::Get, Some(record)) => return LeaseResponse::Found(record.clone()),
        (LeaseRequest::Get, None) => return LeaseResponse::Absent,
        (LeaseRequest::Claim { version, transitions }, Some(record)) if *version == record.version => {
            *transitions
        }
        (LeaseRequest::Create, None) => 0,
        _ => return LeaseResponse::Conflict,
    };
    *version += 1;
    let record = LeaseRecord { transitions, ..lease(who, *version) };
    *stored = Some(record.clone());
    LeaseResponse::Written(record)
}
