//! The behaviours that the sandbox shares with a real control plane, as data, and the runner that verifies them on
//! either.
//!
//! A case is a list of steps: requests with their expected answers, and watches with their expected events. Each case
//! runs in a namespace of its own; the custom resources that the cases use are installed once per run.

mod case;
mod client;
mod differ;
mod fixture;
mod judge;
mod lines;
mod run;

use std::io;

pub use case::{CaseStep, ConformanceCase};
pub use client::ServerEndpoint;
pub use differ::{AnswerDifference, find_differences};
pub use run::{CaseExchange, CaseOutcome};

/// All cases, in the order of their files.
pub fn all_cases() -> Vec<ConformanceCase> {
    const CASE_FILES: [&str; 15] = [
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
    CASE_FILES.iter().flat_map(|text| case::parse_cases(text)).collect()
}

/// Runs cases against a server, several at a time. An error means that the server could not be prepared; a case that
/// fails is a [`CaseOutcome`] with failures.
pub async fn run_cases(endpoint: &ServerEndpoint, cases: &[ConformanceCase]) -> io::Result<Vec<CaseOutcome>> {
    run::run_all(endpoint, cases).await
}

/// Runs every case against a server and returns one line per failure; none means full agreement.
pub async fn check_server(endpoint: &ServerEndpoint) -> io::Result<Vec<String>> {
    let outcomes = run_cases(endpoint, &all_cases()).await?;
    let lines = outcomes.into_iter().flat_map(|outcome| {
        let name = outcome.name;
        outcome.failures.into_iter().map(move |failure| format!("{name}: {failure}"))
    });
    Ok(lines.collect())
}
