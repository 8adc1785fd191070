//! Macros and functions: what a call stands for.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::CompileError;
use super::functions::{self, Function, pattern::Pattern};
use super::lower::{Lower, Lowered, qualified};
use super::node::{Call, Loop, LoopKind, Node};
use super::value::Ty;

/// Loops within loops; what they walk multiplies.
pub(super) const LOOPS: usize = 5;

impl Lower<'_> {
    /// The macro that a call stands for, if it stands for one.
    pub(super) fn expand(&mut self, e: &IdedExpr, call: &CallExpr) -> Option<Lowered> {
        let args = call.args.as_slice();
        let name = call.func_name.as_str();
        let Some(target) = &call.target else {
            return match (name, args) {
                ("has", [arg]) => Some(self.has(arg)),
                _ => None,
            };
        };
        if name == "bind" && qualified(target).as_deref() == Some("cel") && args.len() == 3 {
            return Some(self.bind(args));
        }
        Some(match (name, args) {
            ("all", [x, body]) => self.walk(e, LoopKind::All, target, &[x], None, body),
            ("all", [k, v, body]) => self.walk(e, LoopKind::All, target, &[k, v], None, body),
            ("exists", [x, body]) => self.walk(e, LoopKind::Exists, target, &[x], None, body),
            ("exists", [k, v, body]) => self.walk(e, LoopKind::Exists, target, &[k, v], None, body),
            ("exists_one" | "existsOne", [x, body]) => {
                self.walk(e, LoopKind::ExistsOne, target, &[x], None, body)
            }
            ("exists_one" | "existsOne", [k, v, body]) => {
                self.walk(e, LoopKind::ExistsOne, target, &[k, v], None, body)
            }
            ("filter", [x, body]) => self.walk(e, LoopKind::Filter, target, &[x], None, body),
            ("map", [x, body]) => self.walk(e, LoopKind::Map, target, &[x], None, body),
            ("map", [x, filter, body]) => self.walk(e, LoopKind::Map, target, &[x], Some(filter), body),
            ("sortBy", [x, body]) => self.walk(e, LoopKind::SortBy, target, &[x], None, body),
            ("transformList", [k, v, body]) => self.walk(e, LoopKind::Map, target, &[k, v], None, body),
            ("transformList", [k, v, filter, body]) => {
                self.walk(e, LoopKind::Map, target, &[k, v], Some(filter), body)
            }
            ("transformMap", [k, v, body]) => {
                self.walk(e, LoopKind::TransformMap, target, &[k, v], None, body)
            }
            ("transformMap", [k, v, filter, body]) => {
                self.walk(e, LoopKind::TransformMap, target, &[k, v], Some(filter), body)
            }
            ("transformMapEntry", [k, v, body]) => {
                self.walk(e, LoopKind::TransformMapEntry, target, &[k, v], None, body)
            }
            ("transformMapEntry", [k, v, filter, body]) => {
                self.walk(e, LoopKind::TransformMapEntry, target, &[k, v], Some(filter), body)
            }
            ("optMap", [x, body]) => self.opt_map(target, x, body, false),
            ("optFlatMap", [x, body]) => self.opt_map(target, x, body, true),
            _ => return None,
        })
    }

    fn has(&mut self, arg: &IdedExpr) -> Lowered {
        let Expr::Select(select) = &arg.expr else {
            return self
                .error(arg, "invalid argument to has() macro: it takes a field, as in has(status.phase)");
        };
        let (node, _) = self.operand(&select.operand, &select.field)?;
        Ok((Node::Has(Box::new(node), select.field.as_str().into()), Ty::Bool))
    }

    fn variable(&self, e: &IdedExpr) -> Result<Box<str>, CompileError> {
        match &e.expr {
            Expr::Ident(name) if !name.starts_with('.') => Ok(name.as_str().into()),
            _ => self.error(e, "argument must be a simple name"),
        }
    }

    fn bind(&mut self, args: &[IdedExpr]) -> Lowered {
        let [name, value, body] = args else { unreachable!("invariant: matched on three") };
        let name = self.variable(name)?;
        let (value, ty) = self.expression(value)?;
        self.locals.push((name, ty));
        let body = self.expression(body);
        self.locals.pop();
        let (body, result) = body?;
        Ok((Node::Bind(Box::new([value, body])), result))
    }

    fn opt_map(&mut self, target: &IdedExpr, x: &IdedExpr, body: &IdedExpr, flat: bool) -> Lowered {
        let value = self.of_type(target, Ty::Optional, if flat { "optFlatMap" } else { "optMap" })?;
        let name = self.variable(x)?;
        self.locals.push((name, Ty::Dyn));
        let lowered = if flat {
            self.of_type(body, Ty::Optional, "optFlatMap")
        } else {
            self.expression(body).map(|(node, _)| node)
        };
        self.locals.pop();
        Ok((Node::OptMap(Box::new([value, lowered?]), flat), Ty::Optional))
    }

    fn walk(
        &mut self,
        e: &IdedExpr,
        kind: LoopKind,
        target: &IdedExpr,
        variables: &[&IdedExpr],
        filter: Option<&IdedExpr>,
        body: &IdedExpr,
    ) -> Lowered {
        if self.loops == LOOPS {
            return self.too_much(e, format!("more than {LOOPS} loops within each other"));
        }
        let (range, ty) = self.expression(target)?;
        let iterable = match kind {
            LoopKind::SortBy => matches!(ty, Ty::Dyn | Ty::List),
            _ => matches!(ty, Ty::Dyn | Ty::List | Ty::Map),
        };
        if !iterable {
            return self.error(target, format!("'{}' cannot be walked", ty.name()));
        }
        let names: Vec<_> = variables.iter().map(|name| self.variable(name)).collect::<Result<_, _>>()?;
        if let [a, b] = names.as_slice()
            && a == b
        {
            return self.error(variables[1], format!("the name '{b}' is taken by the other variable"));
        }
        let outside = self.locals.len();
        self.locals.extend(names.into_iter().map(|name| (name, Ty::Dyn)));
        self.loops += 1;
        let inside = self.inside(kind, filter, body);
        self.loops -= 1;
        self.locals.truncate(outside);
        let (filter, body) = inside?;
        let result = match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Ty::Bool,
            LoopKind::Filter | LoopKind::Map | LoopKind::SortBy => Ty::List,
            LoopKind::TransformMap | LoopKind::TransformMapEntry => Ty::Map,
        };
        let made = Loop { kind, pairs: variables.len() == 2, range, filter, body };
        Ok((Node::Loop(Box::new(made)), result))
    }

    fn inside(
        &mut self,
        kind: LoopKind,
        filter: Option<&IdedExpr>,
        body: &IdedExpr,
    ) -> Result<(Option<Node>, Node), CompileError> {
        let filter = filter.map(|filter| self.of_type(filter, Ty::Bool, "filter")).transpose()?;
        let body = match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne | LoopKind::Filter => {
                self.of_type(body, Ty::Bool, "predicate")?
            }
            LoopKind::TransformMapEntry => self.of_type(body, Ty::Map, "transformMapEntry")?,
            _ => self.expression(body)?.0,
        };
        Ok((filter, body))
    }

    /// A function, by name, way of calling, and as much as is known of the types.
    pub(super) fn function(
        &mut self,
        e: &IdedExpr,
        name: &str,
        target: Option<&IdedExpr>,
        args: &[IdedExpr],
    ) -> Lowered {
        let member = target.is_some();
        let named: Vec<&'static Function> =
            functions::all().filter(|f| f.name == name && f.member == member).collect();
        let Some(first) = named.first() else { return self.unknown(e, name, member) };
        let count = args.len() + usize::from(member);
        if !named.iter().any(|f| f.args.len() == count) {
            let mut takes: Vec<_> = named.iter().map(|f| f.args.len() - usize::from(member)).collect();
            takes.sort_unstable();
            takes.dedup();
            let takes: Vec<_> = takes.iter().map(ToString::to_string).collect();
            let message = format!("'{name}' takes {} arguments, not {}", takes.join(" or "), args.len());
            return self.error_at_name(e, name, message);
        }
        let (mut nodes, mut types) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for arg in target.into_iter().chain(args) {
            let (node, ty) = self.expression(arg)?;
            nodes.push(node);
            types.push(ty);
        }
        // What is known of an object's fields may be wrong, so that at run time every overload is asked again.
        let fitting = named.iter().filter(|f| f.could_take(&types));
        let Some(result) = fitting.map(|f| f.result).reduce(Ty::or) else {
            let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
            let types = match types.split_first() {
                Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", types.join(", ")),
            };
            let message = format!("found no matching overload for '{name}' applied to '{types}'");
            return self.error_at_name(e, name, message);
        };
        let pattern = match (functions::takes_a_pattern(name), args.get(usize::from(!member))) {
            (true, Some(IdedExpr { expr: Expr::Literal(LiteralValue::String(text)), id })) => {
                let made = Pattern::compile(text.inner()).map_err(|message| {
                    let (line, column) = self.places.of(*id);
                    CompileError::new(line, column, message)
                })?;
                Some(made)
            }
            _ => None,
        };
        let lazy = member && matches!(name, "or" | "orValue");
        let call = Call { name: first.name, overloads: named.into(), args: nodes.into(), pattern, lazy };
        Ok((Node::Call(Box::new(call)), result))
    }

    fn unknown(&self, e: &IdedExpr, name: &str, member: bool) -> Lowered {
        let message = match (functions::missing(name), functions::known(name)) {
            (Some(library), _) => format!("the function '{name}' ({library}) is not supported"),
            (None, true) if member => format!("'{name}' is a function, not a method: {name}(…)"),
            (None, true) => format!("'{name}' is a method, not a function: x.{name}(…)"),
            (None, false) => format!("undeclared reference to the function '{name}'"),
        };
        self.error_at_name(e, name, message)
    }

    /// A method's own place is its parenthesis; its name stands before that.
    fn error_at_name<T>(&self, e: &IdedExpr, name: &str, message: String) -> Result<T, CompileError> {
        let (line, column) = self.places.of(e.id);
        let last = name.rsplit('.').next().unwrap_or(name);
        let length = u32::try_from(last.chars().count()).unwrap_or(0);
        let before = if self.places.is_parenthesis(e.id) { length } else { 0 };
        Err(CompileError::new(line, column.saturating_sub(before).max(1), message))
    }
}
