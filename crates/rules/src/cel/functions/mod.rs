//! The functions, by name and type. Each counts what it walks and makes.

mod convert;
mod encode;
mod format;
pub(super) mod lists;
pub(super) mod net;
mod optional;
pub(super) mod pattern;
pub(super) mod quantity;
pub(super) mod semver;
mod sets;
mod strings;
pub(super) mod time;
pub(super) mod url;

use super::meter::Meter;
use super::value::{Fault, Ty, Val};

/// What a function needs beside its arguments.
pub(super) struct Cx<'c> {
    pub(super) meter: &'c Meter,
    /// The pattern among the arguments, where it is a literal.
    pub(super) pattern: Option<&'c pattern::Pattern>,
}

type Native = for<'t> fn(&Cx<'_>, &[Val<'t>]) -> Result<Val<'t>, Fault>;

/// One overload of a function.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// Called as `x.name(…)`; `x` is its first argument.
    pub(super) member: bool,
    pub(super) args: &'static [Ty],
    pub(super) result: Ty,
    pub(super) call: Native,
}

impl Function {
    /// Could it take arguments of these types, as far as they are known?
    pub(super) fn could_take(&self, types: &[Ty]) -> bool {
        self.args.len() == types.len() && self.args.iter().zip(types).all(|(want, ty)| want.fits(*ty))
    }

    /// Does it take these arguments?
    pub(super) fn takes(&self, args: &[Val<'_>]) -> bool {
        self.args.len() == args.len() && self.args.iter().zip(args).all(|(want, arg)| want.fits(arg.ty()))
    }
}

const fn global(name: &'static str, args: &'static [Ty], result: Ty, call: Native) -> Function {
    Function { name, member: false, args, result, call }
}

const fn member(name: &'static str, args: &'static [Ty], result: Ty, call: Native) -> Function {
    Function { name, member: true, args, result, call }
}

const TABLES: [&[Function]; 12] = [
    convert::TABLE,
    encode::TABLE,
    lists::TABLE,
    net::TABLE,
    optional::TABLE,
    pattern::TABLE,
    quantity::TABLE,
    semver::TABLE,
    sets::TABLE,
    strings::TABLE,
    time::TABLE,
    url::TABLE,
];

pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    TABLES.into_iter().flatten()
}

pub(super) fn known(name: &str) -> bool {
    all().any(|function| function.name == name)
}

pub(super) fn takes_a_pattern(name: &str) -> bool {
    matches!(name, "matches" | "find" | "findAll")
}

/// The library that has a function which is missing here.
pub(super) fn missing(name: &str) -> Option<&'static str> {
    let by_name = |names: &[&str]| names.contains(&name);
    let space = name.split_once('.').map_or("", |(space, _)| space);
    match space {
        "math" => return Some("math of cel-go"),
        "regex" => return Some("regex of cel-go"),
        "proto" => return Some("protocol buffers"),
        "format" => return Some("named formats of Kubernetes"),
        "jsonpatch" => return Some("JSON patches of Kubernetes"),
        "random" | "hash" | "json" | "runtime" | "maps" => return Some("kro"),
        _ => {}
    }
    if by_name(&["lists.setAtIndex", "lists.insertAtIndex", "lists.removeAtIndex", "merge", "omit"]) {
        return Some("kro");
    }
    if by_name(&["path", "group", "serviceAccount", "resource", "subresource", "check", "allowed"]) {
        return Some("the authorizer of Kubernetes");
    }
    by_name(&["validate"]).then_some("named formats of Kubernetes")
}

/// Arguments of other types than the table says: cannot happen, and is an error all the same.
fn unfit(args: &[Val<'_>]) -> Fault {
    Fault::NoOverload("function", args.iter().map(Val::ty).collect())
}
