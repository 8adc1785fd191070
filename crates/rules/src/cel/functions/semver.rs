//! Versions, as Kubernetes has them in CEL.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::value::Ty::{self, Bool, Int, Text};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, member, unfit};

const SEMVER: Ty = Ty::Semver;

pub(super) const TABLE: &[Function] = &[
    global("semver", &[Text], SEMVER, semver),
    global("semver", &[Text, Bool], SEMVER, semver),
    global("isSemver", &[Text], Bool, is_semver),
    global("isSemver", &[Text, Bool], Bool, is_semver),
    member("major", &[SEMVER], Int, |_, args| part(args, 0)),
    member("minor", &[SEMVER], Int, |_, args| part(args, 1)),
    member("patch", &[SEMVER], Int, |_, args| part(args, 2)),
    member("compareTo", &[SEMVER, SEMVER], Int, |_, args| Ok(Val::Int(order(args)? as i64))),
    member("isGreaterThan", &[SEMVER, SEMVER], Bool, |_, args| Ok(Val::Bool(order(args)?.is_gt()))),
    member("isLessThan", &[SEMVER, SEMVER], Bool, |_, args| Ok(Val::Bool(order(args)?.is_lt()))),
];

/// A version. What follows a plus does not count.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Semver {
    numbers: [u64; 3],
    pre: Vec<Part>,
}

/// A part of a pre-release: numbers come before words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(Box<str>),
}

impl Semver {
    /// `lenient` takes a leading `v`, missing parts and leading zeros.
    fn parse(text: &str, lenient: bool) -> Option<Semver> {
        let text = if lenient { text.strip_prefix('v').unwrap_or(text) } else { text };
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let whole = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            let canonical = lenient || part.len() == 1 || !part.starts_with('0');
            if plain && canonical { part.parse::<u64>().ok() } else { None }
        };
        let mut numbers = core.split('.').map(whole).collect::<Option<Vec<_>>>()?;
        if lenient && numbers.len() < 3 && pre.is_none() && build.is_none() {
            numbers.resize(3, 0);
        }
        let word =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if build.is_some_and(|build| !build.split('.').all(word)) {
            return None;
        }
        let pre = pre.map_or(Some(Vec::new()), |pre| {
            let part = |part: &str| match part.bytes().all(|b| b.is_ascii_digit()) {
                _ if !word(part) => None,
                true if part.len() > 1 && part.starts_with('0') => None,
                true => part.parse().ok().map(Part::Number),
                false => Some(Part::Word(part.into())),
            };
            pre.split('.').map(part).collect()
        })?;
        Some(Semver { numbers: numbers.try_into().ok()?, pre })
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        })
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn parsed(cx: &Cx<'_>, args: &[Val<'_>]) -> Result<Option<Semver>, Fault> {
    let (text, lenient) = match args {
        [Val::Text(text)] => (text, false),
        [Val::Text(text), Val::Bool(lenient)] => (text, *lenient),
        _ => return Err(unfit(args)),
    };
    cx.meter.make(text.len())?;
    Ok(Semver::parse(text, lenient))
}

fn semver<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    parsed(cx, args)?
        .map(|version| Val::Semver(Rc::new(version)))
        .ok_or_else(|| Fault::words("no semantic version"))
}

fn is_semver<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    Ok(Val::Bool(parsed(cx, args)?.is_some()))
}

fn part<'t>(args: &[Val<'t>], at: usize) -> Result<Val<'t>, Fault> {
    let [Val::Semver(version)] = args else { return Err(unfit(args)) };
    Ok(Val::Int(version.numbers[at] as i64))
}

fn order(args: &[Val<'_>]) -> Result<Ordering, Fault> {
    match args {
        [Val::Semver(a), Val::Semver(b)] => Ok(a.cmp(b)),
        _ => Err(unfit(args)),
    }
}
