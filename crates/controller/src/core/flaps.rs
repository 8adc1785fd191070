//! Finalizers that are taken off and put back: two controllers that do not agree, mostly one that writes the whole list and
//! with it drops what another has put there. Deletions hang on what comes back after its owner has let go.
//!
//! Bounded: only objects whose finalizers have changed of late are known, and no more than [`KNOWN`] of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::{ObjectId, PolicyId};
use readiness::Time;
use watcher::reflector::FinalizerChange;
use watcher::status::time;

use super::Core;

/// So many objects are known at most.
const KNOWN: usize = 1_024;
/// So many finalizers of one object.
const NAMES: usize = 16;
/// Nothing changed for so long: it is over.
const REST: Duration = Duration::from_mins(10);
/// Put back so often, it keeps coming and going. Once may be somebody who has changed their mind.
const OFTEN: u32 = 2;
/// Put back within so long on average is several times a minute.
const FAST: Duration = Duration::from_secs(20);
/// So many are told in one message.
const TOLD: usize = 2;

/// One finalizer of one object.
#[derive(Clone, Debug, Default)]
struct Name {
    there: bool,
    /// When it was first taken off.
    since: Option<Time>,
    back: u32,
}

/// One object.
#[derive(Clone, Debug, Default)]
struct Flap {
    names: BTreeMap<Box<str>, Name>,
    /// Who was seen to hold any of them.
    managers: BTreeSet<Box<str>>,
    last: Time,
    /// What is said of it; empty while it is nothing.
    words: String,
}

/// Objects whose finalizers change.
#[derive(Debug, Default)]
pub(super) struct Flaps {
    of: BTreeMap<ObjectId, Flap>,
    /// Those of which something is said.
    said: BTreeSet<ObjectId>,
    /// For metrics: how often one was put back, by policy.
    counts: BTreeMap<PolicyId, u64>,
    /// For Events: of these, something is said for the first time.
    news: Vec<ObjectId>,
}

impl Flap {
    /// How many of its finalizers were put back by this change.
    fn take(&mut self, change: &FinalizerChange, now: Time) -> u32 {
        let mut back = 0;
        for (name, known) in &mut self.names {
            let there = change.names.contains(name);
            if there && !known.there {
                known.back += 1;
                back += 1;
            }
            if !there && known.there {
                known.since.get_or_insert(now);
            }
            known.there = there;
        }
        for name in &change.names {
            if self.names.len() < NAMES && !self.names.contains_key(name) {
                self.names.insert(name.clone(), Name { there: true, ..Name::default() });
            }
        }
        self.managers.extend(change.managers.values().take(NAMES).cloned());
        self.last = now;
        back
    }

    fn often(&self) -> impl Iterator<Item = (&str, &Name, Time)> {
        let often = self.names.iter().filter(|(_, name)| name.back >= OFTEN);
        often.filter_map(|(text, name)| Some((&**text, name, name.since?)))
    }

    /// Names, how fast, since when, and who where that tells them apart; nothing that ticks.
    fn describe(&self) -> String {
        let mut often: Vec<_> = self.often().collect();
        let Some(since) = often.iter().map(|(.., since)| *since).min() else { return String::new() };
        let fast = often.iter().any(|(_, name, since)| (self.last - *since) / name.back.max(1) <= FAST);
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
        let (names, since) = (names.join(", "), time::format(since));
        format!("{noun} {names} {verb} taken off and put back {pace} since {since}{who}")
    }
}

impl Flaps {
    /// Makes room by forgetting a quarter: those that rest, and of which nothing is said, first.
    fn make_room(&mut self) {
        if self.of.len() < KNOWN {
            return;
        }
        let said = &self.said;
        let mut all: Vec<_> = self.of.iter().map(|(id, flap)| (said.contains(id), flap.last, *id)).collect();
        all.sort_unstable();
        for (.., id) in all.into_iter().take(KNOWN / 4) {
            self.of.remove(&id);
            self.said.remove(&id);
        }
    }

    /// When something that is said may be over.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.said.iter().filter_map(|id| Some(self.of.get(id)?.last + REST)).min()
    }

    fn words(&self, id: ObjectId) -> &str {
        self.of.get(&id).map_or("", |flap| &flap.words)
    }
}

impl Core {
    /// Takes in what has changed, and what has rested.
    pub(super) fn watch_finalizers(&mut self, now: Time) {
        for change in self.reflector.take_finalizer_changes() {
            self.finalizers_changed(&change, now);
        }
        let over = |id: &&ObjectId| self.flaps.of.get(id).is_none_or(|flap| flap.last + REST <= now);
        let over: Vec<ObjectId> = self.flaps.said.iter().filter(over).copied().collect();
        for id in over {
            self.forget_finalizers(id);
            self.engine.reword(id, now);
        }
    }

