//! Modules, parsed: the items that each defines and the paths that each names.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A path of modules below the crate's root, as in `reflector::row`.
pub(crate) type ModulePath = Vec<String>;

/// One name that a `use` brings into a module.
#[derive(Debug)]
pub(crate) struct ImportedPath {
    /// The path as written.
    pub(crate) path: Vec<String>,
    /// The name under which it is known here; `*` for all.
    pub(crate) alias: String,
    /// The module offers it to others under its own path.
    pub(crate) is_reexport: bool,
}

/// One source file, or a module of tests inside of one.
#[derive(Default)]
pub(crate) struct SourceModule {
    /// The file's path below the workspace's root.
    pub(crate) file: PathBuf,
    /// Names of the items that stand at its top.
    pub(crate) items: BTreeSet<String>,
    /// Names of its types, private ones included.
    pub(crate) types: BTreeSet<String>,
    /// Names of its types that other modules can see.
    pub(crate) visible_types: BTreeSet<String>,
    /// Names of the types to which it adds methods of their own, as opposed to those of a trait.
    pub(crate) extended_types: BTreeSet<String>,
    /// Everything that a `use` names.
    pub(crate) imports: Vec<ImportedPath>,
    /// Every other path that its code names.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// Every name that its code uses without a path.
    pub(crate) names: BTreeSet<String>,
}

impl SourceModule {
    /// The module with these items, which stand in this file.
    pub(crate) fn read(file: PathBuf, items: &[syn::Item]) -> Self {
        let mut module = Self { file, ..Self::default() };
        for item in items {
            module.visit_item(item);
        }
        module
    }

    fn define_type(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
        self.items.insert(name.to_string());
        self.types.insert(name.to_string());
        if !matches!(visibility, syn::Visibility::Inherited) {
            self.visible_types.insert(name.to_string());
        }
    }

    fn note_extended_type(&mut self, of: &syn::Type) {
        if let syn::Type::Path(of) = of {
            self.extended_types.extend(of.path.segments.last().map(|segment| segment.ident.to_string()));
        }
    }

    fn import(&mut self, prefix: &[String], tree: &syn::UseTree, is_reexport: bool) {
        let joined = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&joined(&path.ident), &path.tree, is_reexport),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(prefix, tree, is_reexport));
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                let alias = prefix.last().cloned().unwrap_or_default();
                self.imports.push(ImportedPath { path: prefix.to_vec(), alias, is_reexport });
            }
            syn::UseTree::Name(name) => {
                let alias = name.ident.to_string();
                self.imports.push(ImportedPath { path: joined(&name.ident), alias, is_reexport });
            }
            syn::UseTree::Rename(name) => {
                let alias = name.rename.to_string();
                self.imports.push(ImportedPath { path: joined(&name.ident), alias, is_reexport });
            }
            syn::UseTree::Glob(_) => {
                let alias = "*".to_owned();
                self.imports.push(ImportedPath { path: prefix.to_vec(), alias, is_reexport });
            }
        }
    }

    /// Paths in a macro's arguments, which are tokens and no syntax.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.note_path(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.note_path(std::mem::take(&mut path));
                    self.read_tokens(group.stream());
                }
                _ => self.note_path(std::mem::take(&mut path)),
            }
        }
        self.note_path(path);
    }

    fn note_path(&mut self, path: Vec<String>) {
        match <[String; 1]>::try_from(path) {
            Ok([name]) => _ = self.names.insert(name),
            Err(path) if path.is_empty() => {}
            Err(path) => _ = self.paths.insert(path),
        }
    }
}

/// In another file, or a block of tests; any other block is read as a part of its file.
pub(crate) fn is_module_of_its_own(module: &syn::ItemMod) -> bool {
    module.content.is_none() || is_test_only(&module.attrs)
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().starts_with("test"))
    })
}

impl<'ast> Visit<'ast> for SourceModule {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(module) if is_module_of_its_own(module) => return,
            syn::Item::Use(item) if is_test_only(&item.attrs) => return,
            syn::Item::Use(item) => {
                let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
                self.import(&[], &item.tree, is_reexport);
                return;
            }
            syn::Item::Struct(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Enum(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Union(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Trait(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Impl(item) if item.trait_.is_none() => self.note_extended_type(&item.self_ty),
            syn::Item::Type(item) => _ = self.items.insert(item.ident.to_string()),
            syn::Item::Const(item) => _ = self.items.insert(item.ident.to_string()),
            syn::Item::Static(item) => _ = self.items.insert(item.ident.to_string()),
            syn::Item::Fn(item) => _ = self.items.insert(item.sig.ident.to_string()),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.note_path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.read_tokens(call.tokens.clone());
    }

    // Attributes name derives and lints, not modules.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}
