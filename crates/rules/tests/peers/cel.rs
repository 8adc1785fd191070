//! CEL against cel-go with the libraries of Flux, kro and Kubernetes, and against Flux itself.
//!
//! `ROLLCALL_CEL_ORACLE` names the binary built from `oracle/cel`, `ROLLCALL_KSTATUS_ORACLE` that from `oracle/kstatus`.

use std::collections::BTreeMap;

use readiness::Level;
use rollcall_cel::{ObjectJson, ReadyWhen};
use rules::{CompiledRule, RuleDefinition};
use serde_json::{Value, json};

use crate::mutate::SeededRandom;
use crate::{NOW, expressions, mutants, oracle, samples};

/// Returns the result as a word: `true`, `false`, `error`, or `refused` at compile time.
fn ours(source: &str, object: &Value) -> (String, String) {
    let rule = match ReadyWhen::compile(&[source], None) {
        Ok(rule) => rule,
        Err((_, error)) => return ("refused".to_owned(), error.to_string()),
    };
    match rule.find_unmet(ObjectJson::Text(&object.to_string())) {
        Ok(none) => (none.is_none().to_string(), String::new()),
        Err((_, error)) if error.message.contains("yields") => ("error".to_owned(), "type".to_owned()),
        Err((_, error)) => ("error".to_owned(), error.message),
    }
}

fn theirs(answer: &Value) -> (String, String) {
    match (answer["value"].as_bool(), answer["error"].as_str(), answer["syntax"].as_str()) {
        (Some(truth), ..) => (truth.to_string(), String::new()),
        (_, Some(error), _) => ("error".to_owned(), error.to_owned()),
        (_, _, Some(error)) => ("refused".to_owned(), error.to_owned()),
        _ => ("error".to_owned(), "type".to_owned()),
    }
}

/// Returns `true` if both results agree. Errors that we find at compile time, Flux finds at run time: there it is an
/// error, or it was absorbed.
fn same(source: &str, ours: &(String, String), theirs: &(String, String)) -> bool {
    let checked = ours.0 == "refused" && ours.1.contains("found no matching overload")
        || ours.1.contains("field selection")
        || ours.1.contains("cannot be iterated")
        || ours.1.contains("no type of a key")
        || ours.1.contains("not 'bool'")
        || ours.1.contains("is not optional");
    // The order of Go's maps is random, so results that depend on it vary.
    let by_luck = source.contains("sort") && theirs.0 == "error" || source.contains("isSorted");
    // Kubernetes' own types cannot be compared with others, and such an error in a list counts as equality: by the
    // specification they are unequal.
    let opaque = ["semver(", "quantity(", "ip(", "cidr(", "url("].iter().any(|made| source.contains(made));
    let unequal = opaque && (theirs.1 == "no such overload" || source.contains([']', '}']));
    ours.0 == theirs.0 || checked || by_luck || unequal
}

#[test]
fn expressions_yield_what_cel_go_yields() {
    let Some(path) = oracle::named("ROLLCALL_CEL_ORACLE") else { return };
    let objects = mutants(4, &samples::all());
    let mut dice = SeededRandom::new(5);
    let sources: Vec<String> = objects.iter().map(|_| expressions::expression(&mut dice)).collect();
    let lines = objects.iter().zip(&sources);
    let lines = lines.map(|(object, source)| json!({"object": object, "source": source})).collect();
    let answers = oracle::ask(&path, lines);
    let (mut counts, mut differences): (BTreeMap<String, u32>, u32) = (BTreeMap::new(), 0);
    for ((object, source), answer) in objects.iter().zip(&sources).zip(&answers) {
        let (our, their) = (ours(source, object), theirs(answer));
        *counts.entry(format!("{} / {}", our.0, their.0)).or_default() += 1;
        if !same(source, &our, &their) {
            differences += 1;
            if differences <= 40 {
                println!("{source}\n  ours {our:?}\n  theirs {their:?}");
            }
        }
    }
    println!("{} expressions, {differences} differences; ours / theirs: {counts:?}", sources.len());
    assert_eq!(differences, 0);
}

