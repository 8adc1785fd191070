//! The names that an expression can use, and the parts of the object that it needs.

use crate::cel_type::CelType;
use crate::json_tree::NeededFields;
use crate::names;
use crate::node::{ExprNode, TypedNode};

/// Names that an expression may use, apart from the variables of its own macros.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RootNames<'s> {
    /// The top-level fields of one object, and the object itself as `self` or `object`.
    Fields,
    /// One object, by this name alone.
    Object(&'s str),
    /// Several values, each by its name.
    Values(&'s [(&'s str, CelType)]),
}

/// Names that are known at one place of an expression.
pub(crate) struct NameScope<'s> {
    roots: RootNames<'s>,
    needs: NeededFields,
    /// Variables of the enclosing macros, outermost first.
    locals: Vec<(Box<str>, CelType)>,
}

impl<'s> NameScope<'s> {
    pub(crate) fn new(roots: RootNames<'s>) -> Self {
        NameScope { roots, needs: NeededFields::default(), locals: Vec::new() }
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

    /// Type of a name that denotes a field of what the expression is evaluated on; `None` if it denotes none.
    fn field_type(&self, name: &str) -> Option<CelType> {
        match self.roots {
            RootNames::Fields => names::TOP_LEVEL_FIELDS.contains(&name).then(|| names::top_level_type(name)),
            RootNames::Object(_) => None,
            RootNames::Values(values) => values.iter().find(|(known, _)| *known == name).map(|(_, ty)| *ty),
        }
    }

    fn is_object(&self, name: &str) -> bool {
        match self.roots {
            RootNames::Fields => names::OBJECT_NAMES.contains(&name),
            RootNames::Object(id) => id == name,
            RootNames::Values(_) => false,
        }
    }

    /// Type of a field of such a field.
    pub(crate) fn subfield_type(&self, root: &str, field: &str) -> CelType {
        match self.roots {
            RootNames::Fields | RootNames::Object(_) => names::subfield_type(root, field),
            RootNames::Values(_) => CelType::Dyn,
        }
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
        if let Some(ty) = self.field_type(name) {
            self.needs.require_field(name);
            return Ok((ExprNode::TopLevelField(name.into()), ty));
        }
        match names::type_named(name) {
            Some(name) => Ok((ExprNode::Type(name), CelType::Type)),
            None => Err(self.undeclared_message(name)),
        }
    }

    fn undeclared_message(&self, name: &str) -> String {
        match self.roots {
            RootNames::Object(id) => {
                format!("undeclared reference to '{name}': only '{id}', the object itself, is known here")
            }
            RootNames::Values(values) => {
                let known: Vec<_> = values.iter().map(|(known, _)| format!("'{known}'")).collect();
                format!("undeclared reference to '{name}': only {} are known here", known.join(" and "))
            }
            RootNames::Fields => format!(
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
        let ty = self.field_type(name)?;
        if !self.needs.fields.get(name).is_some_and(Option::is_none) {
            self.needs.require_subfield(name, field);
        }
        Some((ExprNode::TopLevelField(name.into()), ty))
    }
}
