//! The binary that is measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

/// What is measured.
#[derive(Args, Clone)]
pub(crate) struct SubjectArgs {
    /// Binary that is measured: `cargo build --profile dist -p rollcall --features cloud-history`. Defaults to the file
    /// `rollcall` beside this program.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) rollcall: Option<PathBuf>,
    /// Library that the binary loads first, for example another allocator.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) preload: Option<PathBuf>,
}

impl SubjectArgs {
    /// The binary that is measured.
    pub(crate) fn binary(&self) -> anyhow::Result<PathBuf> {
        let beside = || Ok(std::env::current_exe()?.with_file_name("rollcall"));
        self.rollcall.clone().map_or_else(beside, Ok)
    }

    /// The service with this kubeconfig, at a port that is free.
    pub(crate) fn command(&self, kubeconfig: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(self.binary()?);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["run", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        if let Some(preload) = &self.preload {
            command.env("LD_PRELOAD", preload);
        }
        Ok(command)
    }
}
