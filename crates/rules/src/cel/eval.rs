//! Evaluation: a walk over the resolved expression that pays for each step.

use std::rc::Rc;

use super::functions::{Cx, lists};
use super::meter::Meter;
use super::node::{Call, Node};
use super::ops;
use super::tree::Fields;
use super::value::{Fault, Map, Text, Ty, Val};

pub(super) type Result<'t> = std::result::Result<Val<'t>, Fault>;

/// One evaluation: the object, what it may cost, and the variables of the macros around.
pub(super) struct Frame<'t> {
    pub(super) object: &'t Fields<'t>,
    pub(super) meter: &'t Meter,
    pub(super) locals: Vec<Val<'t>>,
}

impl<'t> Frame<'t> {
    pub(super) fn eval(&mut self, node: &'t Node) -> Result<'t> {
        self.meter.walk(1)?;
        match node {
            Node::Select(operand, field) => {
                let operand = self.eval(operand)?;
                self.select(&operand, field)
            }
            Node::Has(operand, field) => {
                let operand = self.eval(operand)?;
                self.lookup(&operand, field).map(|found| Val::Bool(found.is_some()))
            }
            Node::OptSelect(operand, field) => match unwrapped(self.eval(operand)?) {
                Some(operand) => Ok(Val::Optional(self.lookup(&operand, field)?.map(Rc::new))),
                None => Ok(Val::Optional(None)),
            },
            Node::Index(nodes) => self.index(&nodes[0], &nodes[1]),
            Node::OptIndex(nodes) => self.optional_index(&nodes[0], &nodes[1]),
            Node::Not(operand) => match self.eval(operand)? {
                Val::Bool(flag) => Ok(Val::Bool(!flag)),
                other => Err(Fault::NoOverload("!_", vec![other.ty()])),
            },
            Node::Negate(operand) => ops::negate(&self.eval(operand)?),
            Node::And(terms) => self.chain(terms, false),
            Node::Or(terms) => self.chain(terms, true),
            Node::If(nodes) => match self.eval(&nodes[0])? {
                Val::Bool(true) => self.eval(&nodes[1]),
                Val::Bool(false) => self.eval(&nodes[2]),
                other => Err(Fault::NoOverload("_?_:_", vec![other.ty()])),
            },
            Node::Equal(nodes, same) => {
                let (a, b) = self.pair(nodes)?;
                Ok(Val::Bool(ops::equal(self.meter, &a, &b)? == *same))
            }
            Node::Compare(how, nodes) => {
                let (a, b) = self.pair(nodes)?;
                ops::compare(self.meter, *how, &a, &b).map(Val::Bool)
            }
            Node::Arithmetic(op, nodes) => {
                let (a, b) = self.pair(nodes)?;
                ops::arithmetic(self.meter, *op, a, b)
            }
            Node::In(nodes) => {
                let (a, b) = self.pair(nodes)?;
                self.contained(&a, &b)
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Call(call) => self.call(call),
            Node::Loop(walk) => self.walk(walk),
            Node::Bind(nodes) => {
                let value = self.eval(&nodes[0])?;
                self.within(value, &nodes[1])
            }
            Node::OptMap(nodes, flat) => self.opt_map(nodes, *flat),
            leaf => self.leaf(leaf),
        }
    }

    /// What is there without being computed.
    fn leaf(&self, node: &'t Node) -> Result<'t> {
        Ok(match node {
            Node::Bool(flag) => Val::Bool(*flag),
            Node::Int(number) => Val::Int(*number),
            Node::Uint(number) => Val::Uint(*number),
            Node::Double(number) => Val::Double(*number),
            Node::Text(text) => Val::Text(Text::Lent(text)),
            Node::Bytes(bytes) => Val::Bytes(Rc::from(&**bytes)),
            Node::Type(name) => Val::Type(name),
            Node::Whole => Val::Map(Map::Lent(self.object)),
            Node::Local(at) => self.locals[*at].clone(),
            Node::Root(name) => match self.object.get(name) {
                Some(field) => Val::lent(field),
                None => return Err(Fault::NoField(name.clone())),
            },
            _ => Val::Null,
        })
    }

    fn pair(&mut self, nodes: &'t [Node; 2]) -> std::result::Result<(Val<'t>, Val<'t>), Fault> {
        Ok((self.eval(&nodes[0])?, self.eval(&nodes[1])?))
    }

    fn opt_map(&mut self, nodes: &'t [Node; 2], flat: bool) -> Result<'t> {
        let value = match self.eval(&nodes[0])? {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(value)) => (*value).clone(),
            other => return Err(Fault::NoOverload("optMap", vec![other.ty()])),
        };
        match self.within(value, &nodes[1])? {
            mapped if !flat => Ok(mapped.some()),
            mapped @ Val::Optional(_) => Ok(mapped),
            other => Err(Fault::NoOverload("optFlatMap", vec![other.ty()])),
        }
    }

    /// With one more variable.
    fn within(&mut self, variable: Val<'t>, node: &'t Node) -> Result<'t> {
        self.locals.push(variable);
        let result = self.eval(node);
        self.locals.pop();
        result
    }

    /// A field that may be absent. Where there are no fields at all, none is there.
    fn lookup(&self, operand: &Val<'t>, field: &'t str) -> std::result::Result<Option<Val<'t>>, Fault> {
        match operand {
            Val::Map(map @ Map::Lent(_)) => Ok(map.field(field)),
            Val::Map(map) => ops::found(self.meter, map, &Val::Text(Text::Lent(field))),
            Val::List(_) => Err(Fault::words("unsupported index type 'string' in list")),
            Val::Optional(Some(inner)) => self.lookup(inner, field),
            _ => Ok(None),
        }
    }

    fn select(&self, operand: &Val<'t>, field: &'t str) -> Result<'t> {
        match operand {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(value)) => Ok(Val::Optional(self.lookup(value, field)?.map(Rc::new))),
            other => self.lookup(other, field)?.ok_or_else(|| Fault::NoKey(field.into())),
        }
    }

    /// What is at an index, if anything is; an error where it cannot be one.
    fn at(&self, operand: &Val<'t>, index: &Val<'t>) -> std::result::Result<Option<Val<'t>>, Fault> {
        match (operand, index) {
            (Val::Map(map), Val::Text(_) | Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
                ops::found(self.meter, map, index)
            }
            (Val::Map(_), other) => Err(Fault::words(format!("unsupported key type: {}", other.ty().name()))),
            (Val::List(list), index) => {
                let at = match index {
                    Val::Int(at) => usize::try_from(*at).ok(),
                    Val::Uint(at) => usize::try_from(*at).ok(),
                    Val::Double(at) if at.fract() == 0.0 => (*at >= 0.0).then_some(*at as usize),
                    Val::Double(at) => {
                        return Err(Fault::words(format!("unsupported index value {at} in list")));
                    }
                    other => {
                        let ty = other.ty().name();
                        return Err(Fault::words(format!("unsupported index type '{ty}' in list")));
                    }
                };
                Ok(at.and_then(|at| list.get(at)))
            }
            _ => Ok(None),
        }
    }

    fn index(&mut self, operand: &'t Node, index: &'t Node) -> Result<'t> {
        let (operand, index) = (self.eval(operand)?, self.eval(index)?);
        match &operand {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(value)) => Ok(Val::Optional(self.at(value, &index)?.map(Rc::new))),
            other => self.at(other, &index)?.ok_or_else(|| match (&operand, &index) {
                (Val::List(_), Val::Int(at)) => Fault::words(format!("index out of bounds: {at}")),
                (_, Val::Text(key)) => Fault::NoKey((**key).into()),
                (_, Val::Int(key)) => Fault::NoKey(key.to_string().into()),
                _ => Fault::NoKey("?".into()),
            }),
        }
    }

    fn optional_index(&mut self, operand: &'t Node, index: &'t Node) -> Result<'t> {
        let (operand, index) = (self.eval(operand)?, self.eval(index)?);
        match unwrapped(operand) {
            Some(operand) => Ok(Val::Optional(self.at(&operand, &index)?.map(Rc::new))),
            None => Ok(Val::Optional(None)),
        }
    }

    /// `||` where `decides` is true, `&&` where it is false: one term that decides outweighs errors in the others.
    fn chain(&mut self, terms: &'t [Node], decides: bool) -> Result<'t> {
        let mut trouble = None;
        for term in terms {
            match self.eval(term) {
                Ok(Val::Bool(flag)) if flag == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(other) => {
                    let name = if decides { "_||_" } else { "_&&_" };
                    trouble.get_or_insert(Fault::NoOverload(name, vec![other.ty()]));
                }
                Err(limit @ Fault::Limit(_)) => return Err(limit),
                Err(fault) => {
                    trouble.get_or_insert(fault);
                }
            }
        }
        trouble.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn contained(&self, item: &Val<'t>, container: &Val<'t>) -> Result<'t> {
        match container {
            Val::List(list) => lists::contains(self.meter, list, item).map(Val::Bool),
            Val::Map(map) => ops::found(self.meter, map, item).map(|found| Val::Bool(found.is_some())),
            other => Err(Fault::NoOverload("@in", vec![item.ty(), other.ty()])),
        }
    }

    fn list(&mut self, items: &'t [(Node, bool)]) -> Result<'t> {
        self.meter.make(items.len() * size_of::<Val<'_>>())?;
        let mut made = Vec::with_capacity(items.len());
        for (item, optional) in items {
            made.extend(present(self.eval(item)?, *optional)?);
        }
        Ok(Val::list(made))
    }

    fn map(&mut self, entries: &'t [(Node, Node, bool)]) -> Result<'t> {
        self.meter.make(entries.len() * 2 * size_of::<Val<'_>>())?;
        let mut made: Vec<(Val<'t>, Val<'t>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            // Of a key that is there twice the last one counts; only of one type is it the same key.
            if let Some(value) = present(value, *optional)? {
                self.meter.walk(1 + made.len() / 4)?;
                made.retain(|(known, _)| known.ty() != key.ty() || !super::value::same_key(known, &key));
                self.insert(&mut made, key, value)?;
            }
        }
        Ok(Val::map(made))
    }

    /// Adds a key that is not there yet.
    pub(super) fn insert(
        &self,
        made: &mut Vec<(Val<'t>, Val<'t>)>,
        key: Val<'t>,
        value: Val<'t>,
    ) -> std::result::Result<(), Fault> {
        if !matches!(key.ty(), Ty::Text | Ty::Bool | Ty::Int | Ty::Uint) {
            return Err(Fault::words(format!("unsupported key type: {}", key.ty().name())));
        }
        self.meter.walk(1 + made.len() / 4)?;
        self.meter.make(2 * size_of::<Val<'_>>())?;
        if made.iter().any(|(known, _)| known.ty() == key.ty() && super::value::same_key(known, &key)) {
            return Err(Fault::words("the map has a key twice"));
        }
        made.push((key, value));
        Ok(())
    }

    fn call(&mut self, call: &'t Call) -> Result<'t> {
        let cx = Cx { meter: self.meter, pattern: call.pattern.as_ref() };
        let mut args = Vec::with_capacity(call.args.len());
        for (at, arg) in call.args.iter().enumerate() {
            args.push(self.eval(arg)?);
            if let (true, 0, Some(Val::Optional(Some(value)))) = (call.lazy, at, args.first()) {
                return Ok(if call.name == "or" {
                    Val::Optional(Some(Rc::clone(value)))
                } else {
                    (**value).clone()
                });
            }
        }
        match call.overloads.iter().find(|function| function.takes(&args)) {
            Some(function) => (function.call)(&cx, &args),
            None => Err(Fault::NoOverload(call.name, args.iter().map(Val::ty).collect())),
        }
    }
}

/// A value, unless it is an optional one that may be left out and is not there.
fn present(value: Val<'_>, optional: bool) -> std::result::Result<Option<Val<'_>>, Fault> {
    match (optional, value) {
        (false, value) => Ok(Some(value)),
        (true, Val::Optional(inner)) => Ok(inner.map(|inner| (*inner).clone())),
        (true, other) => Err(Fault::NoOverload("optional", vec![other.ty()])),
    }
}

/// The value in an optional; one that is not optional is itself.
fn unwrapped(value: Val<'_>) -> Option<Val<'_>> {
    match value {
        Val::Optional(inner) => inner.map(|inner| (*inner).clone()),
        other => Some(other),
    }
}
