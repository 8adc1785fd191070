//! The world without the service: the API server's objects and policies, an object as a person would read it, and the dice
//! of faults. Time is the [timeline](crate::timeline)'s.

mod fault_dice;
mod model_workload;
mod object_model;
mod policy_manifest;
mod policy_object;
mod policy_server;
mod sim_budget;
mod sim_object_ref;
mod sim_world;
mod status_json;

pub(crate) use fault_dice::{FaultConcern, FaultDice};
pub(crate) use model_workload::{BudgetReading, ModelSteadiness, ROLLED_OUT};
pub(crate) use object_model::{
    FOREIGN_CONDITION_TYPES, FailureReach, KOPF_ANNOTATION, ModelCondition, ModelMark, ModelObject,
    ModelState, OTHER_RELEASE_WORDS, version_of,
};
pub(crate) use policy_manifest::{found_policy, spec_json};
pub(crate) use policy_object::{OTHER_RELEASE, OWN_RELEASE, SelectedBy};
pub(crate) use policy_server::{FIRST_POLICIES_MS, PolicyChange, StoredPolicy};
pub(crate) use sim_budget::{SLOT_LABEL, SimBudget, SimBudgets};
pub(crate) use sim_object_ref::SimObjectRef;
pub(crate) use sim_world::SimWorld;
pub(crate) use status_json::{conditions_of, has_true_condition};
