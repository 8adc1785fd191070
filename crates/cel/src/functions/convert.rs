//! `size`, `type`, and conversions between types.

use super::time;
use crate::cel_type::CelType::{
    self, Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Text, Timestamp, Type, Uint,
};
use crate::fault::EvalFault;
use crate::number_conversions::{double_from_int, double_from_uint, int_from_count};
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("size", &[Text], Int, measure_size),
    global_function("size", &[Bytes], Int, measure_size),
    global_function("size", &[List], Int, measure_size),
    global_function("size", &[Map], Int, measure_size),
    member_function("size", &[Text], Int, measure_size),
    member_function("size", &[Bytes], Int, measure_size),
    member_function("size", &[List], Int, measure_size),
    member_function("size", &[Map], Int, measure_size),
    global_function("dyn", &[Dyn], Dyn, |_, args| {
        args.first().cloned().ok_or_else(|| argument_mismatch(args))
    }),
    global_function("type", &[Dyn], Type, |_, args| Ok(CelValue::Type(args[0].cel_type().name()))),
    global_function("int", &[Int], Int, convert_to_int),
    global_function("int", &[Uint], Int, convert_to_int),
    global_function("int", &[Double], Int, convert_to_int),
    global_function("int", &[Text], Int, convert_to_int),
    global_function("int", &[Timestamp], Int, convert_to_int),
    global_function("uint", &[Uint], Uint, convert_to_uint),
    global_function("uint", &[Int], Uint, convert_to_uint),
    global_function("uint", &[Double], Uint, convert_to_uint),
    global_function("uint", &[Text], Uint, convert_to_uint),
    global_function("double", &[Double], Double, convert_to_double),
    global_function("double", &[Int], Double, convert_to_double),
    global_function("double", &[Uint], Double, convert_to_double),
    global_function("double", &[Text], Double, convert_to_double),
    global_function("bool", &[Bool], Bool, convert_to_bool),
    global_function("bool", &[Text], Bool, convert_to_bool),
    global_function("bytes", &[Bytes], Bytes, convert_to_bytes),
    global_function("bytes", &[Text], Bytes, convert_to_bytes),
    global_function("string", &[Text], Text, convert_to_string),
    global_function("string", &[Bool], Text, convert_to_string),
    global_function("string", &[Int], Text, convert_to_string),
    global_function("string", &[Uint], Text, convert_to_string),
    global_function("string", &[Double], Text, convert_to_string),
    global_function("string", &[Bytes], Text, convert_to_string),
    global_function("string", &[Timestamp], Text, convert_to_string),
    global_function("string", &[Duration], Text, convert_to_string),
    global_function("string", &[CelType::Ip], Text, convert_to_string),
    global_function("string", &[CelType::Cidr], Text, convert_to_string),
];

const RANGE_ERROR: &str = "range error";

fn measure_size<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let size = match args {
        [CelValue::Text(text)] => {
            cx.meter.charge_read(text.len())?;
            text.chars().count()
        }
        [CelValue::Bytes(bytes)] => bytes.len(),
        [CelValue::List(list)] => list.len(),
        [CelValue::Map(map)] => map.len(),
        _ => return Err(argument_mismatch(args)),
    };
    Ok(CelValue::Int(int_from_count(size)))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn convert_to_int<'t>(_: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    Ok(CelValue::Int(match args {
        [CelValue::Int(number)] => *number,
        [CelValue::Uint(number)] => {
            i64::try_from(*number).map_err(|_| EvalFault::from_message(RANGE_ERROR))?
        }
        // The bounds themselves are excluded, as in cel-go: they are not exact as doubles.
        [CelValue::Double(number)]
            if *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_808.0 =>
        {
            *number as i64
        }
        [CelValue::Double(_)] => return Err(EvalFault::from_message(RANGE_ERROR)),
        [CelValue::Text(text)] => text.parse().map_err(|_| conversion_fault("int"))?,
        [CelValue::Timestamp(moment)] => moment.seconds,
        _ => return Err(argument_mismatch(args)),
    }))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn convert_to_uint<'t>(_: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    Ok(CelValue::Uint(match args {
        [CelValue::Uint(number)] => *number,
        [CelValue::Int(number)] => {
            u64::try_from(*number).map_err(|_| EvalFault::from_message(RANGE_ERROR))?
        }
        [CelValue::Double(number)] if *number >= 0.0 && *number < 18_446_744_073_709_551_616.0 => {
            *number as u64
        }
        [CelValue::Double(_)] => return Err(EvalFault::from_message(RANGE_ERROR)),
        // A sign is valid for an int only.
        [CelValue::Text(text)] if !text.starts_with('+') => {
            text.parse().map_err(|_| conversion_fault("uint"))?
        }
        [CelValue::Text(_)] => return Err(conversion_fault("uint")),
        _ => return Err(argument_mismatch(args)),
    }))
}

