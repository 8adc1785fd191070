//! The service as a process, over the in-memory cluster.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::cluster::LiveCluster;

/// Poll interval and number of polls of what another process says.
const AGAIN: Duration = Duration::from_millis(10);
const LOOKS: usize = 30_000;

/// A running service, killed when dropped.
pub(crate) struct RunningService {
    child: Child,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl RunningService {
    /// Starts the service with these arguments and environment.
    pub(crate) fn start(
        cluster: &LiveCluster,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> RunningService {
        RunningService::start_at(cluster, "127.0.0.1:0", args, environment)
    }

    /// The same, where it listens at this address.
    pub(crate) fn start_at(
        cluster: &LiveCluster,
        listen: &str,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> RunningService {
        let mut command = cluster.bare();
        command.args(["run", "--listen", listen, "--log-format", "json"]).args(args);
        command.envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let started = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            Some(line["fields"]["listen"].as_str().or(line["listen"].as_str())?.to_owned())
        });
        let log = Arc::<Mutex<Vec<String>>>::default();
        let kept = log.clone();
        thread::spawn(move || lines.for_each(|line| kept.lock().unwrap().push(line)));
        RunningService { child, address: started.unwrap(), log }
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let told = Command::new("kill").arg("-TERM").arg(self.process().to_string()).status().unwrap();
        assert!(told.success());
        self.child.wait().unwrap();
    }

    /// The lines of its log, since it has listened, that contain this.
    pub(crate) fn logged(&self, word: &str) -> Vec<String> {
        self.log.lock().unwrap().iter().filter(|line| line.contains(word)).cloned().collect()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.ask(path, "")
    }

    /// What it answers to whoever has this token.
    pub(crate) fn get_as(&self, token: &str, path: &str) -> String {
        self.ask(path, &format!("Authorization: Bearer {token}\r\n"))
    }

    fn ask(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The sum of the series of a metric with these labels.
    pub(crate) fn metric(&self, name: &str, labels: &str) -> u64 {
        let text = self.get("/metrics");
        let series = text.lines().filter(|line| line.starts_with(name) && line.contains(labels));
        let numbers = series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        // The sum of no numbers is -0.
        format!("{:.0}", numbers.fold(0.0, |sum, number| sum + number)).parse().unwrap()
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        thread::sleep(AGAIN);
    }
    panic!("never: {what}");
}
