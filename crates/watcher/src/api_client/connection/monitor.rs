//! A cheap read every ten seconds that shows whether the connections are alive.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::{Instant, sleep, timeout};

use super::transport::{LivenessRead, PoolSlot};

/// Path of the liveness reads. It costs the server nothing, and every client may read it. Any answer will do.
const LIVENESS_PATH: &str = "/version";
/// Interval of the liveness reads. 10 s.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time that a liveness read may take. 5 s.
const LIVENESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Shortest time between two, whatever gives reason for doubt. 2 s.
const MIN_LIVENESS_INTERVAL: Duration = Duration::from_secs(2);

/// What a look at the connections showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionCheck {
    /// The pool answers.
    Answered,
    /// It did not, and a new one did: it was replaced.
    Replaced,
    /// It answers with certificates that are no longer in use; one with the new ones did too, and took its place.
    Renewed,
    /// Nor did a new one: it is not the connections.
    Unreachable,
}

/// Looks after the connections of one client: a pool that does not answer is replaced as a whole, if a new one does.
///
/// **Invariant:** connections are given up only when a new one was answered. A server that is slow or gone is asked once in a
/// while, and whatever still stands is left as it is.
pub struct ConnectionMonitor {
    client: kube::Client,
    slot: Arc<PoolSlot>,
}

impl ConnectionMonitor {
    pub(super) fn new(client: kube::Client, slot: Arc<PoolSlot>) -> Self {
        ConnectionMonitor { client, slot }
    }

    /// Looks after the connections until it is dropped; `on_replaced` is called for every pool that is given up because it did not
    /// answer, and `on_restored` whenever the server answers over other connections than before, or after it did not.
    pub async fn run(self, mut on_replaced: impl FnMut(), mut on_restored: impl FnMut()) {
        let mut was_reachable = true;
        loop {
            let check = self.check_connections().await;
            if check == ConnectionCheck::Replaced {
                on_replaced();
            }
            let is_reachable = check != ConnectionCheck::Unreachable;
            if is_reachable && (!was_reachable || check != ConnectionCheck::Answered) {
                on_restored();
            }
            was_reachable = is_reachable;
            sleep(MIN_LIVENESS_INTERVAL).await;
            tokio::select! {
                () = self.slot.wait_for_doubt() => {}
                () = sleep(LIVENESS_INTERVAL.saturating_sub(MIN_LIVENESS_INTERVAL)) => {}
            }
        }
    }

    pub(super) async fn check_connections(&self) -> ConnectionCheck {
        let asked_at = Instant::now();
        let current = self.slot.current_pool();
        let answers = self.is_answered(LivenessRead(current.clone())).await;
        if answers && !self.slot.is_outdated(&current) {
            return ConnectionCheck::Answered;
        }
        let fresh = self.slot.open_pool();
        match (answers, self.is_answered(LivenessRead(fresh.clone())).await) {
            (false, true) => {
                self.slot.replace_pool(fresh, asked_at);
                ConnectionCheck::Replaced
            }
            // A connection outlives the certificate that it was made with, and the server may not: what is quiet is opened
            // again at once.
            (true, true) => {
                self.slot.replace_pool(fresh, Instant::now());
                ConnectionCheck::Renewed
            }
            // The server does not know them yet.
            (true, false) => ConnectionCheck::Answered,
            (false, false) => ConnectionCheck::Unreachable,
        }
    }

    /// Whether a pool brings an answer in time, whatever it says.
    async fn is_answered(&self, pool: LivenessRead) -> bool {
        let Ok(mut request) = Request::get(LIVENESS_PATH).body(Body::empty()) else { return false };
        request.extensions_mut().insert(pool);
        let read = async {
            // Read to its end, so that the connection can be used for the next.
            self.client.send(request).await?.into_body().collect().await
        };
        timeout(LIVENESS_TIMEOUT, read).await.is_ok_and(|answer| answer.is_ok())
    }
}

#[cfg(test)]
mod tests;
