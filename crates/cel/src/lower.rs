//! Lowers a syntax tree to a resolved expression. Names, functions, arity and types are checked here, with source
//! positions.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};

use crate::CompileError;
use crate::cel_type::CelType;
use crate::functions;
use crate::json_tree::NeededFields;
use crate::names;
use crate::nesting::MAX_EXPRESSION_DEPTH;
use crate::node::ExprNode;
use crate::parse::NodePositions;

/// State of one compilation.
pub(crate) struct LoweringContext<'s> {
    pub(crate) positions: &'s NodePositions<'s>,
    /// Additional name of the object: its id in kro.
    pub(crate) id: Option<&'s str>,
    pub(crate) needs: NeededFields,
    /// Variables of the enclosing macros, outermost first.
    pub(crate) locals: Vec<(Box<str>, CelType)>,
    /// Number of enclosing loops.
    pub(crate) loops: usize,
    depth: usize,
}

pub(crate) type LoweredNode = Result<(ExprNode, CelType), CompileError>;

impl<'s> LoweringContext<'s> {
    pub(crate) fn new(places: &'s NodePositions<'s>, id: Option<&'s str>) -> Self {
        LoweringContext {
            positions: places,
            id,
            needs: NeededFields::default(),
            locals: Vec::new(),
            loops: 0,
            depth: 0,
        }
    }

    pub(crate) fn error_at<T>(&self, at: &IdedExpr, message: impl Into<String>) -> Result<T, CompileError> {
        let (line, column) = self.positions.position_of(leftmost_node(at));
        Err(CompileError::new(line, column, message.into()))
    }

    pub(crate) fn limit_error<T>(&self, at: &IdedExpr, message: String) -> Result<T, CompileError> {
        self.error_at(at, message).map_err(|error| CompileError { limit: true, ..error })
    }

