//! The machine that runs scripts: one per thread and kind of library access, each call in a world of its own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use memchr::memmem;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, VmState};
use readiness::Time;
use rustc_hash::FxHashMap;
use serde::de::DeserializeSeed;

use super::budget::{Budget, Limit};
use super::dialect::LINE;
use super::object::{Fields, IntoLua};
use super::result::{self, Unusable};
use super::{Object, Outcome, Script, clock};
use crate::PeerVerdict;

/// Beside what the object itself needs.
const MEMORY: usize = 8 << 20;

/// Scripts that one machine keeps loaded; a machine that has seen more begins anew.
const SCRIPTS: usize = 1024;

pub(super) struct Machine {
    lua: Lua,
    functions: FxHashMap<u64, Function>,
    /// Metatable of each call's globals: what is not set there is looked up in the read-only base.
    behind: Table,
    /// Metatable of an object whose fields are read on first touch.
    lazy: Table,
    native: Native,
}

/// What the functions that a script calls share with the machine.
#[derive(Clone, Default)]
struct Native {
    budget: Budget,
    fields: Rc<Fields>,
    now: Rc<Cell<Time>>,
}

/// How a call ended that did not end with a value.
pub(super) enum Failed {
    /// The script's own error.
    Error(String),
    Limit(Limit),
}

thread_local! {
    static MACHINES: [RefCell<Option<Machine>>; 2] = const { [RefCell::new(None), RefCell::new(None)] };
}

/// Runs `script` over `object` on this thread's machine.
pub(super) fn run(script: &Script, object: Object<'_>, now: Time) -> Outcome {
    MACHINES.with(|machines| {
        let mut slot = machines[usize::from(script.open)].borrow_mut();
        let mut outcome = attempt(&mut slot, script, object, now);
        // A call that lost its time after a few steps was not slow: the thread was.
        if outcome.limit == Some(Limit::Time) && outcome.steps < 100 {
            outcome = attempt(&mut slot, script, object, now);
        }
        outcome
    })
}

fn attempt(slot: &mut Option<Machine>, script: &Script, object: Object<'_>, now: Time) -> Outcome {
    if slot.as_ref().is_some_and(|machine| machine.functions.len() >= SCRIPTS) {
        *slot = None;
    }
    let machine = match slot {
        Some(machine) => machine,
        None => match Machine::new(script.open) {
            Ok(machine) => slot.insert(machine),
            Err(error) => return Outcome::failed(Failed::Error(format!("failed to start Lua: {error}"))),
        },
    };
    let outcome = machine.judge(script, object, now);
    if outcome.limit.is_some() {
        // What a script left behind that had to be stopped is not worth cleaning up.
        *slot = None;
    }
    outcome
}

impl Machine {
    fn new(open: bool) -> mlua::Result<Machine> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::COROUTINE;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let native = Native::default();
        let prelude = lua.load(include_str!("prelude.luau")).set_name("=prelude").into_function()?;
        let base: Table = prelude.call(native.functions(&lua, open)?)?;
        let strings = match base.raw_get::<Option<Table>>("string")? {
            Some(library) => {
                let meta = lua.create_table_from([("__index", library)])?;
                meta.set_readonly(true);
                Some(meta)
            }
            None => None,
        };
        lua.set_type_metatable::<LuaString>(strings);
        let behind = lua.create_table_from([("__index", base)])?;
        let lazy = native.lazy(&lua)?;
        let budget = native.budget.clone();
        lua.set_interrupt(move |_| match budget.step() {
            Ok(()) => Ok(VmState::Continue),
            Err(limit) => Err(mlua::Error::runtime(limit)),
        });
        Ok(Machine { lua, functions: FxHashMap::default(), behind, lazy, native })
    }

    fn judge(&mut self, script: &Script, object: Object<'_>, now: Time) -> Outcome {
        self.native.now.set(now);
        let called = self.call(script, object);
        self.native.budget.close();
        self.native.fields.clear();
        let (steps, spent) = (self.native.budget.steps(), self.native.budget.spent());
        let (verdict, line) = match (spent, called) {
            (Some(limit), _) => (Err(Failed::Limit(limit)), None),
            (None, Ok((returned, line))) => (result::verdict(returned).map_err(Failed::from), line),
            (None, Err(mlua::Error::MemoryError(_))) => (Err(Failed::Limit(Limit::Memory)), None),
            (None, Err(error)) => (Err(Failed::of(&error)), None),
        };
        match verdict {
            Ok(verdict) => Outcome { verdict, line, limit: None, failed: false, steps },
            Err(failed) => Outcome { steps, ..Outcome::failed(failed) },
        }
    }

    fn call(&mut self, script: &Script, object: Object<'_>) -> mlua::Result<(Option<Value>, Option<u32>)> {
        // Room for this object, on top of what the machine holds anyway; garbage of former calls goes first.
        self.lua.set_memory_limit(0)?;
        if self.lua.used_memory() > MEMORY {
            self.lua.gc_collect()?;
        }
        let function = self.load(script)?;
        let globals = self.lua.create_table_with_capacity(0, 8)?;
        globals.set_metatable(Some(self.behind.clone()))?;
        globals.raw_set("_G", &globals)?;
        globals.raw_set("actionParams", self.lua.create_table()?)?;
        globals.raw_set("obj", self.object(object)?)?;
        function.set_environment(globals.clone())?;
        self.lua.set_memory_limit(self.lua.used_memory() + MEMORY + 8 * object.size())?;
        self.native.budget.open();
        let mut returned: MultiValue = function.call(())?;
        let last = returned.pop_back();
        self.native.budget.close();
        if let Some(Value::Table(table)) = &last
            && table.metatable().as_ref() == Some(&self.lazy)
        {
            self.native.fields.take_all(&self.lua, table)?;
        }
        Ok((last, globals.raw_get::<Option<u32>>(LINE)?))
    }

    fn load(&mut self, script: &Script) -> mlua::Result<Function> {
        if let Some(function) = self.functions.get(&script.id) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(script.code.as_slice()).set_mode(ChunkMode::Binary);
        let function = chunk.set_name(format!("={}", script.name)).into_function()?;
        self.functions.insert(script.id, function.clone());
        Ok(function)
    }

    fn object(&self, object: Object<'_>) -> mlua::Result<Value> {
        match object {
            Object::Tree(tree) => IntoLua::new(&self.lua).deserialize(tree).map_err(mlua::Error::external),
            Object::Text(json) => {
                self.native.fields.set(json).map_err(mlua::Error::external)?;
                let table = self.lua.create_table_with_capacity(0, 8)?;
                table.set_metatable(Some(self.lazy.clone()))?;
                Ok(Value::Table(table))
            }
        }
    }
}

