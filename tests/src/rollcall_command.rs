//! Commands of the built binary that end by themselves.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::places;

/// Runs a short command of the binary; returns its output if it succeeds.
pub fn rollcall(args: &[&str]) -> Result<String> {
    rollcall_of(&places::rollcall()?, args)
}

/// Like [`rollcall`], with this binary.
pub(crate) fn rollcall_of(program: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "rollcall {}: {}\n{errors}", args.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
