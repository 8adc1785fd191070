//! The names that an expression can use, and the parts of the object that it needs.

use crate::cel_type::CelType;
use crate::json_tree::NeededFields;
use crate::names;
use crate::node::{ExprNode, TypedNode};

/// Names that are known at one place of an expression.
pub(crate) struct NameScope<'s> {
    /// The name of the object in kro, by which alone it is known there.
    id: Option<&'s str>,
    needs: NeededFields,
    /// Variables of the enclosing macros, outermost first.
    locals: Vec<(Box<str>, CelType)>,
}

impl<'s> NameScope<'s> {
    pub(crate) fn new(id: Option<&'s str>) -> Self {
        NameScope { id, needs: NeededFields::default(), locals: Vec::new() }
    }

    /// Returns the parts of the object that were named.
    pub(crate) fn into_needs(self) -> NeededFields {
        self.needs
    }

    /// Adds the variables of a macro; returns the number of those around it, which ends its scope.
    pub(crate) fn open_scope(&mut self, names: impl IntoIterator<Item = Box<str>>, ty: CelType) -> usize {
        let outside = self.locals.len();
        self.locals.extend(names.into_iter().map(|name| (name, ty)));
        outside
    }

    /// Removes the variables of a macro.
    pub(crate) fn close_scope(&mut self, outside: usize) {
        self.locals.truncate(outside);
    }

    pub(crate) fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| **local == *name)
    }

    fn is_field(&self, name: &str) -> bool {
        self.id.is_none() && names::TOP_LEVEL_FIELDS.contains(&name)
    }

    fn is_object(&self, name: &str) -> bool {
        self.id.map_or_else(|| names::OBJECT_NAMES.contains(&name), |id| id == name)
    }

    /// Resolves a name; the error is a message.
    pub(crate) fn resolve_name(&mut self, name: &str) -> Result<TypedNode, String> {
        if let Some(at) = self.locals.iter().rposition(|(local, _)| **local == *name) {
            return Ok((ExprNode::Local(at), self.locals[at].1));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        if self.is_object(name) {
            self.needs.whole = true;
            return Ok((ExprNode::WholeObject, CelType::Map));
        }
        if self.is_field(name) {
            self.needs.require_field(name);
            return Ok((ExprNode::TopLevelField(name.into()), names::top_level_type(name)));
        }
        match names::type_named(name) {
            Some(name) => Ok((ExprNode::Type(name), CelType::Type)),
            None => Err(self.undeclared_message(name)),
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

    /// Resolves the root of `name.field`, so that only this field of the root is read; `None` if the root is neither the
    /// object nor a field of it.
    pub(crate) fn resolve_root(&mut self, name: &str, field: &str) -> Option<TypedNode> {
        if self.is_local(name) {
            return None;
        }
        if self.is_object(name) {
            self.needs.require_field(field);
            return Some((ExprNode::WholeObject, CelType::Map));
        }
        if !self.is_field(name) {
            return None;
        }
        if !self.needs.fields.get(name).is_some_and(Option::is_none) {
            self.needs.require_subfield(name, field);
        }
        Some((ExprNode::TopLevelField(name.into()), names::top_level_type(name)))
    }
}
