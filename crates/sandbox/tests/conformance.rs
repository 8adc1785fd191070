//! The sandbox passes the conformance cases; the acceptance tests run the same cases on a real control plane.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use sandbox::conformance::{ServerEndpoint, all_cases, check_server};
use sandbox::{SandboxOptions, SandboxServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_the_sandbox() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let failures =
        check_server(&ServerEndpoint { url: server.url(), ..ServerEndpoint::default() }).await.unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn cases_have_names_of_their_own_and_something_to_show() {
    let cases = all_cases();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 150, "{} cases", cases.len());
    for case in &cases {
        let shows = |step: &sandbox::conformance::CaseStep| {
            step.status.is_some() || step.moved.is_some() || step.events.is_some() || !step.expect.is_empty()
        };
        assert!(case.steps.iter().any(shows), "{} cannot fail", case.name);
    }
}
