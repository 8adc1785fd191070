//! Reads a script's result as Argo CD does: encoded to JSON, decoded into two strings.

use mlua::{Table, Value};
use rollcall_cel::CostLimit;

use crate::peer_verdict::PeerVerdict;

/// Maximum length of a message; longer ones are truncated.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Maximum number of values in a result. A result is walked completely, because one invalid value spoils it.
const MAX_RESULT_VALUES: usize = 10_000;

/// Error for a result that is no verdict.
#[derive(Debug)]
pub(super) enum UnusableResult {
    /// A result that Argo CD's encoder cannot encode either.
    Malformed(String),
    Limit(CostLimit),
}

const HEALTH_CODES: [&str; 6] = ["Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown"];

/// Reads the verdict in `returned`, whose last value counts.
pub(super) fn read_verdict(returned: Option<Value>) -> Result<PeerVerdict, UnusableResult> {
    let table = match returned {
        None | Some(Value::Nil) => return Ok(no_verdict()),
        Some(Value::Table(table)) => table,
        Some(other) => {
            let kind = other.type_name();
            return Err(UnusableResult::Malformed(format!("the script returned a {kind}, not a table")));
        }
    };
    let mut walk = ResultWalk { seen: Vec::new(), left: MAX_RESULT_VALUES };
    // An array, empty or not, does not decode into a struct: it counts as an empty answer.
    let TableShape::Map = walk.check_table(&table)? else { return Ok(no_verdict()) };
    let mut keys: Vec<_> = table_pairs(&table)?;
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut status, mut message) = (String::new(), String::new());
    for (key, value) in keys {
        // Go matches field names in any case; the last one in order wins.
        let target = match key.to_ascii_lowercase().as_slice() {
            b"status" => &mut status,
            b"message" => &mut message,
            _ => continue,
        };
        let Value::String(text) = value else { return Ok(no_verdict()) };
        if text.as_bytes().len() > MAX_MESSAGE_BYTES {
            return Err(UnusableResult::Limit(CostLimit::Size));
        }
        *target = text.to_string_lossy();
    }
    Ok(match HEALTH_CODES.into_iter().find(|code| *code == status) {
        Some(code) => PeerVerdict { status: Some(code), message },
        None => PeerVerdict {
            status: Some("Unknown"),
            message: "Lua returned an invalid health status".to_owned(),
        },
    })
}

fn no_verdict() -> PeerVerdict {
    PeerVerdict { status: None, message: String::new() }
}

fn table_pairs(table: &Table) -> Result<Vec<(Vec<u8>, Value)>, UnusableResult> {
    let mut all = Vec::new();
    for pair in table.pairs::<mlua::LuaString, Value>() {
        let (key, value) = pair.map_err(|error| UnusableResult::Malformed(error.to_string()))?;
        all.push((key.as_bytes().to_vec(), value));
    }
    Ok(all)
}

enum TableShape {
    List,
    Map,
}

/// Checks that everything below a table can be encoded. A table met twice cannot, even without a cycle.
struct ResultWalk {
    seen: Vec<*const std::ffi::c_void>,
    left: usize,
}

/// Converts a whole number to the index of a list. One beyond every list saturates.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn list_index(at: f64) -> i64 {
    at as i64
}

impl ResultWalk {
    fn check_table(&mut self, table: &Table) -> Result<TableShape, UnusableResult> {
        let malformed = |text: &str| Err(UnusableResult::Malformed(text.to_owned()));
        if self.seen.contains(&table.to_pointer()) {
            return malformed("the result holds one table twice");
        }
        self.seen.push(table.to_pointer());
        if self.seen.len() > 200 {
            return Err(UnusableResult::Limit(CostLimit::Size));
        }
        let (mut numbers, mut texts, mut highest) = (0, 0, 0);
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|error| UnusableResult::Malformed(error.to_string()))?;
            self.left = self.left.checked_sub(1).ok_or(UnusableResult::Limit(CostLimit::Size))?;
            match key {
                Value::String(_) => texts += 1,
                Value::Integer(at) => (numbers, highest) = (numbers + 1, highest.max(at)),
                Value::Number(at) if at >= 1.0 && at.fract() == 0.0 => {
                    (numbers, highest) = (numbers + 1, highest.max(list_index(at)));
                }
                _ => return malformed("the result has keys that are neither strings nor list indices"),
            }
            self.check_value(&value)?;
        }
        match (numbers, texts) {
            (0, 0) => Ok(TableShape::List),
            (0, _) => Ok(TableShape::Map),
            (_, 0) if highest == numbers => Ok(TableShape::List),
            _ => malformed("the result mixes keys, or has a list with gaps"),
        }
    }

    fn check_value(&mut self, value: &Value) -> Result<(), UnusableResult> {
        match value {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::String(_) => Ok(()),
            Value::Number(number) if number.is_finite() => Ok(()),
            Value::Table(table) => self.check_table(table).map(|_| ()),
            other => Err(UnusableResult::Malformed(format!("the result holds a {}", other.type_name()))),
        }
    }
}
