//! One overload of a function: its name, argument types and code.

use crate::cel_type::CelType;
use crate::fault::EvalFault;
use crate::meter::CostMeter;
use crate::pattern::CelPattern;
use crate::value::CelValue;

/// Context of a function call.
pub(crate) struct CelCallContext<'c> {
    pub(crate) meter: &'c CostMeter,
    /// The compiled pattern among the arguments, if it is a literal.
    pub(crate) pattern: Option<&'c CelPattern>,
}

pub(crate) type NativeFunction =
    for<'t> fn(&CelCallContext<'_>, &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault>;

/// One overload of a function.
#[derive(Debug)]
pub(crate) struct CelOverload {
    pub(crate) name: &'static str,
    /// Called as a method, `x.name(…)`, with `x` as its first argument.
    pub(crate) member: bool,
    pub(crate) args: &'static [CelType],
    pub(crate) result: CelType,
    pub(crate) call: NativeFunction,
}

impl CelOverload {
    /// Returns `true` if it may accept arguments of these types, as far as they are known.
    pub(crate) fn may_accept_types(&self, types: &[CelType]) -> bool {
        self.args.len() == types.len()
            && self.args.iter().zip(types).all(|(want, ty)| want.is_compatible(*ty))
    }

    /// Returns `true` if it accepts these arguments.
    pub(crate) fn accepts_args(&self, args: &[CelValue<'_>]) -> bool {
        self.args.len() == args.len()
            && self.args.iter().zip(args).all(|(want, arg)| want.is_compatible(arg.cel_type()))
    }
}

pub(crate) const fn global_function(
    name: &'static str,
    args: &'static [CelType],
    result: CelType,
    call: NativeFunction,
) -> CelOverload {
    CelOverload { name, member: false, args, result, call }
}

pub(crate) const fn member_function(
    name: &'static str,
    args: &'static [CelType],
    result: CelType,
    call: NativeFunction,
) -> CelOverload {
    CelOverload { name, member: true, args, result, call }
}

/// Returns the error for arguments of other types than the table declares, which cannot happen.
pub(crate) fn argument_mismatch(args: &[CelValue<'_>]) -> EvalFault {
    EvalFault::NoOverload("function", args.iter().map(CelValue::cel_type).collect())
}
