//! How parents are quoted in the messages of those above them, as it was settled last.

use std::collections::BTreeMap;

use aggregator::ObjectId;

/// How each parent that is not ready, and is a child itself, is quoted.
#[derive(Default)]
pub(super) struct QuoteTexts(BTreeMap<ObjectId, Box<str>>);

impl QuoteTexts {
    /// What is quoted of `parent`; empty where that is nothing.
    pub(super) fn of(&self, parent: ObjectId) -> &str {
        self.0.get(&parent).map_or("", |text| text)
    }

    /// Sets what is quoted of `parent`; nothing where that is empty.
    pub(super) fn set(&mut self, parent: ObjectId, quote: String) {
        if quote.is_empty() {
            self.forget(parent);
        } else {
            self.0.insert(parent, quote.into());
        }
    }

    /// Removes the quote of an object that is gone, so that an object in its place is not quoted by it.
    pub(super) fn forget(&mut self, id: ObjectId) {
        self.0.remove(&id);
    }
}
