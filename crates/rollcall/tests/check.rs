//! `rollcall check`, run as a repository's CI does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::Write;
use std::process::{Command, Stdio};

fn check(policies: &str, more: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.args(["check", "-f", "-"]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.stderr(Stdio::piped()).spawn().unwrap();
    running.stdin.take().unwrap().write_all(policies.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Returns a policy whose spec continues with `more`.
fn policy(name: &str, more: &str) -> String {
    format!(
        "---\napiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {{ name: {name} }}\nspec:\n  parent: {{ group: example.com, kind: Database }}\n{more}"
    )
}

#[test]
fn a_valid_policy_says_what_it_watches_and_needs() {
    let children = "  children:\n    - kind: { group: apps, kind: StatefulSet }\n";
    let (code, said) = check(&policy("db", children), &[]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.starts_with("-:4:13: ok: db: Database by StatefulSet; condition Ready, mode write; "),
        "{said}"
    );
    let watched = "watches databases.example.com, statefulsets.apps, poddisruptionbudgets.policy; needs ";
    assert!(said.contains(watched), "{said}");
    assert!(said.contains("patch databases/status.example.com"), "{said}");
}

#[test]
fn what_is_nested_too_deep_is_named() {
    for (depth, why) in [(12_000, "nested deeper than 10000 levels"), (500, "recursion limit exceeded")] {
        let (code, said) = check(&format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth)), &[]);
        assert_eq!(code, 2, "{said}");
        assert!(said.starts_with("-:1") && said.contains(why), "{said}");
    }
}

#[test]
fn every_finding_has_its_own_place() {
    let children = "  children:\n    - kind: { kind: Pod }\n      quorum: 150%\n      ready:\n        cel:\n          current: |\n            status.phase ==\n              frobnicate(1)\n    - kind: { kind: Pod }\n      ready: { lua: 'return {' }\n";
    let (code, said) = check(&policy("db", children), &[]);
    assert_eq!(code, 1, "{said}");
    let places: Vec<&str> = said.lines().filter_map(|line| line.split(": error: ").next()).collect();
    assert_eq!(places, ["-:9:7", "-:14:15", "-:16:22"], "{said}");
    assert!(said.contains("spec.children[0].ready.cel.current: ") && said.contains("frobnicate"), "{said}");
}

#[test]
fn what_cannot_be_read_keeps_nothing_else_from_being_checked() {
    let more = "  settel: 5s\n  hold: 5\n  settle: soon\n  children:\n    - kind: { kind: Pod }\n      quorum: 150%\n      expect: { min: many }\n      ready:\n        cel:\n          current: status.phase ==\n          inProgress: 1 + 1\n          faild: 'true'\n    - { kind: { kind: Job }, ready: { lua: 5 } }\n    - {}\n";
    let (code, said) = check(&policy("db", more), &[]);
    assert_eq!(code, 1, "{said}");
    let found: Vec<&str> = said.lines().map(|line| line.split(": ").nth(3).unwrap()).collect();
    let expected = [
        "spec.settel",
        "spec.hold",
        "spec.settle",
        "spec.children[0].quorum",
        "spec.children[0].expect.min",
        "spec.children[0].ready.cel.current",
        "spec.children[0].ready.cel.inProgress",
        "spec.children[0].ready.cel.faild",
        "spec.children[1].ready.lua",
        "spec.children[2].kind",
    ];
    assert_eq!(found, expected, "{said}");
}

/// As printed by `kubectl get readinesspolicies -o yaml`.
#[test]
fn the_items_of_a_list_are_checked_each_where_it_stands() {
    let item = |text: String| {
        let text = text.trim_start_matches("---\n").trim_end().replace('\n', "\n    ");
        format!("  - {text}\n")
    };
    let good = item(policy("good", "  children:\n    - kind: { kind: Pod }\n"));
    let bad = item(policy("bad", "  children:\n    - kind: { kind: Pod }\n      quorum: 150%\n"));
    let (code, said) = check(&format!("apiVersion: v1\nkind: List\nitems:\n{good}{bad}"), &[]);
    assert_eq!(code, 1, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("-:18:11: error: bad: spec.children[0].quorum: "), "{said}");
    assert!(lines[1].starts_with("-:6:17: ok: good: "), "{said}");
}

#[test]
fn an_unknown_field_is_named_where_it_stands() {
    let (code, said) = check(&policy("db", "  settel: 5s\n"), &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("-:7:3: error: db: spec.settel: unknown field"), "{said}");
}

#[test]
fn of_two_policies_for_one_condition_the_later_one_is_wrong() {
    let (code, said) = check(&(policy("first", "") + &policy("second", "")), &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("error: second: spec.condition.type: policy first has the same parent"), "{said}");
}

#[test]
fn a_parent_whose_status_belongs_to_others_is_warned_of() {
    let text = policy("apps", "").replace("example.com, kind: Database", "argoproj.io, kind: Application");
    let (code, said) = check(&text, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("warning: apps: spec.parent.group: ") && said.contains("mode shadow"), "{said}");
}

#[test]
fn json_is_one_array_of_the_same_findings() {
    let (code, said) = check(&policy("db", "  settle: soon\n"), &["-o", "json"]);
    let findings: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, findings[0]["line"].as_u64()), (1, Some(7)), "{said}");
    assert_eq!(findings[0]["field"], "spec.settle");
    assert_eq!(findings[0]["severity"], "error");
}

