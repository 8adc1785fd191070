//! Rules from libraries of health scripts, without the watching of the ConfigMaps that hold them.

use std::sync::Arc;

use rules::lua::ScriptLibrary;
use rules::{CompiledRule, RuleDefinition};

use super::ready_rule::ConfigMapName;

/// What may be judged by a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryState {
    /// Its list is not complete.
    Unread,
    /// It can be used as it is.
    Current,
    /// It cannot be used as it is now, for this reason; what was read before stays in force.
    Outdated(String),
    /// It was never read, for this reason: there is nothing to judge by.
    Missing(String),
}

/// The rules of libraries, as far as these have been read.
pub trait LibraryRules {
    /// What may be judged by this library.
    fn state(&self, name: &ConfigMapName) -> LibraryState;

    /// Rule of a library, and its source.
    fn library_rule(&self, name: &ConfigMapName) -> (Arc<CompiledRule>, Arc<str>);

    /// True once the library was read, or is known not to exist.
    fn is_read(&self, name: &ConfigMapName) -> bool {
        self.state(name) != LibraryState::Unread
    }
}

/// Libraries where no cluster is read: a rule from one finds no script, and reports that.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnreadLibraries;

impl LibraryRules for UnreadLibraries {
    fn state(&self, _: &ConfigMapName) -> LibraryState {
        LibraryState::Unread
    }

    fn library_rule(&self, name: &ConfigMapName) -> (Arc<CompiledRule>, Arc<str>) {
        const NOT_READ_YET: &str = "not read yet";
        compile_library_rule(name, Arc::new(ScriptLibrary::default()), Some(NOT_READ_YET), NOT_READ_YET)
    }
}

/// Rule of a library that holds these scripts, and its source: its name and version. `trouble` is the reason why it
/// holds none.
pub fn compile_library_rule(
    name: &ConfigMapName,
    scripts: Arc<ScriptLibrary>,
    trouble: Option<&str>,
    version: &str,
) -> (Arc<CompiledRule>, Arc<str>) {
    let words = trouble.map_or_else(String::new, |why| format!(" ({why})"));
    let words = format!("ConfigMap {name}{words}");
    let spec = RuleDefinition::Library { name: &words, scripts };
    let rule = CompiledRule::compile(&spec).expect("invariant: a library is a rule, whatever is in it");
    (Arc::new(rule), format!("library {name} {version}").into())
}
