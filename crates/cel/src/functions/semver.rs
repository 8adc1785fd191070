//! Semantic versions, as Kubernetes extends CEL by them.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::cel_type::CelType::{self, Bool, Int, Text};
use crate::fault::EvalFault;
use crate::kube_types::SemanticVersion;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

const SEMVER_TYPE: CelType = CelType::Semver;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("semver", &[Text], SEMVER_TYPE, convert_to_semver),
    global_function("semver", &[Text, Bool], SEMVER_TYPE, convert_to_semver),
    global_function("isSemver", &[Text], Bool, is_semver),
    global_function("isSemver", &[Text, Bool], Bool, is_semver),
    member_function("major", &[SEMVER_TYPE], Int, |_, args| version_part(args, 0)),
    member_function("minor", &[SEMVER_TYPE], Int, |_, args| version_part(args, 1)),
    member_function("patch", &[SEMVER_TYPE], Int, |_, args| version_part(args, 2)),
    member_function("compareTo", &[SEMVER_TYPE, SEMVER_TYPE], Int, |_, args| {
        Ok(CelValue::Int(compare_versions(args)? as i64))
    }),
    member_function("isGreaterThan", &[SEMVER_TYPE, SEMVER_TYPE], Bool, |_, args| {
        Ok(CelValue::Bool(compare_versions(args)?.is_gt()))
    }),
    member_function("isLessThan", &[SEMVER_TYPE, SEMVER_TYPE], Bool, |_, args| {
        Ok(CelValue::Bool(compare_versions(args)?.is_lt()))
    }),
];

fn parse_argument(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'_>],
) -> Result<Option<SemanticVersion>, EvalFault> {
    let (text, lenient) = match args {
        [CelValue::Text(text)] => (text, false),
        [CelValue::Text(text), CelValue::Bool(lenient)] => (text, *lenient),
        _ => return Err(argument_mismatch(args)),
    };
    cx.meter.charge_allocation(text.len())?;
    Ok(SemanticVersion::parse_version(text, lenient))
}

fn convert_to_semver<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    parse_argument(cx, args)?
        .map(|version| CelValue::Semver(Rc::new(version)))
        .ok_or_else(|| EvalFault::from_message("no semantic version"))
}

fn is_semver<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    Ok(CelValue::Bool(parse_argument(cx, args)?.is_some()))
}

fn version_part<'t>(args: &[CelValue<'t>], at: usize) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Semver(version)] = args else { return Err(argument_mismatch(args)) };
    // Kubernetes wraps a number beyond int64 as well: `types.Int(v.Major)`.
    Ok(CelValue::Int(version.numbers[at].cast_signed()))
}

fn compare_versions(args: &[CelValue<'_>]) -> Result<Ordering, EvalFault> {
    match args {
        [CelValue::Semver(a), CelValue::Semver(b)] => Ok(a.cmp(b)),
        _ => Err(argument_mismatch(args)),
    }
}