fn convert_to_double<'t>(_: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    Ok(CelValue::Double(match args {
        [CelValue::Double(number)] => *number,
        [CelValue::Int(number)] => double_from_int(*number),
        [CelValue::Uint(number)] => double_from_uint(*number),
        [CelValue::Text(text)] => double_from_text(text)?,
        _ => return Err(argument_mismatch(args)),
    }))
}

/// Parses a double. A number that is too large for one is an error, as to Go's `strconv.ParseFloat`: infinite is only
/// what says so.
fn double_from_text(text: &str) -> Result<f64, EvalFault> {
    let number: f64 = text.parse().map_err(|_| conversion_fault("double"))?;
    let says_infinity = || text.contains(['i', 'I']);
    if number.is_infinite() && !says_infinity() {
        return Err(EvalFault::from_message(RANGE_ERROR));
    }
    Ok(number)
}

fn convert_to_bool<'t>(_: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    Ok(CelValue::Bool(match args {
        [CelValue::Bool(flag)] => *flag,
        [CelValue::Text(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            _ => return Err(conversion_fault("bool")),
        },
        _ => return Err(argument_mismatch(args)),
    }))
}

/// Names the type alone: a value of the object has no place in an error, which others read.
fn conversion_fault(ty: &str) -> EvalFault {
    EvalFault::from_message(format!("the string is no {ty}"))
}

fn convert_to_bytes<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    match args {
        [value @ CelValue::Bytes(_)] => Ok(value.clone()),
        [CelValue::Text(text)] => {
            cx.meter.charge_allocation(text.len())?;
            Ok(CelValue::Bytes(text.as_bytes().into()))
        }
        _ => Err(argument_mismatch(args)),
    }
}

fn convert_to_string<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let text = match args {
        [value @ CelValue::Text(_)] => return Ok(value.clone()),
        [CelValue::Bool(flag)] => flag.to_string(),
        [CelValue::Int(number)] => number.to_string(),
        [CelValue::Uint(number)] => number.to_string(),
        [CelValue::Double(number)] => format_double(*number),
        [CelValue::Bytes(bytes)] => {
            cx.meter.charge_allocation(bytes.len())?;
            let text = std::str::from_utf8(bytes);
            text.map_err(|_| EvalFault::from_message("invalid UTF-8 in bytes, cannot convert to string"))?
                .to_owned()
        }
        [CelValue::Timestamp(moment)] => time::format_timestamp(*moment),
        [CelValue::Duration(nanos)] => time::format_duration(*nanos),
        [CelValue::Ip(address)] => address.to_string(),
        [CelValue::Cidr(cidr)] => cidr.to_string(),
        _ => return Err(argument_mismatch(args)),
    };
    Ok(CelValue::from_text(&text))
}

/// Formats a double as Go's `strconv.FormatFloat(x, 'g', -1, 64)`.
pub(super) fn format_double(number: f64) -> String {
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
    fn a_text_is_infinite_only_if_it_says_so() {
        for text in ["1e400", "-1e400", "1E309", "179769313486231580793e289"] {
            let EvalFault::Message(message) = double_from_text(text).unwrap_err() else { panic!("{text}") };
            assert_eq!(&*message, RANGE_ERROR, "{text}");
        }
        for text in ["inf", "+Inf", "Infinity"] {
            assert!(double_from_text(text).unwrap() > f64::MAX, "{text}");
        }
        assert!(double_from_text("-inf").unwrap() < f64::MIN);
        assert!(double_from_text("NaN").unwrap().is_nan());
        assert_eq!(double_from_text("1e-400").ok(), Some(0.0));
        assert_eq!(double_from_text("1.7976931348623157e308").ok(), Some(f64::MAX));
    }

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
            assert_eq!(format_double(number), text);
        }
    }
}
