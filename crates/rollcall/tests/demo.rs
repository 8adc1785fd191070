//! `rollcall demo`, as a new user runs it: the built binary, with and without a terminal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

/// Poll interval and number of polls: the standard library has no wait for a process with a deadline.
const AGAIN: Duration = Duration::from_millis(20);
const LOOKS: usize = 9_000;

fn demo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.arg("demo").args(args).env_remove("TERM").env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Output of two runs of the story, side by side: without any pause, and with short ones.
static TOLD: LazyLock<[Output; 2]> = LazyLock::new(|| {
    let started =
        [demo(&["--once", "--speed", "0"]), demo(&["--once", "--speed", "8"])].map(|mut d| d.spawn());
    started.map(|child| child.unwrap().wait_with_output().unwrap())
});

fn transcript(output: &Output) -> Vec<String> {
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_expectation_of_the_story_holds() {
    for told in &*TOLD {
        let lines = transcript(told);
        assert_eq!(
            told.status.code(),
            Some(0),
            "{}\n{}",
            lines.join("\n"),
            String::from_utf8_lossy(&told.stderr)
        );
        let last = lines.last().unwrap();
        let held = last.strip_prefix("All ").and_then(|l| l.strip_suffix(" expectations held."));
        assert!(held.unwrap().parse::<u32>().unwrap() >= 20, "{last}");
    }
}

#[test]
fn the_story_has_nine_scenes() {
    let lines = transcript(&TOLD[0]);
    let titles: Vec<_> =
        lines.iter().filter_map(|l| l.strip_prefix("── ")?.split_once(" ─")).map(|l| l.0).collect();
    assert_eq!(
        titles,
        [
            "1 of 9 · A parent appears",
            "2 of 9 · Its children are adopted late",
            "3 of 9 · One is slow",
            "4 of 9 · One flaps",
            "5 of 9 · A grandchild fails and recovers",
            "6 of 9 · The spec changes",
            "7 of 9 · A Job lives one second",
            "8 of 9 · A child hangs in deletion",
            "9 of 9 · A watch dies silently",
        ]
    );
}

#[test]
fn the_story_says_what_is_wrong_and_what_others_would_have_said() {
    let lines = transcript(&TOLD[0]);
    let said = |text: &str| lines.iter().filter(|l| l.contains(text)).count();
    let told = said("rollcall    Ready=");
    assert!(told >= 15, "{told}");
    assert_eq!(said("without     Argo CD: no health, so Healthy · kstatus: Current"), told);
    for text in [
        "rollcall    Ready=Unknown ChildrenPending",
        "rollcall    Ready=False ChildrenMissing",
        "rollcall    Ready=False ChildrenFailed",
        "rollcall    Ready=False ChildrenStuck Stalled=True",
        "rollcall    Ready=True AllChildrenReady",
        "waiting: CrashLoopBackOff",
        "finalizer example.org/backup",
        "checked     the Job is gone: GET answers 404",
        "checked     rollcall_drift_total{found_by=\"resync\",kind=\"Deployment.apps\"} 1",
        "checked     managedFields: Rollcall owns entries in conditions, nothing else",
    ] {
        assert!(said(text) > 0, "{text} is not in\n{}", lines.join("\n"));
    }
}

#[test]
fn every_line_fits_into_eighty_columns_and_needs_no_terminal() {
    for line in TOLD.iter().flat_map(transcript) {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains('\x1b') && line.trim_end() == line, "{line:?}");
    }
}

#[test]
fn a_second_run_tells_the_same_story() {
    // Ages, times and numbers of writes vary; all other text must be identical.
    let told =
        TOLD.each_ref().map(|told| transcript(told).iter().map(|line| blurred(line)).collect::<Vec<_>>());
    assert_eq!(told[0], told[1]);
}

fn blurred(line: &str) -> String {
    if line.contains(" writes to its parent in ") {
        return "checked     writes".to_owned();
    }
    // Wherever the line breaks.
    if let Some(end) = line.find("Z)").filter(|end| *end >= 19)
        && line.get(end - 9..end).is_some_and(|time| time.starts_with('T'))
    {
        return format!("{}{}", &line[..end - 19], &line[end..]);
    }
    let (row, age) = line.rsplit_once(' ').unwrap_or((line, ""));
    let ages = age.strip_suffix('s').is_some_and(|age| age.parse::<u32>().is_ok());
    if ages { row.trim_end().to_owned() } else { line.to_owned() }
}

