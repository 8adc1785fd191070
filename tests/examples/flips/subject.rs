//! A program that is measured, and its figures.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use acceptance::control_plane::ControlPlane;
use acceptance::process::LoggedProcess;
use anyhow::{Context, Result};
use tokio::time::sleep;

use crate::widgets::Widgets;

/// Clock ticks of `/proc` per second, as every Linux for a common processor has them.
const TICKS_PER_SECOND: f64 = 100.0;
/// Processor time in a second below which a program is at rest.
const REST_SECONDS: f64 = 0.05;

/// A program by its name.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

/// A running program; killed when dropped.
pub(crate) struct RunningSubject(LoggedProcess);

impl Subject {
    /// Starts it over this cluster.
    pub(crate) async fn start(&self, plane: &ControlPlane, widgets: &Widgets) -> Result<RunningSubject> {
        let is_rollcall = self.name == "rollcall";
        let args: &[&str] = if is_rollcall { &["run", "--listen", "127.0.0.1:0"] } else { &[] };
        if is_rollcall {
            widgets.prepare_rollcall(plane, &self.program).await?;
        }
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let kubeconfig = plane.kubeconfig();
        let env = [("KUBECONFIG".to_owned(), kubeconfig.to_string_lossy().into_owned())];
        let log = kubeconfig.with_file_name(format!("{}.log", self.name));
        Ok(RunningSubject(LoggedProcess::start(&self.name, &self.program, &args, &env, &log)?))
    }
}

impl RunningSubject {
    /// Processor time of the process so far.
    pub(crate) fn processor_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("a process has a name")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("a field")?.parse()?) };
        Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }

    /// Highest resident memory since its start.
    pub(crate) fn peak_megabytes(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1e3)
    }

    /// Waits until it hardly works for two seconds in a row.
    pub(crate) async fn until_at_rest(&self) -> Result<()> {
        let mut rested = 0;
        while rested < 2 {
            let before = self.processor_seconds()?;
            sleep(Duration::from_secs(1)).await;
            let is_at_rest = self.processor_seconds()? - before < REST_SECONDS;
            rested = if is_at_rest { rested + 1 } else { 0 };
        }
        Ok(())
    }
}

/// What was measured of one program in one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubjectFigures {
    /// Processor time per flip.
    pub(crate) processor_ms: f64,
    /// Latencies to False, then to True.
    pub(crate) to_false_ms: [f64; 2],
    pub(crate) to_true_ms: [f64; 2],
    /// Answers that a later flip overtook.
    pub(crate) never_shown: usize,
    /// Writes of the parents in all.
    pub(crate) writes: usize,
    pub(crate) peak_mb: f64,
}

impl SubjectFigures {
    /// The median of each figure.
    pub(crate) fn median(rounds: &[SubjectFigures]) -> SubjectFigures {
        let middle = |of: &dyn Fn(&SubjectFigures) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        let counted = |of: fn(&SubjectFigures) -> usize| {
            let mut all: Vec<usize> = rounds.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        SubjectFigures {
            processor_ms: middle(&|round| round.processor_ms),
            to_false_ms: [0, 1].map(|at| middle(&|round| round.to_false_ms[at])),
            to_true_ms: [0, 1].map(|at| middle(&|round| round.to_true_ms[at])),
            never_shown: counted(|round| round.never_shown),
            writes: counted(|round| round.writes),
            peak_mb: middle(&|round| round.peak_mb),
        }
    }
}

impl fmt::Display for SubjectFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [false_p50, false_p99] = self.to_false_ms;
        let [true_p50, true_p99] = self.to_true_ms;
        write!(
            f,
            "{:.2} ms a flip, to False {false_p50:.0}/{false_p99:.0} ms (p50/p99), to True {true_p50:.0}/{true_p99:.0} ms, \
             {} never shown, {} writes, peak {:.1} MB",
            self.processor_ms, self.never_shown, self.writes, self.peak_mb
        )
    }
}
