//! One condition of Rollcall's as a parent carries it, in the form in which it is kept for as long as the parent exists.

use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::entry::ConditionEntry;
use super::own_words::{self, AWAITS_OPERATOR};
use super::{raw_json, time};

/// One of Rollcall's conditions in the list.
#[derive(Clone, Debug)]
pub struct OwnedCondition(StoredForm);

#[derive(Clone, Debug)]
enum StoredForm {
    /// As Rollcall writes it: nothing more is in the text.
    Plain(PlainCondition),
    /// Anything else, kept word by word.
    Verbatim(Box<VerbatimCondition>),
}

#[derive(Clone, Debug)]
struct VerbatimCondition {
    index: u32,
    entry: ConditionEntry,
    text: Box<RawValue>,
    is_undisputed: bool,
}

/// A condition that says nothing but what Rollcall writes, without the text.
#[derive(Clone, Debug)]
struct PlainCondition {
    /// The type and, behind it, the message.
    words: Box<str>,
    /// Generation that the condition is about.
    generation: i64,
    /// Time of the last status change, in seconds since 1970.
    since_s: u32,
    /// Index in the list.
    index: u32,
    type_len: u16,
    status: ConditionStatus,
    reason: ParentReason,
    /// The server dropped the generation, so that a precondition must not name it.
    is_generation_dropped: bool,
    is_undisputed: bool,
}

// Every parent has one or two for as long as it exists.
const _: () = assert!(size_of::<OwnedCondition>() <= 40);

/// The six fields of an entry and no others, none of them left out: the same value as a [`ConditionEntry`] of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlainFields {
    r#type: String,
    status: String,
    observed_generation: i64,
    last_transition_time: String,
    reason: String,
    message: String,
}

