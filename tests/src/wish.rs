//! What a test waits for: a claim about one object, in words and as code.

use serde_json::Value;

use crate::objects::condition;

type Test = Box<dyn Fn(Option<&Value>) -> bool + Send + Sync>;

/// A claim that will come true, or the test fails with the last state seen.
pub struct Wish {
    /// As the message of a failed test says it.
    pub words: String,
    holds: Test,
}

impl Wish {
    /// Anything that can be said about an object that is there.
    pub fn new(words: &str, holds: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self { words: words.to_owned(), holds: Box::new(move |object| object.is_some_and(&holds)) }
    }

    /// Whether it holds; no object means that there is none.
    pub fn holds(&self, object: Option<&Value>) -> bool {
        (self.holds)(object)
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let words = format!("{} and {}", self.words, other.words);
        Self { words, holds: Box::new(move |object| self.holds(object) && other.holds(object)) }
    }
}

/// There is no such object (any more).
pub fn gone() -> Wish {
    Wish { words: "gone".to_owned(), holds: Box::new(|object| object.is_none()) }
}

/// There is such an object.
pub fn there() -> Wish {
    Wish::new("there", |_| true)
}

/// The condition `kind` has this status.
pub fn says(kind: &str, status: &str) -> Wish {
    let (of, want) = (kind.to_owned(), status.to_owned());
    Wish::new(&format!("{kind}={status}"), move |object| {
        condition(object, &of).is_some_and(|entry| entry["status"] == *want)
    })
}

/// The condition `kind` has this reason.
pub fn because(kind: &str, reason: &str) -> Wish {
    let (of, want) = (kind.to_owned(), reason.to_owned());
    Wish::new(&format!("{kind} with reason {reason}"), move |object| {
        condition(object, &of).is_some_and(|entry| entry["reason"] == *want)
    })
}

/// The condition's message contains this.
pub fn mentions(kind: &str, part: &str) -> Wish {
    let (of, want) = (kind.to_owned(), part.to_owned());
    Wish::new(&format!("{kind} mentions {part:?}"), move |object| {
        condition(object, &of).is_some_and(|entry| entry["message"].as_str().unwrap_or("").contains(&*want))
    })
}

/// The condition `kind` is there, or not.
pub fn has(kind: &str, wanted: bool) -> Wish {
    let of = kind.to_owned();
    let words = if wanted { format!("{kind} is said") } else { format!("{kind} is not said") };
    Wish::new(&words, move |object| condition(object, &of).is_some() == wanted)
}

/// The condition speaks of the object's present generation.
pub fn current(kind: &str) -> Wish {
    let of = kind.to_owned();
    Wish::new(&format!("{kind} for the present generation"), move |object| {
        condition(object, &of)
            .is_some_and(|entry| entry["observedGeneration"] == object["metadata"]["generation"])
    })
}
