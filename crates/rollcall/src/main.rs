//! The `rollcall` command.

mod check;
mod cli;
mod commands;
mod complete;
mod demo;
mod eval;
mod generate;
mod install;
mod limits;
mod live;
mod rbac;
mod release;
mod telemetry;
mod terminal;
mod text;
mod tree_table;
mod version;

use std::process::ExitCode;

/// The same in every build, whichever libc it is linked with. It gives back what a list or an edit of a rule took for a
/// while, at less processor time than musl's and glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::CommandLine::parse_args().run_command()
}
