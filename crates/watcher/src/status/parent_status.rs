//! Parsing of a parent's status, in particular of Rollcall's own conditions.

use std::hash::Hasher;

use aggregator::ThinList;
use rustc_hash::FxHasher;
use serde_json::value::RawValue;

use super::entry::{ConditionEntry, FIELD_MANAGER, WantedConditions, conditions_digest};
use super::json_members::JsonMembers;
use super::own::{self, OwnTypes};
use super::own_words::is_in_our_words;
use super::owned_condition::{OwnedCondition, has_message, read_entry};
use super::raw_json;
use super::status_managers::StatusManagers;

/// `status.conditions`.
#[derive(Clone, Debug)]
pub enum ListShape {
    /// The status is absent or null.
    NoStatus,
    /// The status has no conditions (absent or null).
    NoList,
    /// A list without a condition of Rollcall's. Its text is the precondition of the first one; behind a thin pointer,
    /// because the shape is kept as long as the parent exists.
    WithoutOurs(Box<Box<RawValue>>),
    /// A list with conditions of Rollcall's and of other clients.
    WithOurs,
    /// A list of which every element is a condition of Rollcall's.
    OnlyOurs,
    /// A value into which conditions cannot be written.
    Unwritable(UnwritableShape),
}

/// Why conditions cannot be written into a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwritableShape {
    /// The status is not an object.
    Status,
    /// `status.conditions` is not a list.
    Conditions,
    /// The list holds null, and nothing of Rollcall's: the server panics where a precondition names it (1.36.3).
    NullCondition,
}

impl UnwritableShape {
    /// Returns it in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            UnwritableShape::Status => "status is not an object",
            UnwritableShape::Conditions => "status.conditions is not a list",
            UnwritableShape::NullCondition => "status.conditions holds null",
        }
    }
}

/// To whom `status.observedGeneration` belongs, by `metadata.managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationOwner {
    /// Another manager than Rollcall owns it.
    Foreign,
    /// Rollcall wrote it, and no other client did.
    Rollcall,
    /// It exists because of the schema's default. Where Rollcall took its own away, the server names Rollcall as the manager of
    /// the 0 that it filled in.
    Default,
    /// It is absent, or nothing is known of it.
    Unknown,
}

/// A generation, or none, in no more room than a number. The least of all numbers, which no generation is, counts as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptGeneration(i64);

impl KeptGeneration {
    fn get(self) -> Option<i64> {
        (self.0 != i64::MIN).then_some(self.0)
    }
}

impl From<Option<i64>> for KeptGeneration {
    fn from(generation: Option<i64>) -> Self {
        KeptGeneration(generation.unwrap_or(i64::MIN))
    }
}

/// The part of a parent's status that concerns Rollcall.
#[derive(Clone, Debug)]
pub struct ParentStatus {
    /// Shape of `status.conditions`.
    pub list: ListShape,
    /// Our entries, in the order of the list. Nothing keeps an atomic list from having a type twice.
    pub ours: Box<[OwnedCondition]>,
    /// Condition types of other clients, with their managers if known, and whether their status is True.
    pub foreign: ThinList<(Box<str>, Box<str>, bool)>,
    /// Highest `observedGeneration` among the conditions of other clients.
    foreign_generation: KeptGeneration,
    /// `status.observedGeneration`.
    observed_generation: KeptGeneration,
    /// To whom that belongs.
    pub generation_owner: GenerationOwner,
    /// Fingerprint of its shape: the names of its fields, but for those that Rollcall writes, and whether conditions can be
    /// written into it.
    pub shape: u32,
    /// Another manager than Rollcall owns a field of the status.
    pub has_other_writers: bool,
    /// As far as is known the list is no map by `type`: the server lets a type stand in it twice.
    pub allows_duplicate_types: bool,
}

// Every parent has one for as long as it exists.
const _: () = assert!(size_of::<ParentStatus>() <= 64);

impl ParentStatus {
    /// Reads the whole object.
    pub fn read(object: &RawValue, own: &OwnTypes<'_>) -> ParentStatus {
        let status = raw_json::get_member(object, "status").filter(|s| !raw_json::is_null(s));
        let managers = StatusManagers::from_managed_fields(object);
        let fields = status.map(raw_json::all_members).unwrap_or_default();
        let (generation, known) = (fields.get("observedGeneration"), managers.any);
        let owners = managers.owners_of("f:observedGeneration");
        let observed_generation = generation.and_then(raw_json::integer_value);
        let is_shared = owners.iter().any(|manager| manager != FIELD_MANAGER);
        let generation_owner = match observed_generation {
            Some(_) if is_shared => GenerationOwner::Foreign,
            Some(n) if n != 0 && !owners.is_empty() => GenerationOwner::Rollcall,
            Some(_) if known => GenerationOwner::Default,
            Some(n) if n > 0 => GenerationOwner::Foreign,
            _ => GenerationOwner::Unknown,
        };
        let mut read = ParentStatus {
            list: ListShape::NoStatus,
            ours: Box::default(),
            foreign: ThinList::default(),
            foreign_generation: None.into(),
            observed_generation: observed_generation.into(),
            generation_owner,
            shape: 0,
            has_other_writers: managers.has_others(),
            allows_duplicate_types: !managers.know_conditions_by_type(),
        };
        if let Some(status) = status {
            read.read_conditions(status, fields.get("conditions"), &managers, own);
            read.shape = shape_of(&fields, &read.list);
        }
        read
    }

