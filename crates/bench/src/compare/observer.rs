//! What the parents say, as the server has it, and how long after a change they said it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use sandbox::SandboxServer;
use sandbox::store::{StoreRequest, WatchCursor};
use serde_json::Value;

use crate::families::status_of;

/// Interval at which the store is looked at, and so the error of a latency.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// An answer that is awaited.
struct AwaitedAnswer {
    status: &'static str,
    intended: Instant,
}

#[derive(Default)]
struct ShownAnswers {
    /// Status of the condition `Ready` of each parent, as last seen.
    shown: Vec<String>,
    awaited: Vec<Option<AwaitedAnswer>>,
    latencies: Vec<Duration>,
    superseded: usize,
}

/// Latencies of the answers that were awaited.
pub(crate) struct AnswerLatencies {
    /// In ascending order.
    pub(crate) latencies: Vec<Duration>,
    /// Answers that no parent ever gave: a later flip came first, or time was up.
    pub(crate) never_shown: usize,
}

/// Follows the parents of a server. Ends when dropped.
pub(crate) struct AnswerObserver {
    answers: Arc<Mutex<ShownAnswers>>,
    ends: Arc<AtomicBool>,
    follower: Option<JoinHandle<()>>,
}

impl AnswerObserver {
    /// Follows the answers of this number of parents, which are at this address.
    pub(crate) fn follow(
        server: &Arc<SandboxServer>,
        path: &str,
        parents: usize,
    ) -> anyhow::Result<AnswerObserver> {
        let request = StoreRequest::new("GET", &format!("{path}?watch=1"));
        let opened = server.lock_store().open_watch(server.now(), &request);
        let mut cursor = opened.map_err(|refusal| anyhow!("{refusal:?}"))?;
        let answers = ShownAnswers {
            shown: vec![String::new(); parents],
            awaited: (0..parents).map(|_| None).collect(),
            ..ShownAnswers::default()
        };
        let (answers, ends) = (Arc::new(Mutex::new(answers)), Arc::new(AtomicBool::new(false)));
        take_news(server, &mut cursor, &answers);
        let (server, book, stop) = (server.clone(), answers.clone(), ends.clone());
        let follower = thread::spawn(move || {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) {
                let revision = server.lock_store().revision();
                if revision != seen {
                    take_news(&server, &mut cursor, &book);
                    seen = revision;
                }
                thread::sleep(LOOK_INTERVAL);
            }
        });
        Ok(AnswerObserver { answers, ends, follower: Some(follower) })
    }

    fn lock(&self) -> MutexGuard<'_, ShownAnswers> {
        lock(&self.answers)
    }

    /// Awaits another answer of a parent, because of something that was to happen at this time.
    pub(crate) fn expect(&self, parent: usize, ready: bool, intended: Instant) {
        let status = if ready { "True" } else { "False" };
        let mut answers = self.lock();
        let superseded = answers.awaited[parent].take().is_some();
        let stands = answers.shown[parent] == status;
        answers.superseded += usize::from(superseded) + usize::from(stands);
        if !stands {
            answers.awaited[parent] = Some(AwaitedAnswer { status, intended });
        }
    }

    /// Waits until every awaited answer was given, at most for so long. Returns whether all were.
    pub(crate) fn wait_until_shown(&self, at_most: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < at_most {
            if self.lock().awaited.iter().all(Option::is_none) {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Takes the latencies out, and awaits nothing any more.
    pub(crate) fn take_latencies(&self) -> AnswerLatencies {
        let mut answers = self.lock();
        let missing = answers.awaited.iter_mut().filter_map(Option::take).count();
        let mut latencies = std::mem::take(&mut answers.latencies);
        latencies.sort();
        AnswerLatencies { latencies, never_shown: std::mem::take(&mut answers.superseded) + missing }
    }
}

impl Drop for AnswerObserver {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(follower) = self.follower.take() {
            follower.join().ok();
        }
    }
}

fn lock(answers: &Mutex<ShownAnswers>) -> MutexGuard<'_, ShownAnswers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_news(server: &SandboxServer, cursor: &mut WatchCursor, answers: &Mutex<ShownAnswers>) {
    let now = server.now();
    let lines: Vec<Value> = {
        let store = server.lock_store();
        std::iter::from_fn(|| store.next_line(now, cursor)).map(|line| line.object).collect()
    };
    let (seen, mut answers) = (Instant::now(), lock(answers));
    for parent in lines {
        let Some(number) = parent_number(&parent).ok().filter(|number| *number < answers.shown.len()) else {
            continue;
        };
        status_of(&parent).clone_into(&mut answers.shown[number]);
        let is_given = |awaited: &mut AwaitedAnswer| awaited.status == status_of(&parent);
        if let Some(awaited) = answers.awaited[number].take_if(is_given) {
            answers.latencies.push(seen.duration_since(awaited.intended));
        }
    }
}

fn parent_number(parent: &Value) -> anyhow::Result<usize> {
    let name = parent["metadata"]["name"].as_str().context("a name")?;
    Ok(name.rsplit('-').next().context("a number")?.parse()?)
}
