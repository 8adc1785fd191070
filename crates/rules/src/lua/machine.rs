//! The interpreter that runs scripts: one per thread and set of libraries, with separate globals for each call.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use memchr::memmem;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, VmState};
use readiness::Time;
use rollcall_cel::{CostLimit, ObjectJson};
use rustc_hash::FxHashMap;
use serde::de::DeserializeSeed;

use super::budget::ScriptBudget;
use super::clock::{self, ScriptClock};
use super::compiled_script::CompiledScript;
use super::dialect::LINE_GLOBAL;
use super::failure::ScriptFailure;
use super::object::{LazyFields, LuaValueSeed, unreadable};
use super::outcome::ScriptOutcome;
use super::result;

/// Memory limit of a call, in addition to the object's own size.
const MAX_SCRIPT_MEMORY: usize = 8 << 20;

/// Maximum number of scripts that one interpreter keeps loaded; beyond it the interpreter is recreated.
const MAX_LOADED_SCRIPTS: usize = 1024;

pub(super) struct LuaMachine {
    lua: Lua,
    functions: FxHashMap<u64, Function>,
    /// Metatable of each call's globals: names that are not set there are looked up in the read-only base.
    globals_metatable: Table,
    /// Metatable of an object whose fields are read on first access.
    lazy_metatable: Table,
    native: NativeState,
}

/// State shared by the interpreter and the native functions that a script calls.
#[derive(Clone, Default)]
struct NativeState {
    budget: ScriptBudget,
    fields: Rc<LazyFields>,
    clock: Rc<ScriptClock>,
    /// The call has drawn a random number.
    has_drawn: Rc<Cell<bool>>,
}

thread_local! {
    static MACHINES: [RefCell<Option<LuaMachine>>; 2] = const { [RefCell::new(None), RefCell::new(None)] };
}

/// Runs a script on this thread's interpreter.
pub(super) fn run_script(script: &CompiledScript, object: ObjectJson<'_>, now: Time) -> ScriptOutcome {
    MACHINES.with(|machines| {
        let mut slot = machines[usize::from(script.open)].borrow_mut();
        let mut outcome = attempt_call(&mut slot, script, object, now);
        // A call that ran out of time after a few steps was not slow: its thread was descheduled.
        if outcome.limit == Some(CostLimit::Time) && outcome.steps < 100 {
            outcome = attempt_call(&mut slot, script, object, now);
        }
        outcome
    })
}

fn attempt_call(
    slot: &mut Option<LuaMachine>,
    script: &CompiledScript,
    object: ObjectJson<'_>,
    now: Time,
) -> ScriptOutcome {
    if slot.as_ref().is_some_and(|machine| machine.functions.len() >= MAX_LOADED_SCRIPTS) {
        *slot = None;
    }
    let machine = match slot {
        Some(machine) => machine,
        None => match LuaMachine::new(script.open) {
            Ok(machine) => slot.insert(machine),
            Err(error) => {
                return ScriptOutcome::from_failure(ScriptFailure::Error(format!(
                    "failed to start Lua: {error}"
                )));
            }
        },
    };
    let outcome = machine.judge_object(script, object, now);
    if outcome.limit.is_some() {
        // After a stopped script the interpreter is dropped instead of cleaned up.
        *slot = None;
    }
    outcome
}

