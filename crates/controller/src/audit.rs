//! Slow audit of the metadata of all objects, so that a watch that delivers nothing cannot hide changes to objects that
//! are ready.
//!
//! It sends one metadata-only list per kind and period. Objects are read whole only if the list has a newer version, if
//! they are missing from the cache, or if they are missing from the list.

use std::time::Duration;

use timer::Seed;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use watcher::LiveReadError;

use crate::kind_tasks::ResolvedKind;
use crate::live_reader::LiveReader;

/// Maximum number of objects of one kind read whole in one audit; the rest is left to the next one.
const MAX_AUDIT_READS_PER_KIND: usize = 500;
/// Shortest interval between two of these reads: a list may be wrong as a whole. 100 ms.
const AUDIT_READ_INTERVAL: Duration = Duration::from_millis(100);

/// Audits every kind once per `every` until `stop`, with kinds spread over the period by the seed. Zero disables it.
pub(crate) async fn run_audit(
    looker: LiveReader,
    every: Duration,
    namespaces: Vec<String>,
    seed: Seed,
    stop: CancellationToken,
) {
    if every.is_zero() {
        return stop.cancelled().await;
    }
    for round in 0_u64.. {
        let kinds: Vec<_> = looker.resolved.iter().map(|kind| kind.value().clone()).collect();
        let share = every / u32::try_from(kinds.len().max(1)).unwrap_or(u32::MAX);
        for (at, kind) in kinds.iter().enumerate() {
            let wait = share / 2 + seed.duration_below(share / 2, round << 16 | at as u64);
            if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return;
            }
            if let Err(error) = audit_kind(&looker, kind, &namespaces, &stop).await {
                debug!(%error, "failed to audit kind");
            }
        }
        if kinds.is_empty() && stop.run_until_cancelled(tokio::time::sleep(every)).await.is_none() {
            return;
        }
    }
}

async fn audit_kind(
    looker: &LiveReader,
    followed: &ResolvedKind,
    namespaces: &[String],
    stop: &CancellationToken,
) -> Result<(), LiveReadError> {
    let everywhere = namespaces.is_empty() || !followed.api.namespaced;
    let scopes: Vec<Option<&str>> =
        if everywhere { vec![None] } else { namespaces.iter().map(|n| Some(n.as_str())).collect() };
    for scope in scopes {
        let mut drifts = Vec::new();
        for read in looker.audit_metadata(followed, scope, MAX_AUDIT_READS_PER_KIND).await? {
            drifts.extend(looker.read_live(&read).await.drifts);
            if stop.run_until_cancelled(tokio::time::sleep(AUDIT_READ_INTERVAL)).await.is_none() {
                return Ok(());
            }
        }
        if !drifts.is_empty() {
            warn!(kind = %followed.api, objects = drifts.len(), "audit found changes that the watch had not delivered yet");
            if stop.run_until_cancelled(looker.check_drift(drifts, "audit")).await.is_none() {
                return Ok(());
            }
        }
    }
    Ok(())
}
