//! The object type given to kube's watcher in place of whole objects.

use std::borrow::Cow;

use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

use crate::api_client::guard::UNKNOWN_VERSION;
use crate::event::WireObject;
use crate::wire::WireMeta;

/// An object, or the reason why it could not be decoded.
pub(super) type DecodeResult<K> = Result<K, Box<str>>;

/// One object, decoded or not, and the resourceVersion that kube requires.
///
/// A `CAREFUL` row cannot fail to decode: it finds the end of the object first, so that one bad object does not affect
/// the others. This reads everything twice, so it is used only after the fast way has failed.
#[derive(Clone, Debug)]
pub(super) struct WatchedRow<K, const CAREFUL: bool> {
    meta: ObjectMeta,
    pub(super) object: DecodeResult<K>,
}

impl<K: WireObject, const CAREFUL: bool> WatchedRow<K, CAREFUL> {
    fn new(object: DecodeResult<K>) -> Self {
        let object = object.and_then(|object| {
            if object.meta().uid.is_empty() { Err(missing_uid_message(&object)) } else { Ok(object) }
        });
        let version = object.as_ref().map_or(0, |object| object.meta().resource_version);
        let version = if version == 0 { UNKNOWN_VERSION.to_owned() } else { version.to_string() };
        WatchedRow { meta: ObjectMeta { resource_version: Some(version), ..ObjectMeta::default() }, object }
    }
}

fn missing_uid_message<K: WireObject>(object: &K) -> Box<str> {
    let WireMeta { namespace, name, .. } = object.meta();
    format!("object {namespace:?}/{name:?} has no metadata.uid").into()
}

impl<'de, K: WireObject, const CAREFUL: bool> Deserialize<'de> for WatchedRow<K, CAREFUL> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !CAREFUL {
            return K::deserialize(deserializer).map(|object| WatchedRow::new(Ok(object)));
        }
        let raw = <&RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(WatchedRow::new(serde_json::from_str(raw.get()).map_err(|error| undecodable_message(raw, &error))))
    }
}

/// Returns a message that names the object by its first bytes: they contain type and name, and no secrets.
fn undecodable_message(raw: &RawValue, error: &serde_json::Error) -> Box<str> {
    let begins: String = raw.get().chars().take(120).collect();
    format!("{error}: {begins}").into()
}

impl<K, const CAREFUL: bool> kube::Resource for WatchedRow<K, CAREFUL> {
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
