//! String functions. Indices and lengths count characters, not bytes.

use super::format;
use crate::cel_type::CelType::{Bool, Int, List, Text};
use crate::fault::EvalFault;
use crate::number_conversions::int_from_count;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

pub(super) const OVERLOADS: &[CelOverload] = &[
    member_function("contains", &[Text, Text], Bool, |cx, args| test_texts(cx, args, |a, b| a.contains(b))),
    member_function("startsWith", &[Text, Text], Bool, |cx, args| {
        test_texts(cx, args, |a, b| a.starts_with(b))
    }),
    member_function("endsWith", &[Text, Text], Bool, |cx, args| test_texts(cx, args, |a, b| a.ends_with(b))),
    member_function("charAt", &[Text, Int], Text, char_at),
    member_function("indexOf", &[Text, Text], Int, index_of),
    member_function("indexOf", &[Text, Text, Int], Int, index_of),
    member_function("lastIndexOf", &[Text, Text], Int, last_index_of),
    member_function("lastIndexOf", &[Text, Text, Int], Int, last_index_of),
    member_function("join", &[List], Text, join_list),
    member_function("join", &[List, Text], Text, join_list),
    member_function("lowerAscii", &[Text], Text, |cx, args| map_text(cx, args, str::to_ascii_lowercase)),
    member_function("upperAscii", &[Text], Text, |cx, args| map_text(cx, args, str::to_ascii_uppercase)),
    member_function("trim", &[Text], Text, |cx, args| map_text(cx, args, |text| text.trim().to_owned())),
    member_function("reverse", &[Text], Text, |cx, args| {
        map_text(cx, args, |text| text.chars().rev().collect())
    }),
    member_function("replace", &[Text, Text, Text], Text, replace_text),
    member_function("replace", &[Text, Text, Text, Int], Text, replace_text),
    member_function("split", &[Text, Text], List, split_text),
    member_function("split", &[Text, Text, Int], List, split_text),
    member_function("substring", &[Text, Int], Text, slice_text),
    member_function("substring", &[Text, Int, Int], Text, slice_text),
    global_function("strings.quote", &[Text], Text, |cx, args| map_text(cx, args, quote_text)),
    member_function("format", &[Text, List], Text, format::format_string),
];

fn test_texts<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
    holds: impl FnOnce(&str, &str) -> bool,
) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Text(a), CelValue::Text(b)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_read(a.len() + b.len())?;
    Ok(CelValue::Bool(holds(a, b)))
}

fn map_text<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
    make: impl FnOnce(&str) -> String,
) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Text(text)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_allocation(2 * text.len())?;
    Ok(CelValue::from_text(&make(text)))
}

fn out_of_range() -> EvalFault {
    EvalFault::from_message("index out of range")
}

/// Returns the byte offset of the character at an index; the text's length for the index behind the last character.
fn byte_offset(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

fn char_at<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Text(text), CelValue::Int(at)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_read(text.len())?;
    let byte = byte_offset(text, *at).ok_or_else(out_of_range)?;
    Ok(CelValue::from_text(text[byte..].chars().next().map(|c| c.to_string()).unwrap_or_default().as_str()))
}

fn index_of<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (text, part, from) = match args {
        [CelValue::Text(text), CelValue::Text(part)] => (text, part, 0),
        [CelValue::Text(text), CelValue::Text(part), CelValue::Int(from)] => (text, part, *from),
        _ => return Err(argument_mismatch(args)),
    };
    cx.meter.charge_read(2 * text.len() + part.len())?;
    if part.is_empty() {
        return Ok(CelValue::Int(from));
    }
    if from < 0 {
        return Err(out_of_range());
    }
    let found = byte_offset(text, from).and_then(|start| {
        text[start..].find(&**part).map(|at| int_from_count(text[..start + at].chars().count()))
    });
    Ok(CelValue::Int(found.unwrap_or(-1)))
}

