//! Regular expressions with RE2's syntax, in time at most proportional to the product of text and pattern.

use regex_lite::Regex;

use crate::cel_type::CelType::{Bool, Int, List, Text};
use crate::fault::EvalFault;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::pattern::{CelPattern, MAX_PATTERN_BYTES, pattern_weight};
use crate::value::CelValue;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("matches", &[Text, Text], Bool, matches_pattern),
    member_function("matches", &[Text, Text], Bool, matches_pattern),
    member_function("find", &[Text, Text], Text, find_match),
    member_function("findAll", &[Text, Text], List, find_all_matches),
    member_function("findAll", &[Text, Text, Int], List, find_all_matches),
];

/// Returns the compiled pattern among the arguments and the text to match, after charging for the match.
fn prepare_pattern<'a>(
    cx: &'a CelCallContext<'_>,
    args: &'a [CelValue<'_>],
) -> Result<(Regex, &'a str, usize), EvalFault> {
    let [CelValue::Text(text), CelValue::Text(pattern), ..] = args else {
        return Err(argument_mismatch(args));
    };
    let pay = |weight: usize| {
        cx.meter.charge_steps(1 + text.len().saturating_mul(weight.min(MAX_PATTERN_BYTES)) / 8)
    };
    if let Some(pattern) = cx.pattern {
        pay(pattern.weight)?;
        return Ok((pattern.regex.clone(), text, pattern.weight));
    }
    cx.meter.charge_steps(50 + pattern_weight(pattern).min(MAX_PATTERN_BYTES))?;
    let pattern = CelPattern::compile_pattern(pattern).map_err(EvalFault::from_message)?;
    pay(pattern.weight)?;
    Ok((pattern.regex, text, pattern.weight))
}

fn matches_pattern<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (regex, text, _) = prepare_pattern(cx, args)?;
    Ok(CelValue::Bool(regex.is_match(text)))
}

fn find_match<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (regex, text, _) = prepare_pattern(cx, args)?;
    let found = regex.find(text).map_or("", |found| found.as_str());
    cx.meter.charge_allocation(found.len())?;
    Ok(CelValue::from_text(found))
}

fn find_all_matches<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let most = match args {
        [_, _, CelValue::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let (regex, text, weight) = prepare_pattern(cx, args)?;
    let mut all = Vec::new();
    for found in regex.find_iter(text).take(most) {
        // To determine where a match ends, all of the following text may have been read.
        cx.meter
            .charge_steps((text.len() - found.end()).saturating_mul(weight.min(MAX_PATTERN_BYTES)) / 128)?;
        cx.meter.charge_allocation(32 + found.len())?;
        all.push(CelValue::from_text(found.as_str()));
    }
    Ok(CelValue::from_items(all))
}