    pub(crate) fn lower_expression(&mut self, e: &IdedExpr) -> LoweredNode {
        if self.depth == MAX_EXPRESSION_DEPTH {
            return self.limit_error(e, format!("nested deeper than {MAX_EXPRESSION_DEPTH} levels"));
        }
        self.depth += 1;
        let lowered = match &e.expr {
            Expr::Literal(literal) => Ok(lower_literal(literal)),
            Expr::Ident(name) => self.lower_name(e, name),
            Expr::Select(select) => self.lower_select(e, select),
            Expr::Call(call) => self.lower_call(e, call),
            Expr::List(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for (at, element) in list.elements.iter().enumerate() {
                    let (node, ty) = self.lower_expression(element)?;
                    let optional = list.optional_indices.contains(&at);
                    if optional && !ty.is_compatible(CelType::Optional) {
                        return self.error_at(element, format!("'{}' is not optional", ty.name()));
                    }
                    items.push((node, optional));
                }
                Ok((ExprNode::List(items.into()), CelType::List))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return self.error_at(e, "a map has keys, not fields");
                    };
                    let (key, ty) = self.lower_expression(&entry.key)?;
                    if !matches!(
                        ty,
                        CelType::Dyn | CelType::Int | CelType::Uint | CelType::Bool | CelType::Text
                    ) {
                        return self.error_at(&entry.key, format!("'{}' is no type of a key", ty.name()));
                    }
                    entries.push((key, self.lower_expression(&entry.value)?.0, entry.optional));
                }
                Ok((ExprNode::Map(entries.into()), CelType::Map))
            }
            Expr::Struct(made) => {
                self.error_at(e, format!("messages such as '{}' are not supported", made.type_name))
            }
            Expr::Comprehension(_) | Expr::Unspecified => self.error_at(e, "syntax error"),
        };
        self.depth -= 1;
        lowered
    }

    /// Lowers an expression that must have this type.
    pub(crate) fn lower_typed(
        &mut self,
        e: &IdedExpr,
        wanted: CelType,
        of: &str,
    ) -> Result<ExprNode, CompileError> {
        let (node, ty) = self.lower_expression(e)?;
        if !ty.is_compatible(wanted) {
            return self
                .error_at(e, format!("found no matching overload for '{of}' applied to '{}'", ty.name()));
        }
        Ok(node)
    }

    fn lower_name(&mut self, e: &IdedExpr, name: &str) -> LoweredNode {
        if let Some(at) = self.locals.iter().rposition(|(local, _)| **local == *name) {
            return Ok((ExprNode::Local(at), self.locals[at].1));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        if self.id == Some(name) || (self.id.is_none() && names::OBJECT_NAMES.contains(&name)) {
            self.needs.whole = true;
            return Ok((ExprNode::WholeObject, CelType::Map));
        }
        if self.is_field(name) {
            self.needs.require_field(name);
            return Ok((ExprNode::TopLevelField(name.into()), names::top_level_type(name)));
        }
        match names::type_named(name) {
            Some(name) => Ok((ExprNode::Type(name), CelType::Type)),
            None => self.error_at(e, self.undeclared_message(name)),
        }
    }

    fn undeclared_message(&self, name: &str) -> String {
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
        self.id.is_none() && names::TOP_LEVEL_FIELDS.contains(&name)
    }

    pub(crate) fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| **local == *name)
    }

    /// Lowers `root.field`, so that only this field of the root is read.
    fn lower_field_root(&mut self, operand: &IdedExpr, field: &str) -> Option<(ExprNode, CelType)> {
        let Expr::Ident(name) = &operand.expr else { return None };
        let whole = self.id == Some(name.as_str()) || names::OBJECT_NAMES.contains(&name.as_str());
        if self.is_local(name) {
            return None;
        }
        if whole && (self.id.is_none() || self.id == Some(name)) {
            self.needs.require_field(field);
            return Some((ExprNode::WholeObject, CelType::Map));
        }
        if !self.is_field(name) {
            return None;
        }
        if !self.needs.fields.get(name.as_str()).is_some_and(Option::is_none) {
            self.needs.require_subfield(name, field);
        }
        Some((ExprNode::TopLevelField(name.as_str().into()), names::top_level_type(name)))
    }

    pub(crate) fn lower_operand(
        &mut self,
        operand: &IdedExpr,
        field: &str,
    ) -> Result<(ExprNode, CelType), CompileError> {
        let (node, ty) = match self.lower_field_root(operand, field) {
            Some(part) => part,
            None => self.lower_expression(operand)?,
        };
        if !matches!(ty, CelType::Dyn | CelType::Map | CelType::Optional) {
            return self.error_at(operand, format!("type '{}' does not support field selection", ty.name()));
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
            (ExprNode::TopLevelField(root), _) => names::subfield_type(root, &select.field),
            (ExprNode::WholeObject, _) => names::top_level_type(&select.field),
            _ => CelType::Dyn,
        };
        Ok((ExprNode::Select(Box::new(node), select.field.as_str().into()), result))
    }

    fn lower_call(&mut self, e: &IdedExpr, call: &CallExpr) -> LoweredNode {
        if let Some(lowered) = self.lower_operator(e, call) {
            return lowered;
        }
        if let Some(lowered) = self.expand_macro(e, call) {
            return lowered;
        }
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            // A name with dots may be a namespace, not a value: `base64.encode`.
            if let Some(space) = qualified_name(target)
                && !self.is_local(space.split('.').next().unwrap_or_default())
            {
                let full = format!("{space}.{name}");
                if functions::is_known_function(&full) {
                    return self.lower_function(e, &full, None, &call.args);
                }
                if let Some(library) = functions::unsupported_library(&full) {
                    return self.error_at(e, format!("the function '{full}' ({library}) is not supported"));
                }
            }
        }
        self.lower_function(e, name, call.target.as_deref(), &call.args)
    }
}

/// Returns the qualified name that an expression spells, if any.
pub(crate) fn qualified_name(e: &IdedExpr) -> Option<String> {
    match &e.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// Returns the node with which the text of an expression begins: an operator's own node is in its middle.
fn leftmost_node(e: &IdedExpr) -> u64 {
    match &e.expr {
        Expr::Select(select) => leftmost_node(&select.operand),
        Expr::Call(CallExpr { target: Some(target), .. }) => leftmost_node(target),
        Expr::Call(CallExpr { func_name, args, .. })
            if func_name.starts_with('_') || func_name == operators::IN =>
        {
            args.first().map_or(e.id, leftmost_node)
        }
        _ => e.id,
    }
}

fn lower_literal(literal: &LiteralValue) -> (ExprNode, CelType) {
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
