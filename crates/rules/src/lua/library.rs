//! Finds the script for a kind: in a directory laid out as Argo CD's, in `argocd-cm`, or in both.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use readiness::Time;
use rollcall_cel::ObjectJson;
use serde_json::Value;

use super::compiled_script::ScriptSyntaxError;
use super::config::{self, ArgocdConfigError};
use super::glob::GlobPattern;
use super::outcome::ScriptOutcome;
use super::script::HealthScript;
use crate::json::ObjectGvk;
use crate::peer_verdict::PeerVerdict;

/// Most patterns of one library, their braces expanded. Argo CD's own library has seven.
const MAX_LIBRARY_PATTERNS: usize = 1024;

/// Most kinds of which a library remembers the matching pattern.
const MAX_REMEMBERED_KINDS: usize = 1024;

/// A compiled script, or its error, which affects only its own kinds.
type LibraryScript = Result<HealthScript, ScriptSyntaxError>;

/// Scripts by kind. An exact name takes precedence over a wildcard, and `argocd-cm` over a directory.
#[derive(Debug, Default)]
pub struct ScriptLibrary {
    layers: Vec<LibraryLayer>,
}

#[derive(Debug)]
struct LibraryLayer {
    exact: BTreeMap<String, LibraryScript>,
    wild: WildScripts,
    /// `true` if `*` does not match a slash.
    segments: bool,
}

/// Scripts by wildcard, in the order in which they are tried.
#[derive(Debug, Default)]
struct WildScripts {
    /// A refused pattern matches nothing; its entry holds the error.
    entries: Vec<(Option<GlobPattern>, LibraryScript)>,
    /// Index of the entry that matches a kind, so that the patterns are tried once per kind and not per object. The
    /// first look-up of a kind writes it; it never changes.
    remembered: Mutex<BTreeMap<String, Option<usize>>>,
}

/// Error for a directory of scripts that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {path}")]
pub struct LibraryLoadError {
    path: PathBuf,
    source: io::Error,
}

impl ScriptLibrary {
    /// Reads `<group>/<Kind>/health.lua` below `root` (`<Kind>/health.lua` for the core group); `_` stands for `*`.
    ///
    /// Of several matching wildcard folders the first in alphabetical order wins, as in Argo CD.
    pub fn from_directory(root: &Path) -> Result<ScriptLibrary, LibraryLoadError> {
        let mut found = Vec::new();
        collect_scripts(root, root, 0, &mut found)?;
        let (mut exact, mut wild) = (BTreeMap::new(), BTreeMap::new());
        for (folder, file) in found {
            let source = fs::read(&file).map_err(|source| LibraryLoadError { path: file.clone(), source })?;
            let script = HealthScript::compile(
                &format!("{folder}/health.lua"),
                &String::from_utf8_lossy(&source),
                true,
            );
            if folder.contains('_') {
                wild.insert(folder.clone(), (folder.replace('_', "*"), script));
            } else {
                exact.insert(folder, script);
            }
        }
        Ok(ScriptLibrary {
            layers: vec![LibraryLayer {
                exact,
                wild: WildScripts::compile(wild.into_values(), true),
                segments: true,
            }],
        })
    }

    /// Reads the `data` of the ConfigMap `argocd-cm`.
    ///
    /// Of several matching wildcards, Argo CD takes an arbitrary one; here the longest wins, and of equally long ones
    /// the first.
    pub fn from_config_map(data: &BTreeMap<String, String>) -> Result<ScriptLibrary, ArgocdConfigError> {
        let (mut exact, mut wild) = (BTreeMap::new(), Vec::new());
        for (key, entry) in config::read_customizations(data)? {
            let Some(source) = entry.script.filter(|source| !source.is_empty()) else { continue };
            let script =
                HealthScript::compile(&format!("argocd-cm {key}"), &source, entry.open.unwrap_or(false));
            if key.contains(['*', '?', '[', '{', '\\']) {
                wild.push((key, script));
            } else {
                exact.insert(key, script);
            }
        }
        wild.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        let wild = WildScripts::compile(wild.into_iter(), false);
        Ok(ScriptLibrary { layers: vec![LibraryLayer { exact, wild, segments: false }] })
    }

