//! `sets.contains`, `sets.equivalent`, `sets.intersects`.

use crate::cel_type::CelType::{Bool, List};
use crate::fault::EvalFault;
use crate::meter::CostMeter;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function};
use crate::value::{self, CelValue};
use crate::value_ops::values_equal;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("sets.contains", &[List, List], Bool, |cx, args| {
        list_arguments(args).and_then(|(a, b)| check_subset(cx.meter, b, a))
    }),
    global_function("sets.equivalent", &[List, List], Bool, |cx, args| {
        let (a, b) = list_arguments(args)?;
        match check_subset(cx.meter, b, a)? {
            CelValue::Bool(true) => check_subset(cx.meter, a, b),
            not => Ok(not),
        }
    }),
    global_function("sets.intersects", &[List, List], Bool, sets_intersect),
];

fn list_arguments<'a, 't>(
    args: &'a [CelValue<'t>],
) -> Result<(&'a value::CelList<'t>, &'a value::CelList<'t>), EvalFault> {
    match args {
        [CelValue::List(a), CelValue::List(b)] => Ok((a, b)),
        _ => Err(argument_mismatch(args)),
    }
}

pub(super) fn contains_element(
    meter: &CostMeter,
    list: &value::CelList<'_>,
    wanted: &CelValue<'_>,
) -> Result<bool, EvalFault> {
    for item in list.iter() {
        meter.charge_steps(1)?;
        if values_equal(meter, &item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns `true` if every element of `some` is in `all`.
fn check_subset<'t>(
    meter: &CostMeter,
    some: &value::CelList<'t>,
    all: &value::CelList<'t>,
) -> Result<CelValue<'t>, EvalFault> {
    for item in some.iter() {
        if !contains_element(meter, all, &item)? {
            return Ok(CelValue::Bool(false));
        }
    }
    Ok(CelValue::Bool(true))
}

fn sets_intersect<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (a, b) = list_arguments(args)?;
    for item in a.iter() {
        if contains_element(cx.meter, b, &item)? {
            return Ok(CelValue::Bool(true));
        }
    }
    Ok(CelValue::Bool(false))
}
