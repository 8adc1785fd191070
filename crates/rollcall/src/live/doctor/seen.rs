//! One object as checks look at it: what identifies it, how large it is, who wrote what. Its text is not kept.

use controller::inspect::command::Object;
use controller::inspect::managers::{Manager, managers, of_finalizer};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::status::{Guarded, ListShape, ParentStatus, Wanted, guarded_patch, raw};
use watcher::wire::{Child, Meta};
use watcher::{ApiKind, Wire};

use crate::eval::{decode, title};

/// One object.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) meta: Meta,
    /// Filled in by whoever listed it: items of lists do not always say.
    pub(super) group: String,
    pub(super) kind: String,
    /// Its status is written on the object itself.
    pub(super) flat: bool,
    /// As the server wrote it; not known of what only the metadata was read.
    pub(super) bytes: Option<usize>,
    /// Names and sizes of its annotations.
    pub(super) annotations: Vec<(String, usize)>,
    pub(super) managers: Vec<Writer>,
    pub(super) observed: Observed,
    /// Our entries, by type.
    pub(super) ours: Vec<String>,
    /// Entries of others: type and manager.
    pub(super) foreign: Vec<(String, String)>,
    /// What takes our entries off.
    pub(super) release: Option<Value>,
    /// A status that entries cannot be written into.
    pub(super) unwritable: Option<&'static str>,
    /// `status.kopf.progress` is there: when somebody last wrote it, or nothing where that is not known.
    pub(super) kopf_progress: Option<String>,
    /// A Job that has ended.
    pub(super) ended: bool,
    /// Images of its pods, and of its pods' init containers.
    pub(super) images: Vec<String>,
    /// The finalizers whose one manager is known.
    pub(super) holders: Vec<(String, String)>,
}

/// A field manager, and what of it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) name: String,
    /// It owns the whole list of conditions, not an entry of it.
    pub(super) conditions: bool,
    /// It wrote the object itself, not its status.
    pub(super) main: bool,
    /// It wrote its spec.
    pub(super) spec: bool,
    pub(super) time: String,
}

/// `status.observedGeneration`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Observed {
    #[default]
    Absent,
    Number(i64),
    /// Something that is no number, as it stands there.
    Odd(String),
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|text| Seen::read(&text))
    }
}

impl Wire for Seen {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Seen {
    pub(super) fn read(object: &RawValue) -> Seen {
        let child = Child::read(object);
        let status = ParentStatus::read(object, &[]);
        let generation = (child.meta.generation > 0).then_some(child.meta.generation);
        let guarded = Guarded { uid: &child.meta.uid, generation, status: &status };
        let release = guarded_patch(&guarded, &Wanted::default());
        // Deeper than any real object, and never a reason to end.
        let part =
            |key: &str| raw::member(object, key).and_then(|part| decode(part.get())).unwrap_or_default();
        let metadata = serde_json::json!({ "metadata": part("metadata") });
        let ended = child.facts.status.conditions.iter().any(|condition| {
            matches!(&*condition.name, "Complete" | "Failed") && condition.status == readiness::Truth::True
        });
        let mut seen = Seen {
            bytes: Some(object.get().len()),
            annotations: annotations(&metadata),
            managers: writers(&metadata),
            observed: observed(object),
            ours: status.ours.iter().map(|owned| owned.entry.r#type.clone()).collect(),
            foreign: status.foreign.iter().map(|(kind, by, _)| (kind.to_string(), by.to_string())).collect(),
            release,
            unwritable: match status.list {
                ListShape::Unwritable(why) => Some(why),
                _ => None,
            },
            kopf_progress: raw::at(object, &["status", "kopf", "progress"])
                .filter(|progress| !raw::is_null(progress))
                .map(|_| written(&metadata, &["f:status", "f:kopf"]).unwrap_or_default()),
            ended,
            images: images(object),
            ..Seen::default()
        };
        for name in &child.meta.finalizers {
            if let Some(manager) = of_finalizer(&metadata, name) {
                seen.holders.push((name.to_string(), manager.to_owned()));
            }
        }
        seen.meta = child.meta;
        seen
    }

    pub(super) fn of(mut self, api: &ApiKind) -> Seen {
        self.group.clone_from(&api.group);
        self.kind.clone_from(&api.kind);
        self.flat = !api.has_status;
        self
    }

    /// There is more of it than was read.
    pub(super) fn head(mut self) -> Seen {
        self.bytes = None;
        self
    }

    pub(super) fn title(&self) -> String {
        title(&self.kind, &self.meta.namespace, &self.meta.name)
    }

    pub(super) fn object(&self) -> Object<'_> {
        Object {
            group: &self.group,
            kind: &self.kind,
            namespace: &self.meta.namespace,
            name: &self.meta.name,
        }
    }

    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.meta.labels.iter().find(|(known, _)| **known == *key).map(|(_, value)| &**value)
    }

    pub(super) fn annotated(&self, key: &str) -> bool {
        self.annotations.iter().any(|(known, _)| known == key)
    }

    /// When somebody last wrote something else than its status.
    pub(super) fn changed(&self) -> Option<readiness::Time> {
        let last = self.managers.iter().filter(|writer| writer.spec).map(|writer| &*writer.time).max()?;
        watcher::status::time::parse(last)
    }
}

fn annotations(object: &Value) -> Vec<(String, usize)> {
    let all = object["metadata"]["annotations"].as_object().into_iter().flatten();
    all.map(|(key, value)| (key.clone(), value.as_str().map_or(0, str::len))).collect()
}

fn writers(object: &Value) -> Vec<Writer> {
    let writer = |manager: Manager<'_>| Writer {
        name: manager.name.to_owned(),
        conditions: manager.owns_leaf(&["f:status", "f:conditions"]),
        main: manager.subresource.is_empty(),
        spec: manager.subresource.is_empty() && manager.owns(&["f:spec"]),
        time: manager.time.to_owned(),
    };
    managers(object).map(writer).collect()
}

/// When a field was last written by whoever owns it.
fn written(object: &Value, path: &[&str]) -> Option<String> {
    managers(object).filter(|manager| manager.owns(path)).map(|manager| manager.time.to_owned()).max()
}

fn observed(object: &RawValue) -> Observed {
    match raw::at(object, &["status", "observedGeneration"]).filter(|value| !raw::is_null(value)) {
        None => Observed::Absent,
        Some(value) => raw::integer(value)
            .map_or_else(|| Observed::Odd(value.get().chars().take(40).collect()), Observed::Number),
    }
}

fn images(object: &RawValue) -> Vec<String> {
    let spec = raw::at(object, &["spec", "template", "spec"]);
    let mut images = Vec::new();
    for list in ["initContainers", "containers"] {
        let containers =
            spec.and_then(|spec| raw::member(spec, list)).and_then(raw::elements).unwrap_or_default();
        let image =
            |container: &RawValue| raw::member(container, "image").and_then(raw::string).map(Into::into);
        images.extend(containers.into_iter().filter_map(image));
    }
    images.sort();
    images.dedup();
    images
}
