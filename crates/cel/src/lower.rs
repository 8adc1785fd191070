//! Lowers a syntax tree to a resolved expression. Names, functions, arity and types are checked here, with source
//! positions.

use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators as op,
};

use crate::CompileError;
use crate::call_candidates::CallCandidates;
use crate::cel_type::CelType;
use crate::functions;
use crate::json_tree::NeededFields;
use crate::macros::{LoopCall, MacroCall};
use crate::name_scope::{NameScope, RootNames};
use crate::names::{self, qualified_name};
use crate::nesting::MAX_EXPRESSION_DEPTH;
use crate::node::{CelMacroLoop, ExprNode, TypedNode};
use crate::operators::{BinaryOperator, negate};
use crate::parse::NodePositions;
use crate::pattern::CelPattern;

/// Maximum nesting of loops; their iterations multiply.
const MAX_NESTED_LOOPS: usize = 5;

type LoweredNode = Result<TypedNode, CompileError>;

/// State of one compilation.
pub(crate) struct LoweringContext<'s> {
    positions: &'s NodePositions<'s>,
    names: NameScope<'s>,
    /// Number of enclosing loops.
    loops: usize,
    depth: usize,
}

impl<'s> LoweringContext<'s> {
    /// Begins a compilation over these names.
    pub(crate) fn new(positions: &'s NodePositions<'s>, roots: RootNames<'s>) -> Self {
        LoweringContext { positions, names: NameScope::new(roots), loops: 0, depth: 0 }
    }

    /// Returns the parts of the object that were named.
    pub(crate) fn into_needs(self) -> NeededFields {
        self.names.into_needs()
    }

    pub(crate) fn lower_expression(&mut self, e: &IdedExpr) -> LoweredNode {
        if self.depth == MAX_EXPRESSION_DEPTH {
            let message = format!("nested deeper than {MAX_EXPRESSION_DEPTH} levels");
            return self.positions.limit_error(e, message);
        }
        self.depth += 1;
        let lowered = match &e.expr {
            Expr::Literal(literal) => Ok(lower_literal(literal)),
            Expr::Ident(name) => {
                self.names.resolve_name(name).or_else(|message| self.positions.error_at(e, message))
            }
            Expr::Select(select) => self.lower_select(e, select),
            Expr::Call(call) => self.lower_call(e, call),
            Expr::List(list) => self.lower_list(list),
            Expr::Map(map) => self.lower_map(e, map),
            Expr::Struct(made) => {
                let message = format!("messages such as '{}' are not supported", made.type_name);
                self.positions.error_at(e, message)
            }
            Expr::Comprehension(_) | Expr::Unspecified => self.positions.error_at(e, "syntax error"),
        };
        self.depth -= 1;
        lowered
    }

    fn lower_list(&mut self, list: &ListExpr) -> LoweredNode {
        let mut items = Vec::with_capacity(list.elements.len());
        for (at, element) in list.elements.iter().enumerate() {
            let (node, ty) = self.lower_expression(element)?;
            let optional = list.optional_indices.contains(&at);
            if optional && !ty.is_compatible(CelType::Optional) {
                return self.positions.error_at(element, format!("'{}' is not optional", ty.name()));
            }
            items.push((node, optional));
        }
        Ok((ExprNode::List(items.into()), CelType::List))
    }

