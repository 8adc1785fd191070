//! The environment of acceptance tests: a real control plane, the built binary in it, and independent checks that do
//! not use Rollcall's code.

pub mod azure;
pub mod caller;
mod certificates;
pub mod control_plane;
pub mod crd;
pub mod expectation;
pub mod gate;
pub mod guide;
pub mod half_open;
pub mod helm;
pub mod http_get;
pub mod judge;
pub mod kind;
pub mod kopf;
mod kubelet;
pub mod object_store;
pub mod objects;
pub mod peers;
pub mod places;
pub mod process;
pub mod recorder;
pub mod rollcall;
pub mod tenant;
