//! `rollcall man-pages`: the manual, made from the help of each command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};

/// `rollcall man-pages`.
#[derive(Args, Debug)]
pub(crate) struct ManPagesArgs {
    /// Folder to write to, such as ~/.local/share/man/man1; it is created if it does not exist.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

/// Writes `rollcall.1`, and `rollcall-COMMAND.1` of each command that the help names.
pub(crate) fn write_man_pages(args: &ManPagesArgs, root: Command) -> anyhow::Result<ExitCode> {
    let written = std::fs::create_dir_all(&args.to).and_then(|()| clap_mangen::generate_to(root, &args.to));
    written.with_context(|| format!("failed to write manual pages to {}", args.to.display()))?;
    Ok(ExitCode::SUCCESS)
}
