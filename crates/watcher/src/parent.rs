//! A parent on the wire: a child like any other, and its whole text.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::event::Wire;
use crate::wire::{Child, Meta};

/// An object that may be a parent.
#[derive(Clone, Debug)]
pub struct Parent {
    /// What any object is decoded to.
    pub child: Child,
    /// The object as it came.
    pub text: Box<RawValue>,
}

impl Parent {
    /// An object of which nobody reads more than a child has.
    pub fn lean(child: Child) -> Parent {
        Parent { child, text: RawValue::NULL.to_owned() }
    }

    /// The object with its type, which items of lists of built-in kinds lack.
    pub fn typed(mut self, api_version: &str, kind: &str) -> Parent {
        if self.child.meta.kind.is_empty() {
            if let Cow::Owned(whole) = with_type(self.text.get(), &self.child, api_version, kind)
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

/// The text of an object with its type, which items of lists of built-in kinds lack and rules go by.
pub(crate) fn with_type<'a>(text: &'a str, child: &Child, api_version: &str, kind: &str) -> Cow<'a, str> {
    let inside = text.strip_prefix('{').filter(|_| child.meta.kind.is_empty());
    match inside {
        Some(inside) if inside.trim_start().starts_with('"') => {
            Cow::Owned(format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}",{inside}"#))
        }
        _ => Cow::Borrowed(text),
    }
}

impl<'de> Deserialize<'de> for Parent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let child = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        Ok(Parent { child, text })
    }
}

/// What can be fed to the reflector.
pub trait Feed: Wire {
    /// The fields that rules read.
    fn child(&self) -> &Child;

    /// The whole text, where the kind may be a parent.
    fn text(&self) -> Option<&RawValue>;
}

impl Wire for Child {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Feed for Child {
    fn child(&self) -> &Child {
        self
    }

    fn text(&self) -> Option<&RawValue> {
        None
    }
}

impl Wire for Parent {
    fn meta(&self) -> &Meta {
        &self.child.meta
    }
}

impl Feed for Parent {
    fn child(&self) -> &Child {
        &self.child
    }

    fn text(&self) -> Option<&RawValue> {
        Some(&self.text)
    }
}
