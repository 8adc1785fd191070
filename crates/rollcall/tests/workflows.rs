//! The workflows of continuous integration and of releases: what they run, and what they may.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(".github/workflows").join(name)).unwrap()
}

fn workflow(name: &str) -> Value {
    serde_saphyr::from_str(&text(name)).unwrap()
}

/// Name and content of each job.
fn jobs(workflow: &Value) -> Vec<(&String, &Value)> {
    workflow["jobs"].as_object().unwrap().iter().collect()
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().unwrap()
}

/// Everything that a job runs.
fn commands(job: &Value) -> String {
    steps(job).iter().filter_map(|step| step["run"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_others_wrote_is_named_by_commit_with_its_version_beside_it() {
    let mut used = 0;
    for name in ["ci.yml", "release.yml"] {
        for line in text(name).lines().filter_map(|line| line.trim().strip_prefix("- uses: ")) {
            let (action, version) = line.split_once(" # v").unwrap_or_else(|| panic!("no version: {line}"));
            let (_, commit) = action.split_once('@').unwrap();
            assert!(commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            assert!(version.split('.').count() == 3, "{line}");
            used += 1;
        }
        let all = jobs(&workflow(name)).iter().flat_map(|(_, job)| steps(job).to_vec()).collect::<Vec<_>>();
        assert!(all.iter().all(|step| step["uses"].is_string() != step["run"].is_string()), "{name}");
    }
    assert!(used >= 6);
}

#[test]
fn each_job_may_do_no_more_than_it_needs_and_only_what_signs_has_an_identity() {
    let (ci, release) = (workflow("ci.yml"), workflow("release.yml"));
    assert_eq!(ci["permissions"], json!({ "contents": "read" }));
    assert!(jobs(&ci).iter().all(|(_, job)| job["permissions"].is_null()));
    assert_eq!(release["permissions"], json!({}));
    for (name, job) in jobs(&release) {
        let expected = if name == "publish" {
            json!({ "contents": "write", "packages": "write", "id-token": "write" })
        } else {
            json!({ "contents": "read" })
        };
        assert_eq!(job["permissions"], expected, "{name}");
    }
    // Nothing keeps the token of the checkout.
    for (name, workflow) in [("ci", &ci), ("release", &release)] {
        for (_, job) in jobs(workflow) {
            let checkouts = steps(job)
                .iter()
                .filter(|step| step["uses"].as_str().is_some_and(|uses| uses.contains("checkout")));
            assert!(
                checkouts.map(|step| &step["with"]["persist-credentials"]).all(|keep| keep == false),
                "{name}"
            );
        }
    }
}

#[test]
fn a_change_runs_what_everybody_runs_and_a_tag_is_tested_built_and_published() {
    let (ci, release) = (workflow("ci.yml"), workflow("release.yml"));
    assert!(commands(&ci["jobs"]["run"]).contains(".ci/run"));
    assert_eq!(release["on"], json!({ "push": { "tags": ["v*"] } }));
    let job = |name: &str| &release["jobs"][name];
    assert!(commands(job("test")).contains(".ci/run"));
    assert!(commands(job("test")).contains("tests/run --older \"$before\" upgrade::"));
    assert_eq!(steps(job("test"))[0]["with"]["fetch-depth"], 0, "the release before is known by its tag");
    assert!(commands(job("build")).contains("deploy/release/run --version \"$GITHUB_REF_NAME\""));
    assert_eq!(job("publish")["needs"], json!(["test", "build"]));
    assert!(commands(job("publish")).contains("deploy/release/publish --registry"));
    // Text that others write is no part of a command.
    for workflow in [&ci, &release] {
        assert!(jobs(workflow).iter().all(|(_, job)| !commands(job).contains("${{")));
    }
    let toolchain = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(toolchain.contains("rust-version = \"1.95\""));
    for workflow in [&ci, &release] {
        for (name, job) in jobs(workflow).into_iter().filter(|(name, _)| *name != "publish") {
            assert!(commands(job).contains("rustup default 1.95."), "{name}");
        }
    }
}

#[test]
fn what_is_uploaded_is_signed_by_its_digest_with_its_sbom_and_provenance() {
    let publish = std::fs::read_to_string(root().join("deploy/release/publish")).unwrap();
    let signs = |words: &str| publish.lines().any(|line| line.starts_with(words));
    for words in [
        "image+=@$(cat \"$folder/image.digest\")",
        "cosign sign --yes --recursive \"$image\"",
        "cosign sign --yes \"$chart\"",
        "cosign attest --yes --type cyclonedx",
        "cosign attest --yes --type slsaprovenance1",
        "cosign sign-blob --yes",
    ] {
        assert!(signs(words), "{words}");
    }
}
