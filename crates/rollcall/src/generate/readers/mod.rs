//! `rollcall readers`: what other tools need so that they read what Rollcall writes.

mod cel_answer;
mod formats;
mod kro_id;
mod reading_tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::condition_answer::answers_by_kind;
use crate::text::{print_error_line, print_stdout};
use formats::ReadKind;
use reading_tool::ReadingTool;

/// `rollcall readers`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 printed; 1 nothing to read, or a kind that the tool asked for cannot wait for is left out; 2 a file could not be read."
)]
pub(crate) struct ReadersArgs {
    /// Files with ReadinessPolicies.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Tool that reads [default: all of them, one after the other].
    #[arg(long = "for", value_enum, value_name = "TOOL")]
    tool: Option<ReadingTool>,
}

pub(crate) fn print_readers(args: &ReadersArgs) -> anyhow::Result<ExitCode> {
    let kinds = answers_by_kind(&args.files)?;
    if kinds.is_empty() {
        print_error_line("these policies write no condition, so there is nothing to read");
        return Ok(ExitCode::from(1));
    }
    let kinds: Vec<ReadKind> =
        kinds.into_iter().map(|((group, kind), answers)| ReadKind::new(group, kind, answers)).collect();
    for kind in &kinds {
        kind.print_notes(args.tool);
    }
    let tools = args.tool.map_or_else(|| ReadingTool::value_variants().to_vec(), |tool| vec![tool]);
    let mut texts = Vec::new();
    for tool in tools {
        texts.push(formats::render_for(tool, &kinds)?);
    }
    print_stdout(&texts.join("---\n"))?;
    let lacks = args.tool == Some(ReadingTool::Helm) && !kinds.iter().all(ReadKind::helm_can_tell);
    Ok(ExitCode::from(u8::from(lacks)))
}
