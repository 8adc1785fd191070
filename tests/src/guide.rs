//! A guide taken by its word: its files written down, its commands typed, in the order in which they stand there.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::places;
use crate::scene::Scene;

/// What a reader of a guide does.
#[derive(Debug)]
enum Step {
    /// A block that begins with `# NAME.yaml`: a file of that name.
    File { name: String, text: String },
    /// A block of commands.
    Commands(Vec<String>),
}

/// A guide that is being followed.
pub struct Guide {
    steps: std::vec::IntoIter<Step>,
}

impl Guide {
    /// Opens one, by its path in the repository.
    pub fn open(path: &str) -> Result<Self> {
        let text = fs::read_to_string(places::repository().join(path))?;
        let mut steps = Vec::new();
        let mut parts = text.split("\n```").skip(1);
        while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
            let (language, body) = block.split_once('\n').context("an empty block")?;
            match language {
                "sh" => steps.push(Step::Commands(body.lines().map(str::to_owned).collect())),
                "yaml" => {
                    let name = body.lines().next().and_then(|first| first.strip_prefix("# "));
                    let name = name.with_context(|| format!("a file without a name: {body}"))?.to_owned();
                    steps.push(Step::File { name, text: format!("{body}\n") });
                }
                _ => {}
            }
        }
        ensure!(!steps.is_empty(), "{path} has no blocks");
        Ok(Self { steps: steps.into_iter() })
    }

    /// Does everything up to and with the file of this name, or the commands of which the first begins so.
    pub fn follow(&mut self, scene: &Scene, until: &str) -> Result<()> {
        for step in self.steps.by_ref() {
            let there = match &step {
                Step::File { name, text } => {
                    fs::write(scene.folder.join(name), text)?;
                    name == until
                }
                Step::Commands(lines) => {
                    lines.iter().try_for_each(|line| type_in(scene, line))?;
                    lines.first().is_some_and(|line| line.starts_with(until))
                }
            };
            if there {
                return Ok(());
            }
        }
        anyhow::bail!("the guide does not come to {until:?}")
    }

    /// Fails if something was left undone.
    pub fn is_done(self) -> Result<()> {
        let left: Vec<Step> = self.steps.collect();
        ensure!(left.is_empty(), "not followed: {left:?}");
        Ok(())
    }
}

/// One line, as a user types it who has `rollcall` and `kubectl` at hand, in the scene's folder.
fn type_in(scene: &Scene, line: &str) -> Result<()> {
    let folder = |program: &Path| program.parent().unwrap_or(program).display().to_string();
    let (rollcall, kubectl) = (folder(&places::rollcall()?), folder(&places::program("kubectl")?));
    let path = format!("{rollcall}:{kubectl}:{}", std::env::var("PATH")?);
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).current_dir(&scene.folder);
    shell.env("PATH", path).env("HOME", &scene.folder).env("KUBECONFIG", scene.plane.kubeconfig());
    let done = shell.output().context("failed to run bash")?;
    let said = [done.stdout, done.stderr].concat();
    ensure!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&said));
    Ok(())
}
