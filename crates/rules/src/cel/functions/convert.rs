//! `size`, `type`, and conversions between types.

use super::super::value::Ty::{
    self, Bool, Bytes, Double, Dyn, Int, List, Map, Moment, Span, Text, Type, Uint,
};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, member, time, unfit};

pub(super) const TABLE: &[Function] = &[
    global("size", &[Text], Int, size),
    global("size", &[Bytes], Int, size),
    global("size", &[List], Int, size),
    global("size", &[Map], Int, size),
    member("size", &[Text], Int, size),
    member("size", &[Bytes], Int, size),
    member("size", &[List], Int, size),
    member("size", &[Map], Int, size),
    global("dyn", &[Dyn], Dyn, |_, args| args.first().cloned().ok_or_else(|| unfit(args))),
    global("type", &[Dyn], Type, |_, args| Ok(Val::Type(args[0].ty().name()))),
    global("int", &[Int], Int, int),
    global("int", &[Uint], Int, int),
    global("int", &[Double], Int, int),
    global("int", &[Text], Int, int),
    global("int", &[Moment], Int, int),
    global("uint", &[Uint], Uint, uint),
    global("uint", &[Int], Uint, uint),
    global("uint", &[Double], Uint, uint),
    global("uint", &[Text], Uint, uint),
    global("double", &[Double], Double, double),
    global("double", &[Int], Double, double),
    global("double", &[Uint], Double, double),
    global("double", &[Text], Double, double),
    global("bool", &[Bool], Bool, boolean),
    global("bool", &[Text], Bool, boolean),
    global("bytes", &[Bytes], Bytes, bytes),
    global("bytes", &[Text], Bytes, bytes),
    global("string", &[Text], Text, string),
    global("string", &[Bool], Text, string),
    global("string", &[Int], Text, string),
    global("string", &[Uint], Text, string),
    global("string", &[Double], Text, string),
    global("string", &[Bytes], Text, string),
    global("string", &[Moment], Text, string),
    global("string", &[Span], Text, string),
    global("string", &[Ty::Ip], Text, string),
    global("string", &[Ty::Cidr], Text, string),
];

const RANGE: &str = "range error";

fn size<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let size = match args {
        [Val::Text(text)] => {
            cx.meter.read(text.len())?;
            text.chars().count()
        }
        [Val::Bytes(bytes)] => bytes.len(),
        [Val::List(list)] => list.len(),
        [Val::Map(map)] => map.len(),
        _ => return Err(unfit(args)),
    };
    Ok(Val::Int(size as i64))
}

fn int<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    Ok(Val::Int(match args {
        [Val::Int(number)] => *number,
        [Val::Uint(number)] => i64::try_from(*number).map_err(|_| Fault::words(RANGE))?,
        // The bounds themselves are no doubles: cel-go excludes both.
        [Val::Double(number)]
            if *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_808.0 =>
        {
            *number as i64
        }
        [Val::Double(_)] => return Err(Fault::words(RANGE)),
        [Val::Text(text)] => text.parse().map_err(|_| unreadable(text, "int"))?,
        [Val::Moment(moment)] => moment.seconds,
        _ => return Err(unfit(args)),
    }))
}

fn uint<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    Ok(Val::Uint(match args {
        [Val::Uint(number)] => *number,
        [Val::Int(number)] => u64::try_from(*number).map_err(|_| Fault::words(RANGE))?,
        [Val::Double(number)] if *number >= 0.0 && *number < 18_446_744_073_709_551_616.0 => *number as u64,
        [Val::Double(_)] => return Err(Fault::words(RANGE)),
        // A sign is fine for an int only.
        [Val::Text(text)] if !text.starts_with('+') => text.parse().map_err(|_| unreadable(text, "uint"))?,
        [Val::Text(text)] => return Err(unreadable(text, "uint")),
        _ => return Err(unfit(args)),
    }))
}

fn double<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    Ok(Val::Double(match args {
        [Val::Double(number)] => *number,
        [Val::Int(number)] => *number as f64,
        [Val::Uint(number)] => *number as f64,
        [Val::Text(text)] => text.parse().map_err(|_| unreadable(text, "double"))?,
        _ => return Err(unfit(args)),
    }))
}

fn boolean<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    Ok(Val::Bool(match args {
        [Val::Bool(flag)] => *flag,
        [Val::Text(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            other => return Err(unreadable(other, "bool")),
        },
        _ => return Err(unfit(args)),
    }))
}

fn unreadable(text: &str, ty: &str) -> Fault {
    let short: String = text.chars().take(40).collect();
    Fault::words(format!("{short:?} is no {ty}"))
}

fn bytes<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    match args {
        [value @ Val::Bytes(_)] => Ok(value.clone()),
        [Val::Text(text)] => {
            cx.meter.make(text.len())?;
            Ok(Val::Bytes(text.as_bytes().into()))
        }
        _ => Err(unfit(args)),
    }
}

fn string<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let text = match args {
        [value @ Val::Text(_)] => return Ok(value.clone()),
        [Val::Bool(flag)] => flag.to_string(),
        [Val::Int(number)] => number.to_string(),
        [Val::Uint(number)] => number.to_string(),
        [Val::Double(number)] => number_text(*number),
        [Val::Bytes(bytes)] => {
            cx.meter.make(bytes.len())?;
            let text = std::str::from_utf8(bytes);
            text.map_err(|_| Fault::words("invalid UTF-8 in bytes, cannot convert to string"))?.to_owned()
        }
        [Val::Moment(moment)] => time::moment_text(*moment),
        [Val::Span(nanos)] => time::span_text(*nanos),
        [Val::Ip(address)] => address.to_string(),
        [Val::Cidr(cidr)] => cidr.to_string(),
        _ => return Err(unfit(args)),
    };
    Ok(Val::text(&text))
}

/// A double as Go's `strconv.FormatFloat(x, 'g', -1, 64)` writes it.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match exponent {
        -4..6 => number.to_string(),
        exponent if exponent < 0 => format!("{digits}e-{:02}", -exponent),
        exponent => format!("{digits}e+{exponent:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_go_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (100_000.0, "100000"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1.25e30, "1.25e+30"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }
}
