//! The slow audit: metadata of everything, so that a silent watch cannot hide what happened to what is ready.
//!
//! One metadata-only list per kind and period. Only objects whose version the list knows to be newer, that it has and we
//! lack, or that we have and it lacks are read whole.

use std::time::Duration;

use timer::Seed;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use watcher::{LookError, look_metadata};

use crate::core::reads;
use crate::kinds::Followed;
use crate::look::Looker;

/// So many objects of one kind are read whole in one audit; what is more is left to the next.
const MOST: usize = 500;

/// Audits every kind once per `every`, kinds spread over the period by the seed, until `stop`. Zero: never.
pub(crate) async fn run(
    looker: Looker,
    every: Duration,
    namespaces: Vec<String>,
    seed: Seed,
    stop: CancellationToken,
) {
    if every.is_zero() {
        return stop.cancelled().await;
    }
    for round in 0_u64.. {
        let kinds: Vec<_> = looker.known.iter().map(|kind| kind.value().clone()).collect();
        let share = every / u32::try_from(kinds.len().max(1)).unwrap_or(u32::MAX);
        for (at, kind) in kinds.iter().enumerate() {
            let wait = share / 2 + seed.below(share / 2, round << 16 | at as u64);
            if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return;
            }
            if let Err(error) = audit(&looker, kind, &namespaces).await {
                debug!(%error, "audit");
            }
        }
        if kinds.is_empty() && stop.run_until_cancelled(tokio::time::sleep(every)).await.is_none() {
            return;
        }
    }
}

async fn audit(looker: &Looker, followed: &Followed, namespaces: &[String]) -> Result<(), LookError> {
    let everywhere = namespaces.is_empty() || !followed.api.namespaced;
    let scopes: Vec<Option<&str>> =
        if everywhere { vec![None] } else { namespaces.iter().map(|n| Some(n.as_str())).collect() };
    for scope in scopes {
        // What is held now and not in a list that begins now is gone; what comes in between is not in this set.
        let held = reads::held(&looker.reflector, followed.interest.id, scope);
        let listed = look_metadata(&looker.client, &followed.api, scope, None).await?;
        let mut drifts = Vec::new();
        for read in reads::differing(&looker.reflector, &followed.interest, held, &listed, MOST) {
            drifts.extend(looker.read(&read).await.news);
        }
        if !drifts.is_empty() {
            warn!(kind = %followed.api, objects = drifts.len(), "the audit found what the watch had not brought yet");
            looker.check(drifts, "audit").await;
        }
    }
    Ok(())
}
