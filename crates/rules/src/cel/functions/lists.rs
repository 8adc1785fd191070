//! Lists, as cel-go and Kubernetes extend them.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::meter::Meter;
use super::super::node::{Comparison, Operator};
use super::super::ops;
use super::super::value::Ty::{self, Bool, Dyn, Int, Optional};
use super::super::value::{Fault, List, Val};
use super::{Cx, Function, global, member, sets, unfit};

const LIST: Ty = Ty::List;

pub(super) const TABLE: &[Function] = &[
    member("slice", &[LIST, Int, Int], LIST, slice),
    member("flatten", &[LIST], LIST, flatten),
    member("flatten", &[LIST, Int], LIST, flatten),
    member("distinct", &[LIST], LIST, distinct),
    member("reverse", &[LIST], LIST, |cx, args| {
        let mut items = copied(cx.meter, one(args)?)?;
        items.reverse();
        Ok(Val::list(items))
    }),
    member("sort", &[LIST], LIST, |cx, args| {
        let items = copied(cx.meter, one(args)?)?;
        sorted(cx.meter, items.iter().map(|item| (item.clone(), item.clone())).collect())
    }),
    global("lists.range", &[Int], LIST, range),
    member("first", &[LIST], Optional, |_, args| Ok(Val::Optional(one(args)?.get(0).map(Rc::new)))),
    member("last", &[LIST], Optional, |_, args| {
        let list = one(args)?;
        Ok(Val::Optional(list.len().checked_sub(1).and_then(|at| list.get(at)).map(Rc::new)))
    }),
    member("isSorted", &[LIST], Bool, is_sorted),
    member("sum", &[LIST], Dyn, sum),
    member("min", &[LIST], Dyn, |cx, args| extreme(cx, args, Comparison::Less)),
    member("max", &[LIST], Dyn, |cx, args| extreme(cx, args, Comparison::Greater)),
    member("indexOf", &[LIST, Dyn], Int, |cx, args| position(cx, args, false)),
    member("lastIndexOf", &[LIST, Dyn], Int, |cx, args| position(cx, args, true)),
];

fn one<'a, 't>(args: &'a [Val<'t>]) -> Result<&'a List<'t>, Fault> {
    match args {
        [Val::List(list), ..] => Ok(list),
        _ => Err(unfit(args)),
    }
}

/// The elements, paid for.
fn copied<'t>(meter: &Meter, list: &List<'t>) -> Result<Vec<Val<'t>>, Fault> {
    meter.make(list.len() * size_of::<Val<'_>>())?;
    meter.walk(list.len())?;
    Ok(list.iter().collect())
}

/// Values in the order of their keys, which have to be of one type that has an order.
pub(in super::super) fn sorted<'t>(
    meter: &Meter,
    mut keyed: Vec<(Val<'t>, Val<'t>)>,
) -> Result<Val<'t>, Fault> {
    let types: Vec<Ty> = keyed.iter().map(|(key, _)| key.ty()).collect();
    if let Some(first) = types.first()
        && let Some(other) = types.iter().find(|ty| *ty != first)
    {
        return Err(Fault::NoOverload("sort", vec![*first, *other]));
    }
    let mut trouble = None;
    keyed.sort_by(|(a, _), (b, _)| match trouble {
        Some(_) => Ordering::Equal,
        None => ops::order(meter, "sort", a, b).unwrap_or_else(|fault| {
            trouble = Some(fault);
            Ordering::Equal
        }),
    });
    match trouble {
        Some(fault) => Err(fault),
        None => Ok(Val::list(keyed.into_iter().map(|(_, value)| value).collect())),
    }
}

fn slice<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else { return Err(unfit(args)) };
    let fits = 0 <= *start && start <= end && *end <= list.len() as i64;
    if !fits {
        return Err(Fault::words(format!("cannot slice({start}, {end}), list is length {}", list.len())));
    }
    let items = copied(cx.meter, list)?;
    Ok(Val::list(items[*start as usize..*end as usize].to_vec()))
}

