//! Evaluation: a walk over the resolved expression that charges every step.

use std::rc::Rc;

use crate::element_access;
use crate::eval_result::ValueResult;
use crate::fault::EvalFault;
use crate::json_tree::JsonFields;
use crate::loops::{LoopState, LoopStep, expect_bool};
use crate::map_keys;
use crate::meter::CostMeter;
use crate::node::{CelFunctionCall, CelMacroLoop, ExprNode, LoopKind};
use crate::number_conversions::int_from_count;
use crate::overload::CelCallContext;
use crate::value::{CelMap, CelText, CelValue};
use crate::value_ops;

/// State of one evaluation: the object, its budget, and the variables of the enclosing macros.
pub(crate) struct EvalFrame<'t> {
    pub(crate) object: &'t JsonFields<'t>,
    pub(crate) meter: &'t CostMeter,
    pub(crate) locals: Vec<CelValue<'t>>,
}

impl<'t> EvalFrame<'t> {
    pub(crate) fn eval_node(&mut self, node: &'t ExprNode) -> ValueResult<'t> {
        self.meter.charge_steps(1)?;
        match node {
            ExprNode::Select(operand, field) => {
                let operand = self.eval_node(operand)?;
                element_access::select_field(self.meter, &operand, field)
            }
            ExprNode::Has(operand, field) => {
                let operand = self.eval_node(operand)?;
                element_access::find_field(self.meter, &operand, field)
                    .map(|found| CelValue::Bool(found.is_some()))
            }
            ExprNode::OptSelect(operand, field) => match optional_content(self.eval_node(operand)?) {
                Some(operand) => Ok(CelValue::Optional(
                    element_access::find_field(self.meter, &operand, field)?.map(Rc::new),
                )),
                None => Ok(CelValue::Optional(None)),
            },
            ExprNode::Index(nodes) => self.eval_index(&nodes[0], &nodes[1]),
            ExprNode::OptIndex(nodes) => self.eval_optional_index(&nodes[0], &nodes[1]),
            ExprNode::Not(operand) => match self.eval_node(operand)? {
                CelValue::Bool(flag) => Ok(CelValue::Bool(!flag)),
                other => Err(EvalFault::NoOverload("!_", vec![other.cel_type()])),
            },
            ExprNode::Negate(operand) => value_ops::negate_value(&self.eval_node(operand)?),
            ExprNode::And(terms) => self.eval_connective(terms, false),
            ExprNode::Or(terms) => self.eval_connective(terms, true),
            ExprNode::If(nodes) => match self.eval_node(&nodes[0])? {
                CelValue::Bool(true) => self.eval_node(&nodes[1]),
                CelValue::Bool(false) => self.eval_node(&nodes[2]),
                other => Err(EvalFault::NoOverload("_?_:_", vec![other.cel_type()])),
            },
            ExprNode::Equal(nodes, same) => {
                let (a, b) = self.eval_pair(nodes)?;
                Ok(CelValue::Bool(value_ops::values_equal(self.meter, &a, &b)? == *same))
            }
            ExprNode::Compare(how, nodes) => {
                let (a, b) = self.eval_pair(nodes)?;
                value_ops::evaluate_comparison(self.meter, *how, &a, &b).map(CelValue::Bool)
            }
            ExprNode::Arithmetic(op, nodes) => {
                let (a, b) = self.eval_pair(nodes)?;
                value_ops::apply_arithmetic(self.meter, *op, a, b)
            }
            ExprNode::In(nodes) => {
                let (a, b) = self.eval_pair(nodes)?;
                element_access::eval_membership(self.meter, &a, &b)
            }
            ExprNode::List(items) => self.eval_list(items),
            ExprNode::Map(entries) => self.eval_map(entries),
            ExprNode::Call(call) => self.eval_call(call),
            ExprNode::Loop(walk) => self.eval_loop(walk),
            ExprNode::Bind(nodes) => {
                let value = self.eval_node(&nodes[0])?;
                self.eval_with_variable(value, &nodes[1])
            }
            ExprNode::OptMap(nodes, flat) => self.eval_opt_map(nodes, *flat),
            leaf => self.eval_leaf(leaf),
        }
    }

    /// Evaluates a node that needs no computation.
    fn eval_leaf(&self, node: &'t ExprNode) -> ValueResult<'t> {
        Ok(match node {
            ExprNode::Bool(flag) => CelValue::Bool(*flag),
            ExprNode::Int(number) => CelValue::Int(*number),
            ExprNode::Uint(number) => CelValue::Uint(*number),
            ExprNode::Double(number) => CelValue::Double(*number),
            ExprNode::Text(text) => CelValue::Text(CelText::Borrowed(text)),
            ExprNode::Bytes(bytes) => {
                self.meter.charge_allocation(bytes.len())?;
                CelValue::Bytes(Rc::from(&**bytes))
            }
            ExprNode::Type(name) => CelValue::Type(name),
            ExprNode::WholeObject => CelValue::Map(CelMap::Borrowed(self.object)),
            ExprNode::Local(at) => self.locals[*at].clone(),
            ExprNode::TopLevelField(name) => {
                let field = map_keys::lookup_field(self.meter, self.object, name)?;
                field.ok_or_else(|| EvalFault::NoField(name.clone()))?
            }
            _ => CelValue::Null,
        })
    }

    fn eval_pair(
        &mut self,
        nodes: &'t [ExprNode; 2],
    ) -> std::result::Result<(CelValue<'t>, CelValue<'t>), EvalFault> {
        Ok((self.eval_node(&nodes[0])?, self.eval_node(&nodes[1])?))
    }

    fn eval_opt_map(&mut self, nodes: &'t [ExprNode; 2], flat: bool) -> ValueResult<'t> {
        let value = match self.eval_node(&nodes[0])? {
            CelValue::Optional(None) => return Ok(CelValue::Optional(None)),
            CelValue::Optional(Some(value)) => (*value).clone(),
            other => return Err(EvalFault::NoOverload("optMap", vec![other.cel_type()])),
        };
        match self.eval_with_variable(value, &nodes[1])? {
            mapped if !flat => Ok(mapped.into_optional()),
            mapped @ CelValue::Optional(_) => Ok(mapped),
            other => Err(EvalFault::NoOverload("optFlatMap", vec![other.cel_type()])),
        }
    }

    /// Evaluates a node with one more variable.
    fn eval_with_variable(&mut self, variable: CelValue<'t>, node: &'t ExprNode) -> ValueResult<'t> {
        self.locals.push(variable);
        let result = self.eval_node(node);
        self.locals.pop();
        result
    }

    fn eval_index(&mut self, operand: &'t ExprNode, index: &'t ExprNode) -> ValueResult<'t> {
        let node = index;
        let (operand, index) = (self.eval_node(operand)?, self.eval_node(index)?);
        match &operand {
            CelValue::Optional(None) => Ok(CelValue::Optional(None)),
            CelValue::Optional(Some(value)) => {
                Ok(CelValue::Optional(element_access::find_index(self.meter, value, &index)?.map(Rc::new)))
            }
            other => element_access::find_index(self.meter, other, &index)?
                .ok_or_else(|| absent_element(&operand, node)),
        }
    }

    fn eval_optional_index(&mut self, operand: &'t ExprNode, index: &'t ExprNode) -> ValueResult<'t> {
        let (operand, index) = (self.eval_node(operand)?, self.eval_node(index)?);
        match optional_content(operand) {
            Some(operand) => {
                Ok(CelValue::Optional(element_access::find_index(self.meter, &operand, &index)?.map(Rc::new)))
            }
            None => Ok(CelValue::Optional(None)),
        }
    }

