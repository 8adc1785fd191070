//! Converts JSON to Lua values as Argo CD does: null is nil, and a null in a list is left out.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use mlua::{Lua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use rollcall_cel::JsonKey;

use super::budget::ScriptBudget;

/// Maximum nesting depth: more than any real object, and shallow enough for the stack of any thread.
const MAX_OBJECT_DEPTH: u16 = 300;

const TOO_DEEP_MESSAGE: &str = "nested too deeply";

/// Deserializes one JSON value into Lua.
#[derive(Clone, Copy)]
pub(super) struct LuaValueSeed<'l> {
    lua: &'l Lua,
    budget: &'l ScriptBudget,
    depth: u16,
}

impl<'l> LuaValueSeed<'l> {
    pub(super) fn new(lua: &'l Lua, budget: &'l ScriptBudget) -> Self {
        LuaValueSeed { lua, budget, depth: 0 }
    }

    fn nested_seed<E: Error>(self) -> Result<Self, E> {
        if self.depth == MAX_OBJECT_DEPTH {
            return Err(E::custom(TOO_DEEP_MESSAGE));
        }
        Ok(LuaValueSeed { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for LuaValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        // The words do not matter: the budget knows the limit.
        self.budget.charge_read(0).map_err(D::Error::custom)?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LuaValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of Lua is a double")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of Lua is a double")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.budget.charge_read_text(value.len()).map_err(E::custom)?;
        self.lua.create_string(value).map(Value::String).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.nested_seed()?;
        let list =
            self.lua.create_table_with_capacity(capacity(items.size_hint()), 0).map_err(A::Error::custom)?;
        let mut at = 0;
        while let Some(item) = items.next_element_seed(inner)? {
            if !item.is_nil() {
                at += 1;
                list.raw_seti(at, item).map_err(A::Error::custom)?;
            }
        }
        Ok(Value::Table(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.nested_seed()?;
        let map =
            self.lua.create_table_with_capacity(0, capacity(fields.size_hint())).map_err(A::Error::custom)?;
        while let Some(key) = fields.next_key_seed(JsonKey)? {
            self.budget.charge_read(key.len()).map_err(A::Error::custom)?;
            let value = fields.next_value_seed(inner)?;
            map.raw_set(&*key, value).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(map))
    }
}

/// Room for a list or map of a known size; no more than is charged for a little later.
fn capacity(hint: Option<usize>) -> usize {
    hint.unwrap_or(0).min(1024)
}

/// One field of the object's top level.
struct LazyField {
    name: Box<str>,
    /// Its place in the text; `None` once it was read.
    range: Option<Range<usize>>,
}

/// The top level of the evaluated object: its text and the range of each field in it.
#[derive(Default)]
pub(super) struct LazyFields {
    text: RefCell<String>,
    /// Sorted by name: a search tree or a table without a secret in its hash would be as good, and a list that is
    /// walked for each field would not be.
    fields: RefCell<Vec<LazyField>>,
}

impl LazyFields {
    /// Sets a new object. Only its top level is scanned.
    pub(super) fn set_object(&self, json: &str, budget: &ScriptBudget) -> mlua::Result<()> {
        let mut fields = self.fields.borrow_mut();
        fields.clear();
        let mut text = self.text.borrow_mut();
        text.clear();
        budget.charge_read(json.len()).map_err(mlua::Error::runtime)?;
        text.push_str(json);
        serde_json::Deserializer::from_str(&text)
            .deserialize_map(FieldRangeVisitor { text: &text, fields: &mut fields, budget })
            .map_err(|error| unreadable(&error))?;
        // The last of duplicate keys wins.
        fields.reverse();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|earlier, last| earlier.name == last.name);
        Ok(())
    }

    /// Removes and returns a field; nil on a second call, and for a null.
    pub(super) fn take_field(&self, lua: &Lua, budget: &ScriptBudget, name: &[u8]) -> mlua::Result<Value> {
        let range = {
            let mut fields = self.fields.borrow_mut();
            let found = fields.binary_search_by(|field| field.name.as_bytes().cmp(name));
            found.ok().and_then(|at| fields[at].range.take())
        };
        range.map_or(Ok(Value::Nil), |range| self.read_range(lua, budget, range))
    }

    /// Moves every field that was not accessed yet into `object`.
    pub(super) fn take_all_fields(
        &self,
        lua: &Lua,
        budget: &ScriptBudget,
        object: &Table,
    ) -> mlua::Result<()> {
        for LazyField { name, range } in self.fields.take() {
            if let Some(range) = range {
                object.raw_set(&*name, self.read_range(lua, budget, range)?)?;
            }
        }
        Ok(())
    }

    /// Drops the object and its oversized buffers.
    pub(super) fn clear(&self) {
        let mut fields = self.fields.borrow_mut();
        fields.clear();
        fields.shrink_to(64);
        let mut text = self.text.borrow_mut();
        text.clear();
        text.shrink_to(64 * 1024);
    }

    fn read_range(&self, lua: &Lua, budget: &ScriptBudget, range: Range<usize>) -> mlua::Result<Value> {
        let text = self.text.borrow();
        let mut json = serde_json::Deserializer::from_str(&text[range]);
        json.disable_recursion_limit();
        // The budget of reading bounds this, and without a limit the interpreter need not check every allocation.
        let limit = lua.set_memory_limit(0)?;
        let value = budget.while_reading(|| LuaValueSeed::new(lua, budget).deserialize(&mut json));
        lua.set_memory_limit(limit)?;
        value.map_err(|error| unreadable(&error))
    }
}

/// An object that cannot be read. The parser's own words may quote what it found.
pub(super) fn unreadable(error: &serde_json::Error) -> mlua::Error {
    mlua::Error::runtime(match error.classify() {
        Category::Data if error.to_string().starts_with(TOO_DEEP_MESSAGE) => {
            format!("the object is {TOO_DEEP_MESSAGE}")
        }
        Category::Data => "the object is no map".to_owned(),
        _ => format!("the object is no JSON at line {} column {}", error.line(), error.column()),
    })
}

struct FieldRangeVisitor<'a> {
    text: &'a str,
    fields: &'a mut Vec<LazyField>,
    budget: &'a ScriptBudget,
}

impl<'de> Visitor<'de> for FieldRangeVisitor<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key_seed(JsonKey)? {
            self.budget.charge_read(key.len()).map_err(A::Error::custom)?;
            let value: &RawValue = fields.next_value()?;
            let start = value.get().as_ptr().addr() - self.text.as_ptr().addr();
            self.fields.push(LazyField { name: key.into(), range: Some(start..start + value.get().len()) });
        }
        Ok(())
    }
}
