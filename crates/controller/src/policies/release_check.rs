//! When are the entries gone that policies left which are gone? Until then the rights to remove them are held on to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::KindState;
use policy::{KindKey, Released};
use tokio::time::Instant;
use watcher::reflector::Reflector;

use super::policy_task_state::PolicyTaskState;
use crate::snapshot::StatsSnapshot;

/// Interval at which parents are looked through for entries that are to be removed: longer than a snapshot is old. 3 s.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// Time after which a kind that no version of its group has is taken for one without objects, and not for one that is not
/// served for a moment. 2 min.
const ABSENT_FOR_LONG: Duration = Duration::from_mins(2);

/// Looks, while there is something to be removed.
pub(super) struct ReleaseCheck {
    next: Instant,
    /// Since when kinds are absent.
    absent_since: BTreeMap<KindKey, Instant>,
    /// Kinds of which the last look found no such entry, with what was looked for.
    clean: Released,
}

impl Default for ReleaseCheck {
    fn default() -> Self {
        ReleaseCheck {
            next: Instant::now() + CHECK_INTERVAL,
            absent_since: BTreeMap::new(),
            clean: Released::new(),
        }
    }
}

impl ReleaseCheck {
    /// Waits for the next look.
    pub(super) async fn next_check(&self) {
        tokio::time::sleep_until(self.next).await;
    }

    /// Looks. Kinds of which two looks in a row found no entry are done with; returns `true` if there is one, and a new plan
    /// is due.
    pub(super) fn settle(
        &mut self,
        state: &mut PolicyTaskState,
        reflector: &Reflector,
        snapshot: &StatsSnapshot,
    ) -> bool {
        self.next = Instant::now() + CHECK_INTERVAL;
        if state.released.is_empty() {
            self.absent_since.clear();
            self.clean.clear();
            return false;
        }
        let known = |key: &KindKey| {
            let id = state.registry.find_kind(&key.0, &key.1)?;
            Some((id, snapshot.kinds.get(&id)?.state))
        };
        let absent = state.released.keys().filter(|key| matches!(known(key), Some((_, KindState::Absent))));
        let now = Instant::now();
        let before = std::mem::take(&mut self.absent_since);
        self.absent_since =
            absent.map(|key| (key.clone(), before.get(key).copied().unwrap_or(now))).collect();
        let is_clean = |(key, types): &(&KindKey, &BTreeSet<String>)| match known(key) {
            // What is left alone for a while is not looked for.
            _ if state.others.may_release(key, state.decided_at) => false,
            Some((id, KindState::Synced)) => !has_entries(reflector, id, types),
            Some((_, KindState::Absent)) => {
                self.absent_since.get(*key).is_some_and(|since| now - *since >= ABSENT_FOR_LONG)
            }
            _ => false,
        };
        let now_clean = state.released.iter().filter(is_clean);
        let now_clean: Released = now_clean.map(|(key, types)| (key.clone(), types.clone())).collect();
        let done: Vec<KindKey> = now_clean
            .iter()
            .filter(|(key, types)| self.clean.get(*key) == Some(*types))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &done {
            state.settle_release(key);
        }
        self.clean = now_clean;
        !done.is_empty()
    }
}

fn has_entries(reflector: &Reflector, kind: aggregator::KindId, types: &BTreeSet<String>) -> bool {
    let mut found = false;
    reflector.for_each_row_in(kind, None, |_, row| {
        let parent = row.parent.as_ref().filter(|_| !found);
        found |= parent.is_some_and(|parent| parent.status.written().any(|own| types.contains(own.kind())));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use aggregator::KindId;
    use policy::build_plan;
    use serde_json::{Value, json};
    use watcher::ParentObject;

    use crate::snapshot::KindNumbers;

    fn parent(version: u32, conditions: &Value) -> ParentObject {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Database", "status": { "conditions": conditions },
            "metadata": { "name": "db", "namespace": "shop", "uid": "db", "generation": 1,
                "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z" },
        });
        serde_json::from_value(object).expect("an object")
    }

    fn snapshot(id: KindId, state: KindState) -> StatsSnapshot {
        let mut snapshot = StatsSnapshot::default();
        snapshot.kinds.insert(id, KindNumbers { label: String::new(), state, awaits: None, trouble: None });
        snapshot
    }

    #[tokio::test(start_paused = true)]
    async fn entries_are_gone_when_two_looks_in_a_row_at_all_parents_found_none() {
        let mut state = PolicyTaskState::default();
        let key = ("example.com".to_owned(), "Database".to_owned());
        state.released.insert(key, BTreeSet::from(["Ready".to_owned()]));
        let id = state.registry.kind("example.com", "Database").expect("room for a kind");
        let plan = build_plan(&[], &state.released, &mut state.registry, &state.libraries);
        let reflector = Reflector::new(|| ());
        reflector.set_interest(plan.kinds[&id].interest.clone());
        let mut check = ReleaseCheck::default();
        let mut look = |kind: KindState| check.settle(&mut state, &reflector, &snapshot(id, kind));
        let entry = json!([{ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        let carrying = parent(1, &entry);
        reflector.apply_object(id, &carrying.child, Some(&carrying.text));
        let before = [look(KindState::Synced), look(KindState::Synced), look(KindState::Synced)];
        assert_eq!(before, [false; 3], "the entry is there");
        let released = parent(2, &json!([]));
        reflector.apply_object(id, &released.child, Some(&released.text));
        let blind = [KindState::Forbidden, KindState::Stale, KindState::Listing];
        for (kind, done) in blind.map(|kind| (kind, false)).into_iter().chain([
            (KindState::Synced, false),
            (KindState::Listing, false),
            (KindState::Synced, false),
            (KindState::Synced, true),
            (KindState::Synced, false),
        ]) {
            assert_eq!(look(kind), done, "{kind:?}");
        }
        assert!(state.released.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_not_served_for_a_moment_is_not_taken_for_one_without_entries() {
        let mut state = PolicyTaskState::default();
        let key = ("example.com".to_owned(), "Database".to_owned());
        state.released.insert(key, BTreeSet::from(["Ready".to_owned()]));
        let id = state.registry.kind("example.com", "Database").expect("room for a kind");
        let reflector = Reflector::new(|| ());
        let mut check = ReleaseCheck::default();
        let mut settled = Vec::new();
        for second in 0..130 {
            if check.settle(&mut state, &reflector, &snapshot(id, KindState::Absent)) {
                settled.push(second);
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(settled, [121], "the second look in a row after two minutes");
    }
}
