//! One condition of Rollcall's as a parent carries it, in the form in which it is kept for as long as the parent exists.

use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::entry::ConditionEntry;
use super::own::AWAITS_OPERATOR;
use super::time;

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

/// Reads an entry of the list, and whether it is the whole of the text; `None` if it is none.
pub(super) fn read_entry(text: &RawValue) -> Option<(ConditionEntry, bool)> {
    if let Ok(plain) = serde_json::from_str::<PlainFields>(text.get()) {
        let PlainFields { r#type, status, observed_generation, last_transition_time, reason, message } =
            plain;
        let observed_generation = Some(observed_generation);
        let entry =
            ConditionEntry { r#type, status, observed_generation, last_transition_time, reason, message };
        return Some((entry, true));
    }
    Some((serde_json::from_str(text.get()).ok()?, false))
}

impl PlainCondition {
    /// Returns the same in less room; `None` where that would say less.
    fn from_entry(index: u32, entry: &ConditionEntry, is_generation_dropped: bool) -> Option<PlainCondition> {
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
    /// The condition at this index of the list; `is_whole` if the text says nothing but the entry.
    pub(super) fn new(
        index: usize,
        entry: ConditionEntry,
        text: &RawValue,
        is_whole: bool,
    ) -> OwnedCondition {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let plain = is_whole.then(|| PlainCondition::from_entry(index, &entry, false)).flatten();
        OwnedCondition(match plain {
            Some(plain) => StoredForm::Plain(plain),
            None => StoredForm::Verbatim(Box::new(VerbatimCondition { index, entry, text: text.to_owned() })),
        })
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

    /// Names the generation that the entry was sent for, where the server dropped it.
    pub(super) fn restore_generation(&mut self, sent: &[ConditionEntry]) {
        let StoredForm::Verbatim(kept) = &mut self.0 else { return };
        let VerbatimCondition { index, entry: held, text } = &mut **kept;
        if held.observed_generation.is_some() {
            return;
        }
        let is = |entry: &&ConditionEntry| {
            ConditionEntry { observed_generation: None, ..(*entry).clone() } == *held
        };
        held.observed_generation = sent.iter().find(is).and_then(|entry| entry.observed_generation);
        let without = ConditionEntry { observed_generation: None, ..held.clone() };
        if serde_json::from_str::<Value>(text.get()).is_ok_and(|text| text == json!(without))
            && let Some(plain) = PlainCondition::from_entry(*index, held, true)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> ConditionEntry {
        ConditionEntry {
            r#type: "Ready".into(),
            status: "False".into(),
            observed_generation: Some(7),
            last_transition_time: "2026-01-01T00:00:00Z".into(),
            reason: "ChildrenFailed".into(),
            message: "1 of 2 not ready: Pod \"é\" failed".into(),
        }
    }

    fn read(text: &Value) -> OwnedCondition {
        let text = RawValue::from_string(text.to_string()).unwrap();
        let (entry, is_whole) = read_entry(&text).unwrap();
        OwnedCondition::new(3, entry, &text, is_whole)
    }

    fn is_plain(condition: &OwnedCondition) -> bool {
        matches!(condition.0, StoredForm::Plain(_))
    }

    #[test]
    fn what_rollcall_wrote_is_kept_in_little_room_and_comes_back_word_by_word() {
        let held = read(&json!(entry()));
        assert!(is_plain(&held), "{held:?}");
        assert_eq!((held.to_entry(), held.index()), (entry(), 3));
        assert_eq!(held.to_precondition(), Some(json!(entry())));
        assert_eq!((held.kind(), held.message()), ("Ready", &*entry().message));
        assert_eq!(held.last_transition_time(), entry().last_transition_time);
    }

    #[test]
    fn what_anybody_changed_is_a_precondition_as_it_stands_there() {
        for (field, value) in [
            ("status", json!("Perhaps")),
            ("reason", json!("Done")),
            ("lastTransitionTime", json!("2026-01-01T00:00:00.5Z")),
            ("lastTransitionTime", json!("2026-01-01T01:00:00+01:00")),
            ("lastTransitionTime", json!("yesterday")),
            ("lastTransitionTime", json!("1969-12-31T23:59:59Z")),
            ("lastTransitionTime", json!("2200-01-01T00:00:00Z")),
            ("severity", json!("Error")),
            ("observedGeneration", json!(null)),
        ] {
            let mut text = json!(entry());
            text[field] = value;
            let held = read(&text);
            assert_eq!(held.to_precondition(), Some(text.clone()), "{held:?}");
            assert_eq!(held.to_entry(), serde_json::from_value(text).unwrap());
        }
        for field in ["message", "lastTransitionTime", "observedGeneration"] {
            let mut text = json!(entry());
            text.as_object_mut().unwrap().remove(field);
            assert_eq!(read(&text).to_precondition(), Some(text));
        }
    }

    #[test]
    fn a_generation_that_the_server_dropped_is_known_and_no_part_of_the_precondition() {
        let mut text = json!(entry());
        text.as_object_mut().unwrap().remove("observedGeneration");
        let mut held = read(&text);
        held.restore_generation(&[ConditionEntry { message: "other".into(), ..entry() }]);
        assert_eq!((is_plain(&held), held.observed_generation()), (false, None));
        held.restore_generation(&[entry()]);
        assert_eq!((is_plain(&held), held.observed_generation()), (true, Some(7)));
        assert_eq!(held.to_precondition(), Some(text));
    }
}
