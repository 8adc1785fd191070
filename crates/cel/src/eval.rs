//! Evaluation: a walk over the resolved expression that charges every step.

use std::rc::Rc;

use crate::cel_type::CelType;
use crate::fault::EvalFault;
use crate::functions::lists;
use crate::json_tree::JsonFields;
use crate::meter::CostMeter;
use crate::node::{CelFunctionCall, ExprNode};
use crate::overload::CelCallContext;
use crate::value::{CelMap, CelText, CelValue};
use crate::value_ops;

pub(crate) type ValueResult<'t> = std::result::Result<CelValue<'t>, EvalFault>;

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
                self.select_field(&operand, field)
            }
            ExprNode::Has(operand, field) => {
                let operand = self.eval_node(operand)?;
                self.find_field(&operand, field).map(|found| CelValue::Bool(found.is_some()))
            }
            ExprNode::OptSelect(operand, field) => match optional_content(self.eval_node(operand)?) {
                Some(operand) => Ok(CelValue::Optional(self.find_field(&operand, field)?.map(Rc::new))),
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
                self.eval_membership(&a, &b)
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
            ExprNode::TopLevelField(name) => match self.object.get(name) {
                Some(field) => CelValue::from_tree(field),
                None => return Err(EvalFault::NoField(name.clone())),
            },
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

    /// Returns a field that may be absent; absent for a value that has no fields at all.
    fn find_field(
        &self,
        operand: &CelValue<'t>,
        field: &'t str,
    ) -> std::result::Result<Option<CelValue<'t>>, EvalFault> {
        match operand {
            CelValue::Map(map @ CelMap::Borrowed(_)) => Ok(map.get_field(field)),
            CelValue::Map(map) => {
                value_ops::lookup_key(self.meter, map, &CelValue::Text(CelText::Borrowed(field)))
            }
            CelValue::List(_) => Err(EvalFault::from_message("unsupported index type 'string' in list")),
            CelValue::Optional(Some(inner)) => self.find_field(inner, field),
            _ => Ok(None),
        }
    }

    fn select_field(&self, operand: &CelValue<'t>, field: &'t str) -> ValueResult<'t> {
        match operand {
            CelValue::Optional(None) => Ok(CelValue::Optional(None)),
            CelValue::Optional(Some(value)) => {
                Ok(CelValue::Optional(self.find_field(value, field)?.map(Rc::new)))
            }
            other => self.find_field(other, field)?.ok_or_else(|| EvalFault::NoKey(field.into())),
        }
    }

    /// Returns the element at an index, if there is one; an error if the value is no valid index.
    fn find_index(
        &self,
        operand: &CelValue<'t>,
        index: &CelValue<'t>,
    ) -> std::result::Result<Option<CelValue<'t>>, EvalFault> {
        match (operand, index) {
            (
                CelValue::Map(map),
                CelValue::Text(_)
                | CelValue::Bool(_)
                | CelValue::Int(_)
                | CelValue::Uint(_)
                | CelValue::Double(_),
            ) => value_ops::lookup_key(self.meter, map, index),
            (CelValue::Map(_), other) => {
                Err(EvalFault::from_message(format!("unsupported key type: {}", other.cel_type().name())))
            }
            (CelValue::List(list), index) => {
                let at = match index {
                    CelValue::Int(at) => usize::try_from(*at).ok(),
                    CelValue::Uint(at) => usize::try_from(*at).ok(),
                    CelValue::Double(at) if at.fract() == 0.0 => whole_index(*at),
                    CelValue::Double(_) => {
                        return Err(EvalFault::from_message("unsupported index value in list: a fraction"));
                    }
                    other => {
                        let ty = other.cel_type().name();
                        return Err(EvalFault::from_message(format!(
                            "unsupported index type '{ty}' in list"
                        )));
                    }
                };
                Ok(at.and_then(|at| list.get(at)))
            }
            _ => Ok(None),
        }
    }

    fn eval_index(&mut self, operand: &'t ExprNode, index: &'t ExprNode) -> ValueResult<'t> {
        let node = index;
        let (operand, index) = (self.eval_node(operand)?, self.eval_node(index)?);
        match &operand {
            CelValue::Optional(None) => Ok(CelValue::Optional(None)),
            CelValue::Optional(Some(value)) => {
                Ok(CelValue::Optional(self.find_index(value, &index)?.map(Rc::new)))
            }
            other => self.find_index(other, &index)?.ok_or_else(|| absent_element(&operand, node)),
        }
    }

    fn eval_optional_index(&mut self, operand: &'t ExprNode, index: &'t ExprNode) -> ValueResult<'t> {
        let (operand, index) = (self.eval_node(operand)?, self.eval_node(index)?);
        match optional_content(operand) {
            Some(operand) => Ok(CelValue::Optional(self.find_index(&operand, &index)?.map(Rc::new))),
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

    fn eval_membership(&self, item: &CelValue<'t>, container: &CelValue<'t>) -> ValueResult<'t> {
        match container {
            CelValue::List(list) => lists::list_contains(self.meter, list, item).map(CelValue::Bool),
            CelValue::Map(map) => {
                value_ops::lookup_key(self.meter, map, item).map(|found| CelValue::Bool(found.is_some()))
            }
            other => Err(EvalFault::NoOverload("@in", vec![item.cel_type(), other.cel_type()])),
        }
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
                self.meter.charge_steps(1 + made.len() / 4)?;
                made.retain(|(known, _)| {
                    known.cel_type() != key.cel_type() || !crate::value::is_same_key(known, &key)
                });
                self.insert_entry(&mut made, key, value)?;
            }
        }
        Ok(CelValue::from_entries(made))
    }

    /// Inserts a key that is not there yet.
    pub(crate) fn insert_entry(
        &self,
        made: &mut Vec<(CelValue<'t>, CelValue<'t>)>,
        key: CelValue<'t>,
        value: CelValue<'t>,
    ) -> std::result::Result<(), EvalFault> {
        if !matches!(key.cel_type(), CelType::Text | CelType::Bool | CelType::Int | CelType::Uint) {
            return Err(EvalFault::from_message(format!("unsupported key type: {}", key.cel_type().name())));
        }
        self.meter.charge_steps(1 + made.len() / 4)?;
        self.meter.charge_allocation(2 * size_of::<CelValue<'_>>())?;
        if made
            .iter()
            .any(|(known, _)| known.cel_type() == key.cel_type() && crate::value::is_same_key(known, &key))
        {
            return Err(EvalFault::from_message("the map has a duplicate key"));
        }
        made.push((key, value));
        Ok(())
    }

    /// Charges the texts that a function may read to their ends, so that no function can forget to.
    fn charge_arguments(&self, args: &[CelValue<'t>]) -> std::result::Result<(), EvalFault> {
        let sizes = args.iter().map(|arg| match arg {
            CelValue::Text(text) => text.len(),
            CelValue::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        self.meter.charge_steps(sizes.sum::<usize>() / 64)
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
                self.charge_arguments(&args)?;
                (function.call)(&cx, &args)
            }
            None => Err(EvalFault::NoOverload(call.name, args.iter().map(CelValue::cel_type).collect())),
        }
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

/// Returns the index that a whole number means; `None` below 0. One beyond every list saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; the cast saturates"
)]
fn whole_index(at: f64) -> Option<usize> {
    (at >= 0.0).then_some(at as usize)
}
