//! Detects finalizers that are repeatedly removed and added again: two controllers disagree, usually because one writes
//! the whole list and drops entries of the other. A finalizer that returns after its owner released the object blocks
//! its deletion.
//!
//! Bounded: only objects whose finalizers changed recently are tracked, at most [`MAX_TRACKED_OBJECTS`] of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::{Engine, ObjectId, PolicyId};
use readiness::Time;
use watcher::reflector::{FinalizerChange, Reflector};
use watcher::status::time;

use super::causes::CauseFinder;

/// Maximum number of tracked objects.
const MAX_TRACKED_OBJECTS: usize = 1_024;
/// Maximum number of finalizers tracked per object.
const MAX_FINALIZERS_PER_OBJECT: usize = 16;
/// Time without changes after which the flapping is over. 10 min.
const FLAP_QUIET_PERIOD: Duration = Duration::from_mins(10);
/// Number of restorations from which a finalizer counts as flapping. A single one may be a change of mind.
const FLAP_THRESHOLD: u32 = 2;
/// Longest average interval between restorations that is described as several times a minute.
const FAST_FLAP_INTERVAL: Duration = Duration::from_secs(20);
/// Maximum number of finalizers in one message.
const MAX_FLAPS_IN_MESSAGE: usize = 2;

/// State of one finalizer of one object.
#[derive(Clone, Debug, Default)]
struct FinalizerState {
    present: bool,
    /// Time of its first removal.
    since: Option<Time>,
    restored: u32,
}

/// Finalizers of one object.
#[derive(Clone, Debug, Default)]
struct ObjectFinalizers {
    names: BTreeMap<Box<str>, FinalizerState>,
    /// Field managers that were observed to own any of them.
    managers: BTreeSet<Box<str>>,
    last_change: Time,
    /// Text of the report; empty if nothing is reported.
    text: String,
}

/// Objects whose finalizers change.
#[derive(Debug, Default)]
pub(super) struct FinalizerFlaps {
    objects: BTreeMap<ObjectId, ObjectFinalizers>,
    /// Objects with a report.
    reported: BTreeSet<ObjectId>,
    /// Number of restorations by policy, for metrics.
    counts: BTreeMap<PolicyId, u64>,
    /// Objects reported for the first time, for Events.
    newly_reported: Vec<ObjectId>,
}

impl ObjectFinalizers {
    /// Applies a change. Returns the number of finalizers that it restored.
    fn apply_change(&mut self, change: &FinalizerChange, now: Time) -> u32 {
        let mut back = 0;
        for (name, known) in &mut self.names {
            let there = change.names.contains(name);
            if there && !known.present {
                known.restored += 1;
                back += 1;
            }
            if !there && known.present {
                known.since.get_or_insert(now);
            }
            known.present = there;
        }
        for name in &change.names {
            if self.names.len() < MAX_FINALIZERS_PER_OBJECT && !self.names.contains_key(name) {
                self.names
                    .insert(name.clone(), FinalizerState { present: true, ..FinalizerState::default() });
            }
        }
        // Whoever may change the object may be called anything, each time anew.
        for manager in change.managers.values() {
            if self.managers.len() < MAX_FINALIZERS_PER_OBJECT {
                self.managers.insert(manager.clone());
            }
        }
        self.last_change = now;
        back
    }

    fn flapping_finalizers(&self) -> impl Iterator<Item = (&str, &FinalizerState, Time)> {
        let often = self.names.iter().filter(|(_, name)| name.restored >= FLAP_THRESHOLD);
        often.filter_map(|(text, name)| Some((&**text, name, name.since?)))
    }

    /// Describes names, pace, start, and the managers if they tell the writers apart. Contains no running value, so
    /// that the text stays the same.
    fn describe_flaps(&self) -> String {
        let mut often: Vec<_> = self.flapping_finalizers().collect();
        let Some(since) = often.iter().map(|(.., since)| *since).min() else { return String::new() };
        let fast = often
            .iter()
            .any(|(_, name, since)| (self.last_change - *since) / name.restored.max(1) <= FAST_FLAP_INTERVAL);
        let pace = if fast { "several times a minute" } else { "again and again" };
        often.truncate(3);
        let names: Vec<&str> = often.iter().map(|(text, ..)| *text).collect();
        let (noun, verb) = if names.len() == 1 { ("finalizer", "is") } else { ("finalizers", "are") };
        let who = if self.managers.len() > 1 {
            let managers: Vec<&str> = self.managers.iter().map(|m| &**m).take(3).collect();
            format!(" (managers {})", managers.join(", "))
        } else {
            String::new()
        };
        let (names, since) = (names.join(", "), time::format_seconds(since));
        format!("{noun} {names} {verb} taken off and put back {pace} since {since}{who}")
    }
}

