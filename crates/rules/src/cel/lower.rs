//! From syntax tree to resolved expression: names, functions, arity and types are checked here, with their places.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};

use super::CompileError;
use super::functions;
use super::names;
use super::node::Node;
use super::parse::Places;
use super::tree::Needs;
use super::value::Ty;

/// Deeper expressions nobody can read; evaluation recurses as deep as this.
pub(super) const DEPTH: usize = 100;

/// The state of one compilation.
pub(super) struct Lower<'s> {
    pub(super) places: &'s Places<'s>,
    /// A further name of the object, as kro knows it by its id.
    pub(super) id: Option<&'s str>,
    pub(super) needs: Needs,
    /// Variables of the macros around, outermost first.
    pub(super) locals: Vec<(Box<str>, Ty)>,
    /// Loops around.
    pub(super) loops: usize,
    depth: usize,
}

pub(super) type Lowered = Result<(Node, Ty), CompileError>;

impl<'s> Lower<'s> {
    pub(super) fn new(places: &'s Places<'s>, id: Option<&'s str>) -> Self {
        Lower { places, id, needs: Needs::default(), locals: Vec::new(), loops: 0, depth: 0 }
    }

    pub(super) fn error<T>(&self, at: &IdedExpr, message: impl Into<String>) -> Result<T, CompileError> {
        let (line, column) = self.places.of(leftmost(at));
        Err(CompileError::new(line, column, message.into()))
    }

    pub(super) fn too_much<T>(&self, at: &IdedExpr, message: String) -> Result<T, CompileError> {
        self.error(at, message).map_err(|error| CompileError { limit: true, ..error })
    }

