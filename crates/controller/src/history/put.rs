//! One attempt to put a batch away.

use std::sync::Arc;
use std::time::Duration;

use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload};

use super::batch::Batch;

/// It takes no longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of it.
pub(super) struct Sent {
    pub(super) batch: Arc<Batch>,
    /// One of those that metrics count.
    pub(super) outcome: &'static str,
    pub(super) detail: String,
}

/// Puts one batch where it belongs; whether it arrived, and what was in the way.
pub(super) async fn put(
    objects: Arc<dyn ObjectStore>,
    at: object_store::path::Path,
    batch: Arc<Batch>,
) -> Sent {
    let packed = batch.clone();
    let body = tokio::task::spawn_blocking(move || packed.encoded()).await;
    let body = match body {
        Ok(Ok(body)) => PutPayload::from(body),
        Ok(Err(error)) => return Sent { batch, outcome: "failed", detail: error.to_string() },
        Err(error) => return Sent { batch, outcome: "failed", detail: error.to_string() },
    };
    let write = |mode: PutMode| {
        let options = PutOptions { mode, ..PutOptions::default() };
        tokio::time::timeout(PATIENCE, objects.put_opts(&at, body.clone(), options))
    };
    let mut done = write(PutMode::Create).await;
    // Some stores cannot make sure that a key is new. Ours are, so that is not needed to be right.
    if let Ok(Err(Error::NotImplemented { .. } | Error::NotSupported { .. })) = done {
        done = write(PutMode::Overwrite).await;
    }
    let (outcome, detail) = match done {
        // Already there: an attempt of ours whose answer was lost.
        Ok(Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
            ("written", String::new())
        }
        Ok(Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }))) => {
            ("refused", error.to_string())
        }
        Ok(Err(error)) => ("failed", error.to_string()),
        Err(_) => ("timeout", "no answer".to_owned()),
    };
    Sent { batch, outcome, detail }
}
