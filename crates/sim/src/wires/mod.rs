//! The wires between the world and the service, which lag, break, repeat, lose and refuse: lists and watches, live reads,
//! writes of status, the watch of policies, and the threads of custom rules.

mod answered_read;
mod budget_watch;
mod claim_wire;
mod ghost_process;
mod kind_search;
mod kind_wire;
mod kind_wires;
mod line_delivery;
mod list_in_progress;
mod listed_watch;
mod live_read_wire;
mod plan_wire;
mod policy_watch;
mod resolving_watches;
mod rule_wire;
mod sim_stage;
mod status_write_wire;
mod takeovers;
mod wire_bodies;
mod write_in_flight;

pub(crate) use answered_read::{AnsweredRead, SentRead};
pub(crate) use budget_watch::BudgetWatch;
pub(crate) use kind_wire::KindWire;
pub(crate) use kind_wires::KindWires;
pub(crate) use live_read_wire::{LiveReadWire, count_drift};
pub(crate) use policy_watch::PolicyWatch;
pub(crate) use resolving_watches::ResolvedItems;
pub(crate) use rule_wire::RuleWire;
pub(crate) use sim_stage::SimStage;
pub(crate) use status_write_wire::{
    StatusWriteWire, WRITE_TIMEOUT_MS, deliver_write, describe_write, disturb_write, send_answer,
};
pub(crate) use takeovers::Takeovers;
pub(crate) use write_in_flight::{CommittedWrite, LandedWrite, WriteInFlight, WriteSender};
