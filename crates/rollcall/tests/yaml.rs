//! YAML is read once: `eval`, `check` and the reader of `argocd-cm` mean and say the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::path::PathBuf;
use std::process::Command;

/// What a duplicate key is told with, wherever it stands.
const SENTENCE: &str = r#"duplicate key "kind"; the last one counts"#;

/// A file of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("yaml-{name}"));
    std::fs::write(&path, text).unwrap();
    path
}

/// Exit code, and all that was said.
fn rollcall(args: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_rollcall")).args(args).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    (output.status.code().unwrap(), said)
}

#[test]
fn a_duplicate_key_is_told_in_the_same_words_wherever_it_is_read() {
    let object = file("object", "kind: Pod\nkind: Db\nmetadata: {name: a}\nstatus: {phase: Running}\n");
    let policy = file(
        "policy",
        "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {name: db}\nspec:\n  parent:\n    group: example.com\n    kind: Pod\n    kind: Database\n",
    );
    let config = file(
        "cm.yaml",
        "kind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n  resource.customizations: |\n    kind: {health.lua: 'return {}'}\n    kind: {health.lua: 'return {}'}\n",
    );
    let [object, policy, config] = [&object, &policy, &config].map(|path| path.to_str().unwrap());

    let (code, said) = rollcall(&["eval", "-f", object]);
    assert!(code == 0 && said.contains(":2: document 1: Db a: ") && said.contains(SENTENCE), "{said}");
    assert!(said.contains("Ready"), "the last one counts: {said}");

    let (code, said) = rollcall(&["check", "-f", policy]);
    assert!(code == 1 && said.contains(&format!(":8:5: error: db: {SENTENCE}")), "{said}");
    assert!(said.contains("ok: db: Database by"), "the last one counts: {said}");

    let (code, said) = rollcall(&["eval", "-f", object, "--profile", "argocd", "--rules", config]);
    assert!(code == 2 && said.contains(&format!("resource.customizations: line 2: {SENTENCE}")), "{said}");

    let (code, said) = rollcall(&["rbac", "-f", policy]);
    assert!(code == 2 && said.contains(&format!("line 8: {SENTENCE}")), "{said}");
}

#[test]
fn a_policy_is_read_as_kubectl_reads_it() {
    let policy = "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {name: db, labels: {on: \"1\"}}\nspec:\n  parent: {group: example.com, kind: Database}\n  condition: {takeover: yes}\n";
    let (code, said) = rollcall(&["check", "-f", file("kubectl", policy).to_str().unwrap()]);
    assert!(code == 0 && said.contains("ok: db: "), "a boolean of YAML 1.1: {said}");
}
