//! Compares each profile with its peer's real code, over mutated objects.
//!
//! `ROLLCALL_KSTATUS_ORACLE`, `ROLLCALL_ENGINE_ORACLE` and `ROLLCALL_ARGOCD_ORACLE` name the binaries built from
//! `oracle/` and `tests/control-plane/argocd`, `ROLLCALL_ARGO_LIBRARY` the `resource_customizations` of the version
//! that the last one is built from; `ROLLCALL_MUTANTS` is the number of objects (default 20,000).

#![expect(clippy::print_stdout, reason = "how many were compared, and why not, is the result of these tests")]

mod cel;
mod expressions;
mod mutate;
mod oracle;
mod samples;

use std::fs;
use std::path::Path;

use readiness::Time;
use rules::PeerProfile;
use rules::lua::ScriptLibrary;
use serde::Deserialize;
use serde_json::Value;

/// A time between the creation dates that the mutations use, so that both sides agree on every Pod's age.
const NOW: Time = Time(1_800_000_000_000);

fn mutants(seed: u64, samples: &[Value]) -> Vec<Value> {
    let count = std::env::var("ROLLCALL_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    mutate::mutants(seed, count, samples)
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
    // Input on which the real code would panic is Unknown here.
    Some(if status == "Panic" { "Unknown" } else { status }.to_owned())
}

/// Returns `true` for a suspended Job, which the released kstatus does not support; the version reproduced here does.
fn suspended_job(object: &Value) -> bool {
    let suspended = |c: &Value| c["type"] == "Suspended" && c["status"] == "True";
    object["kind"] == "Job"
        && object["spec"]["suspend"] == true
        && object["status"]["conditions"].as_array().is_some_and(|list| list.iter().any(suspended))
}

#[test]
fn kstatus_and_flux_say_what_their_code_says() {
    let Some(path) = oracle::named("ROLLCALL_KSTATUS_ORACLE") else { return };
    let objects = mutants(1, &samples::all());
    let answers = oracle::ask(&path, oracle::objects(&objects));
    let ours = |profile: PeerProfile| {
        move |object: &Value| profile.judge_object(object, None, NOW).status.map(str::to_owned)
    };
    compare(&objects, &answers, ours(PeerProfile::Flux), |_, answer| status_of(answer, "flux"));
    compare(&objects, &answers, ours(PeerProfile::Kstatus), |object, answer| {
        let known = ours(PeerProfile::Kstatus)(object);
        if suspended_job(object) { known } else { status_of(answer, "kstatus") }
    });
}

/// Returns `true` for kinds whose rule ships with Argo CD as a script, which the engine alone does not have.
fn scripted(object: &Value) -> bool {
    ["CronJob", "PodDisruptionBudget", "CustomResourceDefinition"].iter().any(|kind| object["kind"] == *kind)
}

#[test]
fn argocd_says_what_its_engine_says() {
    let Some(path) = oracle::named("ROLLCALL_ENGINE_ORACLE") else { return };
    let objects: Vec<_> =
        mutants(2, &samples::all()).into_iter().filter(|object| !scripted(object)).collect();
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
            let said = PeerProfile::Argocd.judge_object(object, None, NOW);
            let message = if erroneous.contains(&object.to_string()) { String::new() } else { said.message };
            (said.status.map(str::to_owned), message)
        },
        |_, answer| {
            let message = if answer["error"] == true { "" } else { answer["message"].as_str().unwrap_or("") };
            (answer["status"].as_str().map(str::to_owned), message.to_owned())
        },
    );
}

fn yaml_files(folder: &Path, found: &mut Vec<Value>) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml") && folder.ends_with("testdata") {
            let text = fs::read_to_string(&path).expect("a readable file");
            let first = serde_norway::Deserializer::from_str(&text).next().expect("a document");
            found.push(Value::deserialize(first).expect("a file that Go can read"));
        }
    }
}

/// Returns the object without its deletion: a live Argo CD then runs the script too.
fn alive(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
    }
    object
}

#[test]
fn scripts_say_in_luau_what_they_say_in_argo_cd() {
    let Some(path) = oracle::named("ROLLCALL_ARGOCD_ORACLE") else { return };
    let Some(folder) = oracle::named("ROLLCALL_ARGO_LIBRARY") else { return };
    let library = ScriptLibrary::from_directory(Path::new(&folder)).expect("a readable library");
    let mut samples = Vec::new();
    yaml_files(Path::new(&folder), &mut samples);
    // A number beyond the range of a double prints differently if a script joins it to a string: see the module `lua`.
    let holds_monster = |object: &Value| object.to_string().contains(&u64::MAX.to_string());
    let scripted = |object: &Value| !holds_monster(object) && library.judge_object(object, NOW).is_some();
    let objects: Vec<_> = mutants(3, &samples).into_iter().map(alive).filter(scripted).collect();
    let answers = oracle::ask(&path, oracle::objects(&objects));
    println!("{} of them are errors in Go", answers.iter().filter(|a| a["error"] == true).count());
    let same = |object: &Value, answer: &Value| {
        let ours = library.judge_object(object, NOW).expect("scripted").verdict;
        // Error texts are Go's there and Luau's here.
        answer["status"] == ours.status.unwrap_or("")
            && (answer["error"] == true || answer["message"] == *ours.message)
    };
    let differ = |(object, answer): &(&Value, &Value)| !same(object, answer);
    let first: Vec<Value> =
        objects.iter().zip(&answers).filter(differ).map(|(object, _)| object.clone()).collect();
    // A script that walks a map depends in Argo CD on a random order: one of its answers must be ours.
    let again: Vec<Value> = first.iter().flat_map(|object| vec![object.clone(); 64]).collect();
    let luck = oracle::ask(&path, oracle::objects(&again));
    let wrong: Vec<_> = first
        .iter()
        .zip(luck.chunks(64))
        .filter(|(object, answers)| !answers.iter().any(|a| same(object, a)))
        .collect();
    println!("{} objects, {} by luck, {} differences", objects.len(), first.len() - wrong.len(), wrong.len());
    for (object, answers) in wrong.iter().take(5) {
        println!("ours {:?}\ntheirs {}\n{object}\n", library.judge_object(object, NOW), answers[0]);
    }
    assert!(wrong.is_empty());
}
