//! The world without the service: the API server's objects and policies, an object as a person would read it, and the dice
//! of faults. Time is the [timeline](crate::timeline)'s.

mod fault_dice;
mod object_model;
mod policy_server;
mod sim_object_ref;
mod sim_world;

pub(crate) use fault_dice::{FaultConcern, FaultDice};
pub(crate) use object_model::{
    FOREIGN_CONDITION_TYPES, KOPF_ANNOTATION, ModelCondition, ModelMark, ModelObject, ModelState,
    conditions_of, has_true_condition,
};
pub(crate) use policy_server::{PolicyChange, StoredPolicy};
pub(crate) use sim_object_ref::SimObjectRef;
pub(crate) use sim_world::SimWorld;
