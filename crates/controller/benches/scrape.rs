//! Cost of a scrape, and of recording a snapshot in the loop, if none of many parents is ready and all free text is
//! different for each. `/metrics` returns exactly this text.
//!
//! The budget is 5 ms of CPU for a scrape at 100,000 parents. Measured is the CPU time of this thread, so other load on
//! the machine does not count.

use std::hint::black_box;
use std::time::Duration;

use controller::HostileMetrics;
use rustix::time::{ClockId, clock_gettime};

const TURNS: usize = 200;

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    println!(
        "{:<24} {:>8} {:>9} {:>14} {:>9} {:>14}",
        "parents, none ready", "series", "bytes", "scrape, ms CPU", "the worst", "gather, ms CPU"
    );
    for parents in [1_000, 10_000, 100_000] {
        let world = HostileMetrics::new(parents);
        let text = world.scrape_text();
        let series = text.lines().filter(|line| !line.starts_with('#')).count();
        let scrape = times(TURNS, || black_box(world.scrape_text()).len());
        // Done by the loop every two seconds, regardless of scrapes.
        let gather = times(TURNS / 10, || world.record_snapshot());
        println!(
            "{parents:<24} {series:>8} {:>9} {:>14.2} {:>9.2} {:>14.2}",
            text.len(),
            millis(scrape[TURNS / 2]),
            millis(scrape[TURNS - 1]),
            millis(gather[gather.len() / 2])
        );
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Duration of each turn, shortest first.
fn times<T>(turns: usize, mut turn: impl FnMut() -> T) -> Vec<Duration> {
    let mut times: Vec<_> = (0..turns)
        .map(|_| {
            let start = own_time();
            black_box(turn());
            own_time().saturating_sub(start)
        })
        .collect();
    times.sort();
    times
}

/// CPU time of this thread so far.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
