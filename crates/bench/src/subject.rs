//! The binary that is measured.

use std::path::PathBuf;

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
