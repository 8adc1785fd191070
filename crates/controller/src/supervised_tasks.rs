//! Supervision of the service's tasks: one that exits stops all others, and the error names it.

use std::time::Duration;

use anyhow::bail;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// Longest time a stopping service may take to finish work in progress. 10 s.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Supervised tasks by name.
#[derive(Default)]
pub(crate) struct SupervisedTasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
}

impl SupervisedTasks {
    /// Spawns a task. If it ends or panics before all are to stop, the error names it.
    pub(crate) fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.spawn_on(&Handle::current(), name, task);
    }

    /// Spawns a task on this runtime.
    pub(crate) fn spawn_on(
        &mut self,
        runtime: &Handle,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        // Spawned as a task of its own, so that a panic is reported under its name too.
        let task = runtime.spawn(task);
        self.set.spawn(async move {
            let ended = task.await.map_err(anyhow::Error::new).and_then(|done| done);
            (name, ended)
        });
    }

    /// Waits until `stop`, or until a task ends; then all others are told to stop, and waited for.
    pub(crate) async fn supervise(mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        let mut failure = None;
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => {}
                Some(Ok((name, ended))) = self.set.join_next() => {
                    if !stop.is_cancelled() {
                        stop.cancel();
                        let error = ended.err().unwrap_or_else(|| anyhow::anyhow!("it returned unexpectedly"));
                        failure = Some(error.context(format!("task {name} ended")));
                    }
                }
            }
        }
        info!("stopping");
        let drained = tokio::time::timeout(DRAIN_TIMEOUT, async {
            while let Some(Ok((name, ended))) = self.set.join_next().await {
                if let Err(error) = ended {
                    info!(
                        task = name,
                        error = format!("{error:#}"),
                        "task ended with an error while stopping"
                    );
                }
            }
        });
        let in_time = drained.await;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if in_time.is_err() {
            bail!("failed to finish work in progress within {DRAIN_TIMEOUT:?}");
        }
        info!("stopped");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn supervised(
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) -> Result<(), String> {
        let stop = CancellationToken::new();
        let mut tasks = SupervisedTasks::default();
        let others = stop.child_token();
        tasks.spawn("other", async move {
            others.cancelled().await;
            Ok(())
        });
        tasks.spawn("one", task);
        let ended = tasks.supervise(&stop).await.map_err(|error| format!("{error:#}"));
        assert!(stop.is_cancelled(), "the others are told to stop");
        ended
    }

    #[tokio::test]
    async fn every_task_is_supervised() {
        assert_eq!(
            supervised(async { Ok(()) }).await.unwrap_err(),
            "task one ended: it returned unexpectedly"
        );
        let failed = supervised(async { Err(anyhow::anyhow!("a reason")) }).await.unwrap_err();
        assert_eq!(failed, "task one ended: a reason");
        let panicked = supervised(async { panic!("a panic") }).await.unwrap_err();
        assert!(panicked.starts_with("task one ended: ") && panicked.contains("a panic"), "{panicked}");
    }

    #[tokio::test]
    async fn who_is_told_to_stop_finishes_what_it_began() {
        for fails in [false, true] {
            finishes_what_it_began(fails).await;
        }
    }

    /// Stops a writer, because somebody asks for it or because another task fails.
    async fn finishes_what_it_began(fails: bool) {
        let (stop, mut tasks) = (CancellationToken::new(), SupervisedTasks::default());
        let (told, (finished_in, finished)) = (stop.child_token(), tokio::sync::oneshot::channel());
        tasks.spawn("the writer", async move {
            told.cancelled().await;
            tokio::task::yield_now().await;
            _ = finished_in.send(());
            Ok(())
        });
        if fails {
            tasks.spawn("one", async { Err(anyhow::anyhow!("a reason")) });
        } else {
            stop.cancel();
        }
        assert_eq!(tasks.supervise(&stop).await.is_err(), fails);
        finished.await.unwrap();
    }
}
