//! One attempt to upload a batch.

use std::sync::Arc;
use std::time::Duration;

use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload};

use super::batch::HistoryBatch;

/// Timeout of an attempt. 60 s.
const BATCH_PUT_TIMEOUT: Duration = Duration::from_secs(60);

/// Result of an attempt.
pub(super) struct BatchResult {
    pub(super) batch: Arc<HistoryBatch>,
    /// Outcome, as a metric's label.
    pub(super) outcome: &'static str,
    pub(super) detail: String,
}

/// Uploads one batch. Returns the outcome and the error, if any.
pub(super) async fn put_batch(
    objects: Arc<dyn ObjectStore>,
    at: object_store::path::Path,
    batch: Arc<HistoryBatch>,
) -> BatchResult {
    let packed = batch.clone();
    let body = tokio::task::spawn_blocking(move || packed.encode_gzip()).await;
    let body = match body {
        Ok(Ok(body)) => PutPayload::from(body),
        Ok(Err(error)) => return BatchResult { batch, outcome: "failed", detail: error.to_string() },
        Err(error) => return BatchResult { batch, outcome: "failed", detail: error.to_string() },
    };
    let write = |mode: PutMode| {
        let options = PutOptions { mode, ..PutOptions::default() };
        tokio::time::timeout(BATCH_PUT_TIMEOUT, objects.put_opts(&at, body.clone(), options))
    };
    let mut done = write(PutMode::Create).await;
    // Some stores cannot create an object only if its key is new. Our keys are, so the precondition is not needed for
    // correctness.
    if let Ok(Err(Error::NotImplemented { .. } | Error::NotSupported { .. })) = done {
        done = write(PutMode::Overwrite).await;
    }
    let (outcome, detail) = match done {
        // The object exists: an earlier attempt succeeded, and its response was lost.
        Ok(Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
            ("written", String::new())
        }
        Ok(Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }))) => {
            ("refused", error.to_string())
        }
        Ok(Err(error)) => ("failed", error.to_string()),
        Err(_) => ("timeout", "request timed out".to_owned()),
    };
    BatchResult { batch, outcome, detail }
}