#[test]
fn what_is_not_yaml_could_not_be_told() {
    let (code, said) = check("a: [\n", &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.starts_with("-:1:4: error: not YAML"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn what_is_no_name_is_refused_and_nothing_of_it_reaches_the_terminal() {
    for (name, group, field) in [
        ("db", r#""*""#, "spec.parent.group"),
        ("db", r#""x\"]\n    resources: [\"*\"]\n  - apiGroups: [\"y""#, "spec.parent.group"),
        ("db", r#""example.com\e[31m""#, "spec.parent.group"),
        (r#""db\e[2J\u202e""#, "example.com", "metadata.name"),
        (r#""db\n---""#, "example.com", "metadata.name"),
    ] {
        for mode in ["write", "shadow"] {
            let text = policy(name, &format!("  mode: {mode}\n"))
                .replace("group: example.com", &format!("group: {group}"));
            for output in ["text", "json"] {
                let (code, said) = check(&text, &["-o", output]);
                assert_eq!(code, 1, "{said}");
                assert!(said.contains(field), "{said}");
                let moves = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
                assert!(!said.contains(moves), "{said:?}");
                assert_eq!(said.contains("severity"), output == "json");
            }
        }
    }
}

#[test]
fn what_the_server_refuses_is_refused_in_its_words() {
    let more = "  settle: soon\n  children:\n    - kind: { kind: Pod }\n      quorum: 0\n";
    let (code, said) = check(&policy("db", more), &[]);
    assert_eq!(code, 1, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].ends_with("must be a duration such as 100ms, 5s, 10m or 1h30m, of at most 87600h"),
        "{said}"
    );
    assert!(lines[1].ends_with("spec.children[0].quorum: should be greater than or equal to 1"), "{said}");
    assert_eq!(lines.len(), 2, "{said}");
}

#[test]
fn a_rule_over_secrets_is_refused_where_it_stands_and_says_what_to_do() {
    let over = |kind: &str| {
        format!(
            "  children:\n    - kind: {kind}\n      ready: {{ lua: 'return {{ status = obj.data.token }}' }}\n"
        )
    };
    let (code, said) = check(&policy("db", &over("{ kind: Secret }")), &[]);
    assert_eq!(code, 1, "{said}");
    let expected = "-:9:7: error: db: spec.children[0].ready: rules never read a Secret beyond its metadata: remove ready";
    assert!(said.starts_with(expected), "{said}");
    let vault = policy("db", &over("{ group: example.com, kind: Vault }"));
    assert_eq!(check(&vault, &[]).0, 0);
    let (code, said) = check(&vault, &["--protected-kinds", "Vault.example.com,Other"]);
    assert!(code == 1 && said.contains("rules never read a Vault beyond its metadata"), "{said}");
}

#[test]
fn what_would_steer_a_terminal_is_printed_as_text() {
    let hostile =
        policy("db", "  children: [{ kind: { kind: \"Pod\\e[31m\" }, ready: { lua: \"\\e]0;x\\a\" } }]\n");
    let (code, said) = check(&hostile, &[]);
    assert_eq!(code, 1, "{said}");
    assert!(!said.contains(|letter: char| letter.is_control() && letter != '\n'), "{said:?}");
}

#[test]
fn two_policies_for_other_parents_of_a_kind_are_no_rivals_as_in_the_service() {
    let of = |name: &str, tier: &str| {
        policy(name, "  children:\n    - kind: { kind: Pod }\n").replace(
            "kind: Database }",
            &format!("kind: Database, selector: {{ matchLabels: {{ tier: {tier} }} }} }}"),
        )
    };
    let (code, said) = check(&(of("gold", "gold") + &of("silver", "silver")), &[]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = check(&(of("gold", "gold") + &of("silver", "silver") + &of("rival", "gold")), &[]);
    assert_eq!(code, 1, "{said}");
    let errors: Vec<&str> = said.lines().filter(|line| line.contains(": error: ")).collect();
    assert_eq!(errors.len(), 1, "{said}");
    assert!(errors[0].contains("error: rival: spec.condition.type: policy gold"), "{said}");
}
