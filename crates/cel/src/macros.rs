//! Macros: calls that are expanded at compile time, because they bind names or look at a field without reading it.

use cel::common::ast::{CallExpr, IdedExpr};

use crate::cel_type::CelType;
use crate::names::qualified_name;
use crate::node::LoopKind;

/// A call that is a macro.
pub(crate) enum MacroCall<'e> {
    /// `has(a.b)`
    Has(&'e IdedExpr),
    /// `cel.bind(name, value, body)`
    Bind { name: &'e IdedExpr, value: &'e IdedExpr, body: &'e IdedExpr },
    /// `target.optMap(name, body)`, or `optFlatMap`, which does not wrap the result again.
    OptMap { target: &'e IdedExpr, name: &'e IdedExpr, body: &'e IdedExpr, is_flat: bool },
    /// A macro that iterates.
    Loop(LoopCall<'e>),
}

/// A call of a macro that iterates over a list or the keys of a map.
pub(crate) struct LoopCall<'e> {
    pub(crate) kind: LoopKind,
    pub(crate) target: &'e IdedExpr,
    /// One variable, or two: index and element, or key and value.
    pub(crate) variables: &'e [IdedExpr],
    pub(crate) filter: Option<&'e IdedExpr>,
    pub(crate) body: &'e IdedExpr,
}

impl<'e> MacroCall<'e> {
    /// Reads a call; `None` if it is no macro.
    pub(crate) fn of_call(call: &'e CallExpr) -> Option<MacroCall<'e>> {
        let (name, args) = (call.func_name.as_str(), call.args.as_slice());
        let Some(target) = &call.target else {
            return match (name, args) {
                ("has", [arg]) => Some(MacroCall::Has(arg)),
                _ => None,
            };
        };
        match (name, args) {
            ("bind", [name, value, body]) if qualified_name(target).as_deref() == Some("cel") => {
                Some(MacroCall::Bind { name, value, body })
            }
            ("optMap", [name, body]) => Some(MacroCall::OptMap { target, name, body, is_flat: false }),
            ("optFlatMap", [name, body]) => Some(MacroCall::OptMap { target, name, body, is_flat: true }),
            _ => LoopCall::of_call(name, target, args).map(MacroCall::Loop),
        }
    }
}

impl<'e> LoopCall<'e> {
    fn of_call(name: &str, target: &'e IdedExpr, args: &'e [IdedExpr]) -> Option<LoopCall<'e>> {
        let (kind, variables) = match (name, args.len()) {
            ("all", 2 | 3) => (LoopKind::All, args.len() - 1),
            ("exists", 2 | 3) => (LoopKind::Exists, args.len() - 1),
            ("exists_one" | "existsOne", 2 | 3) => (LoopKind::ExistsOne, args.len() - 1),
            ("filter", 2) => (LoopKind::Filter, 1),
            ("map", 2 | 3) => (LoopKind::Map, 1),
            ("sortBy", 2) => (LoopKind::SortBy, 1),
            ("transformList", 3 | 4) => (LoopKind::Map, 2),
            ("transformMap", 3 | 4) => (LoopKind::TransformMap, 2),
            ("transformMapEntry", 3 | 4) => (LoopKind::TransformMapEntry, 2),
            _ => return None,
        };
        let (variables, rest) = args.split_at(variables);
        let (filter, body) = match rest {
            [body] => (None, body),
            [filter, body] => (Some(filter), body),
            _ => return None,
        };
        Some(LoopCall { kind, target, variables, filter, body })
    }

    /// Returns `true` if the macro can iterate over a value of this type.
    pub(crate) fn can_iterate(&self, ty: CelType) -> bool {
        match self.kind {
            LoopKind::SortBy => matches!(ty, CelType::Dyn | CelType::List),
            _ => matches!(ty, CelType::Dyn | CelType::List | CelType::Map),
        }
    }

    /// Returns the type that the body must have, with the body's name in errors; `None` if it may have any.
    pub(crate) fn body_type(&self) -> Option<(CelType, &'static str)> {
        match self.kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne | LoopKind::Filter => {
                Some((CelType::Bool, "predicate"))
            }
            LoopKind::TransformMapEntry => Some((CelType::Map, "transformMapEntry")),
            LoopKind::Map | LoopKind::SortBy | LoopKind::TransformMap => None,
        }
    }

    pub(crate) fn result_type(&self) -> CelType {
        match self.kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => CelType::Bool,
            LoopKind::Filter | LoopKind::Map | LoopKind::SortBy => CelType::List,
            LoopKind::TransformMap | LoopKind::TransformMapEntry => CelType::Map,
        }
    }
}
