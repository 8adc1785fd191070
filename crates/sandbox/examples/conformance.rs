//! Asks a server what the sandbox and a real control plane have to agree on, and prints what does not hold:
//! `conformance URL [TOKEN CA.pem]`. With `--against URL`, both are asked and every difference is printed too.

use std::io;

use sandbox::conformance::{Endpoint, cases, differences, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut endpoint = Endpoint { url: args.next().unwrap_or_default(), ..Endpoint::default() };
    let mut against = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--against" => against = args.next(),
            _ if endpoint.token.is_none() => endpoint.token = Some(arg),
            _ => endpoint.ca = Some(std::fs::read(arg)?),
        }
    }
    let outcomes = run(&endpoint, &cases()).await?;
    let mut held = 0;
    for outcome in &outcomes {
        held += usize::from(outcome.failures.is_empty());
        for failure in &outcome.failures {
            eprintln!("{}: {failure}", outcome.name);
        }
    }
    eprintln!("{held} of {} cases hold on {}", outcomes.len(), endpoint.url);
    if let Some(url) = against {
        let others = run(&Endpoint { url, ..Endpoint::default() }, &cases()).await?;
        for difference in differences(&outcomes, &others) {
            match difference.left_out() {
                None => eprintln!("differs: {difference}"),
                Some(why) => eprintln!("left out ({why}): {difference}"),
            }
        }
    }
    Ok(())
}
