//! Where and how a run was measured.

use std::fs;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// The machine, and the options of the run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RunConditions {
    pub(crate) processor: String,
    pub(crate) processors: usize,
    pub(crate) memory_gb: f64,
    pub(crate) kernel: String,
    /// Load average of the minute before the run: what else the machine did.
    pub(crate) load_before: f64,
    /// Versions of the compilers and interpreters.
    pub(crate) toolchains: Vec<String>,
    /// Bytes of a child as it is sent.
    pub(crate) child_bytes: usize,
    /// The options of the command line that repeat the run.
    pub(crate) options: String,
    pub(crate) rounds: u32,
    /// Flips a second.
    pub(crate) rate: u32,
    pub(crate) flip_seconds: u32,
    pub(crate) rest_seconds: u32,
    /// Scrapes of each subject that exports answers.
    #[serde(default)]
    pub(crate) scrapes: u32,
}

impl RunConditions {
    /// Reads what the machine says of itself.
    pub(crate) fn read() -> anyhow::Result<RunConditions> {
        let text = |path: &str| {
            fs::read_to_string(path).with_context(|| format!("reading {path}: this needs Linux"))
        };
        let info = text("/proc/cpuinfo")?;
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let memory = text("/proc/meminfo")?;
        let kilobytes =
            memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
        let load = text("/proc/loadavg")?;
        Ok(RunConditions {
            processor: model.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
            processors: std::thread::available_parallelism()?.get(),
            memory_gb: kilobytes.context("MemTotal")?.parse::<f64>()? * 1024.0 / 1e9,
            kernel: text("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            load_before: load.split_whitespace().next().context("a load")?.parse()?,
            toolchains: [("cargo", "--version"), ("go", "version"), ("python3", "--version")]
                .into_iter()
                .filter_map(|(program, option)| version_of(program, option))
                .collect(),
            ..RunConditions::default()
        })
    }
}

fn version_of(program: &str, option: &str) -> Option<String> {
    let output = std::process::Command::new(program).arg(option).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
