//! What the parents are told, by a watch, and how long after the intended time of a flip.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acceptance::caller::WatchedChange;
use anyhow::{Result, bail};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::subject::SubjectFigures;
use crate::widgets::{Widgets, parent_number, status_of};

/// Longest time for all parents to be told.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default)]
struct ToldAnswers {
    told: Vec<String>,
    awaited: Vec<Option<(bool, Instant)>>,
    latencies: [Vec<Duration>; 2],
    superseded: usize,
    writes: usize,
    /// Why the watch ended, if it did.
    failure: Option<String>,
}

/// Follows the parents; ends when dropped.
pub(crate) struct AnswerLog {
    answers: Arc<Mutex<ToldAnswers>>,
    follower: JoinHandle<()>,
}

impl AnswerLog {
    /// Follows this number of parents from now on.
    pub(crate) async fn follow(widgets: &Widgets, parents: usize) -> Result<AnswerLog> {
        let answers = ToldAnswers {
            told: vec![String::new(); parents],
            awaited: vec![None; parents],
            ..ToldAnswers::default()
        };
        let answers = Arc::new(Mutex::new(answers));
        let mut changes = Box::pin(widgets.watch_parents().await?);
        let book = answers.clone();
        let follower = tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                match change {
                    Ok(WatchedChange::There(parent)) => lock(&book).note(&parent),
                    Ok(_) => {}
                    Err(error) => lock(&book).failure = Some(format!("{error:#}")),
                }
            }
            lock(&book).failure.get_or_insert_with(|| "the watch ended".to_owned());
        });
        Ok(AnswerLog { answers, follower })
    }

    /// Awaits another answer of a parent, because of a flip that is due at this time.
    pub(crate) fn expect(&self, parent: usize, ready: bool, due: Instant) {
        let mut answers = lock(&self.answers);
        let superseded = answers.awaited[parent].replace((ready, due)).is_some();
        answers.superseded += usize::from(superseded);
    }

    /// Waits until every parent is told this.
    pub(crate) async fn until_all(&self, ready: bool) -> Result<()> {
        self.until("told", |answers| answers.told.iter().all(|told| *told == word(ready))).await
    }

    /// Waits until every awaited answer was given.
    pub(crate) async fn until_answered(&self) -> Result<()> {
        self.until("answered", |answers| answers.awaited.iter().all(Option::is_none)).await
    }

    async fn until(&self, what: &str, holds: impl Fn(&ToldAnswers) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !holds(&lock(&self.answers)) {
            if let Some(failure) = &lock(&self.answers).failure {
                bail!("{failure}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("not all parents are {what} after {PATIENCE:?}");
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Begins anew.
    pub(crate) fn forget_latencies(&self) {
        let mut answers = lock(&self.answers);
        answers.latencies = [Vec::new(), Vec::new()];
        (answers.superseded, answers.writes) = (0, 0);
    }

    /// What was seen since.
    pub(crate) fn figures(&self, processor_ms: f64, peak_mb: f64) -> SubjectFigures {
        let mut answers = lock(&self.answers);
        let [to_false, to_true] = &mut answers.latencies;
        let quantiles = |latencies: &mut Vec<Duration>| {
            latencies.sort();
            [50, 99].map(|percent| quantile_ms(latencies, percent))
        };
        let (to_false_ms, to_true_ms) = (quantiles(to_false), quantiles(to_true));
        SubjectFigures {
            processor_ms,
            to_false_ms,
            to_true_ms,
            never_shown: answers.superseded,
            writes: answers.writes,
            peak_mb,
        }
    }
}

impl Drop for AnswerLog {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl ToldAnswers {
    fn note(&mut self, parent: &Value) {
        let now = Instant::now();
        let Some(number) = parent_number(parent).filter(|number| *number < self.told.len()) else { return };
        self.writes += 1;
        status_of(parent).clone_into(&mut self.told[number]);
        if let Some((ready, due)) =
            self.awaited[number].take_if(|(ready, _)| status_of(parent) == word(*ready))
        {
            self.latencies[usize::from(ready)].push(now.saturating_duration_since(due));
        }
    }
}

fn word(ready: bool) -> &'static str {
    if ready { "True" } else { "False" }
}

fn quantile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
}

fn lock(answers: &Mutex<ToldAnswers>) -> MutexGuard<'_, ToldAnswers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}
