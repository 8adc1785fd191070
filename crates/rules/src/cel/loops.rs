//! The macros that walk a list, or the keys of a map.

use super::eval::{Frame, Result};
use super::functions::lists;
use super::meter::Meter;
use super::node::{Loop, LoopKind, Node};
use super::ops;
use super::value::{Fault, List, Val};

impl<'t> Frame<'t> {
    pub(super) fn walk(&mut self, walk: &'t Loop) -> Result<'t> {
        let range = self.eval(&walk.range)?;
        let count = match &range {
            Val::List(list) => list.len(),
            Val::Map(map) => map.len(),
            other => {
                return Err(Fault::words(format!("got '{}', expected iterable type", other.ty().name())));
            }
        };
        let mut made = Made::new(walk.kind);
        for at in 0..count {
            self.meter.walk(1)?;
            let outside = self.locals.len();
            self.enter(&range, at, walk.pairs)?;
            let went = self.turn(walk, &mut made);
            let variables = self.locals.drain(outside..).next();
            match went? {
                Turn::Done(value) => return Ok(value),
                Turn::Keep => made.values.extend(variables),
                Turn::Next => {}
            }
        }
        made.finish(self.meter)
    }

    /// Puts the variables of one turn on top.
    fn enter(&mut self, range: &Val<'t>, at: usize, pairs: bool) -> std::result::Result<(), Fault> {
        let (first, second) = match range {
            Val::List(list) if pairs => (Some(Val::Int(at as i64)), list.get(at)),
            Val::List(list) => (list.get(at), None),
            Val::Map(map) => {
                let key = map.key(at);
                let value = match &key {
                    Some(key) if pairs => ops::found(self.meter, map, key)?,
                    _ => None,
                };
                (key, value)
            }
            _ => (None, None),
        };
        self.locals.extend(first);
        self.locals.extend(second);
        Ok(())
    }

    fn turn(&mut self, walk: &'t Loop, made: &mut Made<'t>) -> std::result::Result<Turn<'t>, Fault> {
        if let Some(filter) = &walk.filter
            && !truth(self.eval(filter)?)?
        {
            return Ok(Turn::Next);
        }
        match walk.kind {
            LoopKind::All | LoopKind::Exists => {
                let decides = walk.kind == LoopKind::Exists;
                match self.eval(&walk.body).and_then(truth) {
                    Ok(flag) if flag == decides => return Ok(Turn::Done(Val::Bool(decides))),
                    Ok(_) => {}
                    Err(limit @ Fault::Limit(_)) => return Err(limit),
                    // A later element that decides outweighs it.
                    Err(fault) => {
                        made.trouble.get_or_insert(fault);
                    }
                }
            }
            LoopKind::ExistsOne => made.count += u32::from(truth(self.eval(&walk.body)?)?),
            LoopKind::Filter => {
                if truth(self.eval(&walk.body)?)? {
                    self.meter.make(size_of::<Val<'_>>())?;
                    return Ok(Turn::Keep);
                }
            }
            LoopKind::Map => {
                let value = self.eval(&walk.body)?;
                self.meter.make(size_of::<Val<'_>>())?;
                made.values.push(value);
            }
            LoopKind::SortBy => {
                let key = self.eval(&walk.body)?;
                self.meter.make(2 * size_of::<Val<'_>>())?;
                let value = self.locals.last().cloned().unwrap_or(Val::Null);
                made.entries.push((key, value));
            }
            LoopKind::TransformMap => {
                let value = self.eval(&walk.body)?;
                let key = self.locals[self.locals.len() - 2].clone();
                self.insert(&mut made.entries, key, value)?;
            }
            LoopKind::TransformMapEntry => self.entries(&walk.body, made)?,
        }
        Ok(Turn::Next)
    }

    /// Adds the entries of the map that one turn yields.
    fn entries(&mut self, body: &'t Node, made: &mut Made<'t>) -> std::result::Result<(), Fault> {
        let map = match self.eval(body)? {
            Val::Map(map) => map,
            other => return Err(Fault::NoOverload("transformMapEntry", vec![other.ty()])),
        };
        for at in 0..map.len() {
            if let Some(key) = map.key(at)
                && let Some(value) = ops::found(self.meter, &map, &key)?
            {
                self.insert(&mut made.entries, key, value)?;
            }
        }
        Ok(())
    }
}

/// How one turn of a loop went.
enum Turn<'t> {
    Next,
    /// Keep the element.
    Keep,
    Done(Val<'t>),
}

/// What a loop has so far.
struct Made<'t> {
    kind: LoopKind,
    values: Vec<Val<'t>>,
    entries: Vec<(Val<'t>, Val<'t>)>,
    count: u32,
    trouble: Option<Fault>,
}

impl<'t> Made<'t> {
    fn new(kind: LoopKind) -> Self {
        Made { kind, values: Vec::new(), entries: Vec::new(), count: 0, trouble: None }
    }

    fn finish(self, meter: &Meter) -> Result<'t> {
        if let Some(fault) = self.trouble {
            return Err(fault);
        }
        match self.kind {
            LoopKind::All => Ok(Val::Bool(true)),
            LoopKind::Exists => Ok(Val::Bool(false)),
            LoopKind::ExistsOne => Ok(Val::Bool(self.count == 1)),
            LoopKind::Filter | LoopKind::Map => Ok(Val::List(List::Made(self.values.into()))),
            LoopKind::SortBy => lists::sorted(meter, self.entries),
            LoopKind::TransformMap | LoopKind::TransformMapEntry => Ok(Val::map(self.entries)),
        }
    }
}

fn truth(value: Val<'_>) -> std::result::Result<bool, Fault> {
    match value {
        Val::Bool(flag) => Ok(flag),
        other => Err(Fault::NoOverload("predicate", vec![other.ty()])),
    }
}
