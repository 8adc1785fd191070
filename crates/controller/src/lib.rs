//! I/O out and wiring: supervised tasks, the one loop that reads the clock, writer, metrics, admin.
//!
//! [`core`] is the loop without clock and wire; everything else is behind the feature `io`.

pub mod core;

#[cfg(feature = "io")]
mod admin;
#[cfg(feature = "io")]
pub mod args;
#[cfg(feature = "io")]
mod audit;
#[cfg(feature = "io")]
mod clock;
#[cfg(feature = "io")]
pub mod crd;
#[cfg(feature = "io")]
mod drive;
#[cfg(feature = "io")]
mod events;
#[cfg(feature = "history")]
pub mod history;
#[cfg(feature = "io")]
pub mod inspect;
#[cfg(feature = "io")]
mod kinds;
#[cfg(feature = "io")]
pub mod lease;
#[cfg(feature = "io")]
mod look;
#[cfg(feature = "io")]
mod metrics;
#[cfg(feature = "io")]
pub mod offline;
#[cfg(feature = "io")]
mod page;
#[cfg(feature = "io")]
mod patience;
#[cfg(feature = "io")]
pub mod policies;
#[cfg(feature = "io")]
pub mod rbac;
#[cfg(feature = "io")]
mod records;
#[cfg(feature = "io")]
pub mod release;
#[cfg(feature = "io")]
mod run;
#[cfg(feature = "io")]
mod snapshot;
#[cfg(feature = "io")]
pub mod transitions;
#[cfg(feature = "io")]
mod writer;

#[cfg(feature = "io")]
pub use clock::ServerClock;
#[cfg(feature = "io")]
pub use drive::Trees;
#[cfg(feature = "fixtures")]
#[doc(hidden)]
pub use metrics::hostile::Hostile;
#[cfg(feature = "io")]
pub use run::{Service, run};
