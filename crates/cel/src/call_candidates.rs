//! The overloads that a function call may mean, by name, call style and the argument types as far as they are known.

use crate::cel_type::CelType;
use crate::functions;
use crate::node::{CelFunctionCall, ExprNode};
use crate::overload::CelOverload;
use crate::pattern::CelPattern;

/// The overloads of one name.
pub(crate) struct CallCandidates<'n> {
    name: &'n str,
    /// Called as a method.
    member: bool,
    first: &'static CelOverload,
    overloads: Vec<&'static CelOverload>,
}

impl<'n> CallCandidates<'n> {
    /// Finds the overloads of a function that is called with this number of arguments; the error is a message.
    pub(crate) fn find(name: &'n str, member: bool, args: usize) -> Result<CallCandidates<'n>, String> {
        let overloads: Vec<&'static CelOverload> =
            functions::all_overloads().filter(|f| f.name == name && f.member == member).collect();
        let Some(first) = overloads.first().copied() else { return Err(unknown_function(name, member)) };
        let count = args + usize::from(member);
        if !overloads.iter().any(|f| f.args.len() == count) {
            let mut takes: Vec<_> = overloads.iter().map(|f| f.args.len() - usize::from(member)).collect();
            takes.sort_unstable();
            takes.dedup();
            let takes: Vec<_> = takes.iter().map(ToString::to_string).collect();
            return Err(format!("'{name}' takes {} arguments, not {args}", takes.join(" or ")));
        }
        Ok(CallCandidates { name, member, first, overloads })
    }

    /// Returns the type of the result; the error is a message.
    pub(crate) fn result_type(&self, types: &[CelType]) -> Result<CelType, String> {
        // The assumed types of an object's fields may be wrong, so every overload is tried again at run time.
        let fitting = self.overloads.iter().filter(|f| f.may_accept_types(types));
        fitting.map(|f| f.result).reduce(CelType::unify_with).ok_or_else(|| {
            let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
            let types = match types.split_first() {
                Some((target, rest)) if self.member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", types.join(", ")),
            };
            format!("found no matching overload for '{}' applied to '{types}'", self.name)
        })
    }

    pub(crate) fn into_call(self, args: Vec<ExprNode>, pattern: Option<CelPattern>) -> ExprNode {
        let lazy = self.member && matches!(self.name, "or" | "orValue");
        let overloads = self.overloads.into();
        let call = CelFunctionCall { name: self.first.name, overloads, args: args.into(), pattern, lazy };
        ExprNode::Call(Box::new(call))
    }
}

fn unknown_function(name: &str, member: bool) -> String {
    match (functions::unsupported_library(name), functions::is_known_function(name)) {
        (Some(library), _) => format!("the function '{name}' ({library}) is not supported"),
        (None, true) if member => format!("'{name}' is a function, not a method: {name}(…)"),
        (None, true) => format!("'{name}' is a method, not a function: x.{name}(…)"),
        (None, false) => format!("undeclared reference to the function '{name}'"),
    }
}
