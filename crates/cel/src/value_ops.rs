//! Operators on values.

use std::cmp::Ordering;

use crate::cel_type::CelType;
use crate::fault::EvalFault;
use crate::map_keys::lookup_key;
use crate::meter::CostMeter;
use crate::operator_kinds::{ArithmeticOperator, ComparisonOperator};
use crate::value::{CelList, CelMap, CelText, CelValue, numeric_order};

/// Returns `true` if two values are equal. Values of different types are not, except for numbers.
pub(crate) fn values_equal(meter: &CostMeter, a: &CelValue<'_>, b: &CelValue<'_>) -> Result<bool, EvalFault> {
    Ok(match (a, b) {
        (CelValue::Null, CelValue::Null) | (CelValue::Optional(None), CelValue::Optional(None)) => true,
        (CelValue::Bool(a), CelValue::Bool(b)) => a == b,
        (CelValue::Text(a), CelValue::Text(b)) => {
            if a.len() == b.len() && a.len() > 64 {
                meter.charge_read(a.len())?;
            }
            **a == **b
        }
        (CelValue::Bytes(a), CelValue::Bytes(b)) => {
            meter.charge_read(a.len())?;
            a == b
        }
        (CelValue::List(a), CelValue::List(b)) => return lists_equal(meter, a, b),
        (CelValue::Map(a), CelValue::Map(b)) => return maps_equal(meter, a, b),
        (CelValue::Timestamp(a), CelValue::Timestamp(b)) => a == b,
        (CelValue::Duration(a), CelValue::Duration(b)) => a == b,
        (CelValue::Type(a), CelValue::Type(b)) => a == b,
        (CelValue::Optional(Some(a)), CelValue::Optional(Some(b))) => return values_equal(meter, a, b),
        (CelValue::Quantity(a), CelValue::Quantity(b)) => a == b,
        (CelValue::Ip(a), CelValue::Ip(b)) => a == b,
        (CelValue::Cidr(a), CelValue::Cidr(b)) => a == b,
        (CelValue::Url(a), CelValue::Url(b)) => a == b,
        (CelValue::Semver(a), CelValue::Semver(b)) => a == b,
        _ => numeric_order(a, b).is_some_and(Ordering::is_eq),
    })
}

