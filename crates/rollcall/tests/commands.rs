//! Every command in the documentation, in a block or in backticks, is run by a test or listed here with the reason why
//! not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Programs with which a command begins.
const PROGRAMS: [&str; 9] =
    ["cargo", "docker", "helm", "kopf", "kubectl", "npm", "pip", "rollcall", "tests/run"];

/// Commands run by a test that does not take them from the page: the test's file, and the text in it.
const ELSEWHERE: [(&str, &str, &str); 9] = [
    (
        "cargo run -- crd > deploy/crds/rollcall.dev.yaml",
        "tests/tests/real_server/deploy.rs",
        "fn the_generated_crds_are_those_that_the_binary_prints()",
    ),
    (
        "cargo test -p sim --test seeds",
        "crates/sim/tests/seeds.rs",
        "\"cargo test -p sim --test seeds for_every\"",
    ),
    (
        "cargo test -p sim --test perturbations",
        "crates/sim/tests/perturbations.rs",
        "\"cargo test -p sim --test perturbations every_single -- --nocapture\"",
    ),
    (
        "cargo run -p sim -- --seeds 100000",
        "crates/sim/tests/histories.rs",
        "fn as_many_histories_are_played_as_are_asked_for()",
    ),
    (
        "rollcall demo --crowd",
        "crates/rollcall/tests/crowd.rs",
        "fn the_crowd_shows_every_verdict_and_lives_until_it_is_ended()",
    ),
    (
        "rollcall man-pages --to FOLDER",
        "crates/rollcall/tests/version.rs",
        "fn each_command_that_the_help_names_has_a_manual_page_with_its_options()",
    ),
    (
        "rollcall version --output json",
        "crates/rollcall/tests/version.rs",
        "fn every_way_to_ask_for_the_version_says_the_same()",
    ),
    (
        "rollcall history KIND/NAME --rollouts --from URL",
        "tests/tests/real_server/rollout_traces.rs",
        "[\"--from\", &url, \"--rollouts\"]",
    ),
    (
        "kubectl api-resources --categories all",
        "tests/tests/real_server/group_categories.rs",
        "[\"api-resources\", \"--categories\", \"all\"]",
    ),
];

/// Commands that no test runs, with the reason.
const NOT_RUN: [(&str, &str); 10] = [
    (
        "cargo bench -p controller --bench scrape",
        "measures, and fails at nothing; metrics/tests.rs has the bound that holds everywhere",
    ),
    (
        "cargo build --profile dist --features cloud-history",
        "takes a quarter of an hour; the Dockerfile has the same, and the tests build with this feature",
    ),
    (
        "cargo run -p acceptance --example plane",
        "goes on until it is ended; each test on a real server does what it does",
    ),
    (
        "cargo run --profile dist -p bench -- edits",
        "measures the binary that it finds, for minutes, and judges nothing",
    ),
    (
        "cargo run -p sandbox --example serve",
        "goes on until it is ended; the tests of `sandbox` ask the same server",
    ),
    ("docker build -f deploy/Dockerfile -t rollcall:0.1.0 .", "takes a daemon, and images from outside"),
    ("docker build -t shop-operator:0.1.0 deploy/examples/kopf", "takes a daemon, and images from outside"),
    (
        "pip install ./deploy/examples/kopf",
        "takes the build backend from outside; the tests of Kopf import the module from beside the operator",
    ),
    ("pip install -r requirements.txt", "tests/run installs the same, in versions that are named"),
    (
        "tests/run --older v0.1.0 upgrade::",
        "builds a version that is out, from the history of the repository; the same tests run with this version alone",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns every file below a folder with this ending, by its path in the repository.
fn below(folder: &str, ending: &str) -> Vec<String> {
    let entries = read_dir(root().join(folder)).unwrap().map(Result::unwrap);
    let found = entries.flat_map(|entry| {
        let path = format!("{folder}/{}", entry.file_name().display());
        if entry.file_type().unwrap().is_dir() { below(&path, ending) } else { vec![path] }
    });
    found.filter(|path| path.ends_with(ending)).collect()
}

fn pages() -> Vec<String> {
    let mut pages = below("deploy", ".md");
    assert!(pages.len() >= 8, "{pages:?}");
    pages.extend(
        ["README.md", "crates/README.md", "dashboards/README.md", "tests/README.md"].map(str::to_owned),
    );
    pages
}

fn tests() -> Vec<String> {
    below("tests/tests", ".rs").iter().map(|file| text(file)).collect()
}

fn is_command(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(program, _)| PROGRAMS.contains(&program))
}

/// Returns the code blocks of a page: language and lines.
fn blocks(page: &str) -> Vec<(String, Vec<String>)> {
    let text = text(page);
    let blocks = text.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap());
    blocks.map(|(language, body)| (language.to_owned(), body.lines().map(str::to_owned).collect())).collect()
}

