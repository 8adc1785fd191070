//! Operators on values.

use std::cmp::Ordering;

use super::meter::Meter;
use super::node::{Comparison, Operator};
use super::value::{Fault, List, Map, Text, Ty, Val};

/// The order of two numbers, across their types; `None` where one is no number, or not a number.
pub(super) fn numeric_order(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    use Val::{Double, Int, Uint};
    match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(b)),
        (Uint(a), Uint(b)) => Some(a.cmp(b)),
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Int(a), Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Uint(a), Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Int(a), Double(b)) => whole_and_fraction(i128::from(*a), *b),
        (Uint(a), Double(b)) => whole_and_fraction(i128::from(*a), *b),
        (Double(a), Int(b)) => whole_and_fraction(i128::from(*b), *a).map(Ordering::reverse),
        (Double(a), Uint(b)) => whole_and_fraction(i128::from(*b), *a).map(Ordering::reverse),
        _ => None,
    }
}

/// An integer beside a double, without rounding the integer.
fn whole_and_fraction(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Casting saturates, far outside of what an integer of CEL can be.
    let floor = double.floor();
    Some(whole.cmp(&(floor as i128)).then(if double > floor { Ordering::Less } else { Ordering::Equal }))
}

/// Are they equal? Values of different types are not, except for numbers.
pub(super) fn equal(meter: &Meter, a: &Val<'_>, b: &Val<'_>) -> Result<bool, Fault> {
    Ok(match (a, b) {
        (Val::Null, Val::Null) | (Val::Optional(None), Val::Optional(None)) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Text(a), Val::Text(b)) => {
            if a.len() == b.len() && a.len() > 64 {
                meter.read(a.len())?;
            }
            **a == **b
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            meter.read(a.len())?;
            a == b
        }
        (Val::List(a), Val::List(b)) => return lists_equal(meter, a, b),
        (Val::Map(a), Val::Map(b)) => return maps_equal(meter, a, b),
        (Val::Moment(a), Val::Moment(b)) => a == b,
        (Val::Span(a), Val::Span(b)) => a == b,
        (Val::Type(a), Val::Type(b)) => a == b,
        (Val::Optional(Some(a)), Val::Optional(Some(b))) => return equal(meter, a, b),
        (Val::Quantity(a), Val::Quantity(b)) => a == b,
        (Val::Ip(a), Val::Ip(b)) => a == b,
        (Val::Cidr(a), Val::Cidr(b)) => a == b,
        (Val::Url(a), Val::Url(b)) => a == b,
        (Val::Semver(a), Val::Semver(b)) => a == b,
        _ => numeric_order(a, b).is_some_and(Ordering::is_eq),
    })
}

