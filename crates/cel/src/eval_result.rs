//! Result of an evaluation.

use crate::fault::EvalFault;
use crate::value::CelValue;

pub(crate) type ValueResult<'t> = std::result::Result<CelValue<'t>, EvalFault>;
