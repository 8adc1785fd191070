//! The `rollcall` command.

mod check;
mod cli;
mod commands;
mod complete;
mod demo;
mod eval;
mod forest;
mod generate;
mod live;
mod look;
mod telemetry;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::Cli::read().run()
}
