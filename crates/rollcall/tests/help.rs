//! First steps: help and the running service name what is missing, with the remedy.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use api::ReadinessPolicy;
use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb, SandboxOptions, SandboxServer};
use serde_json::{Value, json};

fn rollcall(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST").env("HOME", "/nowhere");
    command
}

fn done(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = rollcall(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

#[test]
fn help_teaches_the_order_and_names_no_command_that_is_not_there() {
    let (code, help) = done(&["--help"]);
    assert_eq!(code, Some(0));
    let (commands, steps) = help.split_once("First steps:").unwrap();
    let commands = commands.split_once("Commands:").unwrap().1.split_once("Options:").unwrap().0;
    let known: Vec<_> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty())
        .collect();
    let taught = steps.lines().filter_map(|line| line.trim().strip_prefix("rollcall ")?.split(' ').next());
    let taught: Vec<_> = taught.collect();
    assert_eq!(
        taught,
        ["demo", "suggest", "check", "eval", "install", "plan", "run", "tree", "explain", "doctor"]
    );
    assert!(taught.iter().all(|command| known.contains(command)), "{known:?}");
    assert!(steps.find("mode: shadow") < steps.find("rollcall run"), "in shadow first");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    for command in known.iter().filter(|command| **command != "help") {
        let (code, help) = done(&[command, "--help"]);
        assert!(code == Some(0) && help.contains("Usage: rollcall "), "{command}: {help}");
    }
}

#[test]
fn without_a_cluster_it_says_where_one_was_looked_for() {
    let (code, words) = done(&["run"]);
    assert_eq!(code, Some(2));
    for part in ["no cluster", "$KUBECONFIG", "~/.kube/config", "--kubeconfig", "rollcall demo"] {
        assert!(words.contains(part), "{part} is not in {words}");
    }
    let (code, words) = done(&["run", "--kubeconfig", "/no/such/file"]);
    assert!(
        code == Some(2) && words.contains("failed to read kubeconfig /no/such/file: No such file"),
        "{words}"
    );
    assert_eq!(words.matches("No such file").count(), 1, "{words}");
}

/// An in-memory cluster, and `rollcall run` against it.
struct HelpCluster {
    server: SandboxServer,
    kubeconfig: PathBuf,
}

impl HelpCluster {
    async fn set(name: &str, objects: &[Value]) -> HelpCluster {
        let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
        for object in objects {
            server.lock_store().create_object(server.now(), object.clone()).unwrap();
        }
        let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.kubeconfig"));
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": server.url() } }],
            "users": [{ "name": "it", "user": {} }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        HelpCluster { server, kubeconfig }
    }

    fn forbid(&self, group: &str, plural: &str, verb: Option<RequestVerb>) {
        let fault = InjectedFault::new(FaultAction::Forbid).on_kind(group, plural);
        self.server.faults().add(verb.into_iter().fold(fault, InjectedFault::on_verb));
    }

    /// Runs the service until it has logged all of these parts in one line.
    async fn says(&self, parts: &'static [&'static str]) {
        self.says_with(&[], parts).await;
    }

    /// Like [`HelpCluster::expect_condition`], with additional flags.
    async fn says_with(&self, flags: &[&str], parts: &'static [&'static str]) {
        let mut running = RunningChild(self.start("127.0.0.1:0").args(flags).spawn().unwrap());
        let lines = BufReader::new(running.0.stderr.take().unwrap()).lines();
        tokio::task::spawn_blocking(move || {
            let mut said = Vec::new();
            for line in lines.map_while(Result::ok) {
                if parts.iter().all(|part| line.contains(part)) {
                    return;
                }
                said.push(line);
                assert!(said.len() < 60, "{parts:?} is not in\n{}", said.join("\n"));
            }
            panic!("it ended: {}", said.join("\n"));
        })
        .await
        .unwrap();
    }

    fn start(&self, listen: &str) -> Command {
        let kubeconfig = self.kubeconfig.display().to_string();
        rollcall(&["run", "--listen", listen, "--log-format", "text", "--kubeconfig", &kubeconfig])
    }
}

/// A child process, killed when dropped.
struct RunningChild(Child);

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn crd() -> Value {
    serde_json::to_value(ReadinessPolicy::crd()).unwrap()
}