    /// Evaluates `||` if `decides` is true, `&&` if it is false: one deciding term outweighs errors in the others.
    fn eval_connective(&mut self, terms: &'t [ExprNode], decides: bool) -> ValueResult<'t> {
        let mut trouble = None;
        for term in terms {
            match self.eval_node(term) {
                Ok(CelValue::Bool(flag)) if flag == decides => return Ok(CelValue::Bool(decides)),
                Ok(CelValue::Bool(_)) => {}
                Ok(other) => {
                    let name = if decides { "_||_" } else { "_&&_" };
                    trouble.get_or_insert(EvalFault::NoOverload(name, vec![other.cel_type()]));
                }
                Err(limit @ EvalFault::Limit(_)) => return Err(limit),
                Err(fault) => {
                    trouble.get_or_insert(fault);
                }
            }
        }
        trouble.map_or(Ok(CelValue::Bool(!decides)), Err)
    }

    fn eval_list(&mut self, items: &'t [(ExprNode, bool)]) -> ValueResult<'t> {
        self.meter.charge_allocation(items.len() * size_of::<CelValue<'_>>())?;
        let mut made = Vec::with_capacity(items.len());
        for (item, optional) in items {
            made.extend(unwrap_optional_element(self.eval_node(item)?, *optional)?);
        }
        Ok(CelValue::from_items(made))
    }

    fn eval_map(&mut self, entries: &'t [(ExprNode, ExprNode, bool)]) -> ValueResult<'t> {
        self.meter.charge_allocation(entries.len() * 2 * size_of::<CelValue<'_>>())?;
        let mut made: Vec<(CelValue<'t>, CelValue<'t>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.eval_node(key)?;
            let value = self.eval_node(value)?;
            // The last of duplicate keys wins; keys of different types are different keys.
            if let Some(value) = unwrap_optional_element(value, *optional)? {
                if let Some(at) = map_keys::find_made_key(self.meter, &made, &key)? {
                    made.remove(at);
                }
                element_access::insert_entry(self.meter, &mut made, key, value)?;
            }
        }
        Ok(CelValue::from_entries(made))
    }

    fn eval_call(&mut self, call: &'t CelFunctionCall) -> ValueResult<'t> {
        let cx = CelCallContext { meter: self.meter, pattern: call.pattern.as_ref() };
        let mut args = Vec::with_capacity(call.args.len());
        for (at, arg) in call.args.iter().enumerate() {
            args.push(self.eval_node(arg)?);
            if let (true, 0, Some(CelValue::Optional(Some(value)))) = (call.lazy, at, args.first()) {
                return Ok(if call.name == "or" {
                    CelValue::Optional(Some(Rc::clone(value)))
                } else {
                    (**value).clone()
                });
            }
        }
        match call.overloads.iter().find(|function| function.accepts_args(&args)) {
            Some(function) => {
                element_access::charge_arguments(self.meter, &args)?;
                (function.call)(&cx, &args)
            }
            None => Err(EvalFault::NoOverload(call.name, args.iter().map(CelValue::cel_type).collect())),
        }
    }

    fn eval_loop(&mut self, walk: &'t CelMacroLoop) -> ValueResult<'t> {
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
                LoopStep::Include => made.values.extend(variables),
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
                    Some(key) if pairs => map_keys::lookup_key(self.meter, map, key)?,
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
                    return Ok(LoopStep::Include);
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
                element_access::insert_entry(self.meter, &mut made.entries, key, value)?;
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
                && let Some(value) = map_keys::lookup_key(self.meter, &map, &key)?
            {
                element_access::insert_entry(self.meter, &mut made.entries, key, value)?;
            }
        }
        Ok(())
    }
}

/// The error for an element that is not there. It quotes the index only where the expression itself spells it out: a
/// computed one is a value of the object.
fn absent_element(operand: &CelValue<'_>, index: &ExprNode) -> EvalFault {
    let spelled = match index {
        ExprNode::Text(key) => Some(key.to_string()),
        ExprNode::Int(at) => Some(at.to_string()),
        _ => None,
    };
    match (operand, spelled) {
        (CelValue::List(_), Some(at)) => EvalFault::from_message(format!("index out of bounds: {at}")),
        (CelValue::List(_), None) => EvalFault::from_message("index out of bounds"),
        (_, Some(key)) => EvalFault::NoKey(key.into()),
        (_, None) => EvalFault::NoKey("(computed)".into()),
    }
}

/// Returns a value; `None` for an empty optional that may be left out.
fn unwrap_optional_element(
    value: CelValue<'_>,
    optional: bool,
) -> std::result::Result<Option<CelValue<'_>>, EvalFault> {
    match (optional, value) {
        (false, value) => Ok(Some(value)),
        (true, CelValue::Optional(inner)) => Ok(inner.map(|inner| (*inner).clone())),
        (true, other) => Err(EvalFault::NoOverload("optional", vec![other.cel_type()])),
    }
}

/// Returns the value in an optional; a value that is not optional is returned as it is.
fn optional_content(value: CelValue<'_>) -> Option<CelValue<'_>> {
    match value {
        CelValue::Optional(inner) => inner.map(|inner| (*inner).clone()),
        other => Some(other),
    }
}
