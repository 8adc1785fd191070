//! Metrics of the HTTP listeners and of the reviews of their clients.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Result};

use super::factory::MetricFactory;

/// Names of the listeners.
const LISTENER_LABELS: [&str; 2] = ["page", "probes"];

/// Connections of all listeners, and reviews of tokens.
pub(super) struct AccessMetrics {
    connections: IntGaugeVec,
    shed: IntCounterVec,
    token_reviews: IntCounterVec,
}

/// Connections of one listener.
#[derive(Clone, Debug)]
pub(crate) struct ListenerMetrics {
    /// Open connections.
    pub(crate) open: IntGauge,
    /// Connections that were closed to make room for others.
    pub(crate) evicted: IntCounter,
    /// Connections that were not accepted for lack of room.
    pub(crate) refused: IntCounter,
}

/// Reviews of tokens by outcome.
#[derive(Clone, Debug)]
pub(crate) struct TokenReviewMetrics {
    /// Tokens that the API server accepted.
    pub(crate) authenticated: IntCounter,
    /// Tokens that it did not accept.
    pub(crate) rejected: IntCounter,
    /// Reviews that had no answer.
    pub(crate) failed: IntCounter,
    /// Tokens that were not reviewed because too many had been.
    pub(crate) throttled: IntCounter,
}

impl AccessMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<AccessMetrics> {
        Ok(AccessMetrics {
            connections: make.gauge_vec("http_connections", "Open connections by listener.", &["listener"])?,
            shed: make.counter_vec(
                "http_connections_shed_total",
                "Connections that a listener closed to make room for another client (evicted), or did not accept \
                 for lack of room (refused).",
                &["listener", "outcome"],
            )?,
            token_reviews: make.counter_vec(
                "token_reviews_total",
                "Tokens of the listener's clients that were not in the cache, by outcome; those that are throttled are \
                 not sent to the API server.",
                &["outcome"],
            )?,
        })
    }

    /// Adds all series.
    pub(super) fn init_series(&self) {
        for listener in LISTENER_LABELS {
            self.listener(listener);
        }
        self.token_reviews();
    }

    fn listener(&self, name: &str) -> ListenerMetrics {
        ListenerMetrics {
            open: self.connections.with_label_values(&[name]),
            evicted: self.shed.with_label_values(&[name, "evicted"]),
            refused: self.shed.with_label_values(&[name, "refused"]),
        }
    }

    /// Handles of the listener of page, API and metrics.
    pub(super) fn page_listener(&self) -> ListenerMetrics {
        self.listener(LISTENER_LABELS[0])
    }

    /// Handles of the listener of probes.
    pub(super) fn probe_listener(&self) -> ListenerMetrics {
        self.listener(LISTENER_LABELS[1])
    }

    /// Handles of the reviews of tokens.
    pub(super) fn token_reviews(&self) -> TokenReviewMetrics {
        let outcome = |outcome: &str| self.token_reviews.with_label_values(&[outcome]);
        TokenReviewMetrics {
            authenticated: outcome("authenticated"),
            rejected: outcome("rejected"),
            failed: outcome("failed"),
            throttled: outcome("throttled"),
        }
    }
}
