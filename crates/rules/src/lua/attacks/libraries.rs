//! Hostile libraries: the keys of a ConfigMap that anyone may have written.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

/// A library in the older form, whose keys may be any text.
fn library(keys: impl IntoIterator<Item = String>) -> Result<ScriptLibrary, ArgocdConfigError> {
    // A key that is written so may be longer than 1,024 characters.
    let entry = |key| format!("? {}\n: {{ health.lua: \"return {{status = 'Healthy'}}\" }}\n", json!(key));
    let block = keys.into_iter().map(entry).collect::<String>();
    let data = [("resource.customizations".to_owned(), block)];
    ScriptLibrary::from_config_map(&BTreeMap::from(data))
}

fn lines(numbers: std::ops::Range<u32>, line: impl Fn(u32) -> String) -> String {
    numbers.map(line).collect::<Vec<_>>().concat()
}

/// Loads a library and finds the scripts of some kinds, on the stack of a worker thread.
fn load_and_search(keys: Vec<String>) -> (usize, usize, f64) {
    let run = move || {
        let (library, took) = measure_cost(|| {
            let library = library(keys.clone()).unwrap();
            for _ in 0..100 {
                library.find_script("example.com", "Database");
            }
            library
        });
        (library.len(), library.broken_scripts().count(), took)
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
}

#[test]
fn a_hostile_pattern_is_refused_and_named_and_the_others_go_on() {
    let pairs = |pair: &str, times: usize| vec![format!("a/{}", pair.repeat(times))];
    let mut others = Vec::new();
    for (name, keys, refused) in [
        ("braces in braces", vec![format!("{}{}", "{".repeat(900), "}".repeat(900))], 1),
        // These were an abort of the process, and again after each restart.
        ("90 kB of braces in braces", vec![format!("{}{}", "{".repeat(45_000), "}".repeat(45_000))], 1),
        ("open braces", pairs("{", 900), 1),
        ("90 kB of pairs", pairs("{a,b}", 18_000), 1),
        ("17 pairs", pairs("{a}", 17), 1),
        ("16 pairs of one", pairs("{a}", 16), 0),
        ("seven pairs of two", pairs("{a,b}", 7), 1),
        ("six pairs of two", pairs("{a,b}", 6), 0),
        ("a choice of many", vec![format!("{{{}}}", "a,".repeat(100))], 1),
        ("stars", pairs("*a", 250), 0),
        ("stars of two", pairs("**?", 150), 0),
        ("sets", pairs("[a-z", 100), 0),
        ("a set without end", vec![format!("[{}", "a-".repeat(200))], 0),
        ("backslashes", pairs("\\", 500), 0),
        ("a long name", vec!["a*".repeat(300)], 1),
        ("2,000 patterns", (0..2000).map(|at| format!("*{at}*/*")).collect(), 976),
        (
            "patterns that stand for many",
            (0..40).map(|at| format!("{at}{}", "{a,b}".repeat(6))).collect(),
            24,
        ),
    ] {
        let (count, total) = (keys.len(), keys.len() + 1);
        let (len, broken, took) =
            load_and_search(keys.into_iter().chain(["example.com/Database".to_owned()]).collect());
        println!("{name:32} {took:>9.3} ms  {broken} of {count} refused");
        if (len, broken) != (total, refused) {
            others.push(format!("{name}: {broken} of {len} refused, not {refused}"));
        }
        if took > 40.0 * MAX_ATTACK_MILLIS {
            others.push(format!("{name} cost {took} ms"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn a_refused_pattern_matches_nothing_and_says_why() {
    let library = library(["example.com/*".to_owned(), format!("*{}", "{a}".repeat(30_000))]).unwrap();
    assert!(library.find_script("example.com", "Database").unwrap().is_ok());
    assert!(library.find_script("other.com", "{").is_none());
    let words: Vec<_> = library.broken_scripts().map(ToString::to_string).collect();
    assert!(
        words[0].ends_with(": the pattern is longer than 512 bytes") && words[0].len() < 120,
        "{words:?}"
    );
}

#[test]
fn a_hostile_block_is_refused_as_a_whole_without_an_abort() {
    for block in [
        "[".repeat(20_000),
        "{a: ".repeat(20_000),
        "{a: ".repeat(1_000) + &"a: {}, ".repeat(20_000),
        // Closed again in strings and comments alone.
        "[']', ".repeat(9_000),
        "{a: # }\n".repeat(9_000),
        format!("{}{}", "[']',".repeat(9_000), "x,".repeat(40_000)),
        // A word that stands for half a megabyte.
        format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), "*a,".repeat(160_000)),
        format!(
            "a: &a {}\nb:\n{}",
            "x".repeat(500_000),
            lines(0..20_000, |at| format!("- {{k{at}: *a, l: *a}}\n"))
        ),
        format!("---\n- &a {}\n- [{}]\n", "x".repeat(5_000), "*a,".repeat(1_600)).repeat(100),
        // Maps merged into maps: the entries of one are looked at as often as it is named.
        format!(
            "a: &a {{{}}}\nb: {{<<: [{}]}}\n",
            lines(0..50_000, |at| format!("k{at}: 1,")),
            "*a,".repeat(150_000)
        ),
        format!("a: &a [{}]\n{}", "{},".repeat(100_000), "b: {<<: *a}\n".repeat(50_000)),
        "- ".repeat(20_000),
        "? ".repeat(20_000),
        format!("a: &a [x]\n{}", lines(0..40, |at| format!("b{at}: &b{at} [*a, *a, *a, *a, *a, *a, *a]\n"))),
        format!(
            "a0: &a0 [x]\n{}",
            lines(1..40, |at| format!("a{at}: &a{at} [*a{0}, *a{0}, *a{0}]\n", at - 1))
        ),
    ] {
        let data = BTreeMap::from([("resource.customizations".to_owned(), block)]);
        let run = move || measure_cost(|| ScriptLibrary::from_config_map(&data).is_err());
        let (refused, took) =
            std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
        println!("{took:>9.3} ms");
        assert!(refused && took < 40.0 * MAX_ATTACK_MILLIS, "{took} ms");
    }
}
