//! What the sandbox and a real control plane have to agree on, as data, and the runner that asks either of them.
//!
//! A case is a list of steps: requests with what they have to answer, watches with what they have to tell. Each case
//! runs in a namespace of its own; the custom resources it uses are installed once per run.

mod case;
mod client;
mod differ;
mod fixture;
mod judge;
mod lines;
mod run;

use std::io;

pub use case::{Case, Step};
pub use client::Endpoint;
pub use differ::{Difference, differences};
pub use run::{Exchange, Outcome};

/// All cases, in the order of their files.
pub fn cases() -> Vec<Case> {
    const FILES: [&str; 15] = [
        include_str!("cases/create.json"),
        include_str!("cases/read.json"),
        include_str!("cases/update.json"),
        include_str!("cases/merge_patch.json"),
        include_str!("cases/json_patch.json"),
        include_str!("cases/guarded.json"),
        include_str!("cases/status.json"),
        include_str!("cases/schema.json"),
        include_str!("cases/managed_fields.json"),
        include_str!("cases/delete.json"),
        include_str!("cases/list.json"),
        include_str!("cases/watch.json"),
        include_str!("cases/table.json"),
        include_str!("cases/discovery.json"),
        include_str!("cases/builtin.json"),
    ];
    FILES.iter().flat_map(|text| case::parse(text)).collect()
}

/// Runs cases against a server, one after the other. An error means that the server could not be prepared; a case that
/// does not hold is an [`Outcome`] with failures.
pub async fn run(endpoint: &Endpoint, cases: &[Case]) -> io::Result<Vec<Outcome>> {
    run::all(endpoint, cases).await
}

/// Runs every case against a server and returns what did not hold, one line per failure: empty is agreement.
pub async fn check(endpoint: &Endpoint) -> io::Result<Vec<String>> {
    let outcomes = run(endpoint, &cases()).await?;
    let lines = outcomes.into_iter().flat_map(|outcome| {
        let name = outcome.name;
        outcome.failures.into_iter().map(move |failure| format!("{name}: {failure}"))
    });
    Ok(lines.collect())
}
