//! Disturbances of a history that is otherwise calm: of a notification, or of a write. All of them together show that no single
//! moment exists at which one is fatal.
//!
//! The three patterns by which controllers are known to fail are played at every point: a state that is seen late or seen again
//! after a newer one (stale), a state that is never seen (unobserved), and a process that ends between two writes
//! (intermediate).

mod disturbance;
mod perturbed_point;
mod perturber;

pub(crate) use disturbance::HELD_MS;
pub use disturbance::{Disturbance, PointKind};
pub use perturbed_point::Perturbation;
pub(crate) use perturber::{NewProcessView, Perturber};
