//! What a script returned, read as Argo CD reads it: encoded to JSON, decoded into two strings.

use mlua::{Table, Value};

use super::budget::Limit;
use crate::PeerVerdict;

/// Longer messages are not worth keeping.
const MESSAGE: usize = 64 * 1024;

/// More values than any result has; what a script returns is walked whole, because one bad value spoils it.
const VALUES: usize = 10_000;

/// Why a result is no verdict.
#[derive(Debug)]
pub(super) enum Unusable {
    /// Argo CD's encoder would fail too.
    Malformed(String),
    Limit(Limit),
}

const CODES: [&str; 6] = ["Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown"];

/// The verdict in `returned`, whose last value counts.
pub(super) fn verdict(returned: Option<Value>) -> Result<PeerVerdict, Unusable> {
    let table = match returned {
        None | Some(Value::Nil) => return Ok(silent()),
        Some(Value::Table(table)) => table,
        Some(other) => {
            let kind = other.type_name();
            return Err(Unusable::Malformed(format!("the script returned a {kind}, not a table")));
        }
    };
    let mut walk = Walk { seen: Vec::new(), left: VALUES };
    // An array, empty or not, does not decode into a struct: that counts as an empty answer.
    let Shape::Map = walk.table(&table)? else { return Ok(silent()) };
    let mut keys: Vec<_> = pairs(&table)?;
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut status, mut message) = (String::new(), String::new());
    for (key, value) in keys {
        // Go matches a field's name in any case; the last in order wins.
        let target = match key.to_ascii_lowercase().as_slice() {
            b"status" => &mut status,
            b"message" => &mut message,
            _ => continue,
        };
        let Value::String(text) = value else { return Ok(silent()) };
        if text.as_bytes().len() > MESSAGE {
            return Err(Unusable::Limit(Limit::Size));
        }
        *target = text.to_string_lossy();
    }
    Ok(match CODES.into_iter().find(|code| *code == status) {
        Some(code) => PeerVerdict { status: Some(code), message },
        None => PeerVerdict {
            status: Some("Unknown"),
            message: "Lua returned an invalid health status".to_owned(),
        },
    })
}

fn silent() -> PeerVerdict {
    PeerVerdict { status: None, message: String::new() }
}

fn pairs(table: &Table) -> Result<Vec<(Vec<u8>, Value)>, Unusable> {
    let mut all = Vec::new();
    for pair in table.pairs::<mlua::LuaString, Value>() {
        let (key, value) = pair.map_err(|error| Unusable::Malformed(error.to_string()))?;
        all.push((key.as_bytes().to_vec(), value));
    }
    Ok(all)
}

enum Shape {
    List,
    Map,
}

/// Checks that everything below a table can be encoded. A table met twice cannot, even without a circle.
struct Walk {
    seen: Vec<*const std::ffi::c_void>,
    left: usize,
}

impl Walk {
    fn table(&mut self, table: &Table) -> Result<Shape, Unusable> {
        let malformed = |text: &str| Err(Unusable::Malformed(text.to_owned()));
        if self.seen.contains(&table.to_pointer()) {
            return malformed("the result holds one table twice");
        }
        self.seen.push(table.to_pointer());
        if self.seen.len() > 200 {
            return Err(Unusable::Limit(Limit::Size));
        }
        let (mut numbers, mut texts, mut highest) = (0, 0, 0);
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|error| Unusable::Malformed(error.to_string()))?;
            self.left = self.left.checked_sub(1).ok_or(Unusable::Limit(Limit::Size))?;
            match key {
                Value::String(_) => texts += 1,
                Value::Integer(at) => (numbers, highest) = (numbers + 1, highest.max(at)),
                Value::Number(at) if at >= 1.0 && at.fract() == 0.0 => {
                    (numbers, highest) = (numbers + 1, highest.max(at as i64));
                }
                _ => return malformed("the result has keys that are neither texts nor places"),
            }
            self.value(&value)?;
        }
        match (numbers, texts) {
            (0, 0) => Ok(Shape::List),
            (0, _) => Ok(Shape::Map),
            (_, 0) if highest == numbers => Ok(Shape::List),
            _ => malformed("the result mixes keys, or has a list with gaps"),
        }
    }

    fn value(&mut self, value: &Value) -> Result<(), Unusable> {
        match value {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::String(_) => Ok(()),
            Value::Number(number) if number.is_finite() => Ok(()),
            Value::Table(table) => self.table(table).map(|_| ()),
            other => Err(Unusable::Malformed(format!("the result holds a {}", other.type_name()))),
        }
    }
}
