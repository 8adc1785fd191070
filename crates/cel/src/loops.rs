//! Evaluates the macros that iterate over a list or the keys of a map.

use crate::eval::{EvalFrame, ValueResult};
use crate::fault::EvalFault;
use crate::functions::lists;
use crate::meter::CostMeter;
use crate::node::{CelMacroLoop, ExprNode, LoopKind};
use crate::number_conversions::int_from_count;
use crate::value::{CelList, CelValue};
use crate::value_ops;

impl<'t> EvalFrame<'t> {
    pub(crate) fn eval_loop(&mut self, walk: &'t CelMacroLoop) -> ValueResult<'t> {
        let range = self.eval_node(&walk.range)?;
        let count = match &range {
            CelValue::List(list) => list.len(),
            CelValue::Map(map) => map.len(),
            other => {
                return Err(EvalFault::from_message(format!(
                    "got '{}', expected iterable type",
                    other.cel_type().name()
                )));
            }
        };
        let mut made = LoopState::new(walk.kind);
        for at in 0..count {
            self.meter.charge_steps(1)?;
            let outside = self.locals.len();
            self.push_loop_variables(&range, at, walk.pairs)?;
            let went = self.eval_iteration(walk, &mut made);
            let variables = self.locals.drain(outside..).next();
            match went? {
                LoopStep::Done(value) => return Ok(value),
                LoopStep::Keep => made.values.extend(variables),
                LoopStep::Next => {}
            }
        }
        made.finish_loop(self.meter)
    }

    /// Pushes the variables of one iteration.
    fn push_loop_variables(
        &mut self,
        range: &CelValue<'t>,
        at: usize,
        pairs: bool,
    ) -> std::result::Result<(), EvalFault> {
        let (first, second) = match range {
            CelValue::List(list) if pairs => (Some(CelValue::Int(int_from_count(at))), list.get(at)),
            CelValue::List(list) => (list.get(at), None),
            CelValue::Map(map) => {
                let key = map.key_at(at);
                let value = match &key {
                    Some(key) if pairs => value_ops::lookup_key(self.meter, map, key)?,
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

    fn eval_iteration(
        &mut self,
        walk: &'t CelMacroLoop,
        made: &mut LoopState<'t>,
    ) -> std::result::Result<LoopStep<'t>, EvalFault> {
        if let Some(filter) = &walk.filter
            && !expect_bool(self.eval_node(filter)?)?
        {
            return Ok(LoopStep::Next);
        }
        match walk.kind {
            LoopKind::All | LoopKind::Exists => {
                let decides = walk.kind == LoopKind::Exists;
                match self.eval_node(&walk.body).and_then(expect_bool) {
                    Ok(flag) if flag == decides => return Ok(LoopStep::Done(CelValue::Bool(decides))),
                    Ok(_) => {}
                    Err(limit @ EvalFault::Limit(_)) => return Err(limit),
                    // A later element that decides outweighs the error.
                    Err(fault) => {
                        made.trouble.get_or_insert(fault);
                    }
                }
            }
            LoopKind::ExistsOne => made.count += u32::from(expect_bool(self.eval_node(&walk.body)?)?),
            LoopKind::Filter => {
                if expect_bool(self.eval_node(&walk.body)?)? {
                    self.meter.charge_allocation(size_of::<CelValue<'_>>())?;
                    return Ok(LoopStep::Keep);
                }
            }
            LoopKind::Map => {
                let value = self.eval_node(&walk.body)?;
                self.meter.charge_allocation(size_of::<CelValue<'_>>())?;
                made.values.push(value);
            }
            LoopKind::SortBy => {
                let key = self.eval_node(&walk.body)?;
                self.meter.charge_allocation(2 * size_of::<CelValue<'_>>())?;
                let value = self.locals.last().cloned().unwrap_or(CelValue::Null);
                made.entries.push((key, value));
            }
            LoopKind::TransformMap => {
                let value = self.eval_node(&walk.body)?;
                let key = self.locals[self.locals.len() - 2].clone();
                self.insert_entry(&mut made.entries, key, value)?;
            }
            LoopKind::TransformMapEntry => self.collect_entries(&walk.body, made)?,
        }
        Ok(LoopStep::Next)
    }

    /// Adds the entries of the map that one iteration yields.
    fn collect_entries(
        &mut self,
        body: &'t ExprNode,
        made: &mut LoopState<'t>,
    ) -> std::result::Result<(), EvalFault> {
        let map = match self.eval_node(body)? {
            CelValue::Map(map) => map,
            other => return Err(EvalFault::NoOverload("transformMapEntry", vec![other.cel_type()])),
        };
        for at in 0..map.len() {
            if let Some(key) = map.key_at(at)
                && let Some(value) = value_ops::lookup_key(self.meter, &map, &key)?
            {
                self.insert_entry(&mut made.entries, key, value)?;
            }
        }
        Ok(())
    }
}

/// Result of one iteration.
enum LoopStep<'t> {
    Next,
    /// Keep the element.
    Keep,
    Done(CelValue<'t>),
}

/// State that a loop accumulates.
struct LoopState<'t> {
    kind: LoopKind,
    values: Vec<CelValue<'t>>,
    entries: Vec<(CelValue<'t>, CelValue<'t>)>,
    count: u32,
    trouble: Option<EvalFault>,
}

impl<'t> LoopState<'t> {
    fn new(kind: LoopKind) -> Self {
        LoopState { kind, values: Vec::new(), entries: Vec::new(), count: 0, trouble: None }
    }

    fn finish_loop(self, meter: &CostMeter) -> ValueResult<'t> {
        if let Some(fault) = self.trouble {
            return Err(fault);
        }
        match self.kind {
            LoopKind::All => Ok(CelValue::Bool(true)),
            LoopKind::Exists => Ok(CelValue::Bool(false)),
            LoopKind::ExistsOne => Ok(CelValue::Bool(self.count == 1)),
            LoopKind::Filter | LoopKind::Map => Ok(CelValue::List(CelList::Shared(self.values.into()))),
            LoopKind::SortBy => lists::sort_by_keys(meter, self.entries),
            LoopKind::TransformMap | LoopKind::TransformMapEntry => Ok(CelValue::from_entries(self.entries)),
        }
    }
}

fn expect_bool(value: CelValue<'_>) -> std::result::Result<bool, EvalFault> {
    match value {
        CelValue::Bool(flag) => Ok(flag),
        other => Err(EvalFault::NoOverload("predicate", vec![other.cel_type()])),
    }
}
