//! What is ready: the facts of one object in, a verdict out; the verdicts of many in, a condition out.
//!
//! Pure: no I/O, no clock, no async, no dependency.

mod assess;
mod branch;
mod custom;
mod facts;
mod holder;
mod kind;
mod reason;
mod refused;
pub mod rollup;
mod rules;
mod since;
mod text;
mod time;
mod verdict;

pub use assess::{Limits, assess, before_rules, outcome, why};
pub use branch::Branch;
pub use custom::{counts, now, tells, tells_within, weight};
pub use facts::{
    Condition, Container, Containers, Count, Exit, Facts, Name, Owner, Place, Spec, Status, Truth, Word,
};
pub use holder::{Held, Holder, holder};
pub use kind::Kind;
pub use reason::{Counted, Custom, Reason};
pub use refused::{Attempt, Lack, lacks_pods, refused};
pub use since::{Moment, Since, since};
pub use text::Text;
pub use time::Time;
pub use verdict::{Assessment, Level, Verdict};