fn flatten<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let levels = match args {
        [_] => 1,
        [_, Val::Int(levels)] if *levels >= 0 => *levels,
        [_, Val::Int(_)] => return Err(Fault::words("level must be non-negative")),
        _ => return Err(unfit(args)),
    };
    let mut flat = copied(cx.meter, one(args)?)?;
    for _ in 0..levels {
        if !flat.iter().any(|item| matches!(item, Val::List(_))) {
            break;
        }
        let mut next = Vec::with_capacity(flat.len());
        for item in flat {
            match item {
                Val::List(inner) => next.extend(copied(cx.meter, &inner)?),
                other => {
                    cx.meter.walk(1)?;
                    next.push(other);
                }
            }
        }
        flat = next;
    }
    Ok(Val::list(flat))
}

fn distinct<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let mut kept: Vec<Val<'t>> = Vec::new();
    for item in copied(cx.meter, one(args)?)? {
        let mut fresh = true;
        for known in &kept {
            cx.meter.walk(1)?;
            if ops::equal(cx.meter, known, &item)? {
                fresh = false;
                break;
            }
        }
        if fresh {
            kept.push(item);
        }
    }
    Ok(Val::list(kept))
}

fn range<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::Int(end)] = args else { return Err(unfit(args)) };
    let count = usize::try_from(*end).unwrap_or(0);
    cx.meter.walk(count)?;
    cx.meter.make(count.saturating_mul(size_of::<Val<'_>>()))?;
    Ok(Val::list((0..*end).map(Val::Int).collect()))
}

fn is_sorted<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let items = comparable(cx, args, "isSorted")?;
    for pair in items.windows(2) {
        if beats(cx.meter, "isSorted", Ordering::Greater, &pair[0], &pair[1])? {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn sum<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let mut items = copied(cx.meter, one(args)?)?.into_iter();
    let Some(first) = items.next() else { return Ok(Val::Int(0)) };
    if !first.ty().number() && first.ty() != Ty::Span {
        return Err(Fault::NoOverload("sum", vec![first.ty()]));
    }
    items.try_fold(first, |sum, item| ops::arithmetic(cx.meter, Operator::Add, sum, item))
}

fn extreme<'t>(cx: &Cx<'_>, args: &[Val<'t>], better: Comparison) -> Result<Val<'t>, Fault> {
    let name = if better == Comparison::Less { "min" } else { "max" };
    let mut items = comparable(cx, args, name)?.into_iter();
    let Some(mut best) = items.next() else {
        return Err(Fault::words(format!("{name} called on empty list")));
    };
    let wanted = if better == Comparison::Less { Ordering::Less } else { Ordering::Greater };
    for item in items {
        if beats(cx.meter, name, wanted, &item, &best)? {
            best = item;
        }
    }
    Ok(best)
}

/// The elements, each of which has an order among its like.
fn comparable<'t>(cx: &Cx<'_>, args: &[Val<'t>], name: &'static str) -> Result<Vec<Val<'t>>, Fault> {
    let items = copied(cx.meter, one(args)?)?;
    match items.iter().find(|item| !ops::ordered(item)) {
        Some(other) => Err(Fault::NoOverload(name, vec![other.ty()])),
        None => Ok(items),
    }
}

/// Is their order the wanted one? Kubernetes passes over two of different types.
fn beats(
    meter: &Meter,
    name: &'static str,
    wanted: Ordering,
    a: &Val<'_>,
    b: &Val<'_>,
) -> Result<bool, Fault> {
    match ops::order(meter, name, a, b) {
        Ok(order) => Ok(order == wanted),
        Err(Fault::NoOverload(..)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn position<'t>(cx: &Cx<'_>, args: &[Val<'t>], last: bool) -> Result<Val<'t>, Fault> {
    let [Val::List(list), wanted] = args else { return Err(unfit(args)) };
    let count = list.len();
    for step in 0..count {
        let at = if last { count - 1 - step } else { step };
        cx.meter.walk(1)?;
        if let Some(item) = list.get(at)
            && ops::equal(cx.meter, &item, wanted)?
        {
            return Ok(Val::Int(at as i64));
        }
    }
    Ok(Val::Int(-1))
}

/// Is a value among the elements?
pub(in super::super) fn contains(meter: &Meter, list: &List<'_>, wanted: &Val<'_>) -> Result<bool, Fault> {
    sets::has(meter, list, wanted)
}
