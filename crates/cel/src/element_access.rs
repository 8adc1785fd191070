//! Fields, elements and entries of values that are evaluated.

use std::rc::Rc;

use crate::cel_type::CelType;
use crate::eval_result::ValueResult;
use crate::fault::EvalFault;
use crate::functions::lists;
use crate::map_keys;
use crate::meter::CostMeter;
use crate::value::{CelMap, CelText, CelValue};

/// Returns a field that may be absent; absent for a value that has no fields at all.
pub(crate) fn find_field<'t>(
    meter: &CostMeter,
    operand: &CelValue<'t>,
    field: &'t str,
) -> std::result::Result<Option<CelValue<'t>>, EvalFault> {
    match operand {
        CelValue::Map(CelMap::Borrowed(fields)) => map_keys::lookup_field(meter, fields, field),
        CelValue::Map(map) => map_keys::lookup_key(meter, map, &CelValue::Text(CelText::Borrowed(field))),
        CelValue::List(_) => Err(EvalFault::from_message("unsupported index type 'string' in list")),
        CelValue::Optional(Some(inner)) => find_field(meter, inner, field),
        _ => Ok(None),
    }
}

pub(crate) fn select_field<'t>(meter: &CostMeter, operand: &CelValue<'t>, field: &'t str) -> ValueResult<'t> {
    match operand {
        CelValue::Optional(None) => Ok(CelValue::Optional(None)),
        CelValue::Optional(Some(value)) => {
            Ok(CelValue::Optional(find_field(meter, value, field)?.map(Rc::new)))
        }
        other => find_field(meter, other, field)?.ok_or_else(|| EvalFault::NoKey(field.into())),
    }
}

/// Returns the element at an index, if there is one; an error if the value is no valid index.
pub(crate) fn find_index<'t>(
    meter: &CostMeter,
    operand: &CelValue<'t>,
    index: &CelValue<'t>,
) -> std::result::Result<Option<CelValue<'t>>, EvalFault> {
    match (operand, index) {
        (
            CelValue::Map(map),
            CelValue::Text(_)
            | CelValue::Bool(_)
            | CelValue::Int(_)
            | CelValue::Uint(_)
            | CelValue::Double(_),
        ) => map_keys::lookup_key(meter, map, index),
        (CelValue::Map(_), other) => {
            Err(EvalFault::from_message(format!("unsupported key type: {}", other.cel_type().name())))
        }
        (CelValue::List(list), index) => {
            let at = match index {
                CelValue::Int(at) => usize::try_from(*at).ok(),
                CelValue::Uint(at) => usize::try_from(*at).ok(),
                CelValue::Double(at) if at.fract() == 0.0 => whole_index(*at),
                CelValue::Double(_) => {
                    return Err(EvalFault::from_message("unsupported index value in list: a fraction"));
                }
                other => {
                    let ty = other.cel_type().name();
                    return Err(EvalFault::from_message(format!("unsupported index type '{ty}' in list")));
                }
            };
            Ok(at.and_then(|at| list.get(at)))
        }
        _ => Ok(None),
    }
}

pub(crate) fn eval_membership<'t>(
    meter: &CostMeter,
    item: &CelValue<'t>,
    container: &CelValue<'t>,
) -> ValueResult<'t> {
    match container {
        CelValue::List(list) => lists::list_contains(meter, list, item).map(CelValue::Bool),
        CelValue::Map(map) => {
            map_keys::lookup_key(meter, map, item).map(|found| CelValue::Bool(found.is_some()))
        }
        other => Err(EvalFault::NoOverload("@in", vec![item.cel_type(), other.cel_type()])),
    }
}

/// Inserts a key that is not there yet.
pub(crate) fn insert_entry<'t>(
    meter: &CostMeter,
    made: &mut Vec<(CelValue<'t>, CelValue<'t>)>,
    key: CelValue<'t>,
    value: CelValue<'t>,
) -> std::result::Result<(), EvalFault> {
    if !matches!(key.cel_type(), CelType::Text | CelType::Bool | CelType::Int | CelType::Uint) {
        return Err(EvalFault::from_message(format!("unsupported key type: {}", key.cel_type().name())));
    }
    meter.charge_allocation(2 * size_of::<CelValue<'_>>())?;
    if map_keys::find_made_key(meter, made, &key)?.is_some() {
        return Err(EvalFault::from_message("the map has a duplicate key"));
    }
    made.push((key, value));
    Ok(())
}

/// Charges the texts that a function may read to their ends, so that no function can forget to.
pub(crate) fn charge_arguments(
    meter: &CostMeter,
    args: &[CelValue<'_>],
) -> std::result::Result<(), EvalFault> {
    let sizes = args.iter().map(|arg| match arg {
        CelValue::Text(text) => text.len(),
        CelValue::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    meter.charge_steps(sizes.sum::<usize>() / 64)
}

/// Returns the index that a whole number means; `None` below 0. One beyond every list saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; the cast saturates"
)]
fn whole_index(at: f64) -> Option<usize> {
    (at >= 0.0).then_some(at as usize)
}