fn lists_equal(meter: &Meter, a: &List<'_>, b: &List<'_>) -> Result<bool, Fault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b.iter()) {
        meter.walk(1)?;
        if !equal(meter, &a, &b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(meter: &Meter, a: &Map<'_>, b: &Map<'_>) -> Result<bool, Fault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for at in 0..a.len() {
        let Some(key) = a.key(at) else { continue };
        let (Some(in_a), Some(in_b)) = (found(meter, a, &key)?, found(meter, b, &key)?) else {
            return Ok(false);
        };
        if !equal(meter, &in_a, &in_b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The value of a key. A map that was made is walked for it.
pub(super) fn found<'t>(meter: &Meter, map: &Map<'t>, key: &Val<'t>) -> Result<Option<Val<'t>>, Fault> {
    meter.walk(match map {
        Map::Lent(_) => 1,
        Map::Made(entries) => 1 + entries.len() / 4,
    })?;
    Ok(map.find(key))
}

/// Does a value have an order among its like?
pub(super) fn ordered(value: &Val<'_>) -> bool {
    let ty = value.ty();
    ty.number() || matches!(ty, Ty::Bool | Ty::Text | Ty::Bytes | Ty::Moment | Ty::Span)
}

/// Their order, where they have one.
pub(super) fn order(meter: &Meter, name: &'static str, a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, Fault> {
    let none = || Fault::NoOverload(name, vec![a.ty(), b.ty()]);
    match (a, b) {
        (Val::Text(a), Val::Text(b)) => {
            meter.read(a.len().min(b.len()))?;
            Ok(a.cmp(b))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            meter.read(a.len().min(b.len()))?;
            Ok(a.cmp(b))
        }
        (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
        (Val::Moment(a), Val::Moment(b)) => Ok(a.cmp(b)),
        (Val::Span(a), Val::Span(b)) => Ok(a.cmp(b)),
        _ if a.ty().number() && b.ty().number() => {
            meter.walk(1)?;
            numeric_order(a, b).ok_or_else(|| Fault::words("NaN values cannot be ordered"))
        }
        _ => Err(none()),
    }
}

pub(super) fn compare(meter: &Meter, how: Comparison, a: &Val<'_>, b: &Val<'_>) -> Result<bool, Fault> {
    let order = order(meter, how.name(), a, b)?;
    Ok(match how {
        Comparison::Less => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
    })
}

pub(super) fn negate<'t>(value: &Val<'t>) -> Result<Val<'t>, Fault> {
    match value {
        Val::Int(number) => number.checked_neg().map(Val::Int).ok_or_else(overflow),
        Val::Double(number) => Ok(Val::Double(-number)),
        other => Err(Fault::NoOverload("-_", vec![other.ty()])),
    }
}

pub(super) fn arithmetic<'t>(meter: &Meter, op: Operator, a: Val<'t>, b: Val<'t>) -> Result<Val<'t>, Fault> {
    match (op, a, b) {
        (_, Val::Int(a), Val::Int(b)) => int(op, a, b).map(Val::Int),
        (_, Val::Uint(a), Val::Uint(b)) => uint(op, a, b).map(Val::Uint),
        (_, Val::Double(a), Val::Double(b)) if op != Operator::Modulo => Ok(Val::Double(match op {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide | Operator::Modulo => a / b,
        })),
        (Operator::Add, Val::Text(a), Val::Text(b)) => {
            meter.make(a.len() + b.len())?;
            Ok(Val::Text(Text::Made([&*a, &*b].concat().into())))
        }
        (Operator::Add, Val::Bytes(a), Val::Bytes(b)) => {
            meter.make(a.len() + b.len())?;
            Ok(Val::Bytes([&*a, &*b].concat().into()))
        }
        (Operator::Add, Val::List(a), Val::List(b)) => {
            let count = a.len() + b.len();
            meter.make(count * size_of::<Val<'_>>())?;
            meter.walk(count)?;
            Ok(Val::list(a.iter().chain(b.iter()).collect()))
        }
        (Operator::Add, Val::Moment(moment), Val::Span(span))
        | (Operator::Add, Val::Span(span), Val::Moment(moment)) => moment.plus(span).map(Val::Moment),
        (Operator::Subtract, Val::Moment(moment), Val::Span(span)) => moment.minus(span).map(Val::Moment),
        (Operator::Subtract, Val::Moment(later), Val::Moment(earlier)) => later.since(earlier).map(Val::Span),
        (Operator::Add, Val::Span(a), Val::Span(b)) => a.checked_add(b).map(Val::Span).ok_or_else(overflow),
        (Operator::Subtract, Val::Span(a), Val::Span(b)) => {
            a.checked_sub(b).map(Val::Span).ok_or_else(overflow)
        }
        (_, a, b) => Err(Fault::NoOverload(op.name(), vec![a.ty(), b.ty()])),
    }
}

fn overflow() -> Fault {
    Fault::words("integer overflow")
}

fn int(op: Operator, a: i64, b: i64) -> Result<i64, Fault> {
    let made = match op {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide if b == 0 => return Err(Fault::words("division by zero")),
        Operator::Divide => a.checked_div(b),
        Operator::Modulo if b == 0 => return Err(Fault::words("modulus by zero")),
        Operator::Modulo => a.checked_rem(b),
    };
    made.ok_or_else(overflow)
}

fn uint(op: Operator, a: u64, b: u64) -> Result<u64, Fault> {
    let made = match op {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide if b == 0 => return Err(Fault::words("division by zero")),
        Operator::Divide => a.checked_div(b),
        Operator::Modulo if b == 0 => return Err(Fault::words("modulus by zero")),
        Operator::Modulo => a.checked_rem(b),
    };
    made.ok_or_else(|| Fault::words("unsigned integer overflow"))
}
