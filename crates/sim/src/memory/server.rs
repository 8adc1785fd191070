//! The server, as far as records go.

use controller::core::records::{Done, Errand};
use serde_json::{Value, json};

use super::world::{World, uid};

/// What the server makes of an errand.
pub(super) fn run(world: &mut World, name: &str, errand: &Errand) -> Done {
    let held = world.records.get(name).cloned();
    let is = |held: &Value, field: &str, value: &Value| held["metadata"][field] == *value;
    world.version += 1;
    let (version, created) = (json!(world.version.to_string()), json!(uid(3, world.version as usize)));
    let now = match (errand, held) {
        (Errand::Ask(_), _) => {
            let there = world.parents.iter().any(|parent| parent.uid == name && !parent.gone);
            return if there { Done::ParentThere } else { Done::ParentGone };
        }
        (Errand::Create(body), None) => {
            let mut record = body.clone();
            record["metadata"]["uid"] = created;
            Some(record)
        }
        (Errand::Amend { patch, .. }, Some(mut held))
            if is(&held, "uid", &patch[0]["value"]) && is(&held, "resourceVersion", &patch[1]["value"]) =>
        {
            held["spec"] = patch[2]["value"].clone();
            Some(held)
        }
        (Errand::Remove { uid, version }, Some(held))
            if is(&held, "uid", &json!(uid)) && is(&held, "resourceVersion", &json!(version)) =>
        {
            None
        }
        // A guard does not hold: it says what is there now.
        (_, held) => return Done::Now(held),
    };
    world.written += 1;
    world.say(format_args!("record {name}: {errand:?}"));
    world.records.remove(name);
    let now = now.map(|mut record| {
        record["metadata"]["resourceVersion"] = version;
        world.records.insert(name.to_owned(), record.clone());
        record
    });
    Done::Now(now)
}
