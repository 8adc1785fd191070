//! Options of `growth`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::catalog::GrowthWorkload;

/// Options of `growth`.
#[derive(Args)]
pub(crate) struct GrowthArgs {
    /// Workloads. All by default.
    #[arg(long, value_delimiter = ',', value_enum, value_name = "WORKLOAD")]
    pub(super) only: Vec<GrowthWorkload>,
    /// Runs each workload at its largest size too, up to a million of children or events. By what a tenth takes: 11 GB, and an hour.
    #[arg(long)]
    pub(super) largest: bool,
    /// Sizes of a workload instead of its own: `firehose=1000,5000`. Repeat the option for others.
    #[arg(long, value_name = "WORKLOAD=N,N", value_parser = parse_sizes)]
    pub(super) sizes: Vec<(GrowthWorkload, Vec<usize>)>,
    /// Seconds for which nothing happens to parents that are not ready.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(super) rest_seconds: u32,
    /// Seconds of flips over many parents, and of rest before.
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    pub(super) flip_seconds: u32,
    /// File to which the raw data is written, a JSON object a line. It is replaced.
    #[arg(long, value_name = "FILE")]
    pub(super) raw: Option<PathBuf>,
    /// Measures nothing, and shows what is in a file of raw data.
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    pub(super) from: Option<PathBuf>,
    /// Folder into which a page, its charts and the raw data are written.
    #[arg(long, value_name = "DIR")]
    pub(super) page: Option<PathBuf>,
    /// Form of the figures on standard output.
    #[arg(long, value_enum, default_value_t = GrowthOutput::Text, value_name = "FORMAT")]
    pub(super) output: GrowthOutput,
}

/// Form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GrowthOutput {
    Text,
    Json,
}

fn parse_sizes(text: &str) -> Result<(GrowthWorkload, Vec<usize>), String> {
    let (name, sizes) = text.split_once('=').ok_or("WORKLOAD=N,N is expected")?;
    let sizes =
        sizes.split(',').map(|size| size.parse::<usize>().map_err(|error| format!("{size}: {error}")));
    Ok((GrowthWorkload::from_str(name, false)?, sizes.collect::<Result<_, _>>()?))
}

impl GrowthArgs {
    /// Workloads that are run, each with its sizes in ascending order.
    pub(super) fn plan(&self) -> Vec<(GrowthWorkload, Vec<usize>)> {
        let is_asked = |workload: &GrowthWorkload| self.only.is_empty() || self.only.contains(workload);
        let sized = |workload: GrowthWorkload| {
            let view = workload.view();
            let own = || {
                let largest = view.largest.iter().filter(|_| self.largest);
                view.sizes.iter().chain(largest).copied().collect()
            };
            let named = self.sizes.iter().find(|(named, _)| *named == workload);
            let mut sizes: Vec<usize> = named.map_or_else(own, |(_, sizes)| sizes.clone());
            sizes.sort_unstable();
            (workload, sizes)
        };
        GrowthWorkload::ALL.into_iter().filter(is_asked).map(sized).collect()
    }

    /// The options that repeat the run.
    pub(super) fn options(&self) -> String {
        let mut text = String::new();
        let name = |workload: &GrowthWorkload| workload.view().name;
        if !self.only.is_empty() {
            let _ = write!(text, " --only {}", self.only.iter().map(name).collect::<Vec<_>>().join(","));
        }
        if self.largest {
            text += " --largest";
        }
        for (workload, sizes) in &self.sizes {
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            let _ = write!(text, " --sizes {}={}", name(workload), sizes.join(","));
        }
        text + &format!(" --rest-seconds {} --flip-seconds {}", self.rest_seconds, self.flip_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_name_their_workload() {
        assert_eq!(parse_sizes("fan-out=10,20"), Ok((GrowthWorkload::FanOut, vec![10, 20])));
        assert!(parse_sizes("fan-out").is_err() && parse_sizes("fan-out=x").is_err());
        assert!(parse_sizes("none=1").is_err());
    }
}
