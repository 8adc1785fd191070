//! Keys of maps: found by comparing them, which is charged by what is compared.

use crate::fault::EvalFault;
use crate::json_tree::JsonFields;
use crate::meter::CostMeter;
use crate::value::{CelMap, CelValue, is_same_key};

/// Longest key whose comparison is part of the step that finds it.
const SHORT_KEY_BYTES: usize = 64;

/// Returns the value of a key of any type. A constructed map is searched linearly.
pub(crate) fn lookup_key<'t>(
    meter: &CostMeter,
    map: &CelMap<'t>,
    key: &CelValue<'t>,
) -> Result<Option<CelValue<'t>>, EvalFault> {
    match map {
        CelMap::Borrowed(fields) => {
            meter.charge_steps(1)?;
            let CelValue::Text(name) = key else { return Ok(None) };
            lookup_field(meter, fields, name)
        }
        CelMap::Shared(entries) => {
            let found = find_entry(meter, entries, key, is_same_key)?;
            Ok(found.map(|at| entries[at].1.clone()))
        }
    }
}

/// Returns a field of the object. A short name costs nothing beside the step of its expression.
pub(crate) fn lookup_field<'t>(
    meter: &CostMeter,
    fields: &'t JsonFields<'t>,
    name: &str,
) -> Result<Option<CelValue<'t>>, EvalFault> {
    if name.len() > SHORT_KEY_BYTES {
        let compared_names = (usize::BITS - fields.len().leading_zeros()) as usize;
        meter.charge_steps(name.len().saturating_mul(compared_names) / 64)?;
    }
    Ok(fields.get(name).map(CelValue::from_tree))
}

/// Returns the index of a key in a map that is being made: keys of different types are different ones there.
pub(crate) fn find_made_key<'t>(
    meter: &CostMeter,
    made: &[(CelValue<'t>, CelValue<'t>)],
    key: &CelValue<'t>,
) -> Result<Option<usize>, EvalFault> {
    let is_key = |known: &CelValue<'_>, key: &CelValue<'_>| {
        known.cel_type() == key.cel_type() && is_same_key(known, key)
    };
    find_entry(meter, made, key, is_key)
}

fn find_entry<'t>(
    meter: &CostMeter,
    entries: &[(CelValue<'t>, CelValue<'t>)],
    key: &CelValue<'t>,
    is_key: impl Fn(&CelValue<'_>, &CelValue<'_>) -> bool,
) -> Result<Option<usize>, EvalFault> {
    meter.charge_steps(1 + entries.len() / 4)?;
    for (at, (known, _)) in entries.iter().enumerate() {
        if let (CelValue::Text(known), CelValue::Text(key)) = (known, key)
            && known.len() == key.len()
            && key.len() > SHORT_KEY_BYTES
        {
            meter.charge_steps(key.len() / 64)?;
        }
        if is_key(known, key) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}