fn last_index_of<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (text, part, from) = match args {
        [CelValue::Text(text), CelValue::Text(part)] => (text, part, None),
        [CelValue::Text(text), CelValue::Text(part), CelValue::Int(from)] => (text, part, Some(*from)),
        _ => return Err(argument_mismatch(args)),
    };
    cx.meter.charge_read(2 * text.len() + part.len())?;
    let length = int_from_count(text.chars().count());
    let from = match from {
        None if part.is_empty() => return Ok(CelValue::Int(length)),
        None => length - 1,
        Some(from) if part.is_empty() => return Ok(CelValue::Int(from)),
        Some(from) if from < 0 => return Err(out_of_range()),
        Some(from) if from >= length => return Ok(CelValue::Int(-1)),
        Some(from) => from,
    };
    // The last match may begin at `from`, so it may end one part's length later.
    let end = byte_offset(text, from).map_or(text.len(), |start| (start + part.len()).min(text.len()));
    let end = text.ceil_char_boundary(end);
    let found = text[..end].rfind(&**part).map(|at| int_from_count(text[..at].chars().count()));
    Ok(CelValue::Int(found.unwrap_or(-1)))
}

fn join_list<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (list, separator) = match args {
        [CelValue::List(list)] => (list, ""),
        [CelValue::List(list), CelValue::Text(separator)] => (list, &**separator),
        _ => return Err(argument_mismatch(args)),
    };
    let mut joined = String::new();
    for (at, item) in list.iter().enumerate() {
        let CelValue::Text(text) = &item else {
            return Err(EvalFault::NoOverload("join", vec![item.cel_type()]));
        };
        cx.meter.charge_allocation(text.len() + separator.len())?;
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    Ok(CelValue::from_text(&joined))
}

fn replace_text<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (text, old, new, most) = match args {
        [CelValue::Text(text), CelValue::Text(old), CelValue::Text(new)] => (text, old, new, -1),
        [CelValue::Text(text), CelValue::Text(old), CelValue::Text(new), CelValue::Int(most)] => {
            (text, old, new, *most)
        }
        _ => return Err(argument_mismatch(args)),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    cx.meter.charge_read(text.len())?;
    let times =
        if old.is_empty() { text.chars().count() + 1 } else { text.matches(&**old).count() }.min(most);
    cx.meter.charge_allocation(text.len().saturating_add(times.saturating_mul(new.len())))?;
    Ok(CelValue::from_text(&text.replacen(&**old, new, most)))
}

fn split_text<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (text, separator, most) = match args {
        [CelValue::Text(text), CelValue::Text(separator)] => (text, separator, -1),
        [CelValue::Text(text), CelValue::Text(separator), CelValue::Int(most)] => (text, separator, *most),
        _ => return Err(argument_mismatch(args)),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    cx.meter.charge_allocation(text.len())?;
    let mut parts = Vec::new();
    let mut add = |part: &str| {
        cx.meter.charge_allocation(64)?;
        parts.push(CelValue::from_text(part));
        Ok(())
    };
    if separator.is_empty() {
        // Splits off one part at a time; the rest stays in one piece.
        let mut rest = &**text;
        for left in (1..=most).rev() {
            let Some(c) = rest.chars().next() else { break };
            let (part, tail) = if left == 1 { (rest, "") } else { rest.split_at(c.len_utf8()) };
            add(part)?;
            rest = tail;
        }
    } else {
        text.splitn(most, &**separator).try_for_each(add)?;
    }
    Ok(CelValue::from_items(parts))
}

fn slice_text<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (text, start, end) = match args {
        [CelValue::Text(text), CelValue::Int(start)] => (text, *start, None),
        [CelValue::Text(text), CelValue::Int(start), CelValue::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(argument_mismatch(args)),
    };
    cx.meter.charge_allocation(text.len())?;
    let first = byte_offset(text, start).ok_or_else(out_of_range)?;
    let last = match end {
        None => text.len(),
        Some(end) if end < start => return Err(EvalFault::from_message("invalid substring range")),
        Some(end) => byte_offset(text, end).ok_or_else(out_of_range)?,
    };
    Ok(CelValue::from_text(&text[first..last]))
}

fn quote_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
