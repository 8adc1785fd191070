//! Deadlines, debounce, resync, backoff and seed, held against plain readings of what they promise.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeMap;
use std::ops::Add;
use std::time::Duration;

use proptest::prelude::*;
use timer::{Backoff, DeadlineQueue, DebounceConfig, DebounceState, ResyncSchedule, Seed};

/// Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VirtualMillis(u64);

impl Add<Duration> for VirtualMillis {
    type Output = VirtualMillis;
    fn add(self, span: Duration) -> VirtualMillis {
        VirtualMillis(self.0 + u64::try_from(span.as_millis()).unwrap())
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What is done to deadlines.
#[derive(Clone, Copy, Debug)]
enum DeadlineStep {
    Arm(u8, u64),
    ArmBy(u8, u64),
    Disarm(u8),
    TakeDue(u64),
}

fn any_step() -> impl Strategy<Value = DeadlineStep> {
    prop_oneof![
        (0_u8..4, 0_u64..8).prop_map(|(key, at)| DeadlineStep::Arm(key, at)),
        (0_u8..4, 0_u64..8).prop_map(|(key, at)| DeadlineStep::ArmBy(key, at)),
        (0_u8..4).prop_map(DeadlineStep::Disarm),
        (0_u64..8).prop_map(DeadlineStep::TakeDue),
    ]
}

proptest! {
    #[test]
    fn deadlines_are_a_map_that_is_emptied_in_the_order_of_its_moments(
        steps in prop::collection::vec(any_step(), 0..40)
    ) {
        let mut deadlines = DeadlineQueue::default();
        let mut model = BTreeMap::<u8, u64>::new();
        for step in steps {
            match step {
                DeadlineStep::Arm(key, at) => {
                    deadlines.set_deadline(key, VirtualMillis(at));
                    model.insert(key, at);
                }
                DeadlineStep::ArmBy(key, at) => {
                    deadlines.set_if_earlier(key, VirtualMillis(at));
                    let earlier = model.get(&key).map_or(at, |old| at.min(*old));
                    model.insert(key, earlier);
                }
                DeadlineStep::Disarm(key) => prop_assert_eq!(deadlines.clear_deadline(key), model.remove(&key).is_some()),
                DeadlineStep::TakeDue(now) => {
                    let first = model.iter().map(|(key, at)| (*at, *key)).min().filter(|(at, _)| *at <= now);
                    if let Some((_, key)) = first {
                        model.remove(&key);
                    }
                    prop_assert_eq!(deadlines.take_due(VirtualMillis(now)), first.map(|(_, key)| key));
                }
            }
            prop_assert_eq!((deadlines.len(), deadlines.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!(deadlines.next_deadline(), model.values().min().map(|at| VirtualMillis(*at)));
            for key in 0..4 {
                prop_assert_eq!(deadlines.get(key), model.get(&key).map(|at| VirtualMillis(*at)));
            }
        }
    }

    #[test]
    fn a_debounce_waits_for_quiet_but_never_beyond_its_cap(
        touches in prop::collection::vec((1_u64..300, any::<bool>()), 1..40),
    ) {
        let debounce = DebounceConfig { quiet: ms(100), cap: ms(1_000) };
        let mut touched: DebounceState<VirtualMillis> = DebounceState::default();
        let (mut now, mut first, mut fired) = (0, None, None::<u64>);
        for (pause, fires) in touches {
            now += pause;
            let leads = first.is_none() && fired.is_none_or(|fired| fired + 1_000 <= now);
            let began = *first.get_or_insert(now);
            let expected = if leads { now } else { (now + 100).min(began + 1_000) };
            prop_assert_eq!(touched.record_touch(VirtualMillis(now), debounce), VirtualMillis(expected));
            if fires {
                touched.record_fire(VirtualMillis(now));
                prop_assert_eq!(touched.take_first_touch(), Some(VirtualMillis(began)));
                prop_assert_eq!(touched.take_first_touch(), None);
                (first, fired) = (None, Some(now));
            }
        }
    }

    #[test]
    fn a_backoff_doubles_to_its_cap_and_takes_off_less_than_a_quarter(
        failures in 0_u32..40, seed in any::<u64>(), key in any::<u64>()
    ) {
        let backoff = Backoff { base: ms(100), cap: ms(30_000) };
        let full = (100_u64 << failures.saturating_sub(1).min(20)).min(30_000);
        let after = backoff.delay_after(failures, Seed(seed), key);
        prop_assert!(after <= ms(full) && after > ms(full - full / 4), "{after:?} of {full}");
        let promised = backoff.delay_with_exact_cap(failures, Seed(seed), key);
        prop_assert_eq!(promised, if full == 30_000 { ms(30_000) } else { after });
    }

    #[test]
    fn a_span_below_another_is_below_it(seed in any::<u64>(), key in any::<u64>(), millis in 0_u64..5) {
        let below = Seed(seed).duration_below(ms(millis), key);
        prop_assert!(below < ms(millis) || (millis == 0 && below.is_zero()));
        prop_assert_eq!(Seed(seed).derive(key).0, Seed(seed).number_for(key));
    }
}

#[test]
fn every_bit_of_a_number_is_as_often_one_as_zero() {
    let numbers: Vec<_> = (0..1_000).map(|key| Seed(7).number_for(key)).collect();
    for bit in 0..64 {
        let ones = numbers.iter().filter(|number| (**number >> bit) & 1 == 1).count();
        assert!((420..580).contains(&ones), "bit {bit}: {ones}");
    }
    // One more in the seed or in the key turns about half of the bits.
    for (seed, key) in (0..100).flat_map(|seed| (0..10).map(move |key| (seed, key))) {
        let here = Seed(seed).number_for(key);
        for there in [Seed(seed + 1).number_for(key), Seed(seed).number_for(key + 1)] {
            assert!((10..54).contains(&(here ^ there).count_ones()), "{seed} {key}");
        }
    }
}

/// As another program computes them: the finaliser of SplitMix64 over seed and key.
const REPLAYED: [u64; 5] = [
    0,
    6_238_072_747_940_578_789,
    14_135_772_400_868_000_056,
    7_929_717_342_545_899_651,
    3_703_370_420_611_038_912,
];

#[test]
fn a_replay_of_a_seed_is_the_same_in_every_version() {
    let numbers =
        [(0, 0), (1, 0), (0, 1), (7, 42), (u64::MAX, u64::MAX)].map(|(seed, key)| Seed(seed).number_for(key));
    assert_eq!(numbers, REPLAYED);
}

#[test]
fn retries_of_one_key_at_the_cap_do_not_keep_one_rhythm() {
    let backoff = Backoff { base: ms(100), cap: ms(30_000) };
    for key in [0, 9, u64::MAX] {
        let delays: Vec<_> = (12..20).map(|failures| backoff.delay_after(failures, Seed(1), key)).collect();
        let distinct: std::collections::BTreeSet<_> = delays.iter().collect();
        assert_eq!(distinct.len(), delays.len(), "{key}: {delays:?}");
    }
}

const EVERY: Duration = ms(30_000);
const SLOW: Duration = ms(600_000);

/// When a key is due, passes being taken at their very moment.
fn passes(resync: &mut ResyncSchedule<u64, VirtualMillis>, count: usize) -> Vec<u64> {
    let one = |resync: &mut ResyncSchedule<u64, VirtualMillis>| {
        let at = resync.next_due().unwrap();
        assert_eq!(resync.take_due(VirtualMillis(at.0 - 1)), None, "not before");
        assert_eq!(resync.take_due(at), Some(1));
        at.0
    };
    (0..count).map(|_| one(resync)).collect()
}

#[test]
fn the_first_pass_comes_in_the_second_half_of_a_period_and_the_others_a_period_apart() {
    for seed in 0..50 {
        let mut resync = ResyncSchedule::new(EVERY, SLOW, Seed(seed));
        resync.enroll_key(1, VirtualMillis(0));
        resync.enroll_key(1, VirtualMillis(20_000));
        assert_eq!(resync.len(), 1, "enrolling again changes nothing");
        let at = passes(&mut resync, 12);
        assert!((15_000..30_000).contains(&at[0]), "{at:?}");
        let pauses: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses[..9], [30_000; 9], "ten passes at the quick period");
        assert_eq!(pauses[9..], [600_000; 2]);
    }
}

#[test]
fn what_moves_is_patient_no_more() {
    let enrolled = || {
        let mut resync = ResyncSchedule::new(EVERY, SLOW, Seed(1));
        resync.enroll_key(1, VirtualMillis(0));
        resync
    };
    let mut slow = enrolled();
    let last = *passes(&mut slow, 10).last().unwrap();
    assert_eq!(slow.next_due(), Some(VirtualMillis(last + 600_000)));
    slow.record_change(1, VirtualMillis(last + 1_000));
    assert_eq!(slow.next_due(), Some(VirtualMillis(last + 31_000)), "it is brought forward");
    let pauses: Vec<_> = passes(&mut slow, 11).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [&[30_000; 9][..], &[600_000]].concat(), "and counts from the start");

    let mut late = enrolled();
    let last = *passes(&mut late, 10).last().unwrap();
    late.record_change(1, VirtualMillis(last + 590_000));
    assert_eq!(late.next_due(), Some(VirtualMillis(last + 600_000)), "what is due earlier stays");

    let mut quick = enrolled();
    let last = *passes(&mut quick, 9).last().unwrap();
    quick.record_change(1, VirtualMillis(last + 1_000));
    assert_eq!(quick.next_due(), Some(VirtualMillis(last + 30_000)), "what is quick already is not put off");
    let pauses: Vec<_> = passes(&mut quick, 11).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [&[30_000; 9][..], &[600_000]].concat());

    quick.record_change(2, VirtualMillis(0));
    assert_eq!(quick.len(), 1, "a stranger is not enrolled by moving");
}

#[test]
fn without_a_period_there_is_no_pass_and_slow_is_never_quicker_than_quick() {
    let mut none = ResyncSchedule::new(Duration::ZERO, SLOW, Seed(1));
    none.enroll_key(1_u64, VirtualMillis(0));
    assert!(none.is_empty() && none.next_due().is_none());
    assert_eq!(none.len(), 0);
    let mut even = ResyncSchedule::new(EVERY, ms(1), Seed(1));
    even.enroll_key(1, VirtualMillis(0));
    assert!(!even.is_empty());
    let at = passes(&mut even, 12);
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] == 30_000), "{at:?}");
    even.enroll_key(2, VirtualMillis(at[11]));
    assert_eq!(even.len(), 2);
    even.withdraw_key(2);
    even.withdraw_key(1);
    assert!(even.is_empty() && even.next_due().is_none());
}
