//! The pods of a workload, as its status tells of them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::sim_budget::SimBudget;
use super::status_json::{conditions_of, has_true_condition};

/// Reason by which a Deployment says that its template is rolled out.
pub(crate) const ROLLED_OUT: &str = "NewReplicaSetAvailable";

/// How far an object that is not ready can still be counted on, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModelSteadiness {
    Unsteady,
    /// It was rolled out and available by a status that does not know its spec yet, in which more than the number of pods may
    /// differ.
    Unobserved,
    /// It is rolled out and available.
    Available,
}

/// By which budgets a workload is read, where it may have been read by others again or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetReading {
    /// By those that let it do without fewer pods.
    Narrowest,
    /// By those that let it do without more.
    Widest,
}

/// What is known of a workload beside its status, and what follows of that.
#[derive(Clone, Copy, Debug)]
struct KnownOfWorkload {
    /// What it was when all of its pods were ready last, while only their number moves.
    whole: Option<WholeModel>,
    steadiness: ModelSteadiness,
}

/// A workload all of whose pods were ready.
#[derive(Clone, Copy, Debug)]
struct WholeModel {
    replicas: i64,
    /// The generation that was observed then.
    first: i64,
    /// The newest generation since of which each has the same template as the one before.
    generation: i64,
    template: u64,
}

/// Numbers of pods, and what else counts.
#[derive(Clone, Debug)]
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
    generation: i64,
    observed: i64,
    /// Of its spec without the number of pods.
    template: u64,
    /// Labels of its pods.
    labels: BTreeMap<String, String>,
    /// By the narrowest and by the widest budgets.
    known: [KnownOfWorkload; 2],
}

impl ModelWorkload {
    /// Reads a Deployment or a StatefulSet.
    pub(super) fn read(kind: &str, object: &Value) -> Option<ModelWorkload> {
        if !matches!(kind, "Deployment" | "StatefulSet") {
            return None;
        }
        let status = &object["status"];
        let count = |field: &str| status[field].as_i64().unwrap_or(0);
        let is_deployment = kind == "Deployment";
        let says_rolled_out =
            || conditions_of(status).iter().any(|c| c["status"] == "True" && c["reason"] == ROLLED_OUT);
        let revisions_match =
            || !status["updateRevision"].is_null() && status["currentRevision"] == status["updateRevision"];
        let labels = object["spec"]["template"]["metadata"]["labels"].as_object().into_iter().flatten();
        let unknown = KnownOfWorkload { whole: None, steadiness: ModelSteadiness::Unsteady };
        let mut workload = ModelWorkload {
            wanted: object["spec"]["replicas"].as_i64().unwrap_or(1),
            replicas: count("replicas"),
            updated: count("updatedReplicas"),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
            is_rolled_out: if is_deployment { says_rolled_out() } else { revisions_match() },
            says_available: is_deployment.then(|| has_true_condition(status, "Available")),
            generation: object["metadata"]["generation"].as_i64().unwrap_or(0),
            observed: count("observedGeneration"),
            template: hash_template(&object["spec"]),
            labels: labels
                .map(|(key, of)| (key.clone(), of.as_str().unwrap_or_default().to_owned()))
                .collect(),
            known: [unknown; 2],
        };
        workload.follow(None, &[]);
        Some(workload)
    }

    /// Reads it by these budgets; `before` is what it was before this change, and whether it was ready.
    pub(super) fn follow(&mut self, before: Option<(&ModelWorkload, bool)>, budgets: &[SimBudget]) {
        let covering: Vec<SimBudget> =
            budgets.iter().copied().filter(|budget| budget.covers(&self.labels)).collect();
        let is_whole = [self.updated, self.ready, self.available].iter().all(|n| *n == self.replicas);
        let has_whole = is_whole && self.replicas > 0;
        for reading in [BudgetReading::Narrowest, BudgetReading::Widest] {
            let whole = match before {
                None => None,
                Some((before, true)) => has_whole.then_some(WholeModel {
                    replicas: self.replicas,
                    first: before.generation,
                    generation: before.generation,
                    template: before.template,
                }),
                Some((before, false)) => before.known[reading as usize].whole,
            };
            let steadiness = self.weigh(whole, &covering);
            let whole = whole.filter(|_| steadiness != ModelSteadiness::Unsteady);
            let whole = whole.map(|whole| self.carry(whole));
            self.known[reading as usize] = KnownOfWorkload { whole, steadiness };
        }
    }

    /// What it was when it was whole, beside what it is now. A generation between that was never shown may have had another
    /// template.
    fn carry(&self, whole: WholeModel) -> WholeModel {
        let follows = whole.template == self.template && self.generation <= whole.generation + 1;
        let generation = if follows || self.is_observed() { self.generation } else { whole.generation };
        let template = if self.is_observed() { self.template } else { whole.template };
        let first = if self.is_observed() { self.generation } else { whole.first };
        WholeModel { replicas: whole.replicas, first, generation, template }
    }

    /// It may also be read as before.
    pub(super) fn doubt(&mut self, before: &ModelWorkload) {
        let (now, then) = (self.known, before.known);
        let narrower = |now: KnownOfWorkload, then: KnownOfWorkload| then.steadiness < now.steadiness;
        self.known[0] = if narrower(now[0], then[0]) { then[0] } else { now[0] };
        self.known[1] = if narrower(then[1], now[1]) { then[1] } else { now[1] };
    }

    /// How far it can be counted on, read by these budgets.
    pub(super) fn steadiness(&self, reading: BudgetReading) -> ModelSteadiness {
        self.known[reading as usize].steadiness
    }

    pub(super) fn is_observed(&self) -> bool {
        self.observed == self.generation
    }

    fn weigh(&self, whole: Option<WholeModel>, budgets: &[SimBudget]) -> ModelSteadiness {
        let is_scaled_version = |whole: WholeModel| {
            whole.template == self.template && (whole.first..=whole.generation).contains(&self.observed)
        };
        let is_only_scaled = whole.is_some_and(is_scaled_version);
        let whole = whole.map(|whole| whole.replicas);
        let counted = whole.map_or(self.wanted, |whole| whole.min(self.wanted));
        let enough = if let Some(says) = self.says_available {
            let has_lost_none = whole.is_some_and(|whole| self.available >= whole);
            (says || has_lost_none)
                && self.updated == self.replicas
                && (self.wanted == 0 || self.available > 0)
        } else {
            // An eviction has to be within all of them; without any the workload may do without one pod.
            let may_miss = budgets.iter().map(|budget| budget.may_miss(counted)).min();
            let least = counted - may_miss.unwrap_or(1).max(1);
            self.wanted == 0 || self.available.min(self.updated) >= least.max(1)
        };
        match (self.is_rolled_out && enough, self.is_observed() || is_only_scaled) {
            (false, _) => ModelSteadiness::Unsteady,
            (true, false) => ModelSteadiness::Unobserved,
            (true, true) => ModelSteadiness::Available,
        }
    }
}

/// Hashes all of a spec but the number of pods.
fn hash_template(spec: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, field) in spec.as_object().into_iter().flatten().filter(|(key, _)| *key != "replicas") {
        (key, field.to_string()).hash(&mut hasher);
    }
    hasher.finish()
}
