//! Completion: scripts for shells, and answers for `kubectl`, which asks a program `kubectl_complete-rollcall`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{cli, commands};

/// `rollcall completion`.
#[derive(Args, Debug)]
#[command(
    after_help = "For `kubectl rollcall`, put an executable file `kubectl_complete-rollcall` beside the plugin:\n  #!/bin/sh\n  exec kubectl rollcall __complete \"$@\""
)]
pub(crate) struct CompletionArgs {
    /// The shell: `source <(rollcall completion bash)`.
    shell: Shell,
}

/// What is typed so far; the last word is the one to complete.
#[derive(Args, Debug)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn script(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "rollcall", &mut text);
    commands::print(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}

/// One candidate a line, a tab before what it means, and at the end a directive: 0 lets the shell offer files where
/// there is no candidate, 4 does not.
pub(crate) fn candidates(words: &Words) -> anyhow::Result<ExitCode> {
    let words: Vec<_> = words.words.iter().map(|word| word.to_string_lossy()).collect();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (&**last, before));
    let mut root = cli::command();
    root.build();
    let mut command = &root;
    for word in before {
        command = command.find_subcommand(&**word).unwrap_or(command);
    }
    let previous = before.last().map_or("", |word| &**word);
    let mut lines = Vec::new();
    let directive = values(command, previous, &mut lines).unwrap_or_else(|| {
        names(command, last, &mut lines);
        if command.has_subcommands() { 4 } else { 0 }
    });
    lines.retain(|line| line.starts_with(last));
    commands::print(&format!("{}:{directive}\n", lines.concat()))?;
    Ok(ExitCode::SUCCESS)
}

/// What the option before the cursor may be; `None` where that is no option which takes a value.
fn values(command: &Command, option: &str, lines: &mut Vec<String>) -> Option<u8> {
    let long = option.strip_prefix("--");
    let short = option.strip_prefix('-').filter(|short| short.len() == 1).and_then(|s| s.chars().next());
    let named = |arg: &&clap::Arg| {
        long.is_some_and(|long| arg.get_long() == Some(long)) || (short.is_some() && arg.get_short() == short)
    };
    let arg = command.get_arguments().find(named).filter(|arg| arg.get_action().takes_values())?;
    for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        lines.push(line(value.get_name(), value.get_help()));
    }
    Some(if lines.is_empty() { 0 } else { 4 })
}

/// Commands, possible words, and options once one has begun.
fn names(command: &Command, last: &str, lines: &mut Vec<String>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        lines.push(line(below.get_name(), below.get_about()));
    }
    for value in command.get_positionals().flat_map(clap::Arg::get_possible_values) {
        lines.push(line(value.get_name(), value.get_help()));
    }
    if last.starts_with('-') {
        for arg in
            command.get_opts().chain(command.get_arguments().filter(|a| !a.get_action().takes_values()))
        {
            lines.extend(arg.get_long().map(|long| line(&format!("--{long}"), arg.get_help())));
        }
    }
}

fn line(word: &str, help: Option<&clap::builder::StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    let first = help.lines().next().unwrap_or_default();
    if first.is_empty() { format!("{word}\n") } else { format!("{word}\t{first}\n") }
}