    /// `status.observedGeneration`.
    pub fn observed_generation(&self) -> Option<i64> {
        self.observed_generation.get()
    }

    /// Highest `observedGeneration` among the conditions of other clients.
    pub fn foreign_generation(&self) -> Option<i64> {
        self.foreign_generation.get()
    }

    /// Another manager than Rollcall owns `status.observedGeneration`.
    pub fn has_foreign_generation(&self) -> bool {
        self.generation_owner == GenerationOwner::Foreign
    }

    /// Rollcall wrote `status.observedGeneration`, and no other client did.
    pub fn holds_generation(&self) -> bool {
        self.generation_owner == GenerationOwner::Rollcall
    }

    /// `status.observedGeneration` exists because of the schema's default or because Rollcall wrote it.
    pub fn has_own_generation(&self) -> bool {
        let is_own = matches!(self.generation_owner, GenerationOwner::Rollcall | GenerationOwner::Default);
        is_own && self.observed_generation().is_some()
    }

    fn read_conditions(
        &mut self,
        status: &RawValue,
        list: Option<&RawValue>,
        managers: &StatusManagers<'_>,
        own: &OwnTypes<'_>,
    ) {
        if !status.get().starts_with('{') {
            self.list = ListShape::Unwritable(UnwritableShape::Status);
            return;
        }
        let Some(list) = list.filter(|list| !raw_json::is_null(list)) else {
            self.list = ListShape::NoList;
            return;
        };
        let Some(elements) = raw_json::list_elements(list) else {
            self.list = ListShape::Unwritable(UnwritableShape::Conditions);
            return;
        };
        let holds_null = elements.iter().any(|text| raw_json::is_null(text));
        let (mut read, length) = (ReadConditions::default(), elements.len());
        for (index, text) in elements.into_iter().enumerate() {
            read.read_condition(index, text, managers, own);
        }
        (self.ours, self.foreign) = (read.ours.into(), read.foreign.into());
        self.foreign_generation = read.foreign_generation.into();
        self.list = match self.ours.len() {
            0 if holds_null => ListShape::Unwritable(UnwritableShape::NullCondition),
            0 => ListShape::WithoutOurs(Box::new(list.to_owned())),
            all if all == length => ListShape::OnlyOurs,
            _ => ListShape::WithOurs,
        };
    }

    /// Restores what the schema of the conditions does not have, so that the server drops it: older condition types have no
    /// generation. A condition says what was sent last.
    pub(crate) fn restore_dropped(&mut self, sent: &[ConditionEntry]) {
        for held in &mut self.ours {
            held.restore_dropped(sent);
        }
    }

    /// Names the writers of conditions that are not named any more: an atomic list names who wrote it last alone, which is
    /// Rollcall after each of its own writes.
    pub(crate) fn restore_managers(&mut self, before: &[(Box<str>, Box<str>)]) {
        let known =
            |kind: &str| before.iter().find(|(known, _)| **known == *kind).map(|(_, managers)| managers);
        if !before.is_empty() && self.foreign.iter().any(|(_, managers, _)| managers.is_empty()) {
            let named = self.foreign.iter().map(|(kind, managers, is_true)| {
                let managers = known(kind).filter(|_| managers.is_empty()).unwrap_or(managers);
                (kind.clone(), managers.clone(), *is_true)
            });
            self.foreign = named.collect();
        }
    }

    /// Returns `true` if a condition of one of these types is not in our words, and the server cannot say whose it is: its list has
    /// one manager in all.
    pub fn has_unattributed(&self, own: &OwnTypes<'_>) -> bool {
        self.allows_duplicate_types && self.foreign.iter().any(|(kind, ..)| own.writes(kind))
    }

    /// Conditions of others with the managers that wrote them, where the server may forget these.
    pub(crate) fn managers_to_keep(&self) -> Vec<(Box<str>, Box<str>)> {
        let named = self
            .foreign
            .iter()
            .filter(|(_, managers, _)| self.allows_duplicate_types && !managers.is_empty());
        named.map(|(kind, managers, _)| (kind.clone(), managers.clone())).collect()
    }

