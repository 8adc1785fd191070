//! Policies without a cluster: read from a file, validated, compiled, accepted, and combined into a plan; the rights
//! and CRDs that they need; and what they say of objects that are given.

mod accept;
mod admission;
mod claim_changes;
mod compile;
pub mod crd;
mod fnv;
mod former_types;
mod found_policy;
mod group_compile;
mod group_selection;
mod group_shape;
mod groups;
mod inventory;
mod kept_scripts;
mod kept_state;
mod kept_text;
mod kind_plan;
mod left_policy;
mod library_rules;
pub mod offline;
mod other_policy;
mod other_releases;
mod plan;
mod policy_checker;
mod policy_claim;
mod policy_file;
mod policy_in_use;
mod policy_rank;
mod policy_reason;
mod problem;
mod protected_kinds;
pub mod rbac;
mod ready_rule;
mod release_claims;
mod rule_changes;
mod selector;
mod stub;
mod written_conditions;
mod written_policy;
mod yaml;

pub use accept::{AcceptedSpec, PolicyBook};
pub use admission::{check_written_group_spec, check_written_spec};
pub use claim_changes::ClaimChange;
pub use compile::{CompiledPolicy, compile, compile_with, is_status_owned_by_others};
pub use former_types::FormerTypes;
pub use found_policy::{FoundPolicy, RefusedPolicy, read_policy};
pub use group_selection::{GROUP_KIND, GroupName, GroupSelection};
pub use group_shape::{
    FoundGroup, categories_of_policy, depend_on_served_kinds, fill_in_kinds, open_categories,
    policies_of_groups, policy_of_group, read_group,
};
pub use groups::{CompiledGroup, GroupCount};
pub use inventory::{ConditionInventory, PresentPolicy};
pub use kept_scripts::{KeptScripts, ScriptData, is_script_key, kept_script_text};
pub use kept_state::KeptState;
pub use kind_plan::{AwaitedInput, KindPlan};
pub use library_rules::{LibraryRules, LibraryState, UnreadLibraries, compile_library_rule};
pub use other_policy::{OtherPolicy, OtherSpecs};
pub use other_releases::OtherReleases;
pub use plan::{IdRegistry, RECORD_KIND, Released, WatchPlan, build_plan};
pub use policy_claim::PolicyClaim;
pub use policy_file::{
    NOT_AN_OBJECT_NAME, PolicyManifest, document_objects, is_object_name, parse_manifests, parse_policies,
    read_manifests, read_policies as read_file, read_text,
};
pub use policy_in_use::{KindKey, PolicyInUse};
pub use policy_rank::PolicyRank;
pub use policy_reason::PolicyReason;
pub use problem::PolicyProblem;
pub use protected_kinds::{NotAKind, PolicySettings, ProtectedKind};
pub use ready_rule::{ConfigMapName, GroupRule};
pub use release_claims::{ClaimedScope, OwnClaim, PolicyClaims, ReleaseIdentity};
pub use rule_changes::changed_rules;
pub use selector::parse_label_selector as parse_selector;
pub use written_conditions::{add_conditions, conditions_of};
pub use written_policy::WrittenPolicy;
pub use yaml::to_yaml;