    fn lower_map(&mut self, e: &IdedExpr, map: &MapExpr) -> LoweredNode {
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return self.positions.error_at(e, "a map has keys, not fields");
            };
            let (key, ty) = self.lower_expression(&entry.key)?;
            if !matches!(ty, CelType::Dyn | CelType::Int | CelType::Uint | CelType::Bool | CelType::Text) {
                let message = format!("'{}' is no type of a key", ty.name());
                return self.positions.error_at(&entry.key, message);
            }
            entries.push((key, self.lower_expression(&entry.value)?.0, entry.optional));
        }
        Ok((ExprNode::Map(entries.into()), CelType::Map))
    }

    /// Lowers an expression that must have this type.
    fn lower_typed(&mut self, e: &IdedExpr, wanted: CelType, of: &str) -> Result<ExprNode, CompileError> {
        let (node, ty) = self.lower_expression(e)?;
        if !ty.is_compatible(wanted) {
            let message = format!("found no matching overload for '{of}' applied to '{}'", ty.name());
            return self.positions.error_at(e, message);
        }
        Ok(node)
    }

    /// Lowers an operand of which one field is read.
    fn lower_operand(&mut self, operand: &IdedExpr, field: &str) -> LoweredNode {
        let root = match &operand.expr {
            Expr::Ident(name) => self.names.resolve_root(name, field),
            _ => None,
        };
        let (node, ty) = match root {
            Some(root) => root,
            None => self.lower_expression(operand)?,
        };
        if !matches!(ty, CelType::Dyn | CelType::Map | CelType::Optional) {
            let message = format!("type '{}' does not support field selection", ty.name());
            return self.positions.error_at(operand, message);
        }
        Ok((node, ty))
    }

    fn lower_select(&mut self, e: &IdedExpr, select: &SelectExpr) -> LoweredNode {
        if let Some(name) = qualified_name(e).as_deref().and_then(names::type_named) {
            return Ok((ExprNode::Type(name), CelType::Type));
        }
        let (node, ty) = self.lower_operand(&select.operand, &select.field)?;
        let result = match (&node, ty) {
            (_, CelType::Optional) => CelType::Optional,
            (ExprNode::TopLevelField(root), _) => self.names.subfield_type(root, &select.field),
            (ExprNode::WholeObject, _) => names::top_level_type(&select.field),
            _ => CelType::Dyn,
        };
        Ok((ExprNode::Select(Box::new(node), select.field.as_str().into()), result))
    }

    fn lower_call(&mut self, e: &IdedExpr, call: &CallExpr) -> LoweredNode {
        if let Some(lowered) = self.lower_operator(e, call) {
            return lowered;
        }
        if let Some(called) = MacroCall::of_call(call) {
            return self.lower_macro(e, &called);
        }
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            // A name with dots may be a namespace, not a value: `base64.encode`.
            if let Some(space) = qualified_name(target)
                && !self.names.is_local(space.split('.').next().unwrap_or_default())
            {
                let full = format!("{space}.{name}");
                if functions::is_known_function(&full) {
                    return self.lower_function(e, &full, None, &call.args);
                }
                if let Some(library) = functions::unsupported_library(&full) {
                    let message = format!("the function '{full}' ({library}) is not supported");
                    return self.positions.error_at(e, message);
                }
            }
        }
        self.lower_function(e, name, call.target.as_deref(), &call.args)
    }

    /// Lowers a call that is an operator; `None` if it is none.
    fn lower_operator(&mut self, e: &IdedExpr, call: &CallExpr) -> Option<LoweredNode> {
        if call.target.is_some() {
            return None;
        }
        Some(match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_NOT, [a]) => self
                .lower_typed(a, CelType::Bool, "!_")
                .map(|node| (ExprNode::Not(Box::new(node)), CelType::Bool)),
            (op::NEGATE, [a]) => self
                .lower_expression(a)
                .and_then(|operand| negate(operand).or_else(|message| self.positions.error_at(a, message))),
            (op::LOGICAL_AND, [_, _]) => self
                .flatten_connective(e, op::LOGICAL_AND)
                .map(|all| (ExprNode::And(all.into()), CelType::Bool)),
            (op::LOGICAL_OR, [_, _]) => self
                .flatten_connective(e, op::LOGICAL_OR)
                .map(|all| (ExprNode::Or(all.into()), CelType::Bool)),
            (op::CONDITIONAL, [test, then, otherwise]) => self.lower_conditional(test, then, otherwise),
            (op::OPT_SELECT, [a, b]) => self.lower_optional_select(a, b),
            (name, [a, b]) => self.lower_binary(BinaryOperator::of_function(name)?, a, b),
            _ => return None,
        })
    }

    /// Returns all terms of a chain of one connective, in whatever way the parser has nested them.
    fn flatten_connective(
        &mut self,
        e: &IdedExpr,
        connective: &'static str,
    ) -> Result<Vec<ExprNode>, CompileError> {
        let (mut terms, mut open) = (Vec::new(), vec![e]);
        while let Some(next) = open.pop() {
            match &next.expr {
                Expr::Call(CallExpr { func_name, target: None, args }) if func_name == connective => {
                    open.extend(args.iter().rev());
                }
                _ => terms.push(self.lower_typed(next, CelType::Bool, connective)?),
            }
        }
        Ok(terms)
    }

    fn lower_conditional(&mut self, test: &IdedExpr, then: &IdedExpr, otherwise: &IdedExpr) -> LoweredNode {
        let test = self.lower_typed(test, CelType::Bool, "_?_:_")?;
        let ((then, a), (otherwise, b)) = (self.lower_expression(then)?, self.lower_expression(otherwise)?);
        Ok((ExprNode::If(Box::new([test, then, otherwise])), a.unify_with(b)))
    }

    fn lower_binary(&mut self, operator: BinaryOperator, a: &IdedExpr, b: &IdedExpr) -> LoweredNode {
        // A literal key is a field: only that field is read.
        if let (true, Expr::Literal(LiteralValue::String(field))) = (operator.is_lookup(), &b.expr) {
            let container = self.lower_operand(a, field.inner())?;
            return Ok(operator.apply_to_field(container, field.inner()));
        }
        let operands = (self.lower_expression(a)?, self.lower_expression(b)?);
        operator.apply(operands.0, operands.1).or_else(|message| self.positions.error_at(a, message))
    }

    fn lower_optional_select(&mut self, a: &IdedExpr, b: &IdedExpr) -> LoweredNode {
        let Expr::Literal(LiteralValue::String(field)) = &b.expr else {
            return self.positions.error_at(b, "not a field");
        };
        let (node, _) = self.lower_operand(a, field.inner())?;
        Ok((ExprNode::OptSelect(Box::new(node), field.inner().into()), CelType::Optional))
    }

    fn lower_macro(&mut self, e: &IdedExpr, called: &MacroCall<'_>) -> LoweredNode {
        match called {
            MacroCall::Has(arg) => self.lower_has(arg),
            MacroCall::Bind { name, value, body } => self.lower_bind(name, value, body),
            MacroCall::OptMap { target, name, body, is_flat } => {
                self.lower_opt_map(target, name, body, *is_flat)
            }
            MacroCall::Loop(called) => self.lower_loop(e, called),
        }
    }

    fn lower_has(&mut self, arg: &IdedExpr) -> LoweredNode {
        let Expr::Select(select) = &arg.expr else {
            let message = "invalid argument to has() macro: it takes a field, as in has(status.phase)";
            return self.positions.error_at(arg, message);
        };
        let (node, _) = self.lower_operand(&select.operand, &select.field)?;
        Ok((ExprNode::Has(Box::new(node), select.field.as_str().into()), CelType::Bool))
    }

    fn variable_name(&self, e: &IdedExpr) -> Result<Box<str>, CompileError> {
        match &e.expr {
            Expr::Ident(name) if !name.starts_with('.') => Ok(name.as_str().into()),
            _ => self.positions.error_at(e, "argument must be a simple name"),
        }
    }

    fn lower_bind(&mut self, name: &IdedExpr, value: &IdedExpr, body: &IdedExpr) -> LoweredNode {
        let name = self.variable_name(name)?;
        let (value, ty) = self.lower_expression(value)?;
        let outside = self.names.open_scope([name], ty);
        let body = self.lower_expression(body);
        self.names.close_scope(outside);
        let (body, result) = body?;
        Ok((ExprNode::Bind(Box::new([value, body])), result))
    }

    fn lower_opt_map(
        &mut self,
        target: &IdedExpr,
        name: &IdedExpr,
        body: &IdedExpr,
        flat: bool,
    ) -> LoweredNode {
        let value =
            self.lower_typed(target, CelType::Optional, if flat { "optFlatMap" } else { "optMap" })?;
        let name = self.variable_name(name)?;
        let outside = self.names.open_scope([name], CelType::Dyn);
        let lowered = if flat {
            self.lower_typed(body, CelType::Optional, "optFlatMap")
        } else {
            self.lower_expression(body).map(|(node, _)| node)
        };
        self.names.close_scope(outside);
        Ok((ExprNode::OptMap(Box::new([value, lowered?]), flat), CelType::Optional))
    }

    fn lower_loop(&mut self, e: &IdedExpr, called: &LoopCall<'_>) -> LoweredNode {
        if self.loops == MAX_NESTED_LOOPS {
            let message = format!("more than {MAX_NESTED_LOOPS} loops within each other");
            return self.positions.limit_error(e, message);
        }
        let (range, ty) = self.lower_expression(called.target)?;
        if !called.can_iterate(ty) {
            let message = format!("'{}' cannot be iterated", ty.name());
            return self.positions.error_at(called.target, message);
        }
        let names = called.variables.iter().map(|name| self.variable_name(name));
        let names: Vec<_> = names.collect::<Result<_, _>>()?;
        if let [a, b] = names.as_slice()
            && a == b
        {
            let message = format!("the name '{b}' is taken by the other variable");
            return self.positions.error_at(&called.variables[1], message);
        }
        let outside = self.names.open_scope(names, CelType::Dyn);
        self.loops += 1;
        let inside = self.lower_loop_body(called);
        self.loops -= 1;
        self.names.close_scope(outside);
        let (filter, body) = inside?;
        let pairs = called.variables.len() == 2;
        let made = CelMacroLoop { kind: called.kind, pairs, range, filter, body };
        Ok((ExprNode::Loop(Box::new(made)), called.result_type()))
    }

    fn lower_loop_body(
        &mut self,
        called: &LoopCall<'_>,
    ) -> Result<(Option<ExprNode>, ExprNode), CompileError> {
        let filter = called.filter.map(|filter| self.lower_typed(filter, CelType::Bool, "filter"));
        let filter = filter.transpose()?;
        let body = match called.body_type() {
            Some((wanted, of)) => self.lower_typed(called.body, wanted, of)?,
            None => self.lower_expression(called.body)?.0,
        };
        Ok((filter, body))
    }

    /// Lowers a function call by name, call style and the argument types as far as they are known.
    fn lower_function(
        &mut self,
        e: &IdedExpr,
        name: &str,
        target: Option<&IdedExpr>,
        args: &[IdedExpr],
    ) -> LoweredNode {
        let at_name = |message| self.positions.error_at_name(e, name, message);
        let candidates = CallCandidates::find(name, target.is_some(), args.len()).or_else(at_name)?;
        let (mut nodes, mut types) = (Vec::new(), Vec::new());
        for arg in target.into_iter().chain(args) {
            let (node, ty) = self.lower_expression(arg)?;
            nodes.push(node);
            types.push(ty);
        }
        let at_name = |message| self.positions.error_at_name(e, name, message);
        let result = candidates.result_type(&types).or_else(at_name)?;
        let pattern = match args.get(usize::from(target.is_none())) {
            Some(pattern) if functions::has_pattern_argument(name) => self.compile_pattern(pattern)?,
            _ => None,
        };
        Ok((candidates.into_call(nodes, pattern), result))
    }

    /// Compiles a pattern, if it is a literal.
    fn compile_pattern(&self, e: &IdedExpr) -> Result<Option<CelPattern>, CompileError> {
        let Expr::Literal(LiteralValue::String(text)) = &e.expr else { return Ok(None) };
        let compiled = CelPattern::compile_pattern(text.inner()).map_err(|message| {
            let (line, column) = self.positions.position_of(e.id);
            CompileError::new(line, column, message)
        })?;
        Ok(Some(compiled))
    }
}

fn lower_literal(literal: &LiteralValue) -> TypedNode {
    match literal {
        LiteralValue::Null => (ExprNode::Null, CelType::Null),
        LiteralValue::Boolean(flag) => (ExprNode::Bool(*flag.inner()), CelType::Bool),
        LiteralValue::Int(number) => (ExprNode::Int(*number.inner()), CelType::Int),
        LiteralValue::UInt(number) => (ExprNode::Uint(*number.inner()), CelType::Uint),
        LiteralValue::Double(number) => (ExprNode::Double(*number.inner()), CelType::Double),
        LiteralValue::String(text) => (ExprNode::Text(text.inner().into()), CelType::Text),
        LiteralValue::Bytes(bytes) => (ExprNode::Bytes(bytes.inner().into()), CelType::Bytes),
    }
}
