//! `"%d of %s".format([…])`.

use super::time;
use crate::fault::EvalFault;
use crate::map_keys;
use crate::meter::CostMeter;
use crate::number_conversions::{double_from_int, double_from_uint};
use crate::overload::{CelCallContext, argument_mismatch};
use crate::value::{CelMap, CelValue};

/// Maximum precision; more digits than a double has.
const MAX_PRECISION: usize = 100;

pub(super) fn format_string<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Text(pattern), CelValue::List(values)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_allocation(pattern.len())?;
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
            None if end > 0 => return Err(EvalFault::from_message("unexpected precision in format")),
            None => None,
            Some(digits) => {
                let places: usize =
                    digits.parse().map_err(|_| EvalFault::from_message("unreadable precision in format"))?;
                Some(places.min(MAX_PRECISION))
            }
        };
        let mut tail = clause[end..].chars();
        let Some(verb) = tail.next() else { return Err(EvalFault::from_message("the format ends in %")) };
        let value =
            values.get(next).ok_or_else(|| EvalFault::from_message(format!("index {next} out of range")))?;
        next += 1;
        let before = out.len();
        format_clause(cx.meter, &mut out, verb, places.unwrap_or(6), &value)?;
        cx.meter.charge_allocation(out.len() - before)?;
        rest = tail.as_str();
    }
    out.push_str(rest);
    Ok(CelValue::from_text(&out))
}

fn format_clause(
    meter: &CostMeter,
    out: &mut String,
    verb: char,
    places: usize,
    value: &CelValue<'_>,
) -> Result<(), EvalFault> {
    let text = match (verb, value) {
        ('s', value) => return format_value(meter, out, value, 0),
        ('d', CelValue::Int(number)) => number.to_string(),
        ('d', CelValue::Uint(number)) => number.to_string(),
        ('d', CelValue::Double(number)) => format_decimal(*number),
        ('f', CelValue::Double(number)) => {
            non_finite_text(*number).unwrap_or_else(|| format!("{number:.places$}"))
        }
        ('f', CelValue::Int(number)) => format!("{:.places$}", double_from_int(*number)),
        ('f', CelValue::Uint(number)) => format!("{:.places$}", double_from_uint(*number)),
        ('e', CelValue::Double(number)) => {
            non_finite_text(*number).unwrap_or_else(|| format_scientific(*number, places))
        }
        ('e', CelValue::Int(number)) => format_scientific(double_from_int(*number), places),
        ('e', CelValue::Uint(number)) => format_scientific(double_from_uint(*number), places),
        ('b', CelValue::Bool(flag)) => u8::from(*flag).to_string(),
        ('b' | 'o' | 'x' | 'X', CelValue::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", format_radix(verb, number.unsigned_abs()))
        }
        ('b' | 'o' | 'x' | 'X', CelValue::Uint(number)) => format_radix(verb, *number),
        ('x' | 'X', CelValue::Text(_) | CelValue::Bytes(_)) => {
            let bytes = match value {
                CelValue::Text(text) => text.as_bytes(),
                CelValue::Bytes(bytes) => bytes,
                _ => &[],
            };
            meter.charge_allocation(2 * bytes.len())?;
            let upper = verb == 'X';
            bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect()
        }
        ('d' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X', _) => {
            return Err(EvalFault::from_message(format!("no %{verb} of a {}", value.cel_type().name())));
        }
        _ => return Err(EvalFault::from_message("unrecognized formatting clause")),
    };
    out.push_str(&text);
    Ok(())
}

fn format_radix(verb: char, number: u64) -> String {
    match verb {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'x' => format!("{number:x}"),
        _ => format!("{number:X}"),
    }
}

/// Returns the text of NaN or an infinity; `None` for a finite number.
fn non_finite_text(number: f64) -> Option<String> {
    if number.is_nan() {
        return Some("NaN".to_owned());
    }
    number.is_infinite().then(|| if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
}

/// Formats all digits without an exponent.
fn format_decimal(number: f64) -> String {
    non_finite_text(number).unwrap_or_else(|| number.to_string())
}

/// Formats with an exponent of at least two digits.
fn format_scientific(number: f64, places: usize) -> String {
    let text = format!("{number:.places$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Formats a value for people. Very deep nesting is left out.
fn format_value(
    meter: &CostMeter,
    out: &mut String,
    value: &CelValue<'_>,
    depth: u8,
) -> Result<(), EvalFault> {
    if depth > 50 {
        return Err(EvalFault::from_message("nested too deeply to be formatted"));
    }
    meter.charge_allocation(8)?;
    match value {
        CelValue::Null => out.push_str("null"),
        CelValue::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        CelValue::Int(number) => out.push_str(&number.to_string()),
        CelValue::Uint(number) => out.push_str(&number.to_string()),
        CelValue::Double(number) => out.push_str(&format_decimal(*number)),
        CelValue::Text(text) => {
            meter.charge_allocation(text.len())?;
            out.push_str(text);
        }
        CelValue::Bytes(bytes) => {
            meter.charge_allocation(bytes.len())?;
            out.push_str(&String::from_utf8_lossy(bytes));
        }
        CelValue::Timestamp(moment) => out.push_str(&time::format_timestamp(*moment)),
        CelValue::Duration(nanos) => out.push_str(&time::format_duration(*nanos)),
        CelValue::Type(name) => out.push_str(name),
        CelValue::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                format_value(meter, out, &item, depth + 1)?;
            }
            out.push(']');
        }
        CelValue::Map(map) => format_map(meter, out, map, depth)?,
        other => return Err(EvalFault::NoOverload("format", vec![other.cel_type()])),
    }
    Ok(())
}

/// Formats the entries of a map, sorted by the text of their keys.
fn format_map(meter: &CostMeter, out: &mut String, map: &CelMap<'_>, depth: u8) -> Result<(), EvalFault> {
    let mut all = Vec::with_capacity(map.len());
    for at in 0..map.len() {
        let Some(key) = map.key_at(at) else { continue };
        let (mut name, mut value) = (String::new(), String::new());
        format_value(meter, &mut name, &key, depth + 1)?;
        let held = map_keys::lookup_key(meter, map, &key)?.unwrap_or(CelValue::Null);
        format_value(meter, &mut value, &held, depth + 1)?;
        all.push(format!("{name}: {value}"));
    }
    all.sort();
    out.push('{');
    out.push_str(&all.join(", "));
    out.push('}');
    Ok(())
}