fn lists_equal(meter: &CostMeter, a: &CelList<'_>, b: &CelList<'_>) -> Result<bool, EvalFault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b.iter()) {
        meter.charge_steps(1)?;
        if !values_equal(meter, &a, &b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(meter: &CostMeter, a: &CelMap<'_>, b: &CelMap<'_>) -> Result<bool, EvalFault> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for at in 0..a.len() {
        let Some(key) = a.key_at(at) else { continue };
        let (Some(in_a), Some(in_b)) = (lookup_key(meter, a, &key)?, lookup_key(meter, b, &key)?) else {
            return Ok(false);
        };
        if !values_equal(meter, &in_a, &in_b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns `true` if values of this type are orderable.
pub(crate) fn is_orderable(value: &CelValue<'_>) -> bool {
    let ty = value.cel_type();
    ty.is_numeric()
        || matches!(
            ty,
            CelType::Bool | CelType::Text | CelType::Bytes | CelType::Timestamp | CelType::Duration
        )
}

/// Compares two values; an error if they are not orderable.
pub(crate) fn compare_values(
    meter: &CostMeter,
    name: &'static str,
    a: &CelValue<'_>,
    b: &CelValue<'_>,
) -> Result<Ordering, EvalFault> {
    let numbers = a.cel_type().is_numeric() && b.cel_type().is_numeric();
    match (a, b) {
        (CelValue::Text(a), CelValue::Text(b)) => meter.charge_read(a.len().min(b.len()))?,
        (CelValue::Bytes(a), CelValue::Bytes(b)) => meter.charge_read(a.len().min(b.len()))?,
        _ if numbers => meter.charge_steps(1)?,
        _ => {}
    }
    natural_order(a, b).ok_or_else(|| {
        if numbers {
            EvalFault::from_message("NaN values cannot be ordered")
        } else {
            EvalFault::NoOverload(name, vec![a.cel_type(), b.cel_type()])
        }
    })
}

/// Compares two values; `None` if they are not orderable, of different types, or NaN.
pub(crate) fn natural_order(a: &CelValue<'_>, b: &CelValue<'_>) -> Option<Ordering> {
    match (a, b) {
        (CelValue::Text(a), CelValue::Text(b)) => Some(a.cmp(b)),
        (CelValue::Bytes(a), CelValue::Bytes(b)) => Some(a.cmp(b)),
        (CelValue::Bool(a), CelValue::Bool(b)) => Some(a.cmp(b)),
        (CelValue::Timestamp(a), CelValue::Timestamp(b)) => Some(a.cmp(b)),
        (CelValue::Duration(a), CelValue::Duration(b)) => Some(a.cmp(b)),
        _ => numeric_order(a, b),
    }
}

pub(crate) fn evaluate_comparison(
    meter: &CostMeter,
    how: ComparisonOperator,
    a: &CelValue<'_>,
    b: &CelValue<'_>,
) -> Result<bool, EvalFault> {
    let order = compare_values(meter, how.name(), a, b)?;
    Ok(match how {
        ComparisonOperator::Less => order.is_lt(),
        ComparisonOperator::LessEqual => order.is_le(),
        ComparisonOperator::Greater => order.is_gt(),
        ComparisonOperator::GreaterEqual => order.is_ge(),
    })
}

pub(crate) fn negate_value<'t>(value: &CelValue<'t>) -> Result<CelValue<'t>, EvalFault> {
    match value {
        CelValue::Int(number) => number.checked_neg().map(CelValue::Int).ok_or_else(overflow_fault),
        CelValue::Double(number) => Ok(CelValue::Double(-number)),
        other => Err(EvalFault::NoOverload("-_", vec![other.cel_type()])),
    }
}

pub(crate) fn apply_arithmetic<'t>(
    meter: &CostMeter,
    op: ArithmeticOperator,
    a: CelValue<'t>,
    b: CelValue<'t>,
) -> Result<CelValue<'t>, EvalFault> {
    match (op, a, b) {
        (_, CelValue::Int(a), CelValue::Int(b)) => int_arithmetic(op, a, b).map(CelValue::Int),
        (_, CelValue::Uint(a), CelValue::Uint(b)) => uint_arithmetic(op, a, b).map(CelValue::Uint),
        (_, CelValue::Double(a), CelValue::Double(b)) if op != ArithmeticOperator::Modulo => {
            Ok(CelValue::Double(match op {
                ArithmeticOperator::Add => a + b,
                ArithmeticOperator::Subtract => a - b,
                ArithmeticOperator::Multiply => a * b,
                ArithmeticOperator::Divide | ArithmeticOperator::Modulo => a / b,
            }))
        }
        (ArithmeticOperator::Add, CelValue::Text(a), CelValue::Text(b)) => {
            meter.charge_allocation(a.len() + b.len())?;
            Ok(CelValue::Text(CelText::Shared([&*a, &*b].concat().into())))
        }
        (ArithmeticOperator::Add, CelValue::Bytes(a), CelValue::Bytes(b)) => {
            meter.charge_allocation(a.len() + b.len())?;
            Ok(CelValue::Bytes([&*a, &*b].concat().into()))
        }
        (ArithmeticOperator::Add, CelValue::List(a), CelValue::List(b)) => {
            let count = a.len() + b.len();
            meter.charge_allocation(count * size_of::<CelValue<'_>>())?;
            meter.charge_steps(count)?;
            Ok(CelValue::from_items(a.iter().chain(b.iter()).collect()))
        }
        (ArithmeticOperator::Add, CelValue::Timestamp(moment), CelValue::Duration(span))
        | (ArithmeticOperator::Add, CelValue::Duration(span), CelValue::Timestamp(moment)) => {
            moment.add_duration(span).map(CelValue::Timestamp)
        }
        (ArithmeticOperator::Subtract, CelValue::Timestamp(moment), CelValue::Duration(span)) => {
            moment.subtract_duration(span).map(CelValue::Timestamp)
        }
        (ArithmeticOperator::Subtract, CelValue::Timestamp(later), CelValue::Timestamp(earlier)) => {
            later.duration_since(earlier).map(CelValue::Duration)
        }
        (ArithmeticOperator::Add, CelValue::Duration(a), CelValue::Duration(b)) => {
            a.checked_add(b).map(CelValue::Duration).ok_or_else(overflow_fault)
        }
        (ArithmeticOperator::Subtract, CelValue::Duration(a), CelValue::Duration(b)) => {
            a.checked_sub(b).map(CelValue::Duration).ok_or_else(overflow_fault)
        }
        (_, a, b) => Err(EvalFault::NoOverload(op.name(), vec![a.cel_type(), b.cel_type()])),
    }
}

fn overflow_fault() -> EvalFault {
    EvalFault::from_message("integer overflow")
}

fn int_arithmetic(op: ArithmeticOperator, a: i64, b: i64) -> Result<i64, EvalFault> {
    let made = match op {
        ArithmeticOperator::Add => a.checked_add(b),
        ArithmeticOperator::Subtract => a.checked_sub(b),
        ArithmeticOperator::Multiply => a.checked_mul(b),
        ArithmeticOperator::Divide if b == 0 => return Err(EvalFault::from_message("division by zero")),
        ArithmeticOperator::Divide => a.checked_div(b),
        ArithmeticOperator::Modulo if b == 0 => return Err(EvalFault::from_message("modulus by zero")),
        ArithmeticOperator::Modulo => a.checked_rem(b),
    };
    made.ok_or_else(overflow_fault)
}

fn uint_arithmetic(op: ArithmeticOperator, a: u64, b: u64) -> Result<u64, EvalFault> {
    let made = match op {
        ArithmeticOperator::Add => a.checked_add(b),
        ArithmeticOperator::Subtract => a.checked_sub(b),
        ArithmeticOperator::Multiply => a.checked_mul(b),
        ArithmeticOperator::Divide if b == 0 => return Err(EvalFault::from_message("division by zero")),
        ArithmeticOperator::Divide => a.checked_div(b),
        ArithmeticOperator::Modulo if b == 0 => return Err(EvalFault::from_message("modulus by zero")),
        ArithmeticOperator::Modulo => a.checked_rem(b),
    };
    made.ok_or_else(|| EvalFault::from_message("unsigned integer overflow"))
}
