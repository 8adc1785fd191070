//! What the inventory releases, keeps and drops, beside a recomputation and beside histories of crashes.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

use super::*;

const KIND: [&str; 2] = ["example.com", "Database"];

fn kind() -> KindKey {
    (KIND[0].to_owned(), KIND[1].to_owned())
}

fn types(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|&of| of.to_owned()).collect()
}

fn on_databases(of: &[&str]) -> Released {
    let written = BTreeMap::from([(kind(), types(of))]);
    written.into_iter().filter(|(_, types)| !types.is_empty()).collect()
}

fn present<'p>(uid: &'p str, names: Option<&[&str]>, writes: bool) -> PresentPolicy<'p> {
    PresentPolicy { uid, name: uid, names: names.map(on_databases), writes }
}

/// An inventory as it was kept by another process.
fn kept(items: &[(&str, &[&str])]) -> ConditionInventory {
    let mut inventory = ConditionInventory::default();
    let policies: Vec<_> = items.iter().map(|(uid, of)| present(uid, Some(of), true)).collect();
    inventory.note_policies(&policies);
    let (read, unreadable) = ConditionInventory::read(&inventory.to_data());
    assert!(unreadable.is_empty());
    read
}

/// What each policy wrote, by uid.
fn written(inventory: &ConditionInventory) -> Vec<(String, Vec<String>)> {
    let of = |item: &WrittenConditions| item.written.values().flatten().cloned().collect();
    inventory.items.iter().map(|(uid, item)| (uid.clone(), of(item))).collect()
}

#[test]
fn what_is_kept_is_read_as_it_was_and_what_is_nothing_of_ours_is_left_alone() {
    let inventory = kept(&[("u1", &["Ready", "Stalled"]), ("u2", &["example.com/Healthy"])]);
    let mut data = inventory.to_data();
    assert_eq!(
        data["u1"],
        r#"{"policy":"u1","written":[{"group":"example.com","kind":"Database","types":["Ready","Stalled"]}]}"#
    );
    let broken = [
        "",
        "7",
        "{}",
        r#"{"policy":"../secrets","written":[{"group":"example.com","kind":"Database","types":["Ready"]}]}"#,
        r#"{"policy":"a","written":[]}"#,
        r#"{"policy":"a","written":[{"group":"","kind":"Secret","types":["Ready"]}]}"#,
        r#"{"policy":"a","written":[{"group":"apps","kind":"Deployment","types":["Available"]}]}"#,
        r#"{"policy":"a","written":[{"group":"example.com/x","kind":"Database","types":["Ready"]}]}"#,
        r#"{"policy":"a","written":[{"group":"example.com","kind":"Data base","types":["Ready"]}]}"#,
        r#"{"policy":"a","written":[{"group":"example.com","kind":"Database","types":["Re\u001bady"]}]}"#,
        r#"{"policy":"a","written":[{"group":"example.com","kind":"Database","types":[]}]}"#,
    ];
    for (at, text) in broken.iter().enumerate() {
        data.insert(format!("broken-{at}"), (*text).to_owned());
    }
    let (read, unreadable) = ConditionInventory::read(&data);
    assert_eq!(written(&read), written(&inventory));
    assert_eq!(unreadable.len(), broken.len(), "{unreadable:?}");
}

/// Whether a policy is there, and as what.
type PolicyCase = Option<(Option<&'static [&'static str]>, bool)>;

/// What may be found of a policy that is in the inventory.
const CASES: [PolicyCase; 7] = [
    None,
    Some((None, true)),
    Some((Some(&["A"]), true)),
    Some((Some(&["A", "B"]), true)),
    Some((Some(&["B"]), true)),
    Some((Some(&["A"]), false)),
    Some((Some(&["B"]), false)),
];

