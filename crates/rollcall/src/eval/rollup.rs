//! Policies over manifests: which parents there are, what belongs to them, and what they come to.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use controller::core::TreeNode;
use controller::offline::roll_up;
use controller::policies::{Compiled, read_file};
use readiness::Time;
use serde_json::value::RawValue;
use watcher::Parent;
use watcher::wire::{Child, Meta};

use super::report::Output;

/// Reads the policies of these files, each of which must be valid.
pub(crate) fn policies(files: &[PathBuf], stuck_after: Duration) -> anyhow::Result<Vec<(String, Compiled)>> {
    let mut all = Vec::new();
    for file in files {
        for found in read_file(file)? {
            match found.compile(stuck_after) {
                Ok(compiled) => all.push((found.name, compiled)),
                Err(why) => bail!("{}: policy {}: {why}", file.display(), found.name),
            }
        }
    }
    if all.is_empty() {
        bail!(
            "no ReadinessPolicy in {}",
            files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(all)
}

/// Everything that was read, to be rolled up at the end.
#[derive(Debug, Default)]
pub(super) struct World {
    objects: Vec<Parent>,
}

impl World {
    pub(super) fn add(&mut self, child: Child, json: &str) {
        if let Ok(text) = RawValue::from_string(json.to_owned()) {
            self.objects.push(Parent { child, text });
        }
    }

    pub(super) fn roll_up(mut self, policies: &[(String, Compiled)], now: Time) -> Vec<TreeNode> {
        self.identify();
        roll_up(policies, &self.objects.iter().collect::<Vec<_>>(), now)
    }

    /// Gives an identity to what was never in a cluster, and to the owners that name it.
    fn identify(&mut self) {
        let mut named = BTreeMap::new();
        let mut known = std::collections::BTreeSet::new();
        for object in &mut self.objects {
            let meta = &mut object.child.meta;
            if meta.uid.is_empty() {
                meta.uid = uid(&meta.api_version, &meta.kind, &meta.namespace, &meta.name).into();
                named.insert(
                    key(&meta.api_version, &meta.kind, &meta.namespace, &meta.name),
                    meta.uid.clone(),
                );
            }
            known.insert(meta.uid.clone());
        }
        for object in &mut self.objects {
            let Meta { owners, namespace, .. } = &mut object.child.meta;
            for owner in owners.iter_mut().filter(|owner| !known.contains(&owner.uid)) {
                let named = |namespace: &str| {
                    named.get(&key(&owner.api_version, &owner.kind, namespace, &owner.name))
                };
                if let Some(uid) = named(namespace).or_else(|| named("")) {
                    owner.uid = uid.clone();
                }
            }
        }
    }
}

/// A version is no part of an identity.
fn key(api_version: &str, kind: &str, namespace: &str, name: &str) -> [String; 4] {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    [group, kind, namespace, name].map(str::to_owned)
}

fn uid(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    key(api_version, kind, namespace, name).join("/")
}

/// Prints the trees; the exit code is that of the parents.
pub(crate) fn print(trees: &[TreeNode], output: Output) -> anyhow::Result<ExitCode> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(trees)? + "\n",
        Output::Yaml => controller::policies::to_yaml(&trees)?,
        Output::Table if trees.is_empty() => String::new(),
        Output::Table => table(trees),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    if trees.is_empty() {
        eprintln!("rollcall: no object is a parent by these policies");
        return Ok(ExitCode::from(2));
    }
    let ready = trees.iter().all(|tree| tree.verdict == "Ready");
    Ok(ExitCode::from(u8::from(!ready)))
}

fn table(trees: &[TreeNode]) -> String {
    let mut rows = Vec::new();
    for tree in trees {
        draw(tree, "", "", &mut rows);
    }
    let width =
        |column: usize| rows.iter().map(|row: &[String; 4]| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0).max(6), width(1).max(7), width(2).max(6)];
    let head = ["OBJECT", "VERDICT", "REASON", "MESSAGE"].map(str::to_owned);
    let mut out = String::new();
    for row in [&head].into_iter().chain(&rows) {
        for (at, width) in widths.iter().enumerate() {
            out.push_str(&row[at]);
            out.extend(std::iter::repeat_n(' ', width - row[at].chars().count() + 3));
        }
        out.push_str(&row[3]);
        out.push('\n');
    }
    out
}

fn draw(node: &TreeNode, before: &str, below: &str, rows: &mut Vec<[String; 4]>) {
    let optional = if node.role == "optional" { " (optional)" } else { "" };
    let title = super::input::title(&node.kind, &node.namespace, &node.name);
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    rows.push([
        format!("{before}{}{optional}", line(&title)),
        node.verdict.to_owned(),
        node.reason.clone(),
        line(&node.detail),
    ]);
    let last = node.children.len().saturating_sub(1);
    for (at, child) in node.children.iter().enumerate() {
        let (branch, rail) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(child, &format!("{below}{branch}"), &format!("{below}{rail}"), rows);
    }
}
