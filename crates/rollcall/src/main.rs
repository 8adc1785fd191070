//! The `rollcall` command.

mod check;
mod cli;
mod commands;
mod complete;
mod demo;
mod eval;
mod generate;
mod live;
mod telemetry;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::Cli::read().run()
}