/// One expression per line, each at a boundary.
const EDGES: &str = include_str!("edges.txt");

#[test]
fn edges_are_where_cel_go_has_them() {
    let Some(path) = oracle::named("ROLLCALL_CEL_ORACLE") else { return };
    let object =
        json!({"status": {"phase": "Up", "a": null, "list": [1, 2]}, "metadata": {"labels": {"a": "b"}}});
    let lines = EDGES.lines().map(|source| json!({"object": object, "source": source}));
    let answers = oracle::ask(&path, lines.collect());
    let mut differences = 0;
    for (source, answer) in EDGES.lines().zip(&answers) {
        let (our, their) = (ours(source, &object), theirs(answer));
        // A compile-time refusal here is a run-time error there.
        let refused = our.0 == "refused" && their.0 == "error";
        if our.0 != their.0 && !refused {
            differences += 1;
            println!("{source}\n  ours {our:?}\n  theirs {their:?}");
        }
    }
    println!("{} edges, {differences} differences", answers.len());
    assert_eq!(differences, 0);
}

/// Rules as Flux's users write them: `inProgress`, `failed`, `current`.
const RULES: [(Option<&str>, Option<&str>, &str); 6] = [
    (None, None, "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')"),
    (
        Some("has(status.observedGeneration) && metadata.generation != status.observedGeneration"),
        Some("status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'False')"),
        "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
    ),
    (
        Some(
            "has(status.conditions) && status.conditions.exists(e, e.type == 'Progressing' && e.status == 'True')",
        ),
        Some("has(status.phase) && status.phase in ['Failed', 'Error']"),
        "has(status.readyReplicas) && status.readyReplicas == spec.replicas",
    ),
    (
        None,
        Some("status.?phase.orValue('') == 'Failed'"),
        "status.?conditions.orValue([]).exists(c, c.?status.orValue('') == 'True')",
    ),
    (
        Some("!has(status.phase)"),
        None,
        "status.phase.lowerAscii() in ['running', 'ready', 'bound', 'active']",
    ),
    (None, None, "data.size() > 0 || spec.replicas > 0"),
];

#[test]
fn health_checks_say_what_flux_says() {
    let Some(path) = oracle::named("ROLLCALL_KSTATUS_ORACLE") else { return };
    let objects = mutants(6, &samples::all());
    let rule = |at: usize| RULES[at % RULES.len()];
    let lines = objects.iter().enumerate().map(|(at, object)| {
        let (in_progress, failed, current) = rule(at);
        let exprs = json!({"current": current, "inProgress": in_progress.unwrap_or(""), "failed": failed.unwrap_or("")});
        json!({"object": object, "cel": exprs})
    });
    let answers = oracle::ask(&path, lines.collect());
    let rules: Vec<CompiledRule> = RULES
        .iter()
        .map(|(in_progress, failed, current)| {
            CompiledRule::compile(&RuleDefinition::Cel {
                current,
                in_progress: *in_progress,
                failed: *failed,
            })
            .expect("compiles")
        })
        .collect();
    let (mut counts, mut differences): (BTreeMap<String, u32>, u32) = (BTreeMap::new(), 0);
    for (at, (object, answer)) in objects.iter().zip(&answers).enumerate() {
        let judged = rules[at % rules.len()].judge_object(ObjectJson::Tree(object), NOW);
        let our = match judged.assessment.verdict.level {
            Level::Ready => "Current",
            Level::Progressing => "InProgress",
            Level::Failed => "Failed",
            _ => "Unknown",
        };
        *counts.entry(our.to_owned()).or_default() += 1;
        if answer["cel"]["status"] != our {
            differences += 1;
            if differences <= 10 {
                println!("{:?}\n  ours {judged:?}\n  theirs {}\n{object}", rule(at), answer["cel"]);
            }
        }
    }
    println!("{} objects, {differences} differences, {counts:?}", objects.len());
    assert_eq!(differences, 0);
}
