//! What kube's watcher is given in place of whole objects.

use std::borrow::Cow;

use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

use crate::event::Wire;
use crate::guard::UNKNOWN_VERSION;
use crate::wire::Meta;

/// An object, or why it could not be read.
pub(super) type Read<K> = Result<K, Box<str>>;

/// One object, read or not, and the resourceVersion that kube wants of it.
///
/// A careful row cannot fail to decode: it looks for the end of the object first, so that one bad object costs nobody
/// else. That reads everything twice, so it is used only where the quick way has failed.
#[derive(Clone, Debug)]
pub(super) struct Row<K, const CAREFUL: bool> {
    meta: ObjectMeta,
    pub(super) object: Read<K>,
}

impl<K: Wire, const CAREFUL: bool> Row<K, CAREFUL> {
    fn new(object: Read<K>) -> Self {
        let object =
            object.and_then(
                |object| {
                    if object.meta().uid.is_empty() { Err(anonymous(&object)) } else { Ok(object) }
                },
            );
        let version = object.as_ref().map_or(0, |object| object.meta().resource_version);
        let version = if version == 0 { UNKNOWN_VERSION.to_owned() } else { version.to_string() };
        Row { meta: ObjectMeta { resource_version: Some(version), ..ObjectMeta::default() }, object }
    }
}

fn anonymous<K: Wire>(object: &K) -> Box<str> {
    let Meta { namespace, name, .. } = object.meta();
    format!("object {namespace:?}/{name:?} has no metadata.uid").into()
}

impl<'de, K: Wire, const CAREFUL: bool> Deserialize<'de> for Row<K, CAREFUL> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !CAREFUL {
            return K::deserialize(deserializer).map(|object| Row::new(Ok(object)));
        }
        let raw = <&RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(Row::new(serde_json::from_str(raw.get()).map_err(|error| unreadable(raw, &error))))
    }
}

/// Names the object by how it begins: type and name stand there, secrets do not.
fn unreadable(raw: &RawValue, error: &serde_json::Error) -> Box<str> {
    let begins: String = raw.get().chars().take(120).collect();
    format!("{error}: {begins}").into()
}

impl<K, const CAREFUL: bool> kube::Resource for Row<K, CAREFUL> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
