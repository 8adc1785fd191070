//! Optional values.

use super::super::value::Ty::{Bool, Dyn, List, Optional};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, member, unfit};

pub(super) const TABLE: &[Function] = &[
    global("optional.of", &[Dyn], Optional, |_, args| Ok(args[0].clone().some())),
    global("optional.none", &[], Optional, |_, _| Ok(Val::Optional(None))),
    global("optional.ofNonZeroValue", &[Dyn], Optional, |_, args| {
        Ok(if zero(&args[0]) { Val::Optional(None) } else { args[0].clone().some() })
    }),
    member("hasValue", &[Optional], Bool, |_, args| Ok(Val::Bool(matches!(args, [Val::Optional(Some(_))])))),
    member("value", &[Optional], Dyn, |_, args| match args {
        [Val::Optional(Some(value))] => Ok((**value).clone()),
        _ => Err(Fault::words("optional.none() dereference")),
    }),
    // The evaluator asks for the other value only where it is needed.
    member("or", &[Optional, Optional], Optional, |_, args| match args {
        [some @ Val::Optional(Some(_)), _] => Ok(some.clone()),
        [_, other] => Ok(other.clone()),
        _ => Err(unfit(args)),
    }),
    member("orValue", &[Optional, Dyn], Dyn, |_, args| match args {
        [Val::Optional(Some(value)), _] => Ok((**value).clone()),
        [_, other] => Ok(other.clone()),
        _ => Err(unfit(args)),
    }),
    global("optional.unwrap", &[List], List, unwrap),
    member("unwrapOpt", &[List], List, unwrap),
];

/// Is it the value that its type begins with?
fn zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Int(0) | Val::Uint(0) | Val::Bool(false) | Val::Span(0) => true,
        Val::Double(number) => *number == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len() == 0,
        _ => false,
    }
}

fn unwrap<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::List(list)] = args else { return Err(unfit(args)) };
    cx.meter.walk(list.len())?;
    let mut values = Vec::new();
    for item in list.iter() {
        match item {
            Val::Optional(Some(value)) => values.push((*value).clone()),
            Val::Optional(None) => {}
            _ => return Err(Fault::words("the list holds values that are not optional")),
        }
    }
    Ok(Val::list(values))
}