impl LuaMachine {
    fn new(open: bool) -> mlua::Result<LuaMachine> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::COROUTINE;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let native = NativeState::default();
        let prelude = lua.load(include_str!("prelude.luau")).set_name("=prelude").into_function()?;
        let base: Table = prelude.call(native.prelude_functions(&lua, open)?)?;
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
        behind.set_readonly(true);
        let lazy = native.create_lazy_metatable(&lua)?;
        let budget = native.budget.clone();
        lua.set_interrupt(move |_| match budget.charge_step() {
            Ok(()) => Ok(VmState::Continue),
            Err(limit) => Err(mlua::Error::runtime(limit)),
        });
        Ok(LuaMachine {
            lua,
            functions: FxHashMap::default(),
            globals_metatable: behind,
            lazy_metatable: lazy,
            native,
        })
    }

    fn judge_object(&mut self, script: &CompiledScript, object: ObjectJson<'_>, now: Time) -> ScriptOutcome {
        self.native.clock.start(now);
        self.native.has_drawn.set(false);
        let called = self.call_script(script, object);
        self.native.budget.end_call();
        self.native.fields.clear();
        let (steps, spent) = (self.native.budget.steps_taken(), self.native.budget.spent_limit());
        let (verdict, line) = match (spent, called) {
            (Some(limit), _) => (Err(ScriptFailure::Limit(limit)), None),
            (None, Ok((returned, line))) => {
                (result::read_verdict(returned).map_err(ScriptFailure::from), line)
            }
            (None, Err(mlua::Error::MemoryError(_))) => (Err(ScriptFailure::Limit(CostLimit::Memory)), None),
            (None, Err(error)) => (Err(ScriptFailure::from_lua_error(&error, script)), None),
        };
        let reads_clock = self.native.clock.was_read();
        match verdict {
            Ok(verdict) => ScriptOutcome { verdict, line, limit: None, failed: false, reads_clock, steps },
            Err(failed) => ScriptOutcome { reads_clock, steps, ..ScriptOutcome::from_failure(failed) },
        }
    }

    fn call_script(
        &mut self,
        script: &CompiledScript,
        object: ObjectJson<'_>,
    ) -> mlua::Result<(Option<Value>, Option<u32>)> {
        // Sets a limit for this object on top of the interpreter's own memory; garbage of former calls is collected
        // first.
        self.lua.set_memory_limit(0)?;
        if self.lua.used_memory() > MAX_SCRIPT_MEMORY {
            self.lua.gc_collect()?;
        }
        self.native.budget.open();
        let function = self.load_script(script)?;
        let globals = self.lua.create_table_with_capacity(0, 8)?;
        globals.set_metatable(Some(self.globals_metatable.clone()))?;
        globals.raw_set("_G", &globals)?;
        globals.raw_set("actionParams", self.lua.create_table()?)?;
        let object_value = self.native.budget.while_reading(|| self.object_value(object))?;
        globals.raw_set("obj", object_value)?;
        function.set_environment(globals.clone())?;
        self.lua.set_memory_limit(self.lua.used_memory() + MAX_SCRIPT_MEMORY + 8 * object.text_size())?;
        self.native.budget.start_call();
        let mut returned: MultiValue = function.call(())?;
        let last = returned.pop_back();
        self.native.budget.end_call();
        if let Some(Value::Table(table)) = &last
            && table.metatable().as_ref() == Some(&self.lazy_metatable)
        {
            self.native.fields.take_all_fields(&self.lua, &self.native.budget, table)?;
        }
        Ok((last, globals.raw_get::<Option<u32>>(LINE_GLOBAL)?))
    }

    fn load_script(&mut self, script: &CompiledScript) -> mlua::Result<Function> {
        if let Some(function) = self.functions.get(&script.id) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(script.code.as_slice()).set_mode(ChunkMode::Binary);
        let function = chunk.set_name(format!("={}", script.name)).into_function()?;
        self.functions.insert(script.id, function.clone());
        Ok(function)
    }

    fn object_value(&self, object: ObjectJson<'_>) -> mlua::Result<Value> {
        match object {
            ObjectJson::Tree(tree) => {
                let seed = LuaValueSeed::new(&self.lua, &self.native.budget);
                seed.deserialize(tree).map_err(|error| unreadable(&error))
            }
            ObjectJson::Text(json) => {
                self.native.fields.set_object(json, &self.native.budget)?;
                let table = self.lua.create_table_with_capacity(0, 8)?;
                table.set_metatable(Some(self.lazy_metatable.clone()))?;
                Ok(Value::Table(table))
            }
        }
    }
}