fn databases() -> Value {
    let conditions = json!({ "type": "array", "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "databases.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Database", "plural": "databases", "singular": "database" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "status": { "type": "object", "properties": { "conditions": conditions } },
                } } },
            }],
        },
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "databases" },
        "spec": {
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "group": "apps", "kind": "StatefulSet" } }],
        },
    })
}

fn database() -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Database", "metadata": { "name": "orders" } })
}

#[tokio::test]
async fn without_the_crd_it_says_how_to_install_it() {
    let scene = HelpCluster::set("no-crd", &[]).await;
    scene
        .says(&[
            "ReadinessPolicy CRD is not installed",
            "rollcall crd | kubectl apply -f -",
            "--policies FILE",
        ])
        .await;
}

#[tokio::test]
async fn without_the_right_to_read_policies_it_says_who_grants_it() {
    let scene = HelpCluster::set("no-right", &[crd()]).await;
    scene.forbid("rollcall.dev", "readinesspolicies", None);
    scene
        .says(&["not permitted", "readinesspolicies.rollcall.dev", "rollcall rbac | kubectl apply -f -"])
        .await;
}

#[tokio::test]
async fn without_a_policy_it_says_how_to_write_one() {
    let scene = HelpCluster::set("no-policy", &[crd()]).await;
    scene
        .says(&[
            "no ReadinessPolicy exists yet",
            "kubectl explain readinesspolicies.spec",
            "rollcall check -f",
        ])
        .await;
}

#[tokio::test]
async fn a_kind_that_is_not_installed_is_named() {
    let scene = HelpCluster::set("no-parent", &[crd(), policy()]).await;
    scene.says(&["Database", "example.com", "not installed", "waiting"]).await;
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_is_named_with_who_grants_it() {
    let scene = HelpCluster::set("no-children", &[crd(), databases(), policy()]).await;
    scene.forbid("apps", "statefulsets", None);
    scene.says(&["StatefulSet.apps", "not permitted", "rollcall rbac -f POLICY | kubectl apply -f -"]).await;
}

#[tokio::test]
async fn a_parent_that_may_not_be_written_is_named_with_who_grants_it() {
    let scene = HelpCluster::set("no-write", &[crd(), databases(), policy(), database()]).await;
    scene.forbid("example.com", "databases", Some(RequestVerb::Patch));
    scene
        .says(&[
            "default/orders",
            "failed to patch status",
            "not permitted",
            "rollcall rbac -f POLICY | kubectl apply -f -",
        ])
        .await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_the_way_out() {
    let scene = HelpCluster::set("taken", &[]).await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let mut command = scene.start(&taken);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words.contains(&format!("failed to listen on {taken}")) && words.contains("--listen"), "{words}");
}

#[tokio::test]
async fn without_the_right_to_hold_the_lease_it_says_who_grants_it() {
    let scene = HelpCluster::set("no-lease", &[crd()]).await;
    scene.forbid("coordination.k8s.io", "leases", None);
    scene
        .says_with(
            &["--leader-elect"],
            &["not permitted to hold lease rollcall", "rollcall rbac", "--leader-elect=false"],
        )
        .await;
}

/// Every Rust file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// The text of a source with its literals in one piece each, where they go on in the next line.
fn joined_literals(source: &str) -> String {
    let mut pieces = source.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.trim_start())
}

#[test]
fn every_option_that_a_message_names_is_one_of_its_command() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut looked_at = 0;
    for file in ["controller", "policy", "core", "api", "rollcall"]
        .iter()
        .flat_map(|name| sources(&crates.join(name).join("src")))
    {
        let text = joined_literals(&std::fs::read_to_string(&file).unwrap());
        for named in text.split("`rollcall ").skip(1).filter_map(|rest| rest.split(['`', '\n']).next()) {
            let command = named.split(' ').next().unwrap();
            for option in named.split([' ', '=']).filter(|word| word.starts_with("--") && word.len() > 2) {
                let (code, help) = done(&[command, "--help"]);
                let is_there = help.split([' ', '\n', '=']).any(|word| word == option);
                assert!(code == Some(0) && is_there, "`rollcall {named}` in {}", file.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 5, "{looked_at} options");
}
