//! Policies of the cluster: watched, confirmed where they are gone, and reported on in their status.

mod acceptance_notices;
mod conditions;
mod departures;
mod disruption_budgets;
mod grants;
mod group_policies;
mod inventory_client;
mod inventory_map;
mod kopf_log;
mod listing_grace;
mod live_policy;
mod namespace_selection;
mod own_account;
mod policy_task;
mod policy_task_state;
mod release_check;
mod right_needs;
mod rights;
mod rights_text;
mod scoped_lists;
mod script_libraries;
mod served_kinds_watch;
mod status;
mod task_inputs;
mod watched_kinds;

pub(crate) use grants::GrantSettings;
pub(crate) use inventory_client::InventorySettings;
pub use policy_task::PolicySource;
pub(crate) use policy_task::PolicyTask;
pub(crate) use watched_kinds::namespace_kind;
