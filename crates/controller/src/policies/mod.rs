//! Policies: read from the cluster or from a file, checked, turned into a plan, and told what became of them.

mod changed;
mod compile;
mod file;
mod groups;
mod libraries;
mod plan;
mod ready;
mod selector;
mod status;
mod task;

pub use compile::{Compiled, Problem, belongs_to_others, compile};
pub use file::{Manifest, objects, read as read_file, read_manifests, to_yaml};
pub use groups::{CompiledGroup, GroupCount};
pub(crate) use libraries::Libraries;
pub(crate) use plan::{InUse, KindPlan, Plan, Registry, plan};
pub use ready::{ConfigMapName, GroupRule};
pub use selector::parse as parse_selector;
pub(crate) use task::Policies;
pub use task::Source;
pub(crate) use task::found;

use std::time::Duration;

use api::ReadinessPolicySpec;

/// Why a policy is not in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// `Invalid` or `Conflict`.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) why: String,
}

/// A policy as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its uid; empty where it comes from a file.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// When it was created: of two that are in each other's way the later one gives way.
    pub created: Option<readiness::Time>,
    /// Its labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Its spec, or why it is none.
    pub spec: Result<ReadinessPolicySpec, String>,
    /// Its status as last read.
    pub status: api::ReadinessPolicyStatus,
}

impl Found {
    /// Checks it; what is wrong with it in one line. `stuck_after` stands for limits that it leaves out.
    pub fn compile(&self, stuck_after: Duration) -> Result<Compiled, String> {
        let told =
            |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        compile(self.spec.as_ref().map_err(Clone::clone)?, stuck_after).map_err(told)
    }
}
