//! Optional values.

use crate::cel_type::CelType::{Bool, Dyn, List, Optional};
use crate::fault::EvalFault;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("optional.of", &[Dyn], Optional, |_, args| Ok(args[0].clone().into_optional())),
    global_function("optional.none", &[], Optional, |_, _| Ok(CelValue::Optional(None))),
    global_function("optional.ofNonZeroValue", &[Dyn], Optional, |_, args| {
        Ok(if is_zero_value(&args[0]) { CelValue::Optional(None) } else { args[0].clone().into_optional() })
    }),
    member_function("hasValue", &[Optional], Bool, |_, args| {
        Ok(CelValue::Bool(matches!(args, [CelValue::Optional(Some(_))])))
    }),
    member_function("value", &[Optional], Dyn, |_, args| match args {
        [CelValue::Optional(Some(value))] => Ok((**value).clone()),
        _ => Err(EvalFault::from_message("optional.none() dereference")),
    }),
    // The evaluator evaluates the alternative only if it is needed.
    member_function("or", &[Optional, Optional], Optional, |_, args| match args {
        [some @ CelValue::Optional(Some(_)), _] => Ok(some.clone()),
        [_, other] => Ok(other.clone()),
        _ => Err(argument_mismatch(args)),
    }),
    member_function("orValue", &[Optional, Dyn], Dyn, |_, args| match args {
        [CelValue::Optional(Some(value)), _] => Ok((**value).clone()),
        [_, other] => Ok(other.clone()),
        _ => Err(argument_mismatch(args)),
    }),
    global_function("optional.unwrap", &[List], List, unwrap_list),
    member_function("unwrapOpt", &[List], List, unwrap_list),
];

/// Returns `true` for the zero value of its type.
fn is_zero_value(value: &CelValue<'_>) -> bool {
    match value {
        CelValue::Null
        | CelValue::Int(0)
        | CelValue::Uint(0)
        | CelValue::Bool(false)
        | CelValue::Duration(0) => true,
        CelValue::Double(number) => *number == 0.0,
        CelValue::Text(text) => text.is_empty(),
        CelValue::Bytes(bytes) => bytes.is_empty(),
        CelValue::List(list) => list.len() == 0,
        CelValue::Map(map) => map.len() == 0,
        _ => false,
    }
}

fn unwrap_list<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::List(list)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_steps(list.len())?;
    let mut values = Vec::new();
    for item in list.iter() {
        match item {
            CelValue::Optional(Some(value)) => values.push((*value).clone()),
            CelValue::Optional(None) => {}
            _ => return Err(EvalFault::from_message("the list holds values that are not optional")),
        }
    }
    Ok(CelValue::from_items(values))
}
