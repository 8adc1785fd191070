//! The `rollcall` command.

mod check;
mod cli;
mod commands;
mod demo;
mod eval;
mod live;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
