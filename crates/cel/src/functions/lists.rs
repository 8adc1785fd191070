//! List functions of cel-go and Kubernetes.

use std::cmp::Ordering;
use std::rc::Rc;

use super::sets;
use crate::cel_type::CelType::{self, Bool, Dyn, Int, Optional};
use crate::fault::EvalFault;
use crate::meter::CostMeter;
use crate::number_conversions::int_from_count;
use crate::operator_kinds::{ArithmeticOperator, ComparisonOperator};
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::{CelList, CelValue};
use crate::value_ops;

const LIST_TYPE: CelType = CelType::List;

pub(super) const OVERLOADS: &[CelOverload] = &[
    member_function("slice", &[LIST_TYPE, Int, Int], LIST_TYPE, slice_list),
    member_function("flatten", &[LIST_TYPE], LIST_TYPE, flatten_list),
    member_function("flatten", &[LIST_TYPE, Int], LIST_TYPE, flatten_list),
    member_function("distinct", &[LIST_TYPE], LIST_TYPE, distinct_elements),
    member_function("reverse", &[LIST_TYPE], LIST_TYPE, |cx, args| {
        let mut items = copy_elements(cx.meter, list_argument(args)?)?;
        items.reverse();
        Ok(CelValue::from_items(items))
    }),
    member_function("sort", &[LIST_TYPE], LIST_TYPE, |cx, args| {
        let items = copy_elements(cx.meter, list_argument(args)?)?;
        sort_by_keys(cx.meter, items.iter().map(|item| (item.clone(), item.clone())).collect())
    }),
    global_function("lists.range", &[Int], LIST_TYPE, range_list),
    member_function("first", &[LIST_TYPE], Optional, |_, args| {
        Ok(CelValue::Optional(list_argument(args)?.get(0).map(Rc::new)))
    }),
    member_function("last", &[LIST_TYPE], Optional, |_, args| {
        let list = list_argument(args)?;
        Ok(CelValue::Optional(list.len().checked_sub(1).and_then(|at| list.get(at)).map(Rc::new)))
    }),
    member_function("isSorted", &[LIST_TYPE], Bool, is_sorted),
    member_function("sum", &[LIST_TYPE], Dyn, sum_elements),
    member_function("min", &[LIST_TYPE], Dyn, |cx, args| find_extreme(cx, args, ComparisonOperator::Less)),
    member_function("max", &[LIST_TYPE], Dyn, |cx, args| find_extreme(cx, args, ComparisonOperator::Greater)),
    member_function("indexOf", &[LIST_TYPE, Dyn], Int, |cx, args| find_position(cx, args, false)),
    member_function("lastIndexOf", &[LIST_TYPE, Dyn], Int, |cx, args| find_position(cx, args, true)),
];

fn list_argument<'a, 't>(args: &'a [CelValue<'t>]) -> Result<&'a CelList<'t>, EvalFault> {
    match args {
        [CelValue::List(list), ..] => Ok(list),
        _ => Err(argument_mismatch(args)),
    }
}

/// Copies the elements and charges for them.
fn copy_elements<'t>(meter: &CostMeter, list: &CelList<'t>) -> Result<Vec<CelValue<'t>>, EvalFault> {
    meter.charge_allocation(list.len() * size_of::<CelValue<'_>>())?;
    meter.charge_steps(list.len())?;
    Ok(list.iter().collect())
}

/// Sorts values by their keys, which must be of one orderable type.
pub(crate) fn sort_by_keys<'t>(
    meter: &CostMeter,
    mut keyed: Vec<(CelValue<'t>, CelValue<'t>)>,
) -> Result<CelValue<'t>, EvalFault> {
    let types: Vec<CelType> = keyed.iter().map(|(key, _)| key.cel_type()).collect();
    if let Some(first) = types.first()
        && let Some(other) = types.iter().find(|ty| *ty != first)
    {
        return Err(EvalFault::NoOverload("sort", vec![*first, *other]));
    }
    if keyed.len() > 1 {
        charge_sort(meter, keyed.iter().map(|(key, _)| key))?;
        keyed.sort_by(|(a, _), (b, _)| value_ops::natural_order(a, b).unwrap_or(Ordering::Equal));
    }
    Ok(CelValue::from_items(keyed.into_iter().map(|(_, value)| value).collect()))
}

/// Charges a whole sort of these keys, and refuses keys that have no order: a sort that fails in its middle would not be
/// one any more, and the standard one may panic then.
fn charge_sort<'k, 't: 'k>(
    meter: &CostMeter,
    keys: impl ExactSizeIterator<Item = &'k CelValue<'t>>,
) -> Result<(), EvalFault> {
    let levels = keys.len().ilog2() as usize + 1;
    for key in keys {
        if !value_ops::is_orderable(key) {
            return Err(EvalFault::NoOverload("sort", vec![key.cel_type()]));
        }
        let read = match key {
            CelValue::Double(number) if number.is_nan() => {
                return Err(EvalFault::from_message("NaN values cannot be ordered"));
            }
            CelValue::Text(text) => text.len(),
            CelValue::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        meter.charge_steps((1 + read / 64).saturating_mul(levels))?;
    }
    Ok(())
}

fn slice_list<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::List(list), CelValue::Int(start), CelValue::Int(end)] = args else {
        return Err(argument_mismatch(args));
    };
    let bounds = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
    let Some((from, to)) = bounds.filter(|(from, to)| from <= to && *to <= list.len()) else {
        return Err(EvalFault::from_message("slice beyond the list"));
    };
    let items = copy_elements(cx.meter, list)?;
    Ok(CelValue::from_items(items[from..to].to_vec()))
}

