//! The live page's API as the built binary serves it: lists, trees, streams, and a large number of clients.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longest time to wait; far longer than anything takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Poll interval and number of polls of another process's page: a list has no change notification.
const AGAIN: Duration = Duration::from_millis(20);
const LOOKS: usize = 9_000;

/// A running demo, killed when dropped.
struct RunningDemo {
    child: Child,
    address: String,
}

impl Drop for RunningDemo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl RunningDemo {
    /// Starts the demo and returns when the story is over; the demo keeps running.
    fn told() -> RunningDemo {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
        command.args(["demo", "--speed", "0", "--listen", "127.0.0.1:0"]).env_remove("TERM");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("page: http://").unwrap().to_owned();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("expectations held")));
        RunningDemo { child, address }
    }

    fn connect(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> Value {
        let mut text = String::new();
        self.connect(path).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {text}");
        serde_json::from_str(body).unwrap()
    }

    fn code(&self, path: &str) -> String {
        let mut text = String::new();
        self.connect(path).read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    }

    /// Polls until the list satisfies `truth`.
    fn until(&self, path: &str, truth: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..LOOKS {
            let found = self.get(path);
            if truth(&found) {
                return found;
            }
            std::thread::sleep(AGAIN);
        }
        panic!("{path} never became what was waited for: {}", self.get(path));
    }
}

fn names(list: &Value) -> Vec<&str> {
    list["parents"].as_array().unwrap().iter().map(|parent| parent["name"].as_str().unwrap()).collect()
}

#[test]
fn a_list_is_filtered_counted_and_comes_in_pages_and_a_tree_is_whole() {
    let demo = RunningDemo::told();
    let all = demo.until("/api/v1/parents", |list| list["counts"]["Ready"] == 2);
    assert_eq!(names(&all), ["books", "books-db"]);
    assert_eq!((&all["matching"], &all["continue"]), (&Value::from(2), &Value::Null));
    for (query, found) in [
        ("policy=shops", vec!["books"]),
        ("q=DATABASE", vec!["books-db"]),
        ("q=books&verdict=Failed,Stuck", vec![]),
        ("verdict=Ready&namespace=default", vec!["books", "books-db"]),
        ("namespace=elsewhere", vec![]),
    ] {
        assert_eq!(names(&demo.get(&format!("/api/v1/parents?{query}"))), found, "{query}");
    }
    let first = demo.get("/api/v1/parents?limit=1");
    assert_eq!((names(&first), &first["matching"]), (vec!["books"], &Value::from(2)));
    let mark = first["continue"].as_str().unwrap().replace('"', "%22").replace(' ', "%20");
    let second = demo.get(&format!("/api/v1/parents?limit=1&continue={mark}"));
    assert_eq!((names(&second), &second["continue"]), (vec!["books-db"], &Value::Null));

    let path = format!("/api/v1/parents/{}", all["parents"][0]["uid"].as_str().unwrap());
    let tree = demo.get(&path);
    let nodes: Vec<_> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| (n["depth"].as_u64().unwrap(), n["name"].as_str().unwrap()))
        .collect();
    assert_eq!(nodes, [(0, "books"), (1, "books-db"), (2, "books-db-0"), (1, "books-web")]);
    assert_eq!(tree["transitions"][0]["reason"], "AllChildrenReady", "{tree}");
    let cut = demo.get(&format!("{path}?limit=1"));
    assert_eq!((cut["nodes"].as_array().unwrap().len(), &cut["nodes"][0]["more"]), (2, &Value::from(1)));
    let branch = demo.get(&format!("{path}/branch?label=Deployment.apps&namespace=default&name=books-web"));
    assert_eq!(branch["verdict"], "Ready");
    assert_eq!(branch["branch"], "all replicas are updated and available", "{branch}");

    for (path, code) in [
        ("/api/v1/parents?continue=nonsense", "400"),
        ("/api/v1/parents?limit=many", "400"),
        ("/api/v1/parents/nobody", "404"),
        (&format!("{path}?policy=nobody"), "404"),
        // The object exists but does not belong to this parent.
        (&format!("{path}/branch?label=Service&namespace=default&name=kubernetes"), "404"),
        ("/api/v1/nothing", "404"),
    ] {
        assert_eq!(demo.code(path), code, "{path}");
    }
}

