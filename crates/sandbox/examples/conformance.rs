//! Runs the conformance cases against a server and prints the failures: `conformance URL [TOKEN CA.pem]`. With
//! `--against URL` it runs them against both servers and prints every difference too.

use std::io;

use sandbox::conformance::{ServerEndpoint, all_cases, find_differences, run_cases};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut endpoint = ServerEndpoint { url: args.next().unwrap_or_default(), ..ServerEndpoint::default() };
    let mut against = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--against" => against = args.next(),
            _ if endpoint.token.is_none() => endpoint.token = Some(arg),
            _ => endpoint.ca = Some(std::fs::read(arg)?),
        }
    }
    let outcomes = run_cases(&endpoint, &all_cases()).await?;
    let mut held = 0;
    for outcome in &outcomes {
        held += usize::from(outcome.failures.is_empty());
        for failure in &outcome.failures {
            eprintln!("{}: {failure}", outcome.name);
        }
    }
    eprintln!("{held} of {} cases pass on {}", outcomes.len(), endpoint.url);
    if let Some(url) = against {
        let others = run_cases(&ServerEndpoint { url, ..ServerEndpoint::default() }, &all_cases()).await?;
        for difference in find_differences(&outcomes, &others) {
            match difference.allowed_reason() {
                None => eprintln!("differs: {difference}"),
                Some(why) => eprintln!("allowed ({why}): {difference}"),
            }
        }
    }
    Ok(())
}
