//! Every library, program, test, bench and example of the workspace, with the modules that it consists of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::source_modules::{ModulePath, SourceModule, is_module_of_its_own};

/// One target of a package: what the compiler is given at once.
pub(crate) struct PackageTarget {
    /// Package and target, as in `timer/tests/properties`.
    pub(crate) name: String,
    /// The package's folder.
    pub(crate) package_folder: PathBuf,
    /// Its modules by their path, tests included.
    pub(crate) modules: BTreeMap<ModulePath, SourceModule>,
}

/// Every target that the output of `cargo metadata` lists.
pub(crate) fn read_targets(metadata: &Value) -> Vec<PackageTarget> {
    let packages = metadata["packages"].as_array().unwrap().iter();
    let of_package = |package: &Value| {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let targets = package["targets"].as_array().unwrap().clone();
        let package = package["name"].as_str().unwrap().to_owned();
        targets.into_iter().map(move |target| {
            let name = target["name"].as_str().unwrap();
            let kind = target["kind"][0].as_str().unwrap();
            let name = if kind == "lib" { package.clone() } else { format!("{package} {kind} {name}") };
            let root = PathBuf::from(target["src_path"].as_str().unwrap());
            let mut modules = BTreeMap::new();
            read_file(&mut modules, Vec::new(), &root, root.parent().unwrap());
            PackageTarget { name, package_folder: manifest.parent().unwrap().to_owned(), modules }
        })
    };
    packages.flat_map(of_package).collect()
}

/// Reads a file and all modules below it, whose files stand in `folder`.
fn read_file(modules: &mut BTreeMap<ModulePath, SourceModule>, path: ModulePath, file: &Path, folder: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    read_items(modules, path, file, folder, &parsed.items);
}

fn read_items(
    modules: &mut BTreeMap<ModulePath, SourceModule>,
    path: ModulePath,
    file: &Path,
    folder: &Path,
    items: &[syn::Item],
) {
    let children = items.iter().filter_map(|item| match item {
        syn::Item::Mod(child) if is_module_of_its_own(child) => Some(child),
        _ => None,
    });
    for child in children {
        let name = child.ident.to_string();
        let child_path = [path.clone(), vec![name.clone()]].concat();
        if let Some((_, items)) = &child.content {
            read_items(modules, child_path, file, &folder.join(name), items);
        } else {
            let (child_file, child_folder) = locate_child(&name, path_attribute(child), file, folder);
            read_file(modules, child_path, &child_file, &child_folder);
        }
    }
    modules.insert(path, SourceModule::read(file.to_owned(), items));
}

/// The file that `#[path]` names.
fn path_attribute(module: &syn::ItemMod) -> Option<String> {
    let attribute = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"))?;
    match &attribute.meta.require_name_value().unwrap().value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
        _ => panic!("#[path] without a path"),
    }
}

/// The file of a module, and the folder of those below it.
fn locate_child(name: &str, named: Option<String>, file: &Path, folder: &Path) -> (PathBuf, PathBuf) {
    if let Some(named) = named {
        let named = file.parent().unwrap().join(named).canonicalize().unwrap();
        let folder = named.parent().unwrap().to_owned();
        return (named, folder);
    }
    let below = folder.join(name);
    let flat = folder.join(format!("{name}.rs"));
    (if flat.exists() { flat } else { below.join("mod.rs") }, below)
}