    /// Layers this library over `below`, which is used for kinds that this one has no script for.
    #[must_use]
    pub fn layered_over(mut self, below: ScriptLibrary) -> ScriptLibrary {
        self.layers.extend(below.layers);
        self
    }

    /// Returns the script for a kind, or its compile error; `None` if the library has none.
    pub fn find_script(&self, group: &str, kind: &str) -> Option<Result<&HealthScript, &ScriptSyntaxError>> {
        let key = if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") };
        self.layers.iter().find_map(|layer| layer.find_script(&key)).map(Result::as_ref)
    }

    /// Returns the location at which a script for this kind is looked up first.
    pub fn script_location(&self, group: &str, kind: &str) -> String {
        let slash = if group.is_empty() { "" } else { "/" };
        if self.layers.first().is_some_and(|layer| layer.segments) {
            return format!("{group}{slash}{kind}/health.lua");
        }
        let underscore = if group.is_empty() { "" } else { "_" };
        format!("resource.customizations.health.{group}{underscore}{kind}")
    }

    /// Runs the script for the object's kind; `None` if the library has no script for it.
    pub fn judge_object(&self, object: &Value, now: Time) -> Option<ScriptOutcome> {
        let gvk = ObjectGvk::of_object(object);
        Some(match self.find_script(gvk.group, gvk.kind)? {
            Ok(script) => script.judge_object(ObjectJson::Tree(object), now),
            Err(error) => ScriptOutcome {
                verdict: PeerVerdict { status: Some("Unknown"), message: error.to_string() },
                line: None,
                limit: None,
                failed: true,
                reads_clock: false,
                steps: 0,
            },
        })
    }

    /// Returns the scripts that did not compile.
    pub fn broken_scripts(&self) -> impl Iterator<Item = &ScriptSyntaxError> {
        self.all_scripts().filter_map(|script| script.as_ref().err())
    }

    /// Number of scripts.
    pub fn len(&self) -> usize {
        self.all_scripts().count()
    }

    /// Returns `true` if there is no script.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn all_scripts(&self) -> impl Iterator<Item = &LibraryScript> {
        self.layers
            .iter()
            .flat_map(|layer| layer.exact.values().chain(layer.wild.entries.iter().map(|(_, script)| script)))
    }
}

impl LibraryLayer {
    fn find_script(&self, key: &str) -> Option<&LibraryScript> {
        self.exact.get(key).or_else(|| self.wild.find_script(key))
    }
}

impl WildScripts {
    fn compile(scripts: impl Iterator<Item = (String, LibraryScript)>, segments: bool) -> WildScripts {
        let mut room = MAX_LIBRARY_PATTERNS;
        let entries = scripts.map(|(text, script)| {
            let pattern = GlobPattern::compile(&text, segments).map_err(|error| error.to_string());
            let fits = pattern.and_then(|pattern| {
                room = room
                    .checked_sub(pattern.count_alternatives())
                    .ok_or_else(|| format!("the library has more than {MAX_LIBRARY_PATTERNS} patterns"))?;
                Ok(pattern)
            });
            match fits {
                Ok(pattern) => (Some(pattern), script),
                Err(message) => {
                    let name = text.chars().take(60).collect();
                    (None, Err(ScriptSyntaxError { name, line: 1, message }))
                }
            }
        });
        WildScripts { entries: entries.collect(), ..WildScripts::default() }
    }

    fn find_script(&self, key: &str) -> Option<&LibraryScript> {
        if self.entries.is_empty() {
            return None;
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let at = if let Some(known) = remembered.get(key) {
            *known
        } else {
            let matches = |(pattern, _): &(Option<GlobPattern>, _)| {
                pattern.as_ref().is_some_and(|pattern| pattern.matches_text(key))
            };
            let found = self.entries.iter().position(matches);
            if remembered.len() < MAX_REMEMBERED_KINDS {
                remembered.insert(key.to_owned(), found);
            }
            found
        };
        self.entries.get(at?).map(|(_, script)| script)
    }
}

/// Finds every `health.lua` with its folder's path below `root`.
fn collect_scripts(
    root: &Path,
    folder: &Path,
    depth: usize,
    found: &mut Vec<(String, PathBuf)>,
) -> Result<(), LibraryLoadError> {
    let failed = |source| LibraryLoadError { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && depth < 2 {
            collect_scripts(root, &path, depth + 1, found)?;
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