/// Reads an entry of the list, and whether it is the whole of the text. Whoever has part of an entry may leave it without any of
/// its fields, or with another value than a text: it is an entry still.
pub(super) fn read_entry(text: &RawValue) -> (ConditionEntry, bool) {
    if let Ok(plain) = serde_json::from_str::<PlainFields>(text.get()) {
        let PlainFields { r#type, status, observed_generation, last_transition_time, reason, message } =
            plain;
        let observed_generation = Some(observed_generation);
        let entry =
            ConditionEntry { r#type, status, observed_generation, last_transition_time, reason, message };
        return (entry, true);
    }
    let fields = raw_json::all_members(text);
    let word =
        |name: &str| fields.get(name).and_then(raw_json::string_value).unwrap_or_default().into_owned();
    let entry = ConditionEntry {
        r#type: word("type"),
        status: word("status"),
        observed_generation: fields.get("observedGeneration").and_then(raw_json::integer_value),
        last_transition_time: word("lastTransitionTime"),
        reason: word("reason"),
        message: word("message"),
    };
    (entry, false)
}

/// Returns `true` if the entry has a message, and be it an empty one.
pub(super) fn has_message(text: &RawValue) -> bool {
    raw_json::get_member(text, "message").is_some()
}

impl PlainCondition {
    /// Returns the same in less room; `None` where that would say less.
    fn from_entry(
        index: u32,
        entry: &ConditionEntry,
        is_generation_dropped: bool,
        is_undisputed: bool,
    ) -> Option<PlainCondition> {
        let since = time::parse_rfc3339(&entry.last_transition_time)?;
        let plain = PlainCondition {
            words: [&*entry.r#type, &*entry.message].concat().into(),
            generation: entry.observed_generation?,
            since_s: u32::try_from(since.0 / 1_000).ok()?,
            index,
            type_len: u16::try_from(entry.r#type.len()).ok()?,
            status: entry.condition_status()?,
            reason: entry.parent_reason()?,
            is_generation_dropped,
            is_undisputed,
        };
        (plain.to_entry() == *entry).then_some(plain)
    }

    fn since(&self) -> Time {
        Time(i64::from(self.since_s) * 1_000)
    }

    fn split_words(&self) -> (&str, &str) {
        self.words.split_at(usize::from(self.type_len))
    }

    fn to_entry(&self) -> ConditionEntry {
        let (kind, message) = self.split_words();
        ConditionEntry {
            r#type: kind.to_owned(),
            status: self.status.as_str().to_owned(),
            observed_generation: Some(self.generation),
            last_transition_time: time::format_seconds(self.since()),
            reason: self.reason.as_str().to_owned(),
            message: message.to_owned(),
        }
    }
}

impl OwnedCondition {
    /// The condition at this index of the list, as [`read_entry`] reads it; `is_undisputed` if Rollcall alone has it.
    pub(super) fn new(
        index: usize,
        (entry, is_whole): (ConditionEntry, bool),
        text: &RawValue,
        is_undisputed: bool,
    ) -> OwnedCondition {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let plain =
            is_whole.then(|| PlainCondition::from_entry(index, &entry, false, is_undisputed)).flatten();
        let verbatim = || VerbatimCondition { index, entry, text: text.to_owned(), is_undisputed };
        OwnedCondition(plain.map_or_else(|| StoredForm::Verbatim(Box::new(verbatim())), StoredForm::Plain))
    }

    /// Returns `true` if Rollcall is known to be the only manager of the entry: nobody has overwritten it.
    pub(crate) fn is_undisputed(&self) -> bool {
        match &self.0 {
            StoredForm::Plain(plain) => plain.is_undisputed,
            StoredForm::Verbatim(kept) => kept.is_undisputed,
        }
    }

    /// Index in the list.
    pub fn index(&self) -> usize {
        let index = match &self.0 {
            StoredForm::Plain(plain) => plain.index,
            StoredForm::Verbatim(kept) => kept.index,
        };
        index as usize
    }

    /// The whole content.
    pub fn to_entry(&self) -> ConditionEntry {
        match &self.0 {
            StoredForm::Plain(plain) => plain.to_entry(),
            StoredForm::Verbatim(kept) => kept.entry.clone(),
        }
    }

    /// The condition as the server has it, for the precondition; `None` if it cannot be compared.
    pub fn to_precondition(&self) -> Option<Value> {
        match &self.0 {
            StoredForm::Plain(plain) => {
                let mut entry = plain.to_entry();
                entry.observed_generation = (!plain.is_generation_dropped).then_some(plain.generation);
                Some(json!(entry))
            }
            StoredForm::Verbatim(kept) => serde_json::from_str(kept.text.get()).ok(),
        }
    }

    /// Type of the condition.
    pub fn kind(&self) -> &str {
        match &self.0 {
            StoredForm::Plain(plain) => plain.split_words().0,
            StoredForm::Verbatim(kept) => &kept.entry.r#type,
        }
    }

    /// Message for people.
    pub fn message(&self) -> &str {
        match &self.0 {
            StoredForm::Plain(plain) => plain.split_words().1,
            StoredForm::Verbatim(kept) => &kept.entry.message,
        }
    }

    /// The reason, if it is one of Rollcall's.
    pub fn parent_reason(&self) -> Option<ParentReason> {
        match &self.0 {
            StoredForm::Plain(plain) => Some(plain.reason),
            StoredForm::Verbatim(kept) => kept.entry.parent_reason(),
        }
    }

    /// Returns `true` if its reason is a word of somebody else's. Where a schema drops reasons there is none.
    pub fn is_rewritten(&self) -> bool {
        match &self.0 {
            StoredForm::Plain(_) => false,
            StoredForm::Verbatim(kept) => {
                kept.entry.parent_reason().is_none() && !kept.entry.reason.is_empty()
            }
        }
    }

    /// Returns `true` if it would be known for ours by nothing but what it says.
    pub(super) fn is_in_our_words(&self) -> bool {
        match &self.0 {
            StoredForm::Plain(plain) => own_words::is_in_our_words(&plain.to_entry(), true),
            StoredForm::Verbatim(kept) => own_words::is_in_our_words(&kept.entry, has_message(&kept.text)),
        }
    }

    /// The status, if it is one that a condition can have.
    pub fn condition_status(&self) -> Option<ConditionStatus> {
        match &self.0 {
            StoredForm::Plain(plain) => Some(plain.status),
            StoredForm::Verbatim(kept) => kept.entry.condition_status(),
        }
    }

    /// Generation that the condition is about.
    pub fn observed_generation(&self) -> Option<i64> {
        match &self.0 {
            StoredForm::Plain(plain) => Some(plain.generation),
            StoredForm::Verbatim(kept) => kept.entry.observed_generation,
        }
    }

    /// Time of the last status change; `None` where the entry has none that can be read.
    pub fn last_transition(&self) -> Option<Time> {
        match &self.0 {
            StoredForm::Plain(plain) => Some(plain.since()),
            StoredForm::Verbatim(kept) => time::parse_rfc3339(&kept.entry.last_transition_time),
        }
    }

    /// Time of the last status change as it is written there.
    pub fn last_transition_time(&self) -> String {
        match &self.0 {
            StoredForm::Plain(plain) => time::format_seconds(plain.since()),
            StoredForm::Verbatim(kept) => kept.entry.last_transition_time.clone(),
        }
    }

    /// Returns `true` if the status is `True`.
    pub fn is_true(&self) -> bool {
        self.condition_status() == Some(ConditionStatus::True)
    }

    /// Returns `true` if a CRD's default says this, as `rollcall crd-defaults` prints it or in other words: of no generation,
    /// and not as Rollcall says it.
    pub(super) fn is_default(&self) -> bool {
        self.parent_reason() == Some(ParentReason::ChildrenPending)
            && self.condition_status() == Some(ConditionStatus::Unknown)
            && matches!(self.observed_generation(), None | Some(0))
            && !self.message().starts_with(AWAITS_OPERATOR)
    }

    /// Returns `true` if the entry lacks a field that it was sent with.
    pub(super) fn lacks_of(&self, sent: &ConditionEntry) -> bool {
        let StoredForm::Verbatim(kept) = &self.0 else { return false };
        let held = &kept.entry;
        sent.observed_generation.is_some() && held.observed_generation.is_none()
            || held.last_transition_time.is_empty()
            || held.message.is_empty() && !sent.message.is_empty()
    }

    /// Adds what the server dropped of the entry, from what was sent: it is that one as far as it says anything.
    pub(super) fn restore_dropped(&mut self, sent: &[ConditionEntry]) {
        let StoredForm::Verbatim(kept) = &mut self.0 else { return };
        let VerbatimCondition { index, entry: held, text, is_undisputed } = &mut **kept;
        let as_shown = |sent: &ConditionEntry| ConditionEntry {
            observed_generation: held.observed_generation.and(sent.observed_generation),
            last_transition_time: shown(&held.last_transition_time, &sent.last_transition_time),
            message: shown(&held.message, &sent.message),
            ..sent.clone()
        };
        let Some(sent) = sent.iter().find(|sent| as_shown(sent) == *held) else { return };
        let is_generation_dropped = held.observed_generation.is_none();
        *held = sent.clone();
        let without = ConditionEntry { observed_generation: None, ..held.clone() };
        if is_generation_dropped
            && serde_json::from_str::<Value>(text.get()).is_ok_and(|text| text == json!(without))
            && let Some(plain) = PlainCondition::from_entry(*index, held, true, *is_undisputed)
        {
            self.0 = StoredForm::Plain(plain);
        }
    }

    /// Bytes that it holds beside itself.
    pub(crate) fn heap_size(&self) -> usize {
        match &self.0 {
            StoredForm::Plain(plain) => plain.words.len(),
            StoredForm::Verbatim(kept) => {
                let VerbatimCondition { entry, text, .. } = &**kept;
                let words = [
                    &entry.r#type,
                    &entry.status,
                    &entry.last_transition_time,
                    &entry.reason,
                    &entry.message,
                ];
                size_of_val(&**kept) + text.get().len() + words.map(String::len).iter().sum::<usize>()
            }
        }
    }
}

/// What is sent of a text where this much of it is held.
fn shown(held: &str, sent: &str) -> String {
    if held.is_empty() { String::new() } else { sent.to_owned() }
}

#[cfg(test)]
mod tests;
