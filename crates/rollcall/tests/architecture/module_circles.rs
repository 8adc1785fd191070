//! Circles among the files of a crate: two files that name each other's items can only be read together.

use std::collections::{BTreeMap, BTreeSet};

use super::source_modules::{ImportedPath, ModulePath, SourceModule};

type Modules = BTreeMap<ModulePath, SourceModule>;
type Edges = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Re-exports are followed this far; a longer chain would be a circle of its own.
const MAX_REEXPORTS: usize = 8;

/// Every group of files that reach each other, as `crate: a <-> b <-> c`, sorted.
pub(crate) fn find_circles(name: &str, modules: &Modules) -> Vec<String> {
    let edges: Edges =
        modules.iter().map(|(path, module)| (path.clone(), edges_of(modules, path, module))).collect();
    let reached: Edges = edges.keys().map(|path| (path.clone(), reachable(&edges, path))).collect();
    let mut circles = BTreeSet::new();
    for (path, reaches) in &reached {
        let circle: BTreeSet<_> = reaches.iter().filter(|other| reached[*other].contains(path)).collect();
        // A module of tests in a file and the file itself are read together anyhow.
        let files: BTreeSet<_> = circle.iter().map(|path| &modules[*path].file).collect();
        if files.len() > 1 {
            let names: Vec<_> = circle
                .iter()
                .map(|path| if path.is_empty() { "lib".to_owned() } else { path.join("::") })
                .collect();
            circles.insert(format!("{name}: {}", names.join(" <-> ")));
        }
    }
    circles.into_iter().collect()
}

fn reachable(edges: &Edges, from: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<_> = edges[from].iter().collect();
    while let Some(path) = next.pop() {
        if reached.insert(path.clone()) {
            next.extend(&edges[path]);
        }
    }
    reached
}

fn edges_of(modules: &Modules, at: &ModulePath, module: &SourceModule) -> BTreeSet<ModulePath> {
    let uses = |import: &&ImportedPath| !import.is_reexport || module.names.contains(&import.alias);
    let imported = module.imports.iter().filter(uses).map(|import| &import.path);
    let named = imported.chain(&module.paths).filter_map(|path| defining_module(modules, at, path, 0));
    let through_globs = module.imports.iter().filter(|import| import.alias == "*").flat_map(|import| {
        let path = |name: &String| [import.path.clone(), vec![name.clone()]].concat();
        module.names.iter().filter_map(move |name| defining_module(modules, at, &path(name), 0))
    });
    named.chain(through_globs).filter(|path| path != at).collect()
}

/// The module in which the item is defined that `path` means in the module `at`; `None` for what is no item of this crate.
fn defining_module(modules: &Modules, at: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
    if depth > MAX_REEXPORTS {
        return None;
    }
    let mut current = at.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (current, rest) = (Vec::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                current.pop();
                rest = &rest[1..];
            }
        }
        first => {
            let child = [current.clone(), vec![first.to_owned()]].concat();
            if !modules.contains_key(&child) {
                let import =
                    modules[at].imports.iter().find(|import| import.alias == first && import.path != path)?;
                return defining_module(modules, at, &[&import.path, &path[1..]].concat(), depth + 1);
            }
        }
    }
    while let Some(part) = rest.first() {
        let child = [current.clone(), vec![part.clone()]].concat();
        if !modules.contains_key(&child) {
            break;
        }
        (current, rest) = (child, &rest[1..]);
    }
    let module = modules.get(&current)?;
    // A module alone is only a way to its items.
    let name = rest.first()?;
    if module.items.contains(name) {
        return Some(current);
    }
    let reexported = module.imports.iter().find(|import| import.alias == *name);
    if let Some(import) = reexported
        && let Some(found) = defining_module(modules, &current, &import.path, depth + 1)
    {
        return Some(found);
    }
    let globs = module.imports.iter().filter(|import| import.alias == "*");
    let mut through = globs.filter_map(|import| {
        let path = [import.path.clone(), vec![name.clone()]].concat();
        defining_module(modules, &current, &path, depth + 1)
    });
    through.next_back().filter(|found| modules[found].items.contains(name))
}
