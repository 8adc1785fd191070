//! Verdicts per second and core, for every kind of rule: `cargo bench -p rules`.
#![expect(clippy::print_stdout, reason = "the figures are the result")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use readiness::Time;
use rollcall_cel::ObjectJson;
use rules::lua::HealthScript;
use rules::{CompiledRule, PeerProfile, RuleDefinition};
use serde_json::{Value, json};

const NOW: Time = Time(1_800_000_000_000);

/// A typical script: reads a phase, walks the conditions, builds a message.
const SCRIPT: &str = r#"
local hs = {status = "Progressing", message = "Waiting for the database"}
if obj.status ~= nil then
  if obj.status.observedGeneration ~= nil and obj.status.observedGeneration < obj.metadata.generation then
    return hs
  end
  if obj.status.conditions ~= nil then
    for i, condition in ipairs(obj.status.conditions) do
      if condition.type == "Ready" and condition.status == "False" then
        hs.status = "Degraded"
        hs.message = condition.message
        return hs
      end
      if condition.type == "Ready" and condition.status == "True" then
        hs.status = "Healthy"
        hs.message = condition.reason .. ": " .. condition.message
        return hs
      end
    end
  end
end
return hs
"#;

fn database() -> Value {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "AsExpected", "message": "all three replicas are up",
            "lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": 2})
    };
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "5f1c8a54-2a64-4a4e-9a3b-0d6b1f6f0001", "generation": 2,
            "resourceVersion": "123456", "creationTimestamp": "2025-01-01T00:00:00Z", "labels": {"app": "orders", "tier": "db"}},
        "spec": {"replicas": 3, "version": "16.4", "storage": {"size": "10Gi", "class": "fast"}, "users": ["app", "report"],
            "backup": {"schedule": "0 3 * * *", "keep": 7}},
        "status": {"observedGeneration": 2, "phase": "Running", "conditions": [
            condition("Available", "True"), condition("Synced", "True"), condition("Ready", "True")]},
    })
}

/// Runs `judge` for half a second in batches and prints the best batch's rate.
fn rate(name: &str, mut judge: impl FnMut()) -> f64 {
    let started = Instant::now();
    let mut best = Duration::MAX;
    while started.elapsed() < Duration::from_millis(500) {
        let batch = Instant::now();
        (0..200).for_each(|_| judge());
        best = best.min(batch.elapsed());
    }
    let rate = 200.0 / best.as_secs_f64();
    println!("{name:52} {rate:>12.0} /s  {:>9.2} µs", 1e6 / rate);
    rate
}

/// The approach of Argo CD: a new interpreter for every call, with the whole object converted.
fn fresh_machine(object: &Value) {
    let lua = mlua::Lua::new();
    lua.globals().set("obj", hand_over(&lua, object)).expect("set");
    let said: mlua::Table = lua.load(SCRIPT).eval().expect("a table");
    black_box(said);
}

fn hand_over(lua: &mlua::Lua, value: &Value) -> mlua::Value {
    match value {
        Value::Null => mlua::Value::Nil,
        Value::Bool(flag) => mlua::Value::Boolean(*flag),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap_or(0.0)),
        Value::String(text) => mlua::Value::String(lua.create_string(text).expect("a text")),
        Value::Array(items) => mlua::Value::Table(
            lua.create_sequence_from(items.iter().map(|item| hand_over(lua, item))).expect("a list"),
        ),
        Value::Object(map) => mlua::Value::Table(
            lua.create_table_from(map.iter().map(|(key, item)| (key.as_str(), hand_over(lua, item))))
                .expect("a map"),
        ),
    }
}

fn scripts(object: &Value, text: &str) {
    let script = HealthScript::compile("database", SCRIPT, true).expect("compiles");
    let lazy = rate("Lua, text, fields on first touch", || {
        black_box(script.judge_object(ObjectJson::Text(text), NOW));
    });
    let eager = rate("Lua, text, decoded and handed over whole", || {
        let object: Value = serde_json::from_str(text).expect("JSON");
        black_box(script.judge_object(ObjectJson::Tree(&object), NOW));
    });
    rate("Lua, decoded object, handed over whole", || {
        black_box(script.judge_object(ObjectJson::Tree(object), NOW));
    });
    let fresh = rate("Lua, a new machine for every call", || fresh_machine(object));
    println!(
        "{:52} {:>11.1} x, {:.1} x",
        "on first touch against whole, against new machine",
        lazy / eager,
        lazy / fresh
    );
}

/// The documented shape of Flux's expressions, as its users write it.
const IN_PROGRESS: &str =
    "has(status.observedGeneration) && metadata.generation != status.observedGeneration";
const FAILED: &str = "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'False')";
const CURRENT: &str = "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')";

fn expressions(object: &Value, text: &str) {
    let spec = RuleDefinition::Cel { current: CURRENT, in_progress: Some(IN_PROGRESS), failed: Some(FAILED) };
    rate("CEL, compiling three expressions", || {
        black_box(CompiledRule::compile(&spec)).expect("compiles");
    });
    let rule = CompiledRule::compile(&spec).expect("compiles");
    let ours = rate("CEL, three expressions, text", || {
        black_box(rule.judge_object(ObjectJson::Text(text), NOW));
    });
    rate("CEL, three expressions, decoded object", || {
        black_box(rule.judge_object(ObjectJson::Tree(object), NOW));
    });
    let theirs = interpreter(text);
    println!("{:52} {:>11.1} x", "CEL against the interpreter of the cel crate", ours / theirs);
    let one = RuleDefinition::Cel { current: "status.phase == 'Running'", in_progress: None, failed: None };
    let rule = CompiledRule::compile(&one).expect("compiles");
    rate("CEL, one comparison, text", || {
        black_box(rule.judge_object(ObjectJson::Text(text), NOW));
    });
}

/// The interpreter that ships with the parser: without bounds, and with its values rebuilt for each call.
fn interpreter(text: &str) -> f64 {
    let env = std::sync::Arc::new(cel::Env::stdlib());
    let programs = [IN_PROGRESS, FAILED, CURRENT].map(|source| env.compile(source).expect("compiles"));
    rate("CEL, three expressions, text, the cel crate's own", || {
        let object: Value = serde_json::from_str(text).expect("JSON");
        let mut context = cel::Context::with_env(std::sync::Arc::clone(&env));
        for field in ["status", "metadata"] {
            let value = cel::to_value(&object[field]).expect("a value");
            context.add_variable_from_value(field, value);
        }
        for program in &programs {
            black_box(program.execute(&context)).expect("a value");
        }
    })
}

fn main() {
    let object = database();
    let text = object.to_string();
    println!("an object of {} bytes", text.len());
    expressions(&object, &text);
    scripts(&object, &text);
    for profile in PeerProfile::ALL {
        rate(&format!("profile {profile}, decoded custom resource"), || {
            black_box(profile.judge_object(&object, None, NOW));
        });
    }
}
