//! Each profile against its peer's real code, over objects gone wrong in every way.
//!
//! `ROLLCALL_KSTATUS_ORACLE` and `ROLLCALL_ENGINE_ORACLE` name the binaries built from `oracle/`;
//! `ROLLCALL_MUTANTS` says how many objects (20,000 where it says nothing).

#![expect(clippy::print_stdout, reason = "how many were compared, and why not, is the result of these tests")]

mod mutate;
mod oracle;
mod samples;

use readiness::Time;
use rules::Profile;
use serde_json::Value;

/// Between the creation dates that the mutations know, so that both sides agree on every Pod's age.
const NOW: Time = Time(1_800_000_000_000);

fn mutants(seed: u64) -> Vec<Value> {
    let count = std::env::var("ROLLCALL_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    mutate::mutants(seed, count)
}

/// Fails with the first few objects on which `ours` and `theirs` differ.
fn compare<T: PartialEq + std::fmt::Debug>(
    objects: &[Value],
    answers: &[Value],
    ours: impl Fn(&Value) -> T,
    theirs: impl Fn(&Value, &Value) -> T,
) {
    let mut differences = 0;
    for (object, answer) in objects.iter().zip(answers) {
        let (our, their) = (ours(object), theirs(object, answer));
        if our != their {
            differences += 1;
            if differences <= 5 {
                println!("ours {our:?}\ntheirs {their:?} of {answer}\n{object}\n");
            }
        }
    }
    println!("{} objects, {differences} differences", objects.len());
    assert_eq!(differences, 0);
}

fn status_of(answer: &Value, peer: &str) -> Option<String> {
    let status = answer[peer]["status"].as_str()?;
    // Where the real code would take its process down, we say that we do not know.
    Some(if status == "Panic" { "Unknown" } else { status }.to_owned())
}

/// The released kstatus does not yet know a suspended Job; what we reproduce does.
fn suspended_job(object: &Value) -> bool {
    let suspended = |c: &Value| c["type"] == "Suspended" && c["status"] == "True";
    object["kind"] == "Job"
        && object["spec"]["suspend"] == true
        && object["status"]["conditions"].as_array().is_some_and(|list| list.iter().any(suspended))
}

#[test]
fn kstatus_and_flux_say_what_their_code_says() {
    let Some(path) = oracle::named("ROLLCALL_KSTATUS_ORACLE") else { return };
    let objects = mutants(1);
    let answers = oracle::ask(&path, oracle::objects(&objects));
    let ours = |profile: Profile| move |object: &Value| profile.judge(object, NOW).status.map(str::to_owned);
    compare(&objects, &answers, ours(Profile::Flux), |_, answer| status_of(answer, "flux"));
    compare(&objects, &answers, ours(Profile::Kstatus), |object, answer| {
        let known = ours(Profile::Kstatus)(object);
        if suspended_job(object) { known } else { status_of(answer, "kstatus") }
    });
}

/// Kinds whose rule ships with Argo CD as a script, which the engine alone does not have.
fn scripted(object: &Value) -> bool {
    ["CronJob", "PodDisruptionBudget", "CustomResourceDefinition"].iter().any(|kind| object["kind"] == *kind)
}

#[test]
fn argocd_says_what_its_engine_says() {
    let Some(path) = oracle::named("ROLLCALL_ENGINE_ORACLE") else { return };
    let objects: Vec<_> = mutants(2).into_iter().filter(|object| !scripted(object)).collect();
    let answers = oracle::ask(&path, oracle::objects(&objects));
    let errors = answers.iter().filter(|a| a["error"] == true).count();
    println!("{errors} of them are errors in Go, where the message is ours");
    let erroneous: std::collections::BTreeSet<String> = objects
        .iter()
        .zip(&answers)
        .filter(|(_, a)| a["error"] == true)
        .map(|(o, _)| o.to_string())
        .collect();
    compare(
        &objects,
        &answers,
        |object| {
            let said = Profile::Argocd.judge(object, NOW);
            let message = if erroneous.contains(&object.to_string()) { String::new() } else { said.message };
            (said.status.map(str::to_owned), message)
        },
        |_, answer| {
            let message = if answer["error"] == true { "" } else { answer["message"].as_str().unwrap_or("") };
            (answer["status"].as_str().map(str::to_owned), message.to_owned())
        },
    );
}