/// Waits for a process to end; kills it on a timeout and fails the test.
fn end(child: &mut Child, what: &str) -> ExitStatus {
    for _ in 0..LOOKS {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(AGAIN);
    }
    child.kill().unwrap();
    panic!("{what} did not end it");
}

#[test]
fn where_the_port_is_taken_another_is_offered() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _holder = TcpListener::bind(taken).unwrap();
    let mut child = demo(&["--once", "--listen", &taken.to_string()]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("page: http://127.0.0.1:"), "{line}");
    assert!(line.ends_with(&format!("({} is taken)\n", taken.port())), "{line}");
}

#[test]
fn a_reader_who_has_seen_enough_ends_it_without_a_word() {
    let mut child = demo(&["--once", "--speed", "0"]).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("1 of 9") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    drop(reader);
    assert_eq!(end(&mut child, "a closed pipe").code(), Some(2));
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(!words.contains("panic") && !words.contains("Broken pipe"), "{words}");
}

#[test]
fn speeds_that_make_no_sense_are_refused() {
    for speed in ["-1", "fast", "NaN"] {
        let refused = demo(&["--once", &format!("--speed={speed}")]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{speed}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("0 for no pauses") || speed == "fast");
    }
}

/// The demo in a pseudo-terminal, whose other end is held by `script`.
struct DemoTerminal {
    script: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    shown: String,
    /// Process id of the demo.
    pid: String,
}

impl DemoTerminal {
    fn with(args: &str, env: &[(&str, &str)]) -> DemoTerminal {
        let demo = format!("echo pid $$; exec {} demo {args}", env!("CARGO_BIN_EXE_rollcall"));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--flush", "--command", &demo, "/dev/null"]);
        script.env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("NO_COLOR").envs(env.iter().copied());
        let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let mut terminal = DemoTerminal { script, keys, screen, shown: String::new(), pid: String::new() };
        terminal.until("\n");
        terminal.pid = terminal.shown.split_whitespace().nth(1).unwrap().to_owned();
        terminal
    }

    /// Reads until this text is on the screen or the screen is gone.
    fn until(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        while !self.shown.contains(text) {
            match self.screen.read(&mut bytes).unwrap() {
                0 => panic!("{text:?} is not in {:?}", self.shown),
                n => self.shown.push_str(&String::from_utf8_lossy(&bytes[..n])),
            }
        }
    }
}

impl Drop for DemoTerminal {
    fn drop(&mut self) {
        self.script.kill().ok();
        self.script.wait().ok();
    }
}

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

#[test]
fn ctrl_c_gives_the_terminal_back() {
    let mut terminal = DemoTerminal::with("--listen 127.0.0.1:0", &[]);
    terminal.until("Ctrl-C ends");
    terminal.until("ChildrenPending");
    assert!(terminal.shown.contains(ENTER) && terminal.shown.contains("\x1b[1m"));
    terminal.keys.write_all(b"\x03").unwrap();
    terminal.until(LEAVE);
    terminal.until("1 of 9 scenes seen");
    assert_eq!(end(&mut terminal.script, "Ctrl-C").code(), Some(0));
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let mut terminal = DemoTerminal::with("--listen 127.0.0.1:0", &[]);
    terminal.until("ChildrenPending");
    let stat = Path::new("/proc").join(&terminal.pid).join("stat");
    // Only its parent could reap it, and its parent is gone: it may remain as a zombie.
    let plays = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(plays());
    terminal.script.kill().unwrap();
    terminal.script.wait().unwrap();
    for _ in 0..LOOKS {
        if !plays() {
            return;
        }
        std::thread::sleep(AGAIN);
    }
    panic!("it plays on without a terminal");
}

#[test]
fn no_colour_where_none_is_wanted() {
    let mut plain = DemoTerminal::with("--listen 127.0.0.1:0", &[("NO_COLOR", "1")]);
    plain.until("ChildrenPending");
    assert!(!plain.shown.contains("\x1b[1m") && !plain.shown.contains("\x1b[2m"), "{:?}", plain.shown);
    let mut dumb = DemoTerminal::with("--once", &[("TERM", "dumb")]);
    dumb.until("ChildrenPending");
    assert!(!dumb.shown.contains('\x1b'), "{:?}", dumb.shown);
}
