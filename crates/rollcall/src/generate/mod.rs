//! Configuration with which other tools read Rollcall's conditions: printed offline, applied by its owner.

mod condition_answer;
mod crd_defaults;
mod health_lua;
mod man_pages;
mod readers;
mod schema;

pub(crate) use crd_defaults::{CrdDefaultsArgs, crd_defaults_component, print_crd_defaults as crd_defaults};
pub(crate) use health_lua::{HealthLuaArgs, argocd_health, print_health_lua as health_lua};
pub(crate) use man_pages::{ManPagesArgs, write_man_pages as man_pages};
pub(crate) use readers::{ReadersArgs, print_readers as readers};
pub(crate) use schema::{drops_conditions, find_missing_defaults as missing_defaults};
