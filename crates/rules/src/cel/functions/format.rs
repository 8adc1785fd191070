//! `"%d of %s".format([…])`.

use super::super::meter::Meter;
use super::super::value::{Fault, Map, Val};
use super::{Cx, time, unfit};

/// More places than a double has.
const PRECISION: usize = 100;

pub(super) fn format<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::Text(pattern), Val::List(values)] = args else { return Err(unfit(args)) };
    cx.meter.make(pattern.len())?;
    let (mut out, mut next, mut rest) = (String::new(), 0, &**pattern);
    while let Some((plain, clause)) = rest.split_once('%') {
        out.push_str(plain);
        if let Some(tail) = clause.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        let end = clause.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(clause.len());
        let places = match clause[..end].strip_prefix('.') {
            None if end > 0 => return Err(Fault::words("unexpected precision in format")),
            None => None,
            Some(digits) => {
                let places: usize =
                    digits.parse().map_err(|_| Fault::words("unreadable precision in format"))?;
                Some(places.min(PRECISION))
            }
        };
        let mut tail = clause[end..].chars();
        let Some(verb) = tail.next() else { return Err(Fault::words("the format ends in %")) };
        let value = values.get(next).ok_or_else(|| Fault::words(format!("index {next} out of range")))?;
        next += 1;
        let before = out.len();
        clause_of(cx.meter, &mut out, verb, places.unwrap_or(6), &value)?;
        cx.meter.make(out.len() - before)?;
        rest = tail.as_str();
    }
    out.push_str(rest);
    Ok(Val::text(&out))
}

fn clause_of(
    meter: &Meter,
    out: &mut String,
    verb: char,
    places: usize,
    value: &Val<'_>,
) -> Result<(), Fault> {
    let text = match (verb, value) {
        ('s', value) => return text(meter, out, value, 0),
        ('d', Val::Int(number)) => number.to_string(),
        ('d', Val::Uint(number)) => number.to_string(),
        ('d', Val::Double(number)) => decimal(*number),
        ('f', Val::Double(number)) => finite(*number).unwrap_or_else(|| format!("{number:.places$}")),
        ('f', Val::Int(number)) => format!("{:.places$}", *number as f64),
        ('f', Val::Uint(number)) => format!("{:.places$}", *number as f64),
        ('e', Val::Double(number)) => finite(*number).unwrap_or_else(|| scientific(*number, places)),
        ('e', Val::Int(number)) => scientific(*number as f64, places),
        ('e', Val::Uint(number)) => scientific(*number as f64, places),
        ('b', Val::Bool(flag)) => u8::from(*flag).to_string(),
        ('b' | 'o' | 'x' | 'X', Val::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", radix(verb, number.unsigned_abs()))
        }
        ('b' | 'o' | 'x' | 'X', Val::Uint(number)) => radix(verb, *number),
        ('x' | 'X', Val::Text(_) | Val::Bytes(_)) => {
            let bytes = match value {
                Val::Text(text) => text.as_bytes(),
                Val::Bytes(bytes) => bytes,
                _ => &[],
            };
            meter.make(2 * bytes.len())?;
            let upper = verb == 'X';
            bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect()
        }
        ('d' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X', _) => {
            return Err(Fault::words(format!("no %{verb} of a {}", value.ty().name())));
        }
        _ => return Err(Fault::words(format!("unrecognized formatting clause {verb:?}"))),
    };
    out.push_str(&text);
    Ok(())
}

fn radix(verb: char, number: u64) -> String {
    match verb {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'x' => format!("{number:x}"),
        _ => format!("{number:X}"),
    }
}

/// The word for what is no number.
fn finite(number: f64) -> Option<String> {
    if number.is_nan() {
        return Some("NaN".to_owned());
    }
    number.is_infinite().then(|| if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
}

/// All digits, no exponent.
fn decimal(number: f64) -> String {
    finite(number).unwrap_or_else(|| number.to_string())
}

/// With an exponent of at least two digits.
fn scientific(number: f64, places: usize) -> String {
    let text = format!("{number:.places$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A value for people. What is nested deeper than anybody reads is left out.
fn text(meter: &Meter, out: &mut String, value: &Val<'_>, depth: u8) -> Result<(), Fault> {
    if depth > 50 {
        return Err(Fault::words("nested too deeply to be formatted"));
    }
    meter.make(8)?;
    match value {
        Val::Null => out.push_str("null"),
        Val::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Val::Int(number) => out.push_str(&number.to_string()),
        Val::Uint(number) => out.push_str(&number.to_string()),
        Val::Double(number) => out.push_str(&decimal(*number)),
        Val::Text(text) => {
            meter.make(text.len())?;
            out.push_str(text);
        }
        Val::Bytes(bytes) => {
            meter.make(bytes.len())?;
            out.push_str(&String::from_utf8_lossy(bytes));
        }
        Val::Moment(moment) => out.push_str(&time::moment_text(*moment)),
        Val::Span(nanos) => out.push_str(&time::span_text(*nanos)),
        Val::Type(name) => out.push_str(name),
        Val::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                text(meter, out, &item, depth + 1)?;
            }
            out.push(']');
        }
        Val::Map(map) => entries(meter, out, map, depth)?,
        other => return Err(Fault::NoOverload("format", vec![other.ty()])),
    }
    Ok(())
}

/// The entries of a map, sorted by the text of their keys.
fn entries(meter: &Meter, out: &mut String, map: &Map<'_>, depth: u8) -> Result<(), Fault> {
    let mut all = Vec::with_capacity(map.len());
    for at in 0..map.len() {
        let Some(key) = map.key(at) else { continue };
        let (mut name, mut value) = (String::new(), String::new());
        text(meter, &mut name, &key, depth + 1)?;
        text(meter, &mut value, &map.find(&key).unwrap_or(Val::Null), depth + 1)?;
        all.push(format!("{name}: {value}"));
    }
    all.sort();
    out.push('{');
    out.push_str(&all.join(", "));
    out.push('}');
    Ok(())
}
