//! `rollcall demo --crowd`, as somebody uses it who looks around.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longest time to wait for an answer; far longer than anything takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Poll interval and number of polls: a list has no change notification.
const AGAIN: Duration = Duration::from_millis(100);
const LOOKS: usize = 2_700;
const VERDICTS: [&str; 7] =
    ["Ready", "Suspended", "Terminating", "Progressing", "Unknown", "Stuck", "Failed"];

fn rollcall(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("KUBECONFIG").env("HOME", "/nowhere");
    command
}

/// A crowd that lives; killed when dropped.
struct RunningCrowd {
    child: Child,
    address: String,
    kubeconfig: PathBuf,
    hints: Vec<String>,
}

impl Drop for RunningCrowd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl RunningCrowd {
    /// Starts it, ten times as fast as people like it, and reads what it says.
    fn start() -> RunningCrowd {
        let args = ["demo", "--crowd", "--speed", "10", "--listen", "127.0.0.1:0"];
        let mut child = rollcall(&args).spawn().unwrap();
        let mut hints = Vec::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            hints.push(line.unwrap());
            if hints.last().unwrap().contains("until Ctrl-C") {
                break;
            }
        }
        let after = |word: &str| {
            hints
                .iter()
                .find_map(|line| Some(line.split_once(word)?.1.trim().to_owned()))
                .unwrap_or_else(|| panic!("{hints:?}"))
        };
        let (address, kubeconfig) = (after("page: http://"), PathBuf::from(after("KUBECONFIG=")));
        RunningCrowd { child, address, kubeconfig, hints }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{path}: {head}");
        body.to_owned()
    }

    fn parents(&self) -> Value {
        serde_json::from_str(&self.get("/api/v1/parents?limit=100")).unwrap()
    }

    /// Polls the list of parents until it satisfies `truth`.
    fn until(&self, what: &str, mut truth: impl FnMut(&Value) -> bool) -> Value {
        for _ in 0..LOOKS {
            let parents = self.parents();
            if truth(&parents) {
                return parents;
            }
            std::thread::sleep(AGAIN);
        }
        panic!("waited in vain: {what}\n{:#}", self.parents()["counts"]);
    }

    fn type_in(&self, args: &[&str]) -> Output {
        rollcall(args).env("KUBECONFIG", &self.kubeconfig).output().unwrap()
    }
}

#[test]
fn the_crowd_shows_every_verdict_and_lives_until_it_is_ended() {
    let mut crowd = RunningCrowd::start();
    let mut seen = std::collections::BTreeSet::new();
    let parents = crowd.until("fifty parents in every state", |parents| {
        seen.extend(
            VERDICTS.into_iter().filter(|verdict| parents["counts"][verdict].as_u64().unwrap_or(0) > 0),
        );
        parents["matching"] == 50 && seen.len() == VERDICTS.len()
    });
    let policies = parents["policies"].as_array().unwrap();
    assert!(policies.len() >= 4, "{policies:?}");
    // Something turns to ready, and something away from it, after all is there.
    let turned = |to: &str| -> f64 {
        let metrics = crowd.get("/metrics");
        let series = metrics.lines().filter(|line| line.starts_with("rollcall_transitions_total{"));
        let series = series.filter(|line| line.contains(&format!("to=\"{to}\"")));
        series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let before = ["True", "False"].map(turned);
    crowd.until("parents that turn both ways", |_| {
        ["True", "False"].map(turned).iter().zip(before).all(|(now, before)| *now > before)
    });
    assert!(crowd.get("/").contains("<html"));

    // What it says to type works, with the file that it names.
    let tree = crowd.type_in(&["tree", "-A"]);
    let tree = String::from_utf8(tree.stdout).unwrap();
    for name in ["books", "ledger", "sessions", "backups", "checkout"] {
        assert!(tree.contains(name), "{name} is not in\n{tree}");
    }
    let told: Vec<_> = crowd.hints.iter().filter_map(|line| line.trim().strip_prefix("rollcall ")).collect();
    assert_eq!(told.len(), 2, "{:?}", crowd.hints);
    for line in told {
        let said = crowd.type_in(&line.split(' ').collect::<Vec<_>>());
        assert!(
            matches!(said.status.code(), Some(0 | 1)),
            "{line}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
    }

    Command::new("kill").args(["-INT", &crowd.child.id().to_string()]).status().unwrap();
    let status = crowd.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!crowd.kubeconfig.exists(), "it leaves {} behind", crowd.kubeconfig.display());
}

#[test]
fn a_crowd_has_no_story_to_play_once_or_step_by_step() {
    for other in ["--once", "--step"] {
        let refused = rollcall(&["demo", "--crowd", other]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{other}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be used with"), "{other}");
    }
}
