//! Lowers macros and function calls.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use crate::CompileError;
use crate::cel_type::CelType;
use crate::functions;
use crate::lower::{LoweredNode, LoweringContext, qualified_name};
use crate::node::{CelFunctionCall, CelMacroLoop, ExprNode, LoopKind};
use crate::overload::CelOverload;
use crate::pattern::CelPattern;

/// Maximum nesting of loops; their iterations multiply.
pub(crate) const MAX_NESTED_LOOPS: usize = 5;

impl LoweringContext<'_> {
    /// Lowers a call that is a macro; `None` if it is none.
    pub(crate) fn expand_macro(&mut self, e: &IdedExpr, call: &CallExpr) -> Option<LoweredNode> {
        let args = call.args.as_slice();
        let name = call.func_name.as_str();
        let Some(target) = &call.target else {
            return match (name, args) {
                ("has", [arg]) => Some(self.lower_has(arg)),
                _ => None,
            };
        };
        if name == "bind" && qualified_name(target).as_deref() == Some("cel") && args.len() == 3 {
            return Some(self.lower_bind(args));
        }
        Some(match (name, args) {
            ("all", [x, body]) => self.lower_loop(e, LoopKind::All, target, &[x], None, body),
            ("all", [k, v, body]) => self.lower_loop(e, LoopKind::All, target, &[k, v], None, body),
            ("exists", [x, body]) => self.lower_loop(e, LoopKind::Exists, target, &[x], None, body),
            ("exists", [k, v, body]) => self.lower_loop(e, LoopKind::Exists, target, &[k, v], None, body),
            ("exists_one" | "existsOne", [x, body]) => {
                self.lower_loop(e, LoopKind::ExistsOne, target, &[x], None, body)
            }
            ("exists_one" | "existsOne", [k, v, body]) => {
                self.lower_loop(e, LoopKind::ExistsOne, target, &[k, v], None, body)
            }
            ("filter", [x, body]) => self.lower_loop(e, LoopKind::Filter, target, &[x], None, body),
            ("map", [x, body]) => self.lower_loop(e, LoopKind::Map, target, &[x], None, body),
            ("map", [x, filter, body]) => self.lower_loop(e, LoopKind::Map, target, &[x], Some(filter), body),
            ("sortBy", [x, body]) => self.lower_loop(e, LoopKind::SortBy, target, &[x], None, body),
            ("transformList", [k, v, body]) => self.lower_loop(e, LoopKind::Map, target, &[k, v], None, body),
            ("transformList", [k, v, filter, body]) => {
                self.lower_loop(e, LoopKind::Map, target, &[k, v], Some(filter), body)
            }
            ("transformMap", [k, v, body]) => {
                self.lower_loop(e, LoopKind::TransformMap, target, &[k, v], None, body)
            }
            ("transformMap", [k, v, filter, body]) => {
                self.lower_loop(e, LoopKind::TransformMap, target, &[k, v], Some(filter), body)
            }
            ("transformMapEntry", [k, v, body]) => {
                self.lower_loop(e, LoopKind::TransformMapEntry, target, &[k, v], None, body)
            }
            ("transformMapEntry", [k, v, filter, body]) => {
                self.lower_loop(e, LoopKind::TransformMapEntry, target, &[k, v], Some(filter), body)
            }
            ("optMap", [x, body]) => self.lower_opt_map(target, x, body, false),
            ("optFlatMap", [x, body]) => self.lower_opt_map(target, x, body, true),
            _ => return None,
        })
    }

    fn lower_has(&mut self, arg: &IdedExpr) -> LoweredNode {
        let Expr::Select(select) = &arg.expr else {
            return self
                .error_at(arg, "invalid argument to has() macro: it takes a field, as in has(status.phase)");
        };
        let (node, _) = self.lower_operand(&select.operand, &select.field)?;
        Ok((ExprNode::Has(Box::new(node), select.field.as_str().into()), CelType::Bool))
    }

    fn variable_name(&self, e: &IdedExpr) -> Result<Box<str>, CompileError> {
        match &e.expr {
            Expr::Ident(name) if !name.starts_with('.') => Ok(name.as_str().into()),
            _ => self.error_at(e, "argument must be a simple name"),
        }
    }

    fn lower_bind(&mut self, args: &[IdedExpr]) -> LoweredNode {
        let [name, value, body] = args else { unreachable!("invariant: matched on three") };
        let name = self.variable_name(name)?;
        let (value, ty) = self.lower_expression(value)?;
        self.locals.push((name, ty));
        let body = self.lower_expression(body);
        self.locals.pop();
        let (body, result) = body?;
        Ok((ExprNode::Bind(Box::new([value, body])), result))
    }

    fn lower_opt_map(&mut self, target: &IdedExpr, x: &IdedExpr, body: &IdedExpr, flat: bool) -> LoweredNode {
        let value =
            self.lower_typed(target, CelType::Optional, if flat { "optFlatMap" } else { "optMap" })?;
        let name = self.variable_name(x)?;
        self.locals.push((name, CelType::Dyn));
        let lowered = if flat {
            self.lower_typed(body, CelType::Optional, "optFlatMap")
        } else {
            self.lower_expression(body).map(|(node, _)| node)
        };
        self.locals.pop();
        Ok((ExprNode::OptMap(Box::new([value, lowered?]), flat), CelType::Optional))
    }

    fn lower_loop(
        &mut self,
        e: &IdedExpr,
        kind: LoopKind,
        target: &IdedExpr,
        variables: &[&IdedExpr],
        filter: Option<&IdedExpr>,
        body: &IdedExpr,
    ) -> LoweredNode {
        if self.loops == MAX_NESTED_LOOPS {
            return self.limit_error(e, format!("more than {MAX_NESTED_LOOPS} loops within each other"));
        }
        let (range, ty) = self.lower_expression(target)?;
        let iterable = match kind {
            LoopKind::SortBy => matches!(ty, CelType::Dyn | CelType::List),
            _ => matches!(ty, CelType::Dyn | CelType::List | CelType::Map),
        };
        if !iterable {
            return self.error_at(target, format!("'{}' cannot be iterated", ty.name()));
        }
        let names: Vec<_> =
            variables.iter().map(|name| self.variable_name(name)).collect::<Result<_, _>>()?;
        if let [a, b] = names.as_slice()
            && a == b
        {
            return self.error_at(variables[1], format!("the name '{b}' is taken by the other variable"));
        }
        let outside = self.locals.len();
        self.locals.extend(names.into_iter().map(|name| (name, CelType::Dyn)));
        self.loops += 1;
        let inside = self.lower_loop_body(kind, filter, body);
        self.loops -= 1;
        self.locals.truncate(outside);
        let (filter, body) = inside?;
        let result = match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => CelType::Bool,
            LoopKind::Filter | LoopKind::Map | LoopKind::SortBy => CelType::List,
            LoopKind::TransformMap | LoopKind::TransformMapEntry => CelType::Map,
        };
        let made = CelMacroLoop { kind, pairs: variables.len() == 2, range, filter, body };
        Ok((ExprNode::Loop(Box::new(made)), result))
    }

    fn lower_loop_body(
        &mut self,
        kind: LoopKind,
        filter: Option<&IdedExpr>,
        body: &IdedExpr,
    ) -> Result<(Option<ExprNode>, ExprNode), CompileError> {
        let filter = filter.map(|filter| self.lower_typed(filter, CelType::Bool, "filter")).transpose()?;
        let body = match kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne | LoopKind::Filter => {
                self.lower_typed(body, CelType::Bool, "predicate")?
            }
            LoopKind::TransformMapEntry => self.lower_typed(body, CelType::Map, "transformMapEntry")?,
            _ => self.lower_expression(body)?.0,
        };
        Ok((filter, body))
    }

    /// Lowers a function call by name, call style and the argument types as far as they are known.
    pub(crate) fn lower_function(
        &mut self,
        e: &IdedExpr,
        name: &str,
        target: Option<&IdedExpr>,
        args: &[IdedExpr],
    ) -> LoweredNode {
        let member = target.is_some();
        let named: Vec<&'static CelOverload> =
            functions::all_overloads().filter(|f| f.name == name && f.member == member).collect();
        let Some(first) = named.first() else { return self.unknown_function(e, name, member) };
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
            let (node, ty) = self.lower_expression(arg)?;
            nodes.push(node);
            types.push(ty);
        }
        // The assumed types of an object's fields may be wrong, so every overload is tried again at run time.
        let fitting = named.iter().filter(|f| f.may_accept_types(&types));
        let Some(result) = fitting.map(|f| f.result).reduce(CelType::unify_with) else {
            let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
            let types = match types.split_first() {
                Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", types.join(", ")),
            };
            let message = format!("found no matching overload for '{name}' applied to '{types}'");
            return self.error_at_name(e, name, message);
        };
        let pattern = match (functions::has_pattern_argument(name), args.get(usize::from(!member))) {
            (true, Some(IdedExpr { expr: Expr::Literal(LiteralValue::String(text)), id })) => {
                let made = CelPattern::compile_pattern(text.inner()).map_err(|message| {
                    let (line, column) = self.positions.position_of(*id);
                    CompileError::new(line, column, message)
                })?;
                Some(made)
            }
            _ => None,
        };
        let lazy = member && matches!(name, "or" | "orValue");
        let call =
            CelFunctionCall { name: first.name, overloads: named.into(), args: nodes.into(), pattern, lazy };
        Ok((ExprNode::Call(Box::new(call)), result))
    }

    fn unknown_function(&self, e: &IdedExpr, name: &str, member: bool) -> LoweredNode {
        let message = match (functions::unsupported_library(name), functions::is_known_function(name)) {
            (Some(library), _) => format!("the function '{name}' ({library}) is not supported"),
            (None, true) if member => format!("'{name}' is a function, not a method: {name}(…)"),
            (None, true) => format!("'{name}' is a method, not a function: x.{name}(…)"),
            (None, false) => format!("undeclared reference to the function '{name}'"),
        };
        self.error_at_name(e, name, message)
    }

    /// The position of a method call is its parenthesis; its name is before that.
    fn error_at_name<T>(&self, e: &IdedExpr, name: &str, message: String) -> Result<T, CompileError> {
        let (line, column) = self.positions.position_of(e.id);
        let last = name.rsplit('.').next().unwrap_or(name);
        let length = u32::try_from(last.chars().count()).unwrap_or(0);
        let before = if self.positions.is_parenthesis(e.id) { length } else { 0 };
        Err(CompileError::new(line, column.saturating_sub(before).max(1), message))
    }
}
