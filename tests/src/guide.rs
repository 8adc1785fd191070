//! Follows a guide literally: writes its files and runs its commands in their order.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::places;
use crate::process::LoggedProcess;
use crate::tenant::TestTenant;

/// One step of a guide.
#[derive(Debug)]
enum GuideStep {
    /// A file: a block whose first line is `# NAME.yaml`.
    File { name: String, text: String },
    /// A block of commands.
    Commands(Vec<String>),
}

/// A guide whose steps are run one after the other.
pub struct GuidedSteps {
    steps: std::vec::IntoIter<GuideStep>,
}

impl GuidedSteps {
    /// Opens a guide by its path in the repository.
    pub fn open(path: &str) -> Result<Self> {
        let text = fs::read_to_string(places::repository().join(path))?;
        let mut steps = Vec::new();
        let mut parts = text.split("\n```").skip(1);
        while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
            let (language, body) = block.split_once('\n').context("an empty block")?;
            match language {
                "sh" => steps.push(GuideStep::Commands(body.lines().map(str::to_owned).collect())),
                "yaml" => {
                    let name = body.lines().next().and_then(|first| first.strip_prefix("# "));
                    let name = name.with_context(|| format!("a file without a name: {body}"))?.to_owned();
                    steps.push(GuideStep::File { name, text: format!("{body}\n") });
                }
                _ => {}
            }
        }
        ensure!(!steps.is_empty(), "{path} has no blocks");
        Ok(Self { steps: steps.into_iter() })
    }

    /// Runs all steps up to and including the file of this name, or the commands whose first line begins so.
    pub fn follow(&mut self, tenant: &TestTenant, until: &str) -> Result<()> {
        for step in self.steps.by_ref() {
            let there = match &step {
                GuideStep::File { name, text } => {
                    fs::write(tenant.folder.join(name), text)?;
                    name == until
                }
                GuideStep::Commands(lines) => {
                    lines.iter().try_for_each(|line| type_in(tenant, line).map(drop))?;
                    lines.first().is_some_and(|line| line.starts_with(until))
                }
            };
            if there {
                return Ok(());
            }
        }
        anyhow::bail!("the guide does not come to {until:?}")
    }

    /// Fails if a step was not run.
    pub fn is_done(self) -> Result<()> {
        let left: Vec<GuideStep> = self.steps.collect();
        ensure!(left.is_empty(), "not followed: {left:?}");
        Ok(())
    }
}

/// A command in a sentence, the placeholders in it with their values, and a text that its output must contain.
pub type Asked<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

/// The commands in a page's sentences, between backticks.
pub struct InlineCommands {
    path: String,
    commands: BTreeSet<String>,
}

impl InlineCommands {
    /// Reads the commands of a page, by its path in the repository.
    pub fn of(path: &str) -> Result<Self> {
        let text = fs::read_to_string(places::repository().join(path))?;
        let sentences = text.split("\n```").step_by(2);
        let spans = sentences.flat_map(|part| part.split('`').skip(1).step_by(2));
        // A command may continue on the next line.
        let commands = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        Ok(Self { path: path.to_owned(), commands })
    }

    /// Runs a command of the page, with the reader's values for its placeholders; returns its output.
    pub fn type_in(&self, tenant: &TestTenant, command: &str, own: &[(&str, &str)]) -> Result<String> {
        type_in(tenant, &self.command(command, own)?)
    }

    /// Runs several commands and checks that the output of each contains its text.
    pub fn ask(&self, tenant: &TestTenant, asked: &[Asked]) -> Result<()> {
        asked.iter().try_for_each(|(command, own, word)| {
            let said = self.type_in(tenant, command, own)?;
            ensure!(said.contains(word), "{command} does not say {word:?}: {said}");
            Ok(())
        })
    }

    /// Starts a command that runs until it is ended.
    pub fn start(&self, tenant: &TestTenant, command: &str, own: &[(&str, &str)]) -> Result<LoggedProcess> {
        let line = format!("cd ~ && exec {}", self.command(command, own)?);
        let log = tenant.folder.join(format!("{}.log", command.replace([' ', '/'], "-")));
        LoggedProcess::start(command, Path::new("/bin/bash"), &["-c".to_owned(), line], &user(tenant)?, &log)
    }

    fn command(&self, command: &str, own: &[(&str, &str)]) -> Result<String> {
        ensure!(self.commands.contains(command), "{} does not say {command:?}", self.path);
        own.iter().try_fold(command.to_owned(), |line, (word, own)| {
            ensure!(line.contains(word), "no {word:?} in {line:?}");
            Ok(line.replacen(word, own, 1))
        })
    }
}

/// Environment of an administrator with `rollcall`, `kubectl` and `helm` in the path, and the plugins in the tenant's
/// `bin`.
fn user(tenant: &TestTenant) -> Result<Vec<(String, String)>> {
    let folder = |program: &Path| program.parent().unwrap_or(program).display().to_string();
    let (rollcall, kubectl) = (folder(&places::rollcall()?), folder(&places::program("kubectl")?));
    let (home, path) = (tenant.folder.display().to_string(), std::env::var("PATH")?);
    let pairs = [
        ("PATH", format!("{home}/bin:{rollcall}:{kubectl}:{path}")),
        ("KUBECONFIG", tenant.plane.kubeconfig().display().to_string()),
        ("HOME", home),
    ];
    Ok(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// Runs one line as that user in the tenant's folder; returns its output.
fn type_in(tenant: &TestTenant, line: &str) -> Result<String> {
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).current_dir(&tenant.folder).envs(user(tenant)?);
    let done = shell.output().context("failed to run bash")?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    ensure!(done.status.success(), "{line}: {said}{}", String::from_utf8_lossy(&done.stderr));
    Ok(said)
}
