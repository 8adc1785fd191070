//! The process that is measured, and what the kernel says of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::compare::process::clock_seconds;
use crate::subject::SubjectArgs;

/// Poll interval of what is waited for.
const SCRAPE_INTERVAL: Duration = Duration::from_millis(200);
/// Time after which a run that does not get there is given up.
const GIVE_UP: Duration = Duration::from_mins(20);

/// A running service, killed when dropped.
pub(crate) struct MeasuredService {
    child: Child,
    client: ServiceClient,
}

/// Where the service listens.
#[derive(Clone)]
pub(crate) struct ServiceClient {
    address: String,
}

impl ServiceClient {
    fn request(&self, path: &str) -> Option<TcpStream> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        Some(stream)
    }

    /// The whole answer to a request.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let mut answer = String::new();
        self.request(path)?.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

/// A reader of the page's stream of changes.
pub(crate) struct StreamClient {
    stream: TcpStream,
    reader: JoinHandle<usize>,
}

impl StreamClient {
    /// Disconnects, and returns how many bytes came.
    pub(crate) fn end(self) -> anyhow::Result<usize> {
        self.stream.shutdown(Shutdown::Both).ok();
        let heard = self.reader.join().ok().context("the reader of a stream failed")?;
        ensure!(heard > 0, "a stream brought nothing");
        Ok(heard)
    }
}

impl Drop for MeasuredService {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl MeasuredService {
    /// Starts the service with this kubeconfig.
    pub(crate) fn start(subject: &SubjectArgs, kubeconfig: &Path) -> anyhow::Result<MeasuredService> {
        let mut command = subject.command(kubeconfig)?;
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().with_context(
                || {
                    format!(
                        "starting {}; build it, or name it by --rollcall",
                        subject.binary().unwrap_or_default().display()
                    )
                },
            )?;
        let errors = child.stderr.take().context("standard error is piped")?;
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            Some(line["fields"]["listen"].as_str().or(line["listen"].as_str())?.to_owned())
        });
        // What it logs is of no interest, but it has to be read.
        thread::spawn(move || lines.for_each(drop));
        let address = address.context("the service ended before it listened")?;
        Ok(MeasuredService { child, client: ServiceClient { address } })
    }

    /// Where it listens.
    pub(crate) fn client(&self) -> ServiceClient {
        self.client.clone()
    }

    /// Opens a stream of changes, which is read until it ends.
    pub(crate) fn open_stream(&self) -> anyhow::Result<StreamClient> {
        let stream = self.client.request("/api/v1/stream").context("the service does not answer")?;
        let mut received = stream.try_clone()?;
        let mut status = [0; 12];
        received.read_exact(&mut status)?;
        ensure!(status == *b"HTTP/1.1 200", "a stream is refused: {}", String::from_utf8_lossy(&status));
        let reader = thread::spawn(move || {
            let (mut heard, mut buffer) = (0, [0; 16 * 1024]);
            while let Ok(some @ 1..) = received.read(&mut buffer) {
                heard += some;
            }
            heard
        });
        Ok(StreamClient { stream, reader })
    }

    /// Whether `/readyz` says that every kind was listed.
    pub(crate) fn is_synced(&self) -> bool {
        self.client.get("/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// Evaluations of custom rules so far.
    pub(crate) fn rule_evaluations(&self) -> f64 {
        let answer = self.client.get("/metrics").unwrap_or_default();
        let series = answer.lines().filter(|line| line.starts_with("rollcall_rule_evaluations_total"));
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    fn proc_file(&self, name: &str) -> anyhow::Result<String> {
        let path = format!("/proc/{}/{name}", self.child.id());
        fs::read_to_string(&path).with_context(|| format!("reading {path}: this needs Linux"))
    }

    /// A field of `/proc/PID/status` in MB.
    fn megabytes(&self, field: &str) -> anyhow::Result<f64> {
        let status = self.proc_file("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kilobytes: f64 =
            line.and_then(|line| line.split_whitespace().next()).context("a number")?.parse()?;
        Ok(kilobytes * 1024.0 / 1e6)
    }

    /// Resident memory in MB.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        self.megabytes("VmRSS")
    }

    /// Highest resident memory in MB since the last reset.
    pub(crate) fn peak(&self) -> anyhow::Result<f64> {
        self.megabytes("VmHWM")
    }

    /// Lets the next peak begin at what is resident now.
    pub(crate) fn reset_peak(&self) -> anyhow::Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    /// Processor time in seconds, of the whole process.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        clock_seconds(self.child.id())
    }

    /// Waits until something is so.
    pub(crate) fn wait_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let looked = Instant::now();
            if is_so(self) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the service ended ({status}) before {what}");
            }
            if begun.elapsed() > GIVE_UP {
                bail!("not so after {GIVE_UP:?}: {what}");
            }
            // A look at very many objects holds up the server that the service waits for.
            thread::sleep(SCRAPE_INTERVAL.max(looked.elapsed() * 20));
        }
    }

    /// Waits until the service has taken less than 5 % of a processor for three seconds. A build that is not optimized takes
    /// half of that for 20,000 parents to which nothing happens.
    pub(crate) fn wait_until_at_rest(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let before = self.processor_seconds()?;
            thread::sleep(Duration::from_secs(3));
            if self.processor_seconds()? - before < 0.15 {
                return Ok(());
            }
            if begun.elapsed() > GIVE_UP {
                bail!("the service does not come to rest");
            }
        }
    }
}
