//! What a macro accumulates while it iterates over a list or the keys of a map.

use crate::eval_result::ValueResult;
use crate::fault::EvalFault;
use crate::functions::lists;
use crate::meter::CostMeter;
use crate::node::LoopKind;
use crate::value::{CelList, CelValue};

/// Result of one iteration.
pub(crate) enum LoopStep<'t> {
    Next,
    /// Adds the element to the result.
    Include,
    Done(CelValue<'t>),
}

/// State that a loop accumulates.
pub(crate) struct LoopState<'t> {
    pub(crate) kind: LoopKind,
    pub(crate) values: Vec<CelValue<'t>>,
    pub(crate) entries: Vec<(CelValue<'t>, CelValue<'t>)>,
    pub(crate) count: u32,
    pub(crate) trouble: Option<EvalFault>,
}

impl<'t> LoopState<'t> {
    pub(crate) fn new(kind: LoopKind) -> Self {
        LoopState { kind, values: Vec::new(), entries: Vec::new(), count: 0, trouble: None }
    }

    pub(crate) fn finish_loop(self, meter: &CostMeter) -> ValueResult<'t> {
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

pub(crate) fn expect_bool(value: CelValue<'_>) -> std::result::Result<bool, EvalFault> {
    match value {
        CelValue::Bool(flag) => Ok(flag),
        other => Err(EvalFault::NoOverload("predicate", vec![other.cel_type()])),
    }
}