    pub(super) fn expression(&mut self, e: &IdedExpr) -> Lowered {
        if self.depth == DEPTH {
            return self.too_much(e, format!("nested deeper than {DEPTH} levels"));
        }
        self.depth += 1;
        let lowered = match &e.expr {
            Expr::Literal(literal) => Ok(constant(literal)),
            Expr::Ident(name) => self.name(e, name),
            Expr::Select(select) => self.select(e, select),
            Expr::Call(call) => self.call(e, call),
            Expr::List(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for (at, element) in list.elements.iter().enumerate() {
                    let (node, ty) = self.expression(element)?;
                    let optional = list.optional_indices.contains(&at);
                    if optional && !ty.fits(Ty::Optional) {
                        return self.error(element, format!("'{}' is not optional", ty.name()));
                    }
                    items.push((node, optional));
                }
                Ok((Node::List(items.into()), Ty::List))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return self.error(e, "a map has keys, not fields");
                    };
                    let (key, ty) = self.expression(&entry.key)?;
                    if !matches!(ty, Ty::Dyn | Ty::Int | Ty::Uint | Ty::Bool | Ty::Text) {
                        return self.error(&entry.key, format!("'{}' is no type of a key", ty.name()));
                    }
                    entries.push((key, self.expression(&entry.value)?.0, entry.optional));
                }
                Ok((Node::Map(entries.into()), Ty::Map))
            }
            Expr::Struct(made) => {
                self.error(e, format!("messages such as '{}' are not supported", made.type_name))
            }
            Expr::Comprehension(_) | Expr::Unspecified => self.error(e, "syntax error"),
        };
        self.depth -= 1;
        lowered
    }

    /// The expression, which has to be of a type.
    pub(super) fn of_type(&mut self, e: &IdedExpr, wanted: Ty, of: &str) -> Result<Node, CompileError> {
        let (node, ty) = self.expression(e)?;
        if !ty.fits(wanted) {
            return self
                .error(e, format!("found no matching overload for '{of}' applied to '{}'", ty.name()));
        }
        Ok(node)
    }

    fn name(&mut self, e: &IdedExpr, name: &str) -> Lowered {
        if let Some(at) = self.locals.iter().rposition(|(local, _)| **local == *name) {
            return Ok((Node::Local(at), self.locals[at].1));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        if self.id == Some(name) || (self.id.is_none() && names::WHOLE.contains(&name)) {
            self.needs.whole = true;
            return Ok((Node::Whole, Ty::Map));
        }
        if self.is_field(name) {
            self.needs.all_of(name);
            return Ok((Node::Root(name.into()), names::field(name)));
        }
        match names::type_named(name) {
            Some(name) => Ok((Node::Type(name), Ty::Type)),
            None => self.error(e, self.undeclared(name)),
        }
    }

    fn undeclared(&self, name: &str) -> String {
        match self.id {
            Some(id) => {
                format!("undeclared reference to '{name}': only '{id}', the object itself, is known here")
            }
            None => format!(
                "undeclared reference to '{name}': no known top-level field; any field of the object can be named by way \
                 of 'self', as 'self.{name}'"
            ),
        }
    }

    fn is_field(&self, name: &str) -> bool {
        self.id.is_none() && names::FIELDS.contains(&name)
    }

    pub(super) fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| **local == *name)
    }

    /// `root.field`: of the root no more is read than that field.
    fn part(&mut self, operand: &IdedExpr, field: &str) -> Option<(Node, Ty)> {
        let Expr::Ident(name) = &operand.expr else { return None };
        let whole = self.id == Some(name.as_str()) || names::WHOLE.contains(&name.as_str());
        if self.is_local(name) {
            return None;
        }
        if whole && (self.id.is_none() || self.id == Some(name)) {
            self.needs.all_of(field);
            return Some((Node::Whole, Ty::Map));
        }
        if !self.is_field(name) {
            return None;
        }
        if !self.needs.fields.get(name.as_str()).is_some_and(Option::is_none) {
            self.needs.part_of(name, field);
        }
        Some((Node::Root(name.as_str().into()), names::field(name)))
    }

    pub(super) fn operand(&mut self, operand: &IdedExpr, field: &str) -> Result<(Node, Ty), CompileError> {
        let (node, ty) = match self.part(operand, field) {
            Some(part) => part,
            None => self.expression(operand)?,
        };
        if !matches!(ty, Ty::Dyn | Ty::Map | Ty::Optional) {
            return self.error(operand, format!("type '{}' does not support field selection", ty.name()));
        }
        Ok((node, ty))
    }

    fn select(&mut self, e: &IdedExpr, select: &SelectExpr) -> Lowered {
        if let Some(name) = qualified(e).as_deref().and_then(names::type_named) {
            return Ok((Node::Type(name), Ty::Type));
        }
        let (node, ty) = self.operand(&select.operand, &select.field)?;
        let result = match (&node, ty) {
            (_, Ty::Optional) => Ty::Optional,
            (Node::Root(root), _) => names::field_of(root, &select.field),
            (Node::Whole, _) => names::field(&select.field),
            _ => Ty::Dyn,
        };
        Ok((Node::Select(Box::new(node), select.field.as_str().into()), result))
    }

    fn call(&mut self, e: &IdedExpr, call: &CallExpr) -> Lowered {
        if let Some(lowered) = self.operator(e, call) {
            return lowered;
        }
        if let Some(lowered) = self.expand(e, call) {
            return lowered;
        }
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            // A name with dots may be a namespace and no value: `base64.encode`.
            if let Some(space) = qualified(target)
                && !self.is_local(space.split('.').next().unwrap_or_default())
            {
                let full = format!("{space}.{name}");
                if functions::known(&full) {
                    return self.function(e, &full, None, &call.args);
                }
                if let Some(library) = functions::missing(&full) {
                    return self.error(e, format!("the function '{full}' ({library}) is not supported"));
                }
            }
        }
        self.function(e, name, call.target.as_deref(), &call.args)
    }
}

/// The name that an expression spells, if it spells one.
pub(super) fn qualified(e: &IdedExpr) -> Option<String> {
    match &e.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// The node with which the text of an expression begins: that of an operator stands in its middle.
fn leftmost(e: &IdedExpr) -> u64 {
    match &e.expr {
        Expr::Select(select) => leftmost(&select.operand),
        Expr::Call(CallExpr { target: Some(target), .. }) => leftmost(target),
        Expr::Call(CallExpr { func_name, args, .. })
            if func_name.starts_with('_') || func_name == operators::IN =>
        {
            args.first().map_or(e.id, leftmost)
        }
        _ => e.id,
    }
}

fn constant(literal: &LiteralValue) -> (Node, Ty) {
    match literal {
        LiteralValue::Null => (Node::Null, Ty::Null),
        LiteralValue::Boolean(flag) => (Node::Bool(*flag.inner()), Ty::Bool),
        LiteralValue::Int(number) => (Node::Int(*number.inner()), Ty::Int),
        LiteralValue::UInt(number) => (Node::Uint(*number.inner()), Ty::Uint),
        LiteralValue::Double(number) => (Node::Double(*number.inner()), Ty::Double),
        LiteralValue::String(text) => (Node::Text(text.inner().into()), Ty::Text),
        LiteralValue::Bytes(bytes) => (Node::Bytes(bytes.inner().into()), Ty::Bytes),
    }
}
