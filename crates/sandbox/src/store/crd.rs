//! CustomResourceDefinitions: what they make the server serve.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::{Kind, Traits};
use super::message::Millis;
use super::meta;
use super::schema::Schema;
use super::shelf::Shelf;
use super::{Store, defaults, managed, prune, table};

impl Store {
    /// Serves what a CRD describes, and says so in its status.
    pub(super) fn install(&mut self, now: Millis, kind: &Arc<Kind>, definition: &Arc<Value>) {
        let storage = self.registry.install(meta::name(definition), kinds(definition));
        let shelf = self.shelves.entry(storage).or_insert_with(|| Shelf::since_revision(self.revision));
        if let Some(served) = self.registry.of(storage) {
            shelf.show_anew(|object| {
                prune::object(served, object);
                defaults::fill(served, object, false);
            });
        }
        let mut told = (**definition).clone();
        told["status"] = status(definition, now);
        if told["status"] == definition["status"] {
            return;
        }
        let write = managed::Write {
            sub: Some(super::route::Sub::Status),
            ..managed::Write::by(now, kind, "kube-apiserver")
        };
        managed::update(&write, definition, &mut told);
        self.commit(now, kind, told);
    }
}

/// The served versions, the preferred one first.
fn kinds(definition: &Value) -> Vec<Kind> {
    let spec = &definition["spec"];
    let names = names(definition);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| meta::strings(value).into_iter().map(str::to_owned).collect();
    let mut versions: Vec<&Value> = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .collect();
    versions.sort_by_key(|version| std::cmp::Reverse(priority(version["name"].as_str().unwrap_or_default())));
    let described = versions.into_iter().map(|version| {
        let schema = &version["schema"]["openAPIV3Schema"];
        Kind {
            storage: 0,
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&names["kind"]),
            list_kind: text(&names["listKind"]),
            plural: text(&names["plural"]),
            singular: text(&names["singular"]),
            short_names: list(&names["shortNames"]),
            categories: list(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            status: version["subresources"]["status"].is_object(),
            traits: Traits { custom: true, generation: true, ..Traits::default() },
            columns: table::columns(version),
            schema: schema.is_object().then(|| Arc::new(Schema(schema.clone()))),
        }
    });
    described.collect()
}

/// The order of versions: stable before beta before alpha, higher before lower, others last.
pub(super) fn priority(version: &str) -> (u8, u32, u32) {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let major = digits(rest);
    let number = |text: &str| text.parse().unwrap_or(0);
    match &rest[major.len()..] {
        "" if !major.is_empty() => (3, number(&major), 0),
        stage if stage.starts_with("beta") => (2, number(&major), number(&stage[4..])),
        stage if stage.starts_with("alpha") => (1, number(&major), number(&stage[5..])),
        _ => (0, 0, 0),
    }
}

/// `spec.names` with what may be left out.
fn names(definition: &Value) -> Value {
    let mut names = definition["spec"]["names"].clone();
    if !names.is_object() {
        names = json!({});
    }
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[field].as_str().is_none_or(str::is_empty) {
            names[field] = json!(default);
        }
    }
    names
}

/// Writes out what a definition leaves to the server.
pub(super) fn complete(definition: &mut Value) {
    let names = names(definition);
    definition["spec"]["names"] = names;
    if definition["spec"]["conversion"].is_null() {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
}

fn status(definition: &Value, now: Millis) -> Value {
    let condition = |what: &str, reason: &str, message: &str| {
        let since = definition["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == what);
        let since =
            since.map_or_else(|| json!(meta::time(now)), |condition| condition["lastTransitionTime"].clone());
        json!({"type": what, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since})
    };
    json!({
        "acceptedNames": names(definition),
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored(definition),
    })
}

/// The version that objects are kept in.
pub(super) fn stored(definition: &Value) -> Vec<Value> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect()
}

/// The status of a definition that waits for its objects to go.
pub(super) fn terminating(definition: &mut Value, now: Millis) {
    let conditions = &mut definition["status"]["conditions"];
    let list = conditions.as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut list: Vec<Value> =
        list.into_iter().filter(|condition| condition["type"] != "Terminating").collect();
    list.push(json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": meta::time(now),
    }));
    *conditions = Value::Array(list);
}

/// The same, once their deletion has begun.
pub(super) fn emptying(definition: &mut Value) {
    let conditions = definition["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "Terminating") {
        condition["reason"] = json!("InstanceDeletionInProgress");
        condition["message"] = json!("CustomResource deletion is in progress");
    }
}
