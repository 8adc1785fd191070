//! Threads of their own for custom rules, so that a rule which takes as long as its limits allow takes nothing from the
//! runtime's.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, bail};
use tokio::runtime::RuntimeFlavor;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

/// Fewest and most threads. A rule has one of them at a time, so that a rule which is always busy leaves room for others.
const RULE_THREAD_COUNTS: (usize, usize) = (2, 4);

/// Number of threads on a machine with so many processors.
fn thread_count(processors: usize) -> usize {
    processors.clamp(RULE_THREAD_COUNTS.0, RULE_THREAD_COUNTS.1)
}

/// What the threads wait for.
#[derive(Debug, Default)]
struct WorkSignal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    /// How often work was announced.
    announced: u64,
    stopped: bool,
}

impl WorkSignal {
    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        self.lock().announced += 1;
        self.changed.notify_one();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Number of announcements so far; `None` once stopped.
    fn announced(&self) -> Option<u64> {
        let state = self.lock();
        (!state.stopped).then_some(state.announced)
    }

    /// Waits until more was announced than that, or it is stopped.
    fn wait_beyond(&self, announced: u64) {
        let waits = |state: &mut SignalState| !state.stopped && state.announced == announced;
        drop(self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Stops the threads when their owner is dropped.
struct StopOnDrop(Arc<WorkSignal>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Tells that a thread has ended, in whichever way.
struct EndNotice(mpsc::UnboundedSender<()>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        _ = self.0.send(());
    }
}

/// The threads that evaluate custom rules, and the proofs of policies.
pub(crate) struct RuleThreads {
    reflector: Arc<Reflector>,
    signal: Arc<WorkSignal>,
    /// Signals each evaluation.
    judged: Arc<Notify>,
}

impl RuleThreads {
    /// Takes the evaluation of custom rules over from the ingest of objects.
    pub(crate) fn new(reflector: Arc<Reflector>, judged: Arc<Notify>) -> RuleThreads {
        let signal = Arc::new(WorkSignal::default());
        let waker = signal.clone();
        reflector.rule_work().set_waker(move || waker.announce());
        RuleThreads { reflector, signal, judged }
    }

    /// Runs the threads until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let (ends, mut ended) = mpsc::unbounded_channel();
        let stops = StopOnDrop(self.signal.clone());
        for number in 0..thread_count(thread::available_parallelism().map_or(0, usize::from)) {
            let (reflector, signal, judged) =
                (self.reflector.clone(), self.signal.clone(), self.judged.clone());
            let notice = EndNotice(ends.clone());
            let evaluating = move || {
                let _notice = notice;
                evaluate_rules(&reflector, &signal, &judged);
            };
            let thread = thread::Builder::new().name(format!("rules-{number}")).spawn(evaluating);
            thread.context("failed to start a thread for rules")?;
        }
        drop(ends);
        tokio::select! {
            () = stop.cancelled() => {}
            _ = ended.recv() => bail!("a thread that evaluates rules ended"),
        }
        drop(stops);
        // Each ends after the evaluation that it is in.
        while ended.recv().await.is_some() {}
        Ok(())
    }
}

/// Does work that may be long, such as the evaluation of policies' expressions on objects that come in: the other tasks of this
/// thread of the runtime get another one meanwhile, if it is.
pub(crate) fn work_beside<R>(is_long: bool, work: impl FnOnce() -> R) -> R {
    let flavor = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if is_long => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn evaluate_rules(reflector: &Reflector, signal: &WorkSignal, judged: &Notify) {
    while let Some(announced) = signal.announced() {
        let work = reflector.rule_work();
        // The steps of proofs are bounded for all of them together: they leave room for everything else.
        if let Some(proof) = work.take_proof() {
            work.evaluate_proof(proof);
        } else if let Some(judgement) = work.take() {
            work.evaluate(judgement);
            judged.notify_waiters();
        } else {
            signal.wait_beyond(announced);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_two_threads_on_any_machine_and_four_on_the_largest() {
        assert_eq!([0, 1, 2, 3, 4, 64].map(thread_count), [2, 2, 2, 3, 4, 4]);
    }

    #[tokio::test]
    async fn the_threads_end_when_they_are_told_to() {
        let threads = RuleThreads::new(Arc::new(Reflector::new(|| ())), Arc::default());
        let stop = CancellationToken::new();
        stop.cancel();
        threads.run(stop).await.unwrap();
    }

    #[tokio::test]
    async fn the_threads_end_when_nobody_runs_them_any_more() {
        let threads = RuleThreads::new(Arc::new(Reflector::new(|| ())), Arc::default());
        let signal = threads.signal.clone();
        let running = tokio::spawn(threads.run(CancellationToken::new()));
        tokio::task::yield_now().await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        assert_eq!(signal.announced(), None);
    }

    #[test]
    fn work_that_is_announced_while_nobody_waits_is_not_missed() {
        let signal = WorkSignal::default();
        let before = signal.announced().unwrap();
        signal.announce();
        signal.wait_beyond(before);
        assert_eq!(signal.announced(), Some(before + 1));
        signal.stop();
        signal.wait_beyond(before + 1);
        assert_eq!(signal.announced(), None);
    }
}