    fn finalizers_changed(&mut self, change: &FinalizerChange, now: Time) {
        let id = change.object;
        self.flaps.make_room();
        let flap = self.flaps.of.entry(id).or_default();
        if flap.last + REST <= now {
            *flap = Flap::default();
        }
        let back = flap.take(change, now);
        if back == 0 {
            return;
        }
        let words = flap.describe();
        let (reworded, first) = (flap.words != words, flap.words.is_empty());
        flap.words = words;
        let owners = self.engine.owners(id).into_iter().map(|(_, policy)| policy);
        let policies: BTreeSet<PolicyId> = owners.chain(self.engine.policies_of(id)).collect();
        for policy in policies {
            *self.flaps.counts.entry(policy).or_default() += u64::from(back);
        }
        if reworded {
            self.flaps.said.insert(id);
            if first {
                self.flaps.news.push(id);
            }
            self.engine.reword(id, now);
        }
    }

    /// An object is gone: whoever comes to its place has nothing to do with it.
    pub(super) fn forget_finalizers(&mut self, id: ObjectId) {
        self.flaps.said.remove(&id);
        self.flaps.of.remove(&id);
    }

    /// What is said of the finalizers of `parent` and of its children under `policy`; empty where nothing is.
    pub(super) fn finalizer_words(&self, parent: ObjectId, policy: PolicyId) -> String {
        let mut told = Vec::new();
        for id in &self.flaps.said {
            let own = *id == parent;
            if !own && !self.engine.owners(*id).contains(&(parent, policy)) {
                continue;
            }
            let named = self.reflector.read(*id, |row| (row.kind, row.name.to_string()));
            let Some((kind, name)) = named.filter(|_| !self.flaps.words(*id).is_empty()) else { continue };
            let of = if own { String::new() } else { format!("{} {name}: ", self.kind_name(kind)) };
            told.push((!own, of + self.flaps.words(*id)));
        }
        told.sort();
        let more = told.len().saturating_sub(TOLD);
        let mut text: Vec<String> = told.into_iter().take(TOLD).map(|(_, text)| text).collect();
        if more > 0 {
            text.push(format!("and finalizers of {more} more"));
        }
        text.join("; ")
    }

    /// When this has something to do, if nothing moves before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.engine.next_deadline().into_iter().chain(self.flaps.next_deadline()).min()
    }

    /// How often finalizers were put back since this was last asked, by policy.
    pub fn take_flap_counts(&mut self) -> BTreeMap<PolicyId, u64> {
        std::mem::take(&mut self.flaps.counts)
    }

    /// Parents of whose finalizers, or of whose children's, something is said now, at most so many, and under which policy.
    pub fn flapping(&self, most: usize) -> BTreeSet<(ObjectId, PolicyId)> {
        let mut parents = BTreeSet::new();
        for id in &self.flaps.said {
            let own = self.engine.policies_of(*id).map(|policy| (*id, policy));
            let room = most - parents.len();
            parents.extend(own.chain(self.engine.owners(*id)).take(room));
        }
        parents
    }

    /// Parents of whose finalizers, or of whose children's, something is said for the first time, with what is said.
    pub fn take_flap_news(&mut self) -> Vec<(ObjectId, String)> {
        let mut news = BTreeMap::new();
        for id in std::mem::take(&mut self.flaps.news) {
            let own = self.engine.policies_of(id).map(|policy| (id, policy)).collect::<Vec<_>>();
            for (parent, policy) in own.into_iter().chain(self.engine.owners(id)) {
                if !self.engine.is_shadow(policy) {
                    news.insert(parent, self.finalizer_words(parent, policy));
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

    /// What is said after these sets of finalizers, one every so often.
    fn after(every: u64, sets: &[&[&str]]) -> String {
        let mut flap = Flap::default();
        let mut now = START;
        for set in sets {
            flap.take(&seen(set, &[]), now);
            now = now + Duration::from_secs(every);
        }
        flap.describe()
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
            let mut flap = Flap::default();
            for _ in 0..4 {
                flap.take(&seen(&["a"], &[("a", managers[0])]), START);
                flap.take(&seen(&["b"], &[("b", managers[1])]), START);
            }
            flap.describe()
        };
        assert!(told(["kopf", "shop-controller"]).ends_with("Z (managers kopf, shop-controller)"));
        assert!(!told(["kopf", "kopf"]).contains("managers"));
    }

    #[test]
    fn a_flood_of_objects_costs_a_bounded_number_of_them() {
        let mut flaps = Flaps::default();
        flaps.of.insert(ObjectId(0), Flap { last: START, words: "x".to_owned(), ..Flap::default() });
        flaps.said.insert(ObjectId(0));
        for id in 1..5_000 {
            let now = START + Duration::from_millis(u64::from(id));
            flaps.make_room();
            flaps.of.insert(ObjectId(id), Flap { last: now, ..Flap::default() });
        }
        assert!((KNOWN / 2..=KNOWN).contains(&flaps.of.len()));
        assert_eq!(flaps.words(ObjectId(0)), "x", "what is said is kept before what is not");
    }
}
