//! A parent as received: decoded like any child, with its whole JSON text.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::event::WireObject;
use crate::wire::{ChildObject, WireMeta};

/// An object that may be a parent.
#[derive(Clone, Debug)]
pub struct ParentObject {
    /// Fields decoded from any object.
    pub child: ChildObject,
    /// The JSON text as received.
    pub text: Box<RawValue>,
}

/// Kind under which a server sends the metadata of objects alone, whatever they are.
const METADATA_ALONE: &str = "PartialObjectMetadata";

impl ParentObject {
    /// Wraps an object of which no more is read than of a child.
    pub fn without_text(child: ChildObject) -> ParentObject {
        ParentObject { child, text: RawValue::NULL.to_owned() }
    }

    /// Adds `apiVersion` and `kind`, which items in lists of built-in kinds lack, and metadata that is sent alone.
    pub fn with_type_meta(mut self, api_version: &str, kind: &str) -> ParentObject {
        if self.child.meta.kind.is_empty() || *self.child.meta.kind == *METADATA_ALONE {
            if let Cow::Owned(whole) = text_with_type(self.text.get(), &self.child, api_version, kind)
                && let Ok(text) = RawValue::from_string(whole)
            {
                self.text = text;
            }
            self.child.meta.api_version = api_version.into();
            self.child.meta.kind = kind.into();
        }
        self
    }
}

/// Returns the text of an object with `apiVersion` and `kind`, which items in lists of built-in kinds lack and rules
/// depend on.
pub(crate) fn text_with_type<'a>(
    text: &'a str,
    child: &ChildObject,
    api_version: &str,
    kind: &str,
) -> Cow<'a, str> {
    let inside = text.strip_prefix('{').filter(|_| child.meta.kind.is_empty());
    match inside {
        Some(inside) if inside.trim_start().starts_with('"') => {
            Cow::Owned(format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}",{inside}"#))
        }
        Some(inside) if inside.trim_start().starts_with('}') => {
            Cow::Owned(format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}"}}"#))
        }
        _ => Cow::Borrowed(text),
    }
}

impl<'de> Deserialize<'de> for ParentObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let child = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        Ok(ParentObject { child, text })
    }
}

/// An object that the reflector can ingest.
pub trait ReflectorObject: WireObject {
    /// Returns the fields that rules read.
    fn as_child(&self) -> &ChildObject;

    /// Returns the whole JSON text, if the kind may be a parent.
    fn raw_text(&self) -> Option<&RawValue>;
}

impl WireObject for ChildObject {
    fn meta(&self) -> &WireMeta {
        &self.meta
    }
}

impl ReflectorObject for ChildObject {
    fn as_child(&self) -> &ChildObject {
        self
    }

    fn raw_text(&self) -> Option<&RawValue> {
        None
    }
}

impl WireObject for ParentObject {
    fn meta(&self) -> &WireMeta {
        &self.child.meta
    }
}

impl ReflectorObject for ParentObject {
    fn as_child(&self) -> &ChildObject {
        &self.child
    }

    fn raw_text(&self) -> Option<&RawValue> {
        Some(&self.text)
    }
}
