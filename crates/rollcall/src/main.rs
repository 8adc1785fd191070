//! The `rollcall` command.

mod check;
mod cli;
mod commands;
mod complete;
mod demo;
mod eval;
mod generate;
mod live;
mod rbac;
mod telemetry;
mod terminal;
mod text;
mod tree_table;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::CommandLine::parse_args().run_command()
}
