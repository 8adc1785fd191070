//! The environment of acceptance tests: a real control plane, the built binary in it, and independent checks that do
//! not use Rollcall's code.

pub mod azure;
pub mod caller;
pub mod certificates;
mod component_args;
pub mod connect_proxy;
pub mod control_plane;
pub mod crd;
pub mod etcd;
pub mod expectation;
pub mod gate;
mod gate_rule;
pub mod groups;
pub mod guide;
pub mod half_open;
pub mod helm;
pub mod judge;
pub mod kind;
pub mod kopf;
pub mod kro;
mod kubelet;
mod leftovers;
pub mod object_store;
pub mod objects;
pub mod oci_registry;
pub mod peers;
pub mod places;
pub mod plain_http;
pub mod policies;
pub mod process;
pub mod recorder;
pub mod recovery;
pub mod rights;
pub mod rollcall;
pub mod rollcall_command;
pub mod tenant;
mod watch_lines;
pub mod webhook;

use std::time::Duration;

/// Longest time that a test waits for an expected state. 180 s: states come in seconds, on a busy machine in a minute.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(180);
