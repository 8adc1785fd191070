//! Which script judges which kind: from a directory laid out as Argo CD's, from `argocd-cm`, or from both.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use readiness::Time;
use serde_json::Value;

use super::config::{self, ConfigError};
use super::{Object, Outcome, Script, SyntaxError, glob};
use crate::{Gvk, PeerVerdict};

/// A script that compiled, or why it did not: that spoils its own kinds only.
type Compiled = Result<Script, SyntaxError>;

/// Scripts by kind. An exact name goes before a wildcard, and `argocd-cm` before a directory.
#[derive(Debug, Default)]
pub struct Library {
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    exact: BTreeMap<String, Compiled>,
    /// In the order in which they are asked.
    wild: Vec<(String, Compiled)>,
    /// Whether `*` stops at a slash.
    segments: bool,
}

/// A directory of scripts that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {path}")]
pub struct LoadError {
    path: PathBuf,
    source: io::Error,
}

impl Library {
    /// Reads `<group>/<Kind>/health.lua` below `root` (`<Kind>/health.lua` for the core group); `_` stands for `*`.
    ///
    /// Of several wildcard folders the first in alphabetical order is taken, as Argo CD does.
    pub fn from_directory(root: &Path) -> Result<Library, LoadError> {
        let mut found = Vec::new();
        collect(root, root, 0, &mut found)?;
        let (mut exact, mut wild) = (BTreeMap::new(), BTreeMap::new());
        for (folder, file) in found {
            let source = fs::read(&file).map_err(|source| LoadError { path: file.clone(), source })?;
            let script =
                Script::compile(&format!("{folder}/health.lua"), &String::from_utf8_lossy(&source), true);
            if folder.contains('_') {
                wild.insert(folder.clone(), (folder.replace('_', "*"), script));
            } else {
                exact.insert(folder, script);
            }
        }
        Ok(Library { layers: vec![Layer { exact, wild: wild.into_values().collect(), segments: true }] })
    }

    /// Reads the `data` of the ConfigMap `argocd-cm`.
    ///
    /// Where several wildcards match, Argo CD takes any; here it is the longest, and of equals the first.
    pub fn from_config_map(data: &BTreeMap<String, String>) -> Result<Library, ConfigError> {
        let (mut exact, mut wild) = (BTreeMap::new(), Vec::new());
        for (key, entry) in config::entries(data)? {
            let Some(source) = entry.script.filter(|source| !source.is_empty()) else { continue };
            let script = Script::compile(&format!("argocd-cm {key}"), &source, entry.open.unwrap_or(false));
            if key.contains(['*', '?', '[', '{', '\\']) {
                wild.push((key, script));
            } else {
                exact.insert(key, script);
            }
        }
        wild.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        Ok(Library { layers: vec![Layer { exact, wild, segments: false }] })
    }

    /// This library, and `below` it another one for the kinds that it knows nothing of.
    #[must_use]
    pub fn over(mut self, below: Library) -> Library {
        self.layers.extend(below.layers);
        self
    }

    /// The script for a kind, or why it cannot be run; `None` where the library has none.
    pub fn script(&self, group: &str, kind: &str) -> Option<Result<&Script, &SyntaxError>> {
        let key = if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") };
        self.layers.iter().find_map(|layer| layer.script(&key)).map(Result::as_ref)
    }

    /// Where a script for this kind would be looked for first.
    pub fn place(&self, group: &str, kind: &str) -> String {
        let slash = if group.is_empty() { "" } else { "/" };
        if self.layers.first().is_some_and(|layer| layer.segments) {
            return format!("{group}{slash}{kind}/health.lua");
        }
        let underscore = if group.is_empty() { "" } else { "_" };
        format!("resource.customizations.health.{group}{underscore}{kind}")
    }

    /// What the script for the object's kind says of it; `None` where the library has no script for it.
    pub fn judge(&self, object: &Value, now: Time) -> Option<Outcome> {
        let gvk = Gvk::of(object);
        Some(match self.script(gvk.group, gvk.kind)? {
            Ok(script) => script.judge(Object::Tree(object), now),
            Err(error) => Outcome {
                verdict: PeerVerdict { status: Some("Unknown"), message: error.to_string() },
                line: None,
                limit: None,
                failed: true,
                steps: 0,
            },
        })
    }

    /// The scripts that cannot be run.
    pub fn broken(&self) -> impl Iterator<Item = &SyntaxError> {
        self.all().filter_map(|script| script.as_ref().err())
    }

    /// How many scripts there are.
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn all(&self) -> impl Iterator<Item = &Compiled> {
        self.layers
            .iter()
            .flat_map(|layer| layer.exact.values().chain(layer.wild.iter().map(|(_, script)| script)))
    }
}

impl Layer {
    fn script(&self, key: &str) -> Option<&Compiled> {
        let wild = || self.wild.iter().find(|(pattern, _)| glob::matches(pattern, key, self.segments));
        self.exact.get(key).or_else(|| wild().map(|(_, script)| script))
    }
}

/// Finds every `health.lua` with its folder's path below `root`.
fn collect(
    root: &Path,
    folder: &Path,
    depth: usize,
    found: &mut Vec<(String, PathBuf)>,
) -> Result<(), LoadError> {
    let failed = |source| LoadError { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && depth < 2 {
            collect(root, &path, depth + 1, found)?;
        } else if path.file_name().is_some_and(|name| name == "health.lua")
            && let Ok(below) = folder.strip_prefix(root)
            && depth > 0
        {
            let steps: Vec<_> = below.iter().map(|step| step.to_string_lossy().into_owned()).collect();
            found.push((steps.join("/"), path));
        }
    }
    Ok(())
}