    /// Returns `true` if some conditions came back without a field that they were sent with.
    pub(crate) fn has_dropped(&self, sent: &[ConditionEntry]) -> bool {
        sent.iter().any(|sent| self.our_entry(&sent.r#type).is_some_and(|held| held.lacks_of(sent)))
    }

    /// Our entries of these that are not in our words: an admission webhook has put others in for what was sent, or a schema has
    /// no reasons, if only until the server has taken over a newer one.
    pub(crate) fn altered_of(&self, sent: &[ConditionEntry]) -> Box<[ConditionEntry]> {
        let entries = sent.iter().filter_map(|sent| self.our_entry(&sent.r#type));
        entries.filter(|held| !held.is_in_our_words()).map(OwnedCondition::to_entry).collect()
    }

    /// Our entry of this type, the first of them.
    pub fn our_entry(&self, kind: &str) -> Option<&OwnedCondition> {
        self.ours.iter().find(|held| held.kind() == kind)
    }

    /// Our entries without those that the schema's default supplied: what Rollcall wrote.
    pub fn written(&self) -> impl Iterator<Item = &OwnedCondition> {
        self.ours.iter().filter(|held| !self.is_default(held))
    }

    /// Returns `true` if these conditions differ from what Rollcall wrote in nothing but what leaves: an answer of a policy,
    /// and what stands beside it.
    pub fn only_loses(&self, wanted: &WantedConditions) -> bool {
        let is_wanted =
            |held: &OwnedCondition| wanted.entries.iter().any(|entry| entry.r#type == held.kind());
        let is_said = |entry: &ConditionEntry| {
            let said = |held: &OwnedCondition| conditions_digest([held.to_entry()], None);
            self.our_entry(&entry.r#type).map(said) == Some(conditions_digest([entry], None))
        };
        let leaves = |held: &OwnedCondition| {
            !is_wanted(held) && (wanted.entries.is_empty() || !own::is_beside_ready(held.kind()))
        };
        self.written().any(leaves) && wanted.entries.iter().all(is_said)
    }

    /// Returns `true` if Rollcall wrote a condition that is none of these, nor stands beside one.
    pub(crate) fn has_others_than(&self, conditions: &[&str]) -> bool {
        let stands = |kind: &str| {
            conditions.iter().any(|condition| own::written_types(condition, None).any(|of| of == kind))
        };
        self.written().any(|held| !stands(held.kind()))
    }

    /// Returns `true` if this entry of ours is the schema's default, and the only one of its type.
    pub(super) fn is_default(&self, entry: &OwnedCondition) -> bool {
        let of_type = || self.ours.iter().filter(|held| held.kind() == entry.kind());
        entry.is_default() && of_type().nth(1).is_none()
    }

    /// Returns `true` if there is a condition of this type that another client owns.
    pub fn is_foreign(&self, kind: &str) -> bool {
        self.our_entry(kind).is_none() && self.foreign.iter().any(|(k, ..)| **k == *kind)
    }
}

/// Fingerprint of the shape of a status with these fields.
fn shape_of(fields: &JsonMembers<'_>, list: &ListShape) -> u32 {
    let others = fields.keys().filter(|name| !matches!(*name, "conditions" | "observedGeneration"));
    let spread = |number| timer::Seed(1).number_for(number);
    let names = others.map(|name| {
        let mut hash = FxHasher::default();
        hash.write(name.as_bytes());
        spread(hash.finish())
    });
    let is_unwritable = u64::from(matches!(list, ListShape::Unwritable(_)));
    let sum = names.fold(spread(is_unwritable), u64::wrapping_add);
    u32::try_from(sum >> 32).unwrap_or_default()
}

/// Entries of the list as they are read, one after the other.
#[derive(Default)]
struct ReadConditions {
    ours: Vec<OwnedCondition>,
    foreign: Vec<(Box<str>, Box<str>, bool)>,
    foreign_generation: Option<i64>,
}

impl ReadConditions {
    fn read_condition(
        &mut self,
        index: usize,
        text: &RawValue,
        managers: &StatusManagers<'_>,
        own: &OwnTypes<'_>,
    ) {
        let Some(kind) = raw_json::get_member(text, "type").and_then(raw_json::string_value) else { return };
        let owners = managers.condition_owners(&kind);
        let (entry, is_whole) = read_entry(text);
        let is_owner = |owner: &String| owner == FIELD_MANAGER;
        let is_undisputed = !owners.is_empty() && owners.iter().all(is_owner);
        let is_our_word = match () {
            () if owners.is_empty() => is_in_our_words(&entry, has_message(text)) || own.has_returned(&entry),
            // An admission webhook may have put other words in, or somebody taken some along: they are in nobody else's name.
            () if is_undisputed => true,
            () => entry.parent_reason().is_some() && owners.iter().any(is_owner),
        };
        let is_ours = (is_our_word && own.writes(&kind))
            || (own.takes(&kind) && self.ours.iter().all(|held| held.kind() != kind));
        if is_ours {
            self.ours.push(OwnedCondition::new(index, (entry, is_whole), text, is_undisputed));
            return;
        }
        let owners = if owners.is_empty() { managers.other_list_owners() } else { owners };
        self.foreign.push((kind.as_ref().into(), owners.join(", ").into(), entry.is_true()));
        // Our own word proves nothing, also where no policy that we know of writes it any more.
        let generation = entry.observed_generation.filter(|_| !is_our_word);
        self.foreign_generation = self.foreign_generation.max(generation);
    }
}

#[cfg(test)]
mod tests;
