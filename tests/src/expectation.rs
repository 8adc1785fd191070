//! Expectations that tests wait for: a claim about one object, as text and as code.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;

use crate::objects::condition;

type Test = Box<dyn Fn(Option<&Value>) -> bool + Send + Sync>;

/// A claim that must come true; otherwise the test fails with the last observed state.
pub struct StateExpectation {
    /// The claim as text, for the message of a failed test.
    pub words: String,
    holds: Test,
}

impl StateExpectation {
    /// Returns any claim about an existing object.
    pub fn new(words: &str, holds: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self { words: words.to_owned(), holds: Box::new(move |object| object.is_some_and(&holds)) }
    }

    /// Returns `true` if the claim holds; `None` is a missing object.
    pub fn holds(&self, object: Option<&Value>) -> bool {
        (self.holds)(object)
    }

    /// The same claim, which tells as soon as it was asked for the first time.
    #[must_use]
    pub(crate) fn noting(self, asked: Arc<Notify>) -> Self {
        let Self { words, holds } = self;
        let noting = move |object: Option<&Value>| {
            asked.notify_one();
            holds(object)
        };
        Self { words, holds: Box::new(noting) }
    }

    /// Combines two claims: both must hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let words = format!("{} and {}", self.words, other.words);
        Self { words, holds: Box::new(move |object| self.holds(object) && other.holds(object)) }
    }
}

/// The object does not exist (any more).
pub fn gone() -> StateExpectation {
    StateExpectation { words: "gone".to_owned(), holds: Box::new(|object| object.is_none()) }
}

/// The object exists.
pub fn there() -> StateExpectation {
    StateExpectation::new("there", |_| true)
}

/// The condition `kind` has this status.
pub fn says(kind: &str, status: &str) -> StateExpectation {
    let (of, want) = (kind.to_owned(), status.to_owned());
    StateExpectation::new(&format!("{kind}={status}"), move |object| {
        condition(object, &of).is_some_and(|entry| entry["status"] == *want)
    })
}

/// The condition `kind` has this reason.
pub fn because(kind: &str, reason: &str) -> StateExpectation {
    let (of, want) = (kind.to_owned(), reason.to_owned());
    StateExpectation::new(&format!("{kind} with reason {reason}"), move |object| {
        condition(object, &of).is_some_and(|entry| entry["reason"] == *want)
    })
}

/// The condition's message contains this text.
pub fn mentions(kind: &str, part: &str) -> StateExpectation {
    let (of, want) = (kind.to_owned(), part.to_owned());
    StateExpectation::new(&format!("{kind} mentions {part:?}"), move |object| {
        condition(object, &of).is_some_and(|entry| entry["message"].as_str().unwrap_or("").contains(&*want))
    })
}

/// The condition `kind` exists, or does not.
pub fn has(kind: &str, wanted: bool) -> StateExpectation {
    let of = kind.to_owned();
    let words = if wanted { format!("{kind} is said") } else { format!("{kind} is not said") };
    StateExpectation::new(&words, move |object| condition(object, &of).is_some() == wanted)
}

/// The condition's `observedGeneration` is the object's generation.
pub fn current(kind: &str) -> StateExpectation {
    let of = kind.to_owned();
    StateExpectation::new(&format!("{kind} for the present generation"), move |object| {
        condition(object, &of)
            .is_some_and(|entry| entry["observedGeneration"] == object["metadata"]["generation"])
    })
}
