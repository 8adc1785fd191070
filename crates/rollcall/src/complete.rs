//! Shell completion: scripts for shells, and answers for `kubectl`, which runs a program `kubectl_complete-rollcall`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::text::print_stdout;

/// `rollcall completion`.
#[derive(Args, Debug)]
#[command(
    after_help = "For `kubectl rollcall`, put an executable file `kubectl_complete-rollcall` beside the plugin:\n  #!/bin/sh\n  exec kubectl rollcall __complete \"$@\""
)]
pub(crate) struct CompletionArgs {
    /// Shell to print the script for: `source <(rollcall completion bash)`.
    shell: Shell,
}

/// The words typed so far; the last one is to be completed.
#[derive(Args, Debug)]
pub(crate) struct CompletionWords {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn print_completion_script(
    args: &CompletionArgs,
    mut command: Command,
) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "rollcall", &mut text);
    print_stdout(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one candidate per line, with a tab before its description, and a directive at the end: with 0 the shell
/// offers files if there is no candidate, with 4 it does not.
pub(crate) fn print_candidates(words: &CompletionWords, mut root: Command) -> anyhow::Result<ExitCode> {
    let words: Vec<_> = words.words.iter().map(|word| word.to_string_lossy()).collect();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (&**last, before));
    root.build();
    let mut command = &root;
    for word in before {
        command = command.find_subcommand(&**word).unwrap_or(command);
    }
    let previous = before.last().map_or("", |word| &**word);
    let mut lines = Vec::new();
    let directive = complete_option_value(command, previous, &mut lines).unwrap_or_else(|| {
        complete_names(command, last, &mut lines);
        if command.has_subcommands() { 4 } else { 0 }
    });
    lines.retain(|line| line.starts_with(last));
    print_stdout(&format!("{}:{directive}\n", lines.concat()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the possible values of the option before the cursor; returns `None` if no option there takes a value.
fn complete_option_value(command: &Command, option: &str, lines: &mut Vec<String>) -> Option<u8> {
    let long = option.strip_prefix("--");
    let short = option.strip_prefix('-').filter(|short| short.len() == 1).and_then(|s| s.chars().next());
    let named = |arg: &&clap::Arg| {
        long.is_some_and(|long| arg.get_long() == Some(long)) || (short.is_some() && arg.get_short() == short)
    };
    let arg = command.get_arguments().find(named).filter(|arg| arg.get_action().takes_values())?;
    for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        lines.push(candidate_line(value.get_name(), value.get_help()));
    }
    Some(if lines.is_empty() { 0 } else { 4 })
}

/// Prints subcommands and possible values, and options once one has been started.
fn complete_names(command: &Command, last: &str, lines: &mut Vec<String>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        lines.push(candidate_line(below.get_name(), below.get_about()));
    }
    for value in command.get_positionals().flat_map(clap::Arg::get_possible_values) {
        lines.push(candidate_line(value.get_name(), value.get_help()));
    }
    if last.starts_with('-') {
        for arg in
            command.get_opts().chain(command.get_arguments().filter(|a| !a.get_action().takes_values()))
        {
            lines.extend(arg.get_long().map(|long| candidate_line(&format!("--{long}"), arg.get_help())));
        }
    }
}

fn candidate_line(word: &str, help: Option<&clap::builder::StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    let first = help.lines().next().unwrap_or_default();
    if first.is_empty() { format!("{word}\n") } else { format!("{word}\t{first}\n") }
}