#[test]
fn a_parent_is_found_by_its_name_and_tells_what_its_rollout_waited_for_and_how_it_has_turned() {
    let demo = RunningDemo::told();
    let all = demo.until("/api/v1/parents", |list| list["counts"]["Ready"] == 2);
    let named = "/api/v1/parents/by-name?label=Shop.example.com&namespace=default&name=books";
    let (uid, found) = (all["parents"][0]["uid"].as_str().unwrap(), demo.get(named));
    assert_eq!(found["uid"], uid, "{found}");
    assert_eq!(found["nodes"].as_array().unwrap().len(), 4, "{found}");

    let rollout = demo.get(&format!("/api/v1/parents/{uid}/rollout"));
    let moment = |value: &Value| value.as_i64().unwrap();
    let mut reached = moment(&rollout["from"]);
    for part in rollout["parts"].as_array().unwrap() {
        assert!(moment(&part["from"]) == reached && moment(&part["to"]) > reached, "{rollout}");
        reached = moment(&part["to"]);
    }
    assert_eq!((&rollout["isOver"], reached), (&Value::from(true), moment(&rollout["to"])), "{rollout}");
    assert!(rollout["generation"].as_i64() >= Some(1), "{rollout}");

    let lately = demo.get("/api/v1/transitions");
    let turns = lately["transitions"].as_array().unwrap();
    assert!(turns.iter().any(|turn| turn["name"] == "books" && turn["verdict"] == "Failed"), "{lately}");
    assert!(turns.is_sorted_by_key(|turn| -moment(&turn["at"])), "the newest first: {lately}");
    let since = demo.get(&format!("/api/v1/transitions?since={}", turns[0]["at"]));
    assert_eq!(since["transitions"].as_array().unwrap().len(), 1, "{since}");

    for (path, code) in [
        ("/api/v1/transitions?since=never", "400"),
        ("/api/v1/parents/by-name", "404"),
        ("/api/v1/parents/by-name?label=Shop.example.com&name=books", "404"),
        ("/api/v1/parents/nobody/rollout", "404"),
    ] {
        assert_eq!(demo.code(path), code, "{path}");
    }
}

#[test]
fn five_hundred_pages_hear_what_moves_and_the_service_goes_on() {
    const PAGES: usize = 500;
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.args(["demo", "--step", "--speed", "4", "--listen", "127.0.0.1:0"]).env_remove("TERM");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("page: http://").unwrap().split(' ').next().unwrap().to_owned();
    let mut enter = child.stdin.take().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let demo = RunningDemo { child, address };
    let mut streams: Vec<_> = (0..PAGES).map(|_| BufReader::new(demo.connect("/api/v1/stream"))).collect();
    // Some clients disconnect in the middle of a line.
    for mut gone in streams.drain(..100) {
        gone.read_line(&mut String::new()).unwrap();
    }
    // The story stops there until all clients have received it.
    for line in told.by_ref().filter(|line| line.starts_with("rollcall ")) {
        if line.contains("ChildrenFailed") {
            break;
        }
        enter.write_all(b"\n").unwrap();
    }
    for stream in &mut streams {
        let failed =
            stream.lines().map_while(Result::ok).any(|line| line.contains("\"reason\":\"ChildrenFailed\""));
        assert!(failed, "a page has not heard of it");
    }
    drop(enter);
    assert!(told.any(|line| line.contains("expectations held")), "the story went on");
    assert!(demo.get("/api/v1/parents")["matching"] == 2);
}
