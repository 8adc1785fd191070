//! Strangers who open connections to the listener and never finish a request: what they cost is bounded.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;

use super::cluster::LiveCluster;
use super::memory::{PeakSampler, settled_memory};
use super::service::{RunningService, until};

const STRANGERS: usize = 8_000;
/// Length of what each of them sends of a head, which may have 32 KiB.
const SENT: usize = 24 << 10;
/// Most connections, by default.
const MAX_CONNECTIONS: u64 = 1_024;
/// Most memory that one of these may hold, in kB; 55 to 70 were seen: a buffer for a head as long as heads may be, and what serves
/// it. All strangers together would hold some 400 MB without a bound.
const HELD_PER_CONNECTION: u64 = 128;

#[tokio::test(flavor = "multi_thread")]
async fn eight_thousand_half_sent_requests_take_bounded_memory_and_keep_nobody_waiting() {
    let cluster = LiveCluster::start("strangers").await;
    let service = RunningService::start(&cluster, &[], &[]);
    assert!(service.get("/livez").starts_with("HTTP/1.1 200"));
    let before = settled_memory(service.process());
    let sampler = PeakSampler::begin(service.process());
    let half = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: {}", "x".repeat(SENT));
    let (mut strangers, mut opened) = (VecDeque::new(), 0);
    while opened < STRANGERS {
        let Ok(mut stranger) = TcpStream::connect(service.address()) else {
            // This process may have fewer files.
            assert!(strangers.pop_front().is_some(), "nobody gets in");
            continue;
        };
        // The listener may have closed it already.
        _ = stranger.write_all(half.as_bytes());
        strangers.push_back(stranger);
        opened += 1;
        if opened % 500 == 0 {
            assert!(service.get("/livez").starts_with("HTTP/1.1 200"), "after {opened} of them");
        }
    }
    let (held, allowed) = (sampler.peak().saturating_sub(before), MAX_CONNECTIONS * HELD_PER_CONNECTION);
    println!("at most {held} kB of {allowed} kB");
    assert!(held <= allowed, "{held} kB were held");
    // One that gives way is closed when its task has its turn.
    let open = || service.metric("rollcall_http_connections{", "");
    until("no more are open than may be", || (1..=MAX_CONNECTIONS).contains(&open()));
}