impl NativeState {
    /// Creates a metatable that reads a field when a script first accesses it. Setting a field that was not read
    /// discards the old value.
    fn create_lazy_metatable(&self, lua: &Lua) -> mlua::Result<Table> {
        let (fields, budget) = (Rc::clone(&self.fields), self.budget.clone());
        let index = lua.create_function(move |lua, (object, key): (Table, Value)| {
            let Value::String(name) = &key else { return Ok(Value::Nil) };
            let value = fields.take_field(lua, &budget, &name.as_bytes())?;
            if !value.is_nil() {
                object.raw_set(key, &value)?;
            }
            Ok(value)
        })?;
        let (fields, budget) = (Rc::clone(&self.fields), self.budget.clone());
        let set = lua.create_function(move |lua, (object, key, value): (Table, Value, Value)| {
            if let Value::String(name) = &key {
                fields.take_field(lua, &budget, &name.as_bytes())?;
            }
            object.raw_set(key, value)
        })?;
        let lazy = lua.create_table()?;
        lazy.raw_set("__index", index)?;
        lazy.raw_set("__newindex", set)?;
        lazy.raw_set("__metatable", false)?;
        Ok(lazy)
    }

    /// Returns the native functions that the prelude uses.
    fn prelude_functions(&self, lua: &Lua, open: bool) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.raw_set("globals", lua.globals())?;
        table.raw_set("open", open)?;
        let budget = self.budget.clone();
        table.raw_set(
            "too_much",
            lua.create_function(move |_, ()| {
                Err::<(), _>(mlua::Error::runtime(budget.record_limit(CostLimit::Size)))
            })?,
        )?;
        let (fields, budget) = (Rc::clone(&self.fields), self.budget.clone());
        table.raw_set(
            "whole",
            lua.create_function(move |lua, object: Table| {
                object.set_metatable(None)?;
                fields.take_all_fields(lua, &budget, &object)
            })?,
        )?;
        table.raw_set("find", lua.create_function(|_, args| Ok(find_plain(&args)))?)?;
        let has_drawn = Rc::clone(&self.has_drawn);
        table.raw_set("first_draw", lua.create_function(move |_, ()| Ok(!has_drawn.replace(true)))?)?;
        table.raw_set("number", lua.create_function(|_, number: f64| Ok(format_number(number)))?)?;
        let clock = Rc::clone(&self.clock);
        table.raw_set(
            "time",
            lua.create_function(move |_, fields: Option<Table>| clock::os_time(&clock, fields.as_ref()))?,
        )?;
        let (clock, budget) = (Rc::clone(&self.clock), self.budget.clone());
        table.raw_set(
            "date",
            lua.create_function(move |lua, (format, at): (Option<String>, Option<f64>)| {
                if format.as_ref().is_some_and(|format| format.len() > clock::MAX_DATE_FORMAT_BYTES) {
                    return Err(mlua::Error::runtime(budget.record_limit(CostLimit::Size)));
                }
                clock::os_date(lua, &clock, format.as_deref(), at)
            })?,
        )?;
        Ok(table)
    }
}

/// Implements plain `string.find` in time proportional to the sum of both lengths, not to their product.
fn find_plain((text, part, init): &(LuaString, LuaString, Option<i64>)) -> (Option<usize>, Option<usize>) {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let start = match init.unwrap_or(1) {
        init if init < 0 => (length + init).max(0),
        init => (init - 1).max(0),
    };
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let Some(rest) = text.get(start..) else { return (None, None) };
    match memmem::find(rest, &part) {
        Some(at) => {
            let first = start + at + 1;
            (Some(first), Some(first + part.len() - 1))
        }
        None => (None, None),
    }
}

/// Formats a number as gopher-lua does: integers in full, fractions as Go's `%v`.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn format_number(number: f64) -> String {
    const INT64_RANGE: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if number.fract() == 0.0 && INT64_RANGE.contains(&number) {
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
