//! JSON as Lua values, the way Argo CD hands it to a script: null is nil, and a null in a list is left out.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use mlua::{Lua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::key::Key;

/// Deeper than any object that means something, and shallow enough for the stack of any thread.
const DEPTH: u16 = 300;

/// Reads one JSON value into Lua.
#[derive(Clone, Copy)]
pub(super) struct IntoLua<'l> {
    lua: &'l Lua,
    depth: u16,
}

impl<'l> IntoLua<'l> {
    pub(super) fn new(lua: &'l Lua) -> Self {
        IntoLua { lua, depth: 0 }
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth == DEPTH {
            return Err(E::custom(format!("nested deeper than {DEPTH} levels")));
        }
        Ok(IntoLua { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for IntoLua<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IntoLua<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

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
        self.lua.create_string(value).map(Value::String).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let list = self
            .lua
            .create_table_with_capacity(items.size_hint().unwrap_or(0), 0)
            .map_err(A::Error::custom)?;
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
        let inner = self.deeper()?;
        let map = self
            .lua
            .create_table_with_capacity(0, fields.size_hint().unwrap_or(0))
            .map_err(A::Error::custom)?;
        while let Some(key) = fields.next_key_seed(Key)? {
            let value = fields.next_value_seed(inner)?;
            map.raw_set(&*key, value).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(map))
    }
}

/// The top level of the object that is being judged: its text and, by name, where each field lies in it.
#[derive(Default)]
pub(super) struct Fields {
    text: RefCell<String>,
    ranges: RefCell<Vec<(String, Range<usize>)>>,
}

impl Fields {
    /// Takes a new object. Nothing but its top level is read.
    pub(super) fn set(&self, json: &str) -> Result<(), serde_json::Error> {
        let mut ranges = self.ranges.borrow_mut();
        ranges.clear();
        let mut text = self.text.borrow_mut();
        text.clear();
        text.push_str(json);
        serde_json::Deserializer::from_str(&text)
            .deserialize_map(TopLevel { text: &text, ranges: &mut ranges })
    }

    /// Gives the field away; a second time it is not there. A null is not there either.
    pub(super) fn take(&self, lua: &Lua, name: &[u8]) -> mlua::Result<Value> {
        let range = {
            let mut ranges = self.ranges.borrow_mut();
            let Some(at) = ranges.iter().position(|(key, _)| key.as_bytes() == name) else {
                return Ok(Value::Nil);
            };
            ranges.swap_remove(at).1
        };
        self.read(lua, range)
    }

    /// Moves every field that nobody touched yet into `object`.
    pub(super) fn take_all(&self, lua: &Lua, object: &Table) -> mlua::Result<()> {
        for (name, range) in self.ranges.take() {
            object.raw_set(name, self.read(lua, range)?)?;
        }
        Ok(())
    }

    /// Drops the object. Large buffers are not kept for small ones.
    pub(super) fn clear(&self) {
        self.ranges.borrow_mut().clear();
        let mut text = self.text.borrow_mut();
        text.clear();
        text.shrink_to(64 * 1024);
    }

    fn read(&self, lua: &Lua, range: Range<usize>) -> mlua::Result<Value> {
        let text = self.text.borrow();
        let mut json = serde_json::Deserializer::from_str(&text[range]);
        json.disable_recursion_limit();
        // The object's own size bounds this, and without a limit the machine need not guard every single allocation.
        let limit = lua.set_memory_limit(0)?;
        let value = IntoLua::new(lua).deserialize(&mut json).map_err(mlua::Error::external);
        lua.set_memory_limit(limit)?;
        value
    }
}

struct TopLevel<'a> {
    text: &'a str,
    ranges: &'a mut Vec<(String, Range<usize>)>,
}

impl<'de> Visitor<'de> for TopLevel<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<String>()? {
            let value: &RawValue = fields.next_value()?;
            let start = value.get().as_ptr().addr() - self.text.as_ptr().addr();
            let range = start..start + value.get().len();
            // Of a key that is there twice the last one counts, as everywhere.
            match self.ranges.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = range,
                None => self.ranges.push((key, range)),
            }
        }
        Ok(())
    }
}
