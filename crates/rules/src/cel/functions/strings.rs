//! Texts. Places and lengths count characters, not bytes.

use super::super::value::Ty::{Bool, Int, List, Text};
use super::super::value::{Fault, Val};
use super::{Cx, Function, format, global, member, unfit};

pub(super) const TABLE: &[Function] = &[
    member("contains", &[Text, Text], Bool, |cx, args| test(cx, args, |a, b| a.contains(b))),
    member("startsWith", &[Text, Text], Bool, |cx, args| test(cx, args, |a, b| a.starts_with(b))),
    member("endsWith", &[Text, Text], Bool, |cx, args| test(cx, args, |a, b| a.ends_with(b))),
    member("charAt", &[Text, Int], Text, char_at),
    member("indexOf", &[Text, Text], Int, index_of),
    member("indexOf", &[Text, Text, Int], Int, index_of),
    member("lastIndexOf", &[Text, Text], Int, last_index_of),
    member("lastIndexOf", &[Text, Text, Int], Int, last_index_of),
    member("join", &[List], Text, join),
    member("join", &[List, Text], Text, join),
    member("lowerAscii", &[Text], Text, |cx, args| made(cx, args, str::to_ascii_lowercase)),
    member("upperAscii", &[Text], Text, |cx, args| made(cx, args, str::to_ascii_uppercase)),
    member("trim", &[Text], Text, |cx, args| made(cx, args, |text| text.trim().to_owned())),
    member("reverse", &[Text], Text, |cx, args| made(cx, args, |text| text.chars().rev().collect())),
    member("replace", &[Text, Text, Text], Text, replace),
    member("replace", &[Text, Text, Text, Int], Text, replace),
    member("split", &[Text, Text], List, split),
    member("split", &[Text, Text, Int], List, split),
    member("substring", &[Text, Int], Text, substring),
    member("substring", &[Text, Int, Int], Text, substring),
    global("strings.quote", &[Text], Text, |cx, args| made(cx, args, quote)),
    member("format", &[Text, List], Text, format::format),
];

fn test<'t>(cx: &Cx<'_>, args: &[Val<'t>], holds: impl FnOnce(&str, &str) -> bool) -> Result<Val<'t>, Fault> {
    let [Val::Text(a), Val::Text(b)] = args else { return Err(unfit(args)) };
    cx.meter.read(a.len() + b.len())?;
    Ok(Val::Bool(holds(a, b)))
}

fn made<'t>(cx: &Cx<'_>, args: &[Val<'t>], make: impl FnOnce(&str) -> String) -> Result<Val<'t>, Fault> {
    let [Val::Text(text)] = args else { return Err(unfit(args)) };
    cx.meter.make(2 * text.len())?;
    Ok(Val::text(&make(text)))
}

fn out_of_range(at: i64) -> Fault {
    Fault::words(format!("index out of range: {at}"))
}

/// Where the character at a place begins; its end for the place behind the last.
fn byte_of(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

fn char_at<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::Text(text), Val::Int(at)] = args else { return Err(unfit(args)) };
    cx.meter.read(text.len())?;
    let byte = byte_of(text, *at).ok_or_else(|| out_of_range(*at))?;
    Ok(Val::text(text[byte..].chars().next().map(|c| c.to_string()).unwrap_or_default().as_str()))
}

fn index_of<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (text, part, from) = match args {
        [Val::Text(text), Val::Text(part)] => (text, part, 0),
        [Val::Text(text), Val::Text(part), Val::Int(from)] => (text, part, *from),
        _ => return Err(unfit(args)),
    };
    cx.meter.read(2 * text.len() + part.len())?;
    if part.is_empty() {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let found = byte_of(text, from)
        .and_then(|start| text[start..].find(&**part).map(|at| text[..start + at].chars().count() as i64));
    Ok(Val::Int(found.unwrap_or(-1)))
}

fn last_index_of<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (text, part, from) = match args {
        [Val::Text(text), Val::Text(part)] => (text, part, None),
        [Val::Text(text), Val::Text(part), Val::Int(from)] => (text, part, Some(*from)),
        _ => return Err(unfit(args)),
    };
    cx.meter.read(2 * text.len() + part.len())?;
    let length = text.chars().count() as i64;
    let from = match from {
        None if part.is_empty() => return Ok(Val::Int(length)),
        None => length - 1,
        Some(from) if part.is_empty() => return Ok(Val::Int(from)),
        Some(from) if from < 0 => return Err(out_of_range(from)),
        Some(from) if from >= length => return Ok(Val::Int(-1)),
        Some(from) => from,
    };
    // The last match may begin at `from`, so it may end as much later as the part is long.
    let end = byte_of(text, from).map_or(text.len(), |start| (start + part.len()).min(text.len()));
    let end = text.ceil_char_boundary(end);
    let found = text[..end].rfind(&**part).map(|at| text[..at].chars().count() as i64);
    Ok(Val::Int(found.unwrap_or(-1)))
}

fn join<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (list, separator) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::Text(separator)] => (list, &**separator),
        _ => return Err(unfit(args)),
    };
    let mut joined = String::new();
    for (at, item) in list.iter().enumerate() {
        let Val::Text(text) = &item else { return Err(Fault::NoOverload("join", vec![item.ty()])) };
        cx.meter.make(text.len() + separator.len())?;
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    Ok(Val::text(&joined))
}

fn replace<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (text, old, new, most) = match args {
        [Val::Text(text), Val::Text(old), Val::Text(new)] => (text, old, new, -1),
        [Val::Text(text), Val::Text(old), Val::Text(new), Val::Int(most)] => (text, old, new, *most),
        _ => return Err(unfit(args)),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    cx.meter.read(text.len())?;
    let times =
        if old.is_empty() { text.chars().count() + 1 } else { text.matches(&**old).count() }.min(most);
    cx.meter.make(text.len().saturating_add(times.saturating_mul(new.len())))?;
    Ok(Val::text(&text.replacen(&**old, new, most)))
}

fn split<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (text, separator, most) = match args {
        [Val::Text(text), Val::Text(separator)] => (text, separator, -1),
        [Val::Text(text), Val::Text(separator), Val::Int(most)] => (text, separator, *most),
        _ => return Err(unfit(args)),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    cx.meter.make(text.len())?;
    let mut parts = Vec::new();
    let mut add = |part: &str| {
        cx.meter.make(64)?;
        parts.push(Val::text(part));
        Ok(())
    };
    if separator.is_empty() {
        // One by one, and what is left over in one piece.
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
    Ok(Val::list(parts))
}

fn substring<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (text, start, end) = match args {
        [Val::Text(text), Val::Int(start)] => (text, *start, None),
        [Val::Text(text), Val::Int(start), Val::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(unfit(args)),
    };
    cx.meter.make(text.len())?;
    let first = byte_of(text, start).ok_or_else(|| out_of_range(start))?;
    let last = match end {
        None => text.len(),
        Some(end) if end < start => return Err(Fault::words("invalid substring range")),
        Some(end) => byte_of(text, end).ok_or_else(|| out_of_range(end))?,
    };
    Ok(Val::text(&text[first..last]))
}

fn quote(text: &str) -> String {
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
