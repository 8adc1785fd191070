//! The pods of a workload, as its status tells of them.

use serde_json::Value;

use super::status_json::{conditions_of, has_true_condition};

/// Reason by which a Deployment says that its template is rolled out.
pub(crate) const ROLLED_OUT: &str = "NewReplicaSetAvailable";

/// How far an object that is not ready can still be counted on, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModelSteadiness {
    Unsteady,
    /// It was rolled out and available by a status that does not know its spec yet.
    Unobserved,
    /// It is rolled out and available.
    Available,
}

/// Numbers of pods, and what else counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelWorkload {
    wanted: i64,
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
    /// All pods are of its template, by its own word.
    is_rolled_out: bool,
    /// It may do without those that are away, by its own word; `None` where it says nothing, and may do without one.
    says_available: Option<bool>,
    is_observed: bool,
    /// Pods that it had when all were ready last, while only their number moves.
    whole: Option<i64>,
}

impl ModelWorkload {
    /// Reads a Deployment or a StatefulSet.
    pub(super) fn read(kind: &str, object: &Value) -> Option<ModelWorkload> {
        let status = &object["status"];
        let count = |field: &str| status[field].as_i64().unwrap_or(0);
        let is_deployment = kind == "Deployment";
        let says_rolled_out =
            || conditions_of(status).iter().any(|c| c["status"] == "True" && c["reason"] == ROLLED_OUT);
        let revisions_match =
            || !status["updateRevision"].is_null() && status["currentRevision"] == status["updateRevision"];
        matches!(kind, "Deployment" | "StatefulSet").then(|| ModelWorkload {
            wanted: object["spec"]["replicas"].as_i64().unwrap_or(1),
            replicas: count("replicas"),
            updated: count("updatedReplicas"),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
            is_rolled_out: if is_deployment { says_rolled_out() } else { revisions_match() },
            says_available: is_deployment.then(|| has_true_condition(status, "Available")),
            is_observed: status["observedGeneration"] == object["metadata"]["generation"],
            whole: None,
        })
    }

    /// It was ready before this change, or (with `unready`) was not.
    pub(super) fn follow(&mut self, unready: Option<&ModelWorkload>) {
        let is_whole = [self.updated, self.ready, self.available].iter().all(|n| *n == self.replicas);
        let now = (is_whole && self.replicas > 0).then_some(self.replicas);
        self.whole = unready.map_or(now, |before| before.whole);
        if self.steadiness() == ModelSteadiness::Unsteady {
            self.whole = None;
        }
    }

    pub(super) fn steadiness(&self) -> ModelSteadiness {
        let counted = self.whole.map_or(self.wanted, |whole| whole.min(self.wanted));
        let enough = match self.says_available {
            Some(says) => {
                let has_lost_none = self.whole.is_some_and(|whole| self.available >= whole);
                (says || has_lost_none)
                    && self.updated == self.replicas
                    && (self.wanted == 0 || self.available > 0)
            }
            None => self.wanted == 0 || self.available.min(self.updated) >= (counted - 1).max(1),
        };
        match (self.is_rolled_out && enough, self.is_observed) {
            (false, _) => ModelSteadiness::Unsteady,
            (true, false) => ModelSteadiness::Unobserved,
            (true, true) => ModelSteadiness::Available,
        }
    }
}
