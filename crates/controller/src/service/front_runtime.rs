//! The thread that answers HTTP: probes, metrics, page and API.

use anyhow::Context;
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime of one thread for whoever asks the service: they do not delay its loop, nor it them. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct FrontRuntime(Option<Runtime>);

impl FrontRuntime {
    /// Starts the thread.
    pub(super) fn start() -> anyhow::Result<FrontRuntime> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("http").enable_all().build();
        Ok(FrontRuntime(Some(runtime.context("failed to start the thread that answers HTTP")?)))
    }

    /// Where tasks are spawned that run there.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for FrontRuntime {
    fn drop(&mut self) {
        // The tasks of another runtime may not wait for the end of one.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
