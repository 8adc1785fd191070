//! Regular expressions: those of RE2, in time that grows with text and pattern and no faster.

use regex_lite::{Regex, RegexBuilder};

use super::super::value::Ty::{Bool, Int, List, Text};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, member, unfit};

pub(super) const TABLE: &[Function] = &[
    global("matches", &[Text, Text], Bool, matches),
    member("matches", &[Text, Text], Bool, matches),
    member("find", &[Text, Text], Text, find),
    member("findAll", &[Text, Text], List, find_all),
    member("findAll", &[Text, Text, Int], List, find_all),
];

/// A pattern, compiled, and how much work a character may be to it.
#[derive(Debug)]
pub(in super::super) struct Pattern {
    regex: Regex,
    weight: usize,
}

/// Room for a compiled pattern: some thousand states.
const ROOM: usize = 128 * 1024;

impl Pattern {
    pub(in super::super) fn compile(text: &str) -> Result<Pattern, String> {
        let regex = RegexBuilder::new(text).size_limit(ROOM).nest_limit(50).build();
        let regex = regex.map_err(|error| format!("failed to read the pattern: {error}"))?;
        Ok(Pattern { regex, weight: weight(text) })
    }
}

/// An upper bound of the states of a pattern: its length, times every count of repetitions in it.
fn weight(pattern: &str) -> usize {
    let mut weight = pattern.len().max(1);
    for counts in pattern.split('{').skip(1) {
        let counts = counts.split('}').next().unwrap_or_default();
        let most = counts.split(',').filter_map(|count| count.trim().parse::<usize>().ok()).max();
        weight = weight.saturating_mul(most.unwrap_or(1).max(1));
    }
    weight
}

/// The compiled pattern among the arguments, and the text it is to look at, paid for.
fn prepared<'a>(cx: &'a Cx<'_>, args: &'a [Val<'_>]) -> Result<(Regex, &'a str, usize), Fault> {
    let [Val::Text(text), Val::Text(pattern), ..] = args else { return Err(unfit(args)) };
    let pay = |weight: usize| cx.meter.walk(1 + text.len().saturating_mul(weight.min(ROOM)) / 8);
    if let Some(pattern) = cx.pattern {
        pay(pattern.weight)?;
        return Ok((pattern.regex.clone(), text, pattern.weight));
    }
    cx.meter.walk(50 + weight(pattern).min(ROOM))?;
    let pattern = Pattern::compile(pattern).map_err(Fault::words)?;
    pay(pattern.weight)?;
    Ok((pattern.regex, text, pattern.weight))
}

fn matches<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (regex, text, _) = prepared(cx, args)?;
    Ok(Val::Bool(regex.is_match(text)))
}

fn find<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (regex, text, _) = prepared(cx, args)?;
    let found = regex.find(text).map_or("", |found| found.as_str());
    cx.meter.make(found.len())?;
    Ok(Val::text(found))
}

fn find_all<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let most = match args {
        [_, _, Val::Int(most)] if *most >= 0 => *most as usize,
        _ => usize::MAX,
    };
    let (regex, text, weight) = prepared(cx, args)?;
    let mut all = Vec::new();
    for found in regex.find_iter(text).take(most) {
        // To know that a match ends, all that follows may have been looked at.
        cx.meter.walk((text.len() - found.end()).saturating_mul(weight.min(ROOM)) / 128)?;
        cx.meter.make(32 + found.len())?;
        all.push(Val::text(found.as_str()));
    }
    Ok(Val::list(all))
}