fn flatten_list<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let levels = match args {
        [_] => 1,
        [_, CelValue::Int(levels)] if *levels >= 0 => *levels,
        [_, CelValue::Int(_)] => return Err(EvalFault::from_message("level must be non-negative")),
        _ => return Err(argument_mismatch(args)),
    };
    let mut flat = copy_elements(cx.meter, list_argument(args)?)?;
    for _ in 0..levels {
        if !flat.iter().any(|item| matches!(item, CelValue::List(_))) {
            break;
        }
        let mut next = Vec::with_capacity(flat.len());
        for item in flat {
            match item {
                CelValue::List(inner) => next.extend(copy_elements(cx.meter, &inner)?),
                other => {
                    cx.meter.charge_steps(1)?;
                    next.push(other);
                }
            }
        }
        flat = next;
    }
    Ok(CelValue::from_items(flat))
}

fn distinct_elements<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let mut kept: Vec<CelValue<'t>> = Vec::new();
    for item in copy_elements(cx.meter, list_argument(args)?)? {
        let mut fresh = true;
        for known in &kept {
            cx.meter.charge_steps(1)?;
            if value_ops::values_equal(cx.meter, known, &item)? {
                fresh = false;
                break;
            }
        }
        if fresh {
            kept.push(item);
        }
    }
    Ok(CelValue::from_items(kept))
}

fn range_list<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Int(end)] = args else { return Err(argument_mismatch(args)) };
    let count = usize::try_from(*end).unwrap_or(0);
    cx.meter.charge_steps(count)?;
    cx.meter.charge_allocation(count.saturating_mul(size_of::<CelValue<'_>>()))?;
    Ok(CelValue::from_items((0..*end).map(CelValue::Int).collect()))
}

fn is_sorted<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let items = comparable_elements(cx, args, "isSorted")?;
    for pair in items.windows(2) {
        if is_ordered_as(cx.meter, "isSorted", Ordering::Greater, &pair[0], &pair[1])? {
            return Ok(CelValue::Bool(false));
        }
    }
    Ok(CelValue::Bool(true))
}

fn sum_elements<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let mut items = copy_elements(cx.meter, list_argument(args)?)?.into_iter();
    let Some(first) = items.next() else { return Ok(CelValue::Int(0)) };
    if !first.cel_type().is_numeric() && first.cel_type() != CelType::Duration {
        return Err(EvalFault::NoOverload("sum", vec![first.cel_type()]));
    }
    items.try_fold(first, |sum, item| {
        value_ops::apply_arithmetic(cx.meter, ArithmeticOperator::Add, sum, item)
    })
}

fn find_extreme<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
    better: ComparisonOperator,
) -> Result<CelValue<'t>, EvalFault> {
    let name = if better == ComparisonOperator::Less { "min" } else { "max" };
    let mut items = comparable_elements(cx, args, name)?.into_iter();
    let Some(mut best) = items.next() else {
        return Err(EvalFault::from_message(format!("{name} called on empty list")));
    };
    let wanted = if better == ComparisonOperator::Less { Ordering::Less } else { Ordering::Greater };
    for item in items {
        if is_ordered_as(cx.meter, name, wanted, &item, &best)? {
            best = item;
        }
    }
    Ok(best)
}

/// Returns the elements, all of which must be of an orderable type.
fn comparable_elements<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
    name: &'static str,
) -> Result<Vec<CelValue<'t>>, EvalFault> {
    let items = copy_elements(cx.meter, list_argument(args)?)?;
    match items.iter().find(|item| !value_ops::is_orderable(item)) {
        Some(other) => Err(EvalFault::NoOverload(name, vec![other.cel_type()])),
        None => Ok(items),
    }
}

/// Returns `true` if two elements are in the given order. Kubernetes ignores pairs of different types.
fn is_ordered_as(
    meter: &CostMeter,
    name: &'static str,
    wanted: Ordering,
    a: &CelValue<'_>,
    b: &CelValue<'_>,
) -> Result<bool, EvalFault> {
    match value_ops::compare_values(meter, name, a, b) {
        Ok(order) => Ok(order == wanted),
        Err(EvalFault::NoOverload(..)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn find_position<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
    last: bool,
) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::List(list), wanted] = args else { return Err(argument_mismatch(args)) };
    let count = list.len();
    for step in 0..count {
        let at = if last { count - 1 - step } else { step };
        cx.meter.charge_steps(1)?;
        if let Some(item) = list.get(at)
            && value_ops::values_equal(cx.meter, &item, wanted)?
        {
            return Ok(CelValue::Int(int_from_count(at)));
        }
    }
    Ok(CelValue::Int(-1))
}

/// Returns `true` if a value is among the elements.
pub(crate) fn list_contains(
    meter: &CostMeter,
    list: &CelList<'_>,
    wanted: &CelValue<'_>,
) -> Result<bool, EvalFault> {
    sets::contains_element(meter, list, wanted)
}
