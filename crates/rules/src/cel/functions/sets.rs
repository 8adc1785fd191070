//! `sets.contains`, `sets.equivalent`, `sets.intersects`.

use super::super::meter::Meter;
use super::super::ops::equal;
use super::super::value::Ty::{Bool, List};
use super::super::value::{self, Fault, Val};
use super::{Cx, Function, global, unfit};

pub(super) const TABLE: &[Function] = &[
    global("sets.contains", &[List, List], Bool, |cx, args| {
        both(args).and_then(|(a, b)| within(cx.meter, b, a))
    }),
    global("sets.equivalent", &[List, List], Bool, |cx, args| {
        let (a, b) = both(args)?;
        match within(cx.meter, b, a)? {
            Val::Bool(true) => within(cx.meter, a, b),
            not => Ok(not),
        }
    }),
    global("sets.intersects", &[List, List], Bool, intersects),
];

fn both<'a, 't>(args: &'a [Val<'t>]) -> Result<(&'a value::List<'t>, &'a value::List<'t>), Fault> {
    match args {
        [Val::List(a), Val::List(b)] => Ok((a, b)),
        _ => Err(unfit(args)),
    }
}

pub(super) fn has(meter: &Meter, list: &value::List<'_>, wanted: &Val<'_>) -> Result<bool, Fault> {
    for item in list.iter() {
        meter.walk(1)?;
        if equal(meter, &item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Is each of `some` in `all`?
fn within<'t>(meter: &Meter, some: &value::List<'t>, all: &value::List<'t>) -> Result<Val<'t>, Fault> {
    for item in some.iter() {
        if !has(meter, all, &item)? {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn intersects<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (a, b) = both(args)?;
    for item in a.iter() {
        if has(cx.meter, b, &item)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}
