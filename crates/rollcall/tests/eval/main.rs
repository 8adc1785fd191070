//! `rollcall eval`, as the built binary: its output and exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod user_rules;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Result of one run.
struct EvalRun {
    out: String,
    err: String,
    code: i32,
}

impl EvalRun {
    fn json(&self) -> Vec<Value> {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }

    /// Returns one field of every element.
    fn all(&self, field: &str) -> Vec<String> {
        self.json().iter().map(|element| element[field].as_str().unwrap_or("null").to_owned()).collect()
    }

    fn says(&self, parts: &[&str]) {
        let line = self.err.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        assert!(line.is_some(), "no line with {parts:?} in:\n{}", self.err);
    }
}

fn eval(args: &[&str], input: &[u8]) -> EvalRun {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rollcall"))
        .arg("eval")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    EvalRun {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

/// Evaluates a text and returns the `-o json` output.
fn judge(text: &str) -> EvalRun {
    eval(&["-f", "-", "-o", "json"], text.as_bytes())
}

/// Returns a directory of this test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n";
const BAD: &str = "apiVersion: x.io/v1\nkind: Db\nmetadata: {name: b}\nstatus: {phase: Failed}\n";

#[test]
fn one_array_in_the_order_of_the_input() {
    let done = judge(&format!("{BAD}---\n{GOOD}---\n{BAD}"));
    let first = &done.json()[0];
    let keys: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["apiVersion", "kind", "message", "name", "namespace", "reason", "rule", "verdict"]);
    assert_eq!(done.all("kind"), ["Db", "ConfigMap", "Db"]);
    assert_eq!(done.all("verdict"), ["Failed", "Ready", "Failed"]);
    assert_eq!(first["rule"], "status.phase is \"Failed\"");
    assert_eq!((done.code, done.err.as_str()), (1, ""));
}

#[test]
fn the_exit_code_tells_ready_from_not_ready_from_cannot_tell() {
    let cases = [
        (GOOD.to_owned(), 0),
        (BAD.to_owned(), 1),
        (format!("{GOOD}---\n{BAD}"), 1),
        (format!("{GOOD}---\na: [\n"), 2),
        (format!("{BAD}---\na: [\n"), 1),
        (String::new(), 2),
        ("--- \n# nothing\n".to_owned(), 2),
        ("apiVersion: x.io/v1\nkind: Db\nmetadata: {name: b}\n".to_owned(), 1),
    ];
    for (input, code) in cases {
        assert_eq!(judge(&input).code, code, "{input}");
    }
    assert_eq!(eval(&["-f", "/no/such/file"], b"").code, 2);
    assert_eq!(eval(&[], b"").code, 2);
    assert_eq!(eval(&["-f", "-", "--profile", "nobody"], b"").code, 2);
}

#[test]
fn messy_objects_are_judged() {
    let cases = [
        ("status is JSON true", "kind: Db\nstatus: {conditions: [{type: Ready, status: true}]}", "Ready"),
        (
            "status is JSON false",
            "kind: Db\nstatus: {conditions: [{type: Ready, status: false}]}",
            "Progressing",
        ),
        ("status is null", "kind: Db\nstatus: null", "Unknown"),
        ("conditions are no list", "kind: Db\nstatus: {conditions: 7, phase: Running}", "Ready"),
        ("conditions are null", "kind: Db\nstatus: {conditions: null, phase: Running}", "Ready"),
        ("no metadata", "apiVersion: v1\nkind: ConfigMap", "Ready"),
        ("metadata is null", "apiVersion: v1\nkind: ConfigMap\nmetadata: null", "Ready"),
        ("metadata is a list", "apiVersion: v1\nkind: ConfigMap\nmetadata: []", "Ready"),
        ("status is a list", "kind: Db\nstatus: []", "Unknown"),
        (
            "a condition is null",
            "kind: Db\nstatus: {conditions: [null, 3, {type: Ready, status: 'True'}]}",
            "Ready",
        ),
        ("a condition has no type", "kind: Db\nstatus: {conditions: [{status: 'True'}]}", "Unknown"),
        ("a type is a number", "kind: Db\nstatus: {conditions: [{type: 3, status: 'True'}]}", "Unknown"),
    ];
    for (what, input, verdict) in cases {
        let done = judge(input);
        assert_eq!(done.all("verdict"), [verdict], "{what}: {}{}", done.out, done.err);
        assert_eq!(done.err, "", "{what}");
    }
}

#[test]
fn an_empty_document_is_no_element() {
    for input in [format!("{GOOD}---\n"), format!("---\n{GOOD}---\n\n---\n# end\n"), format!("{GOOD}...\n")] {
        let done = judge(&input);
        assert_eq!((done.json().len(), done.code, done.err.as_str()), (1, 0, ""), "{input}");
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_judged() {
    let helm =
        "kind: Service\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  {{- if .Values.x }}\n  a: 1\n";
    let cases = [
        ("not YAML", "a: [1, 2\nb: c\n", vec!["standard input:6", "document 2", "not YAML"]),
        ("a tab", "kind: Db\n\ta: b\n", vec!["standard input:6", "document 2", "Db", "not YAML"]),
        ("a template", helm, vec!["standard input:10", "document 2", "Service shop/web", "helm template"]),
        ("a template's value", "kind: Db\na: {{ .Values.a }}\n", vec!["document 2", "Db", "helm template"]),
        ("a text", "hello\n", vec!["document 2", "a text, not an object"]),
        ("a number", "17\n", vec!["document 2", "a number, not an object"]),
        ("no kind", "a: 1\n", vec!["document 2", "no kind"]),
        ("a list of texts", "- a\n- b\n", vec!["document 2, item 2", "a text"]),
        ("infinity", "kind: Db\na: .inf\n", vec!["standard input:6", "document 2", "JSON"]),
        ("too deep", &format!("kind: Db\na: {}\n", "[".repeat(20_000)), vec!["document 2", "10000 levels"]),
    ];
    for (what, text, parts) in cases {
        let done = judge(&format!("{GOOD}---\n{text}---\n{GOOD}"));
        assert_eq!(done.all("kind"), ["ConfigMap", "ConfigMap"], "{what}: {}", done.err);
        assert_eq!(done.code, 2, "{what}");
        done.says(&parts);
    }
    let done =
        eval(&["-f", "-", "-o", "json"], b"kind: Db\na: \"\xff\"\n---\nkind: Db\nstatus: {phase: Running}\n");
    assert_eq!((done.all("verdict"), done.code), (vec!["Ready".to_owned()], 2));
}

#[test]
fn keys_that_are_there_twice_and_long_numbers_are_told_and_judged() {
    let yaml = "kind: Db\nmetadata: {name: x}\nstatus:\n  phase: Failed\n  phase: Running\n";
    let done = judge(yaml);
    assert_eq!((done.all("verdict"), done.code), (vec!["Ready".to_owned()], 0));
    done.says(&["standard input:5: document 1", "Db x", "duplicate key \"phase\""]);

    let json =
        r#"{"kind":"Db","metadata":{"name":"x"},"status":{"phase":"Failed"},"status":{"phase":"Running"}}"#;
    let done = judge(json);
    assert_eq!((done.all("verdict"), done.code), (vec!["Ready".to_owned()], 0));
    done.says(&["standard input: document 1", "Db x", "duplicate key status"]);

    let long = |observed: &str| {
        judge(&format!(
            r#"{{"kind":"Db","metadata":{{"generation":9007199254740993}},"status":{{"phase":"Running","observedGeneration":{observed}}}}}"#
        ))
    };
    assert_eq!(long("9007199254740993").all("verdict"), ["Ready"]);
    let other = long("9007199254740992");
    assert_eq!(other.all("reason"), ["StaleGeneration"]);
    other.says(&["document 1", "metadata.generation", "2^53"]);
}

#[test]
fn objects_come_in_lists_arrays_and_streams() {
    let pod = r#"{"metadata":{"name":"p"},"status":{"phase":"Succeeded"}}"#;
    let db = r#"{"apiVersion":"x.io/v1","kind":"Db","metadata":{"name":"d"},"status":{"ready":true}}"#;
    let cases = [
        (format!("[{db},{db}]"), vec!["Db", "Db"]),
        (format!("{db}\n{db} {db}"), vec!["Db", "Db", "Db"]),
        (
            format!(r#"{{"apiVersion":"v1","items":[{db},{db}],"kind":"List","metadata":{{}}}}"#),
            vec!["Db", "Db"],
        ),
        (format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{pod},{pod}]}}"#), vec!["Pod", "Pod"]),
        (format!("{{kind: List, items: [{db}]}}"), vec!["Db"]),
        (format!("kind: List\nitems:\n- {db}\n- {db}\n---\n{db}\n"), vec!["Db", "Db", "Db"]),
        (format!("items:\n- {pod}\n-   {pod}\nkind: PodList\napiVersion: v1\n"), vec!["Pod", "Pod"]),
        ("kind: AllowList\nitems:\n- a: 1\n  kind: Db\n  status: {ready: true}\n".to_owned(), vec!["Db"]),
        (format!("[{{\"kind\":\"List\",\"items\":[{db}]}},{db}]"), vec!["Db", "Db"]),
        (r#"{"kind":"AllowList","status":{"ready":true}}"#.to_owned(), vec!["AllowList"]),
        (r#"{"kind":"List","items":[]}"#.to_owned(), vec![]),
    ];
    for (input, kinds) in cases {
        let done = judge(&input);
        assert_eq!(done.all("kind"), kinds, "{input}");
        assert!(done.all("verdict").iter().all(|verdict| verdict == "Ready"), "{input}: {}", done.out);
    }
}

#[test]
fn what_stands_before_a_fault_in_json_is_judged() {
    let done = judge(
        "[{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"},\n{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"},\n{\"kind\" 3}]",
    );
    assert_eq!((done.json().len(), done.code), (2, 2));
    done.says(&["standard input:3", "not JSON"]);
    let done = judge("{\"kind\":\"Db\",\n\"status\":");
    assert_eq!((done.json().len(), done.code), (0, 2));
    done.says(&["standard input:2", "document 1", "not JSON"]);
}

#[test]
fn words_of_yaml_mean_what_kubectl_takes_them_for() {
    let done = judge("kind: Db\nstatus:\n  conditions:\n  - type: Ready\n    status: yes\n");
    assert_eq!(done.all("verdict"), ["Ready"]);
    let yes = "apiVersion: x.io/v1\nkind: Db\nstatus: {conditions: [{type: Ready, status: yes}]}";
    let quoted = "apiVersion: x.io/v1\nkind: Db\nstatus: {conditions: [{type: Ready, status: 'True'}]}";
    let peer = |text: &str| {
        let done = eval(&["-f", "-", "-o", "json", "--profile", "kstatus"], text.as_bytes());
        done.json()[0]["profile"]["status"].clone()
    };
    // kstatus does not accept a boolean as a status.
    assert_eq!((peer(yes), peer(quoted)), ("Unknown".into(), "Current".into()));
}

#[test]
fn deep_objects_are_judged_with_and_without_a_peer() {
    for (depth, status) in [(300, "Current"), (5_000, "Unknown")] {
        let deep = format!("{}{}", "{\"a\":".repeat(depth), "1") + &"}".repeat(depth);
        let object =
            format!(r#"{{"apiVersion":"x.io/v1","kind":"Db","spec":{deep},"status":{{"ready":true}}}}"#);
        let done = eval(&["-f", "-", "-o", "json", "--profile", "kstatus"], object.as_bytes());
        assert_eq!(done.all("verdict"), ["Ready"], "{depth}: {}", done.err);
        assert_eq!(done.json()[0]["profile"]["status"], status, "{depth}");
    }
}

#[test]
fn peers_speak_in_their_own_words() {
    let stale = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, generation: 2}\nspec: {replicas: 3, \
                 updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, readyReplicas: 0, replicas: 3}\n";
    let peer = |profile: &str, input: &str| {
        let done = eval(&["-f", "-", "-o", "json", "--profile", profile], input.as_bytes());
        (done.json()[0]["profile"].clone(), done.code)
    };
    let (kstatus, code) = peer("kstatus", stale);
    assert_eq!(
        (kstatus["name"].as_str(), kstatus["status"].as_str(), code),
        (Some("kstatus"), Some("Current"), 0)
    );
    let (argocd, code) = peer("argocd", stale);
    assert_eq!((argocd["status"].as_str(), code), (Some("Progressing"), 1));
    let (argocd, code) = peer("argocd", BAD);
    assert_eq!((&argocd["status"], &argocd["message"], code), (&Value::Null, &"".into(), 2));
    let job = "apiVersion: batch/v1\nkind: Job\nstatus: {startTime: '2026-01-01T00:00:00Z', active: 1}\n";
    assert_eq!((peer("kstatus", job).1, peer("flux", job).1), (0, 1));
}

#[test]
fn the_table_names_object_verdict_reason_rule_and_message() {
    let done = eval(&["-f", "-"], format!("{GOOD}---\n{BAD}").as_bytes());
    let lines: Vec<_> = done.out.lines().collect();
    assert!(lines[0].starts_with("OBJECT") && lines[0].contains("VERDICT") && lines[0].contains("RULE"));
    assert!(lines[1].starts_with("ConfigMap shop/a   Ready"), "{}", lines[1]);
    assert!(lines[2].starts_with("Db b") && lines[2].contains("status.phase is \"Failed\""), "{}", lines[2]);
    assert!(!done.out.contains('\x1b'), "colour is for terminals");
}

#[test]
fn a_directory_stands_for_its_manifests() {
    let dir = scratch("manifests");
    std::fs::create_dir_all(dir.join("below")).unwrap();
    std::fs::write(dir.join("b.yaml"), BAD).unwrap();
    std::fs::write(dir.join("a.json"), r#"{"apiVersion":"v1","kind":"Secret"}"#).unwrap();
    std::fs::write(dir.join("notes.txt"), "not: [a manifest").unwrap();
    std::fs::write(dir.join("below/c.yml"), GOOD).unwrap();
    let path = dir.display().to_string();
    assert_eq!(eval(&["-f", &path, "-o", "json"], b"").all("kind"), ["Secret", "Db"]);
    assert_eq!(eval(&["-R", "-f", &path, "-o", "json"], b"").all("kind"), ["Secret", "Db", "ConfigMap"]);
    let named = eval(&["-f", &path, "-f", "-", "-o", "json"], b"a: [");
    named.says(&["standard input:2", "document 1"]);
}

#[test]
fn a_moment_can_be_given() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {phase: Pending}\n";
    let at = |at: &str| eval(&["-f", "-", "-o", "json", "--at", at], pod.as_bytes()).all("verdict");
    assert_eq!(at("2026-01-01T00:01:00Z"), ["Progressing"]);
    assert_eq!(at("2026-01-01T00:11:00Z"), ["Stuck"]);
}

#[test]
fn yaml_output_is_the_same_list() {
    let done = eval(&["-f", "-", "-o", "yaml"], BAD.as_bytes());
    assert!(
        done.out.contains("verdict: Failed") && done.out.starts_with("- apiVersion: x.io/v1"),
        "{}",
        done.out
    );
}
