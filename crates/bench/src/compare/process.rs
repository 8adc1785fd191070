//! A running subject, and what the kernel says of it and of the processes that it started.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Clock ticks of `/proc` per second, as every Linux for a common processor has them.
const TICKS_PER_SECOND: f64 = 100.0;
/// Time in which a subject has to end when it is told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Share of a processor below which a subject is at rest.
const REST_SHARE: f64 = 0.05;
/// Seconds in a row for which it has to be.
const REST_SECONDS: u32 = 2;

/// A subject, which leads a process group of its own. It is killed when dropped.
pub(crate) struct SubjectProcess {
    child: Child,
}

impl SubjectProcess {
    /// Starts it; what it prints goes into this file.
    pub(crate) fn start(mut command: Command, log: &Path) -> anyhow::Result<SubjectProcess> {
        let output = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(SubjectProcess { child })
    }

    /// Its leader and all others of its group.
    fn members(&self) -> anyhow::Result<Vec<u32>> {
        let leader = self.child.id();
        let mut members = vec![leader];
        for entry in fs::read_dir("/proc").context("this needs Linux")? {
            let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
            let is_member = || stat_field(pid, 2).is_ok_and(|group: u32| group == leader);
            if pid != leader && is_member() {
                members.push(pid);
            }
        }
        Ok(members)
    }

    /// Processor time in seconds, of all of its processes, those that ended included.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        let leader = self.child.id();
        let ended = stat_field::<f64>(leader, 13)? + stat_field::<f64>(leader, 14)?;
        let mut all = ended / TICKS_PER_SECOND;
        for pid in self.members()? {
            // One that has ended since is in its parent's share.
            all += clock_seconds(pid).unwrap_or_default();
        }
        Ok(all)
    }

    /// Highest resident memory since the start, in MB.
    pub(crate) fn peak(&self) -> anyhow::Result<f64> {
        self.megabytes("VmHWM")
    }

    /// Lets the next peak of its leader begin at what is resident now.
    pub(crate) fn reset_peak(&self) -> anyhow::Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    /// Resident memory in MB.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        self.megabytes("VmRSS")
    }

    fn megabytes(&self, field: &str) -> anyhow::Result<f64> {
        let mut all = 0.0;
        for pid in self.members()? {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            let number = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0");
            all += number.parse::<f64>()? * 1024.0 / 1e6;
        }
        Ok(all)
    }

    /// Fails if it has ended.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("it ended ({status})"),
            None => Ok(()),
        }
    }

    /// Waits until it takes next to no processor time, at most for so long.
    pub(crate) fn wait_until_at_rest(&mut self, at_most: Duration) -> anyhow::Result<()> {
        let (begun, mut calm) = (Instant::now(), 0);
        let mut before = self.processor_seconds()?;
        while calm < REST_SECONDS && begun.elapsed() < at_most {
            thread::sleep(Duration::from_secs(1));
            self.check_alive()?;
            let now = self.processor_seconds()?;
            calm = if now - before < REST_SHARE { calm + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }

    /// Stops it as a rollout would.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM)?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() && begun.elapsed() < STOP_TIMEOUT {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for SubjectProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Processor time of a process in seconds, far finer than the ticks of `/proc`.
pub(crate) fn clock_seconds(pid: u32) -> anyhow::Result<f64> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid)?))?;
    Ok(Duration::from(clock_gettime(clock)?).as_secs_f64())
}

/// A number of `/proc/PID/stat`, counted from the field after the name.
fn stat_field<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    pid: u32,
    index: usize,
) -> anyhow::Result<T> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit_once(')').context("a name in parentheses")?.1;
    Ok(after.split_whitespace().nth(index).context("a field")?.parse()?)
}
