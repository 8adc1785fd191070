//! The kinds that an API server serves, with their scopes and categories, as its discovery lists all of them at once.

use std::collections::{BTreeMap, BTreeSet};

/// API group and kind.
type KindKey = (String, String);

/// What discovery says of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedKind {
    /// Its objects are namespaced.
    pub namespaced: bool,
    /// Its objects can be listed and watched.
    pub is_followable: bool,
    /// Its categories.
    pub categories: Vec<Box<str>>,
}

/// The kinds that are served, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedKinds {
    /// Kinds, each as the first version has it that the server names.
    kinds: BTreeMap<KindKey, ServedKind>,
    /// API groups whose own server does not answer, so that nobody knows which kinds they have.
    pub unread: BTreeSet<Box<str>>,
    /// Nothing was read, for this reason; `None` once something was.
    unknown: Option<Box<str>>,
    was_read: bool,
}

impl ServedKinds {
    /// What an API server has said.
    pub fn of(
        kinds: impl IntoIterator<Item = (KindKey, ServedKind)>,
        unread: BTreeSet<Box<str>>,
    ) -> ServedKinds {
        let mut served = ServedKinds { unread, was_read: true, ..ServedKinds::default() };
        for (key, kind) in kinds {
            served.kinds.entry(key).or_insert(kind);
        }
        served
    }

    /// Nothing is known, for this reason.
    pub fn unknown_for(why: &str) -> ServedKinds {
        ServedKinds { unknown: Some(why.into()), ..ServedKinds::default() }
    }

    /// Returns `true` if an API server has said what it serves.
    pub fn is_known(&self) -> bool {
        self.was_read
    }

    /// Why nothing is known, where the server was asked.
    pub fn unknown_because(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// What is known of a kind.
    pub fn find(&self, group: &str, kind: &str) -> Option<&ServedKind> {
        self.kinds.get(&(group.to_owned(), kind.to_owned()))
    }

    /// The namespaced kinds of a category that can be followed, by group and kind.
    pub fn of_category<'a>(&'a self, category: &'a str) -> impl Iterator<Item = &'a KindKey> {
        let is_member = move |kind: &ServedKind| {
            kind.namespaced && kind.is_followable && kind.categories.iter().any(|own| **own == *category)
        };
        self.kinds.iter().filter(move |(_, kind)| is_member(kind)).map(|(key, _)| key)
    }

    /// Kinds that are in some category here and not served according to `newer`.
    pub fn lost_in<'a>(&'a self, newer: &'a ServedKinds) -> impl Iterator<Item = &'a KindKey> {
        let is_lost = |(key, kind): &(&KindKey, &ServedKind)| {
            !kind.categories.is_empty() && !newer.kinds.contains_key(*key)
        };
        self.kinds.iter().filter(is_lost).map(|(key, _)| key)
    }

    /// Adds a kind that is not known otherwise.
    pub fn keep(&mut self, (key, kind): (KindKey, ServedKind)) {
        self.kinds.entry(key).or_insert(kind);
    }
}
