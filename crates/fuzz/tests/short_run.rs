//! Every target over its corpus, and over seeded mutations of it: the same ones each time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fuzz::{FUZZ_TARGETS, FuzzTarget, InputMutator};
use timer::Seed;

/// Mutations of each target, without optimisation a few seconds.
const MUTATIONS: usize = 600;

fn corpus_folder(target: &FuzzTarget) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The inputs of a corpus, in the order of their names.
fn corpus(target: &FuzzTarget) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(corpus_folder(target)).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let name = |file: &Path| file.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), std::fs::read(file).unwrap())).collect()
}

fn run(target: &FuzzTarget, what: &str, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let kept = std::env::temp_dir().join(format!("rollcall-fuzz-{}", target.name));
        std::fs::write(&kept, input).unwrap();
        panic!("{} does not hold for {what}, kept in {}", target.name, kept.display());
    }
}

#[test]
fn every_input_of_the_corpus_and_seeded_mutations_of_it_hold() {
    let run_target = |target: &FuzzTarget| {
        let corpus = corpus(target);
        assert!(corpus.len() >= 5, "{} has hardly a corpus", target.name);
        for (name, input) in &corpus {
            run(target, name, input);
        }
        let inputs: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
        let mut mutator = InputMutator::new(Seed(1), &inputs, target.words);
        for at in 0..MUTATIONS {
            run(target, &format!("mutation {at}"), &mutator.next_input());
        }
    };
    std::thread::scope(|scope| {
        for target in &FUZZ_TARGETS {
            scope.spawn(|| run_target(target));
        }
    });
}

#[test]
fn the_corpus_is_small_and_every_folder_of_it_is_one_of_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut folders: Vec<String> = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(folders, FUZZ_TARGETS.map(|target| target.name));
    for target in &FUZZ_TARGETS {
        let bytes: usize = corpus(target).iter().map(|(_, input)| input.len()).sum();
        assert!(bytes < 64 * 1024, "{}: {bytes} bytes", target.name);
    }
}

#[test]
fn mutations_are_the_same_each_time_and_differ_among_themselves() {
    let corpus = [b"{\"a\": [1, 2]}".to_vec(), b"spec.parts[*]".to_vec()];
    let inputs = |seed| {
        let mut mutator = InputMutator::new(Seed(seed), &corpus, &["word"]);
        (0..200).map(|_| mutator.next_input()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
    let distinct: std::collections::BTreeSet<_> = inputs(1).into_iter().collect();
    assert!(distinct.len() > 150, "{}", distinct.len());
}
