//! Functions of Kubernetes quantities.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::cel_type::CelType::{self, Bool, Double, Int, Text};
use crate::fault::EvalFault;
use crate::kube_types::{NANOS_PER_UNIT, ResourceQuantity};
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

const QUANTITY_TYPE: CelType = CelType::Quantity;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("quantity", &[Text], QUANTITY_TYPE, |cx, args| match args {
        [CelValue::Text(text)] => {
            charge_digits(cx, text)?;
            let parsed = ResourceQuantity::parse_quantity(text)
                .ok_or_else(|| EvalFault::from_message("no quantity"))?;
            Ok(CelValue::Quantity(Rc::new(parsed)))
        }
        _ => Err(argument_mismatch(args)),
    }),
    global_function("isQuantity", &[Text], Bool, |cx, args| match args {
        [CelValue::Text(text)] => {
            charge_digits(cx, text)?;
            Ok(CelValue::Bool(ResourceQuantity::parse_quantity(text).is_some()))
        }
        _ => Err(argument_mismatch(args)),
    }),
    member_function("isInteger", &[QUANTITY_TYPE], Bool, |_, args| {
        Ok(CelValue::Bool(quantity_argument(args)?.to_integer().is_some()))
    }),
    member_function("asInteger", &[QUANTITY_TYPE], Int, |_, args| {
        let whole = quantity_argument(args)?.to_integer();
        whole.map(CelValue::Int).ok_or_else(|| EvalFault::from_message("cannot convert value to integer"))
    }),
    member_function("asApproximateFloat", &[QUANTITY_TYPE], Double, |_, args| {
        Ok(CelValue::Double(quantity_argument(args)?.to_approximate_f64()))
    }),
    member_function("sign", &[QUANTITY_TYPE], Int, |_, args| {
        Ok(CelValue::Int(quantity_argument(args)?.amount.signum() as i64))
    }),
    member_function("add", &[QUANTITY_TYPE, QUANTITY_TYPE], QUANTITY_TYPE, |_, args| add_quantities(args, 1)),
    member_function("add", &[QUANTITY_TYPE, Int], QUANTITY_TYPE, |_, args| add_quantities(args, 1)),
    member_function("sub", &[QUANTITY_TYPE, QUANTITY_TYPE], QUANTITY_TYPE, |_, args| {
        add_quantities(args, -1)
    }),
    member_function("sub", &[QUANTITY_TYPE, Int], QUANTITY_TYPE, |_, args| add_quantities(args, -1)),
    member_function("compareTo", &[QUANTITY_TYPE, QUANTITY_TYPE], Int, |_, args| {
        Ok(CelValue::Int(compare_quantities(args)? as i64))
    }),
    member_function("isGreaterThan", &[QUANTITY_TYPE, QUANTITY_TYPE], Bool, |_, args| {
        Ok(CelValue::Bool(compare_quantities(args)?.is_gt()))
    }),
    member_function("isLessThan", &[QUANTITY_TYPE, QUANTITY_TYPE], Bool, |_, args| {
        Ok(CelValue::Bool(compare_quantities(args)?.is_lt()))
    }),
];

/// Charges the arithmetic on each digit.
fn charge_digits(cx: &CelCallContext<'_>, text: &str) -> Result<(), EvalFault> {
    cx.meter.charge_read(8 * text.len())
}

fn quantity_argument(args: &[CelValue<'_>]) -> Result<ResourceQuantity, EvalFault> {
    match args {
        [CelValue::Quantity(quantity)] => Ok(**quantity),
        _ => Err(argument_mismatch(args)),
    }
}

fn compare_quantities(args: &[CelValue<'_>]) -> Result<Ordering, EvalFault> {
    match args {
        [CelValue::Quantity(a), CelValue::Quantity(b)] => Ok(a.amount.cmp(&b.amount)),
        _ => Err(argument_mismatch(args)),
    }
}

fn add_quantities<'t>(args: &[CelValue<'t>], sign: i128) -> Result<CelValue<'t>, EvalFault> {
    let (a, b) = match args {
        [CelValue::Quantity(a), CelValue::Quantity(b)] => (**a, **b),
        [CelValue::Quantity(a), CelValue::Int(b)] => {
            (**a, ResourceQuantity { amount: i128::from(*b) * NANOS_PER_UNIT, whole: true })
        }
        _ => return Err(argument_mismatch(args)),
    };
    let amount = b.amount.checked_mul(sign).and_then(|b| a.amount.checked_add(b));
    let amount = amount.ok_or_else(|| EvalFault::from_message("quantity overflow"))?;
    let whole = match (a.amount, b.amount) {
        (_, 0) => a.whole,
        (0, _) => b.whole,
        _ => a.whole && b.whole,
    };
    Ok(CelValue::Quantity(Rc::new(ResourceQuantity { amount, whole })))
}
