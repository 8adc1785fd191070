//! What others need so that they read what Rollcall writes: printed offline, applied by whoever owns it.

mod crd_defaults;
mod health_lua;
mod schema;

pub(crate) use crd_defaults::{CrdDefaultsArgs, run as crd_defaults};
pub(crate) use health_lua::{HealthLuaArgs, run as health_lua};
pub(crate) use schema::missing as missing_defaults;
