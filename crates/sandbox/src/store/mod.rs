//! The server without a socket and without a clock.
//!
//! Every request but a watch is one call of [`SandboxStore::handle_request`]; a watch is a [`WatchCursor`] that is
//! asked for its next line. One sequence of revisions runs over all kinds, as in etcd. Identities and tokens come from
//! the seed.

mod builtin;
mod cluster_objects;
mod content_deletion;
mod controller_queue;
mod crd;
mod create;
mod decode;
mod defaults;
mod definition;
mod delete;
mod deletion_options;
mod discovery;
mod events;
mod field_set;
mod garbage_collect;
mod identity_source;
pub(crate) mod json;
mod json_patch;
mod kind;
mod kind_store;
mod limits;
mod list;
mod managed_fields;
mod merge;
mod message;
mod meta;
mod namespace_lifecycle;
mod object_storage;
mod openapi;
mod owner_index;
mod patch;
mod pod_defaults;
mod prune;
mod refusal;
mod registry;
mod resource_request;
mod response_form;
mod review;
mod route;
mod sandbox_store;
mod scale;
mod schema;
mod selector;
mod server_json;
mod structural_schema;
mod table;
mod update;
mod validate;
mod watch;
mod watch_line;

pub use message::{EpochMillis, StoreRequest, StoreResponse};
pub use refusal::StoreRefusal;
pub use sandbox_store::SandboxStore;
pub use watch::WatchCursor;
pub use watch_line::{WatchEventType, WatchLine};