/// Returns the commands in sentences of a page, each on one line.
fn sentences(page: &str) -> BTreeSet<String> {
    let text = text(page);
    let spans = text.split("\n```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2));
    let lines = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| is_command(line)).collect()
}

#[test]
fn every_block_of_commands_is_followed_by_a_test() {
    let tests = tests();
    // The README has tests of its own: see readme.rs.
    for page in pages().iter().filter(|page| *page != "README.md") {
        let blocks = blocks(page);
        for (language, lines) in &blocks {
            let commands = lines.iter().filter(|line| is_command(line)).count();
            assert!(
                language == "sh" || commands == 0,
                "{page}: commands in a block that nobody follows: {lines:?}"
            );
        }
        let commands = blocks.iter().any(|(language, _)| language == "sh");
        let opened = format!("GuidedSteps::open(\"{page}\")");
        let test = tests.iter().find(|text| text.contains(&opened));
        assert_eq!(commands, test.is_some_and(|text| text.contains("guide.is_done()")), "{page}");
    }
}

/// Returns every command that tests run as it is written: lines of blocks, each part of a pipe, and those that tests
/// take from sentences.
fn typed() -> Vec<String> {
    let (pages, tests) = (pages(), tests());
    let lines = pages.iter().flat_map(|page| blocks(page)).filter(|(language, _)| language == "sh");
    let lines = lines.flat_map(|(_, lines)| lines);
    let parts = lines.flat_map(|line| line.split(" | ").map(str::to_owned).collect::<Vec<_>>());
    let mut typed: Vec<_> = parts.filter(|part| is_command(part)).collect();
    for page in &pages {
        let opened = format!("InlineCommands::of(\"{page}\")");
        let readers: Vec<_> = tests.iter().filter(|text| text.contains(&opened)).collect();
        let taken = |command: &String| readers.iter().any(|text| text.contains(&format!("\"{command}\"")));
        typed.extend(sentences(page).into_iter().filter(taken));
    }
    typed
}

/// Returns `true` if `said` is this command or a short form of it: `helm install --wait` for one that also names the
/// chart.
fn stands_for(said: &str, typed: &str) -> bool {
    let mut words = typed.split(' ');
    said.split(' ').take(2).all(|word| words.next() == Some(word))
        && said.split(' ').skip(2).all(|word| words.any(|of| of == word))
}

#[test]
fn every_command_of_a_sentence_is_typed_by_a_test() {
    let typed = typed();
    let elsewhere = ELSEWHERE.iter().map(|(command, ..)| *command);
    let known: BTreeSet<_> = elsewhere.chain(NOT_RUN.iter().map(|(command, _)| *command)).collect();
    let mut used = BTreeSet::new();
    for page in pages() {
        for command in sentences(&page) {
            if typed.iter().any(|line| stands_for(&command, line)) {
                continue;
            }
            assert!(known.contains(&*command), "{page} says `{command}`, which no test types");
            used.insert(command);
        }
    }
    assert!(used.iter().eq(&known), "{known:?} is more than {used:?}");
    for (command, file, words) in ELSEWHERE {
        assert!(text(file).contains(words), "{command}: no {words} in {file}");
    }
}

#[test]
fn a_shorter_word_stands_for_no_other_command() {
    let line = "helm install orders chart --wait --timeout 5m";
    for (said, stands) in [
        ("helm install", true),
        ("helm install --wait", true),
        ("helm wait", false),
        ("helm install --timeout 6m", false),
    ] {
        assert_eq!(stands_for(said, line), stands, "{said}");
    }
}