impl Native {
    /// A field is read when a script first asks for it. Setting one that was not read makes the old one vanish.
    fn lazy(&self, lua: &Lua) -> mlua::Result<Table> {
        let fields = Rc::clone(&self.fields);
        let index = lua.create_function(move |lua, (object, key): (Table, Value)| {
            let Value::String(name) = &key else { return Ok(Value::Nil) };
            let value = fields.take(lua, &name.as_bytes())?;
            if !value.is_nil() {
                object.raw_set(key, &value)?;
            }
            Ok(value)
        })?;
        let fields = Rc::clone(&self.fields);
        let set = lua.create_function(move |lua, (object, key, value): (Table, Value, Value)| {
            if let Value::String(name) = &key {
                fields.take(lua, &name.as_bytes())?;
            }
            object.raw_set(key, value)
        })?;
        let lazy = lua.create_table()?;
        lazy.raw_set("__index", index)?;
        lazy.raw_set("__newindex", set)?;
        lazy.raw_set("__metatable", false)?;
        Ok(lazy)
    }

    /// What the prelude builds on.
    fn functions(&self, lua: &Lua, open: bool) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.raw_set("globals", lua.globals())?;
        table.raw_set("open", open)?;
        let budget = self.budget.clone();
        table.raw_set(
            "too_much",
            lua.create_function(move |_, ()| Err::<(), _>(mlua::Error::runtime(budget.spend(Limit::Size))))?,
        )?;
        let fields = Rc::clone(&self.fields);
        table.raw_set(
            "whole",
            lua.create_function(move |lua, object: Table| {
                object.set_metatable(None)?;
                fields.take_all(lua, &object)
            })?,
        )?;
        table.raw_set("find", lua.create_function(|_, args| Ok(find(&args)))?)?;
        table.raw_set("number", lua.create_function(|_, number: f64| Ok(number_text(number)))?)?;
        let now = Rc::clone(&self.now);
        table.raw_set(
            "time",
            lua.create_function(move |_, fields: Option<Table>| clock::time(now.get(), fields.as_ref()))?,
        )?;
        let now = Rc::clone(&self.now);
        table.raw_set(
            "date",
            lua.create_function(move |lua, (format, at): (Option<String>, Option<f64>)| {
                clock::date(lua, now.get(), format.as_deref(), at)
            })?,
        )?;
        Ok(table)
    }
}

/// `string.find` of a plain text in time that grows with the sum of both lengths, not with their product.
fn find((text, part, init): &(LuaString, LuaString, Option<i64>)) -> (Option<usize>, Option<usize>) {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let length = text.len() as i64;
    let start = match init.unwrap_or(1) {
        init if init < 0 => (length + init).max(0),
        init => (init - 1).max(0),
    };
    let Some(rest) = text.get(start as usize..) else { return (None, None) };
    match memmem::find(rest, &part) {
        Some(at) => {
            let first = start as usize + at + 1;
            (Some(first), Some(first + part.len() - 1))
        }
        None => (None, None),
    }
}

/// A number as gopher-lua prints it: integers in full, fractions as Go's `%v`.
fn number_text(number: f64) -> String {
    const INTEGERS: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if number.fract() == 0.0 && INTEGERS.contains(&number) {
        return (number as i64).to_string();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..6 => number.to_string(),
        exponent if exponent < 0 => format!("{digits}e-{:02}", -exponent),
        exponent => format!("{digits}e+{exponent:02}"),
    }
}

/// An error's own line, without the stack below it.
fn words(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::CallbackError { cause, .. } => return words(cause),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
}

impl Failed {
    fn of(error: &mlua::Error) -> Failed {
        let words = words(error);
        if words.ends_with("stack overflow") { Failed::Limit(Limit::Depth) } else { Failed::Error(words) }
    }
}

impl From<Unusable> for Failed {
    fn from(unusable: Unusable) -> Failed {
        match unusable {
            Unusable::Malformed(text) => Failed::Error(text),
            Unusable::Limit(limit) => Failed::Limit(limit),
        }
    }
}

impl Outcome {
    fn failed(failed: Failed) -> Outcome {
        let (limit, message) = match failed {
            Failed::Error(message) => (None, message),
            Failed::Limit(limit) => (Some(limit), format!("the script was stopped: {limit}")),
        };
        let verdict = PeerVerdict { status: Some("Unknown"), message };
        Outcome { verdict, line: None, limit, failed: true, steps: 0 }
    }
}