#[test]
fn what_is_released_kept_and_dropped_is_what_a_recomputation_says() {
    const LISTS: [&[&str]; 4] = [&[], &["A"], &["B"], &["A", "B"]];
    let mut checked = 0;
    for (first, second) in LISTS.iter().flat_map(|a| LISTS.iter().map(move |b| (*a, *b))) {
        for (one, other) in CASES.iter().flat_map(|a| CASES.iter().map(move |b| (*a, *b))) {
            for gone in [false, true] {
                check([("u1", first, one), ("u2", second, other)], gone);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 16 * 49 * 2);
}

fn check(of: [(&'static str, &'static [&'static str], PolicyCase); 2], gone: bool) {
    let mut inventory = kept(&of.map(|(uid, list, _)| (uid, list)));
    let found: Vec<_> = of
        .iter()
        .filter_map(|(uid, _, case)| case.map(|(names, writes)| present(uid, names, writes)))
        .collect();
    inventory.note_policies(&found);
    while let Some((uid, _)) = inventory.next_unconfirmed() {
        let uid = uid.to_owned();
        inventory.confirm(&uid, gone);
    }
    inventory.note_policies(&found);
    let in_force =
        |case: &PolicyCase, t: &str| matches!(case, Some((Some(names), true)) if names.contains(&t));
    let (mut expected_left, mut expected, mut settled) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (uid, list, case) in &of {
        let (mut keeps, mut stays) = (Vec::new(), Vec::new());
        for t in ["A", "B"] {
            let another_answers = of.iter().any(|(other, _, case)| other != uid && in_force(case, t));
            let left = is_left(list, case, t, gone);
            if in_force(case, t) || (list.contains(&t) && !left) {
                keeps.push(t.to_owned());
                stays.push(t.to_owned());
            } else if left && !another_answers {
                keeps.push(t.to_owned());
                expected_left.insert(t.to_owned());
            }
        }
        expected.extend((!keeps.is_empty()).then(|| ((*uid).to_owned(), keeps)));
        settled.extend((!stays.is_empty()).then(|| ((*uid).to_owned(), stays)));
    }
    assert_eq!(written(&inventory), expected, "{of:?} {gone}");
    let left: BTreeSet<String> = inventory.left_behind().into_values().flatten().collect();
    assert_eq!(left, expected_left, "{of:?} {gone}");
    // Off all parents: that is dropped, and nothing else is.
    inventory.settle_release(&kind(), &left);
    assert_eq!(written(&inventory), settled, "{of:?} {gone}, after the release");
}

/// It was written by the policy, which is gone or writes something else.
fn is_left(list: &[&str], case: &PolicyCase, t: &str, gone: bool) -> bool {
    let no_longer = match case {
        None => gone,
        Some((None, _)) => false,
        Some((Some(names), _)) => !names.contains(&t),
    };
    no_longer && list.contains(&t)
}

#[test]
fn there_is_a_bound_for_each_policy_and_for_all_and_whoever_finds_no_room_takes_none_from_others() {
    let uids: Vec<String> = (0..4_000).map(|n| format!("00000000-0000-4000-8000-{n:012}")).collect();
    let long = "t".repeat(300);
    let mut inventory = ConditionInventory::default();
    let first = present("first", Some(&["Ready"]), true);
    let many: Vec<_> = uids.iter().map(|uid| present(uid, Some(&[&*long]), true)).collect();
    let all: Vec<_> = std::iter::once(first.clone()).chain(many).collect();
    inventory.note_policies(&all);
    let size = |inventory: &ConditionInventory| {
        inventory.to_data().iter().map(|(uid, text)| uid.len() + text.len()).sum::<usize>()
    };
    assert!(size(&inventory) <= MAX_INVENTORY_SIZE && size(&inventory) > MAX_INVENTORY_SIZE / 2);
    let kept = inventory.to_data().len();
    assert!(kept > 1_000 && inventory.left_out().len() == all.len() - kept);
    assert!(inventory.to_data().contains_key("first"));
    // One that keeps changing what it writes, and whose entries cannot be removed.
    let mut inventory = ConditionInventory::default();
    for n in 0..1_000 {
        let name = format!("{long}{n}");
        inventory.note_policies(&[first.clone(), present("busy", Some(&[&name]), true)]);
    }
    assert!(size(&inventory) < MAX_POLICY_SIZE + 200 && size(&inventory) > MAX_POLICY_SIZE / 2);
    assert_eq!(*inventory.left_out(), types(&["busy"]));
    inventory.note_policies(std::slice::from_ref(&first));
    assert_eq!(inventory.settle_release(&kind(), &inventory.clone().left_behind()[&kind()]), ["busy"]);
    assert_eq!(written(&inventory), [("first".to_owned(), vec!["Ready".to_owned()])]);
}

/// Numbers by which a history is drawn.
struct HistoryRandom(u64);

impl HistoryRandom {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[derive(Clone, Debug)]
struct ModelPolicy {
    uid: String,
    of: &'static str,
    shadow: bool,
}

/// A process as far as it matters here: what it had in use, what it releases, and the inventory if it has read it.
#[derive(Default)]
struct ModelProcess {
    in_use: Vec<ModelPolicy>,
    released: BTreeSet<String>,
    inventory: Option<ConditionInventory>,
}

#[derive(Default)]
struct ModelCluster {
    policies: Vec<ModelPolicy>,
    /// Entries on parents, by type.
    entries: BTreeMap<&'static str, u32>,
    stored: BTreeMap<String, String>,
    process: Option<ModelProcess>,
    created: u32,
}

const TYPES: [&str; 3] = ["A", "B", "C"];

impl ModelCluster {
    /// One step of the process: it sees the policies, stores the inventory, and only then writes.
    fn turn(&mut self, dies_before_storing: bool, dies_before_writing: bool) {
        let process = self.process.get_or_insert_default();
        let names = |policies: &[ModelPolicy]| -> BTreeSet<String> {
            policies.iter().map(|policy| policy.of.to_owned()).collect()
        };
        let before = names(&process.in_use);
        process.in_use.clone_from(&self.policies);
        let inventory = process.inventory.get_or_insert_with(|| ConditionInventory::read(&self.stored).0);
        let present = |policy: &ModelPolicy| PresentPolicy {
            uid: "",
            name: "a",
            names: Some(on_databases(&[policy.of])),
            writes: !policy.shadow,
        };
        let found: Vec<_> = self
            .policies
            .iter()
            .map(|policy| PresentPolicy { uid: &policy.uid, ..present(policy) })
            .collect();
        inventory.note_policies(&found);
        while let Some((uid, _)) = inventory.next_unconfirmed() {
            let uid = uid.to_owned();
            inventory.confirm(&uid, true);
        }
        process.released.extend(before);
        process.released.extend(inventory.left_behind().into_values().flatten());
        let in_use = names(&self.policies);
        process.released.retain(|of| !in_use.contains(of));
        if dies_before_storing {
            self.process = None;
            return;
        }
        self.stored = inventory.to_data();
        if dies_before_writing {
            self.process = None;
            return;
        }
        for policy in &self.policies {
            let others_write = self.policies.iter().any(|other| other.of == policy.of && !other.shadow);
            let entries = self.entries.entry(policy.of).or_default();
            if !policy.shadow {
                *entries = 3;
            } else if !others_write {
                *entries = entries.saturating_sub(1);
            }
        }
        // Paced: one parent at a time.
        for of in &process.released {
            assert!(!in_use.contains(of), "an entry that a policy writes is taken away");
            if let Some(entries) = self.entries.get_mut(&**of) {
                *entries = entries.saturating_sub(1);
            }
        }
        let entries = &self.entries;
        let done: BTreeSet<String> = process
            .released
            .iter()
            .filter(|of| entries.get(&***of).is_none_or(|left| *left == 0))
            .cloned()
            .collect();
        inventory.settle_release(&kind(), &done);
        process.released.retain(|of| !done.contains(of));
    }

    fn change_policies(&mut self, dice: &mut HistoryRandom) {
        let at = usize::try_from(dice.below(3)).unwrap();
        match dice.below(4) {
            0 if self.policies.len() < 3 => {
                self.created += 1;
                let (uid, shadow) = (format!("u{}", self.created), dice.below(4) == 0);
                self.policies.push(ModelPolicy { uid, of: TYPES[at], shadow });
            }
            1 if at < self.policies.len() => _ = self.policies.remove(at),
            2 if at < self.policies.len() => {
                self.policies[at].of = TYPES[usize::try_from(dice.below(3)).unwrap()];
            }
            3 if at < self.policies.len() => self.policies[at].shadow = dice.below(4) == 0,
            _ => {}
        }
    }
}

#[test]
fn whenever_processes_die_and_policies_go_no_entry_is_left_that_nobody_writes() {
    for seed in 1..=400_u64 {
        let mut dice = HistoryRandom(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut cluster = ModelCluster::default();
        for _ in 0..40 {
            match dice.below(8) {
                0..=2 => cluster.change_policies(&mut dice),
                3 => cluster.process = None,
                4 => cluster.turn(true, false),
                5 => cluster.turn(false, true),
                _ => cluster.turn(false, false),
            }
        }
        for _ in 0..12 {
            cluster.turn(false, false);
        }
        let writes = |of: &str| cluster.policies.iter().any(|policy| policy.of == of && !policy.shadow);
        for (of, left) in &cluster.entries {
            assert_eq!(*left, if writes(of) { 3 } else { 0 }, "seed {seed}: {of}, {:?}", cluster.policies);
        }
        cluster.policies.clear();
        cluster.process = None;
        for _ in 0..12 {
            cluster.turn(false, false);
        }
        assert!(cluster.entries.values().all(|left| *left == 0), "seed {seed}");
        assert!(cluster.stored.is_empty(), "seed {seed}: {:?}", cluster.stored);
    }
}