impl FinalizerFlaps {
    /// Forgets a quarter of the objects: those at rest and without a report first.
    fn make_room(&mut self) {
        if self.objects.len() < MAX_TRACKED_OBJECTS {
            return;
        }
        let said = &self.reported;
        let mut all: Vec<_> =
            self.objects.iter().map(|(id, flap)| (said.contains(id), flap.last_change, *id)).collect();
        all.sort_unstable();
        for (.., id) in all.into_iter().take(MAX_TRACKED_OBJECTS / 4) {
            self.objects.remove(&id);
            self.reported.remove(&id);
        }
    }

    /// Time at which a report may end.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.reported
            .iter()
            .filter_map(|id| Some(self.objects.get(id)?.last_change + FLAP_QUIET_PERIOD))
            .min()
    }

    fn reported_text(&self, id: ObjectId) -> &str {
        self.objects.get(&id).map_or("", |flap| &flap.text)
    }

    /// Processes pending changes, and ends the reports of objects at rest.
    pub(super) fn process_changes(&mut self, engine: &mut Engine, reflector: &Reflector, now: Time) {
        for change in reflector.take_finalizer_changes() {
            self.observe_change(engine, &change, now);
        }
        let over = |id: &&ObjectId| {
            self.objects.get(id).is_none_or(|flap| flap.last_change + FLAP_QUIET_PERIOD <= now)
        };
        let over: Vec<ObjectId> = self.reported.iter().filter(over).copied().collect();
        for id in over {
            self.forget(id);
            engine.mark_text_changed(id, now);
        }
    }

    fn observe_change(&mut self, engine: &mut Engine, change: &FinalizerChange, now: Time) {
        let id = change.object;
        self.make_room();
        let flap = self.objects.entry(id).or_default();
        if flap.last_change + FLAP_QUIET_PERIOD <= now {
            *flap = ObjectFinalizers::default();
        }
        let back = flap.apply_change(change, now);
        if back == 0 {
            return;
        }
        let words = flap.describe_flaps();
        let (reworded, first) = (flap.text != words, flap.text.is_empty());
        flap.text = words;
        let owners = engine.reader().counted_parents(id).into_iter().map(|(_, policy)| policy);
        let policies: BTreeSet<PolicyId> = owners.chain(engine.policies_of(id)).collect();
        for policy in policies {
            *self.counts.entry(policy).or_default() += u64::from(back);
        }
        if reworded {
            self.reported.insert(id);
            if first {
                self.newly_reported.push(id);
            }
            engine.mark_text_changed(id, now);
        }
    }

    /// Forgets a deleted object: its id may be reused.
    pub(super) fn forget(&mut self, id: ObjectId) {
        self.reported.remove(&id);
        self.objects.remove(&id);
    }

    /// Report about the finalizers of `parent` and of its children under `policy`; empty if there is none.
    pub(super) fn text_about(&self, from: &CauseFinder<'_>, parent: ObjectId, policy: PolicyId) -> String {
        let mut told = Vec::new();
        for id in &self.reported {
            let own = *id == parent;
            if !own && !from.engine.reader().counted_parents(*id).contains(&(parent, policy)) {
                continue;
            }
            let named = from.reflector.read_row(*id, |row| (row.kind, row.name.to_string()));
            let Some((kind, name)) = named.filter(|_| !self.reported_text(*id).is_empty()) else {
                continue;
            };
            let of = if own { String::new() } else { format!("{} {name}: ", from.kinds.name(kind)) };
            told.push((!own, of + self.reported_text(*id)));
        }
        told.sort();
        let more = told.len().saturating_sub(MAX_FLAPS_IN_MESSAGE);
        let mut text: Vec<String> =
            told.into_iter().take(MAX_FLAPS_IN_MESSAGE).map(|(_, text)| text).collect();
        if more > 0 {
            text.push(format!("and finalizers of {more} more"));
        }
        text.join("; ")
    }

    /// Number of restorations since the last call, by policy.
    pub(super) fn take_counts(&mut self) -> BTreeMap<PolicyId, u64> {
        std::mem::take(&mut self.counts)
    }

    /// At most `most` parents with a report about their own finalizers or their children's, with the policy.
    pub(super) fn parents(&self, engine: &Engine, most: usize) -> BTreeSet<(ObjectId, PolicyId)> {
        let mut parents = BTreeSet::new();
        for id in &self.reported {
            let own = engine.policies_of(*id).map(|policy| (*id, policy));
            let room = most - parents.len();
            parents.extend(own.chain(engine.reader().counted_parents(*id)).take(room));
        }
        parents
    }

    /// Objects reported for the first time since the last call.
    pub(super) fn take_newly_reported(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.newly_reported)
    }

    /// Parents of these objects, or themselves, with the text of the report about them.
    pub(super) fn describe(
        &self,
        from: &CauseFinder<'_>,
        reported: Vec<ObjectId>,
    ) -> Vec<(ObjectId, String)> {
        let mut news = BTreeMap::new();
        for id in reported {
            let own = from.engine.policies_of(id).map(|policy| (id, policy)).collect::<Vec<_>>();
            for (parent, policy) in own.into_iter().chain(from.engine.reader().counted_parents(id)) {
                if !from.engine.is_shadow(policy) {
                    news.insert(parent, self.text_about(from, parent, policy));
                }
            }
        }
        news.into_iter().filter(|(_, words)| !words.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1_767_225_600_000);

    fn seen(names: &[&str], managers: &[(&str, &str)]) -> FinalizerChange {
        FinalizerChange {
            object: ObjectId(1),
            names: names.iter().map(|n| (*n).into()).collect(),
            managers: managers.iter().map(|(name, by)| ((*name).into(), (*by).into())).collect(),
        }
    }

    /// Report after these sets of finalizers, one every `every`.
    fn after(every: u64, sets: &[&[&str]]) -> String {
        let mut flap = ObjectFinalizers::default();
        let mut now = START;
        for set in sets {
            flap.apply_change(&seen(set, &[]), now);
            now = now + Duration::from_secs(every);
        }
        flap.describe_flaps()
    }

    #[test]
    fn what_is_put_on_and_taken_off_as_it_should_be_is_no_news() {
        assert_eq!(after(1, &[&["a"], &["a", "b"], &["b"], &[]]), "");
        assert_eq!(after(1, &[&["a"], &[], &["a"], &[]]), "", "once may be a change of mind");
    }

    #[test]
    fn what_keeps_coming_back_is_named_with_its_pace_and_since_when() {
        let said =
            "finalizer b/x is taken off and put back several times a minute since 2026-01-01T00:00:01Z";
        let sets: &[&[&str]] = &[&["a/y", "b/x"], &["a/y"], &["a/y", "b/x"], &["a/y"], &["a/y", "b/x"]];
        assert_eq!(after(1, sets), said);
        assert!(after(60, sets).contains("put back again and again since"), "{}", after(60, sets));
        let more: Vec<&[&str]> = sets.iter().chain(&sets[1..]).copied().collect();
        assert_eq!(after(1, &more), said, "the same words however often");
    }

    #[test]
    fn managers_are_named_where_they_tell_the_two_apart() {
        let told = |managers: [&str; 2]| {
            let mut flap = ObjectFinalizers::default();
            for _ in 0..4 {
                flap.apply_change(&seen(&["a"], &[("a", managers[0])]), START);
                flap.apply_change(&seen(&["b"], &[("b", managers[1])]), START);
            }
            flap.describe_flaps()
        };
        assert!(told(["kopf", "shop-controller"]).ends_with("Z (managers kopf, shop-controller)"));
        assert!(!told(["kopf", "kopf"]).contains("managers"));
    }

    #[test]
    fn a_flood_of_managers_costs_a_bounded_number_of_them() {
        let mut flap = ObjectFinalizers::default();
        for round in 0..5_000 {
            let manager = format!("manager-{round}");
            flap.apply_change(&seen(&["a"], &[("a", &manager)]), START);
            flap.apply_change(&seen(&[], &[]), START);
        }
        assert_eq!(flap.managers.len(), MAX_FINALIZERS_PER_OBJECT);
    }

    #[test]
    fn a_flood_of_objects_costs_a_bounded_number_of_them() {
        let mut flaps = FinalizerFlaps::default();
        flaps.objects.insert(
            ObjectId(0),
            ObjectFinalizers { last_change: START, text: "x".to_owned(), ..ObjectFinalizers::default() },
        );
        flaps.reported.insert(ObjectId(0));
        for id in 1..5_000 {
            let now = START + Duration::from_millis(u64::from(id));
            flaps.make_room();
            flaps
                .objects
                .insert(ObjectId(id), ObjectFinalizers { last_change: now, ..ObjectFinalizers::default() });
        }
        assert!((MAX_TRACKED_OBJECTS / 2..=MAX_TRACKED_OBJECTS).contains(&flaps.objects.len()));
        assert_eq!(flaps.reported_text(ObjectId(0)), "x", "what is said is kept before what is not");
    }
}
