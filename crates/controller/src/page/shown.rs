//! What the page shows, made from where everybody stands: parents sorted by trouble, and who belongs to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use aggregator::{Answer, ChildOf, KindId, ObjectId, PolicyId};
use readiness::{Level, Time};
use rustc_hash::{FxHashMap, FxHasher};
use watcher::reflector::{Namespace, Reflector};

use super::digests::digests;
use super::tree::Place;
use crate::core::{Words, World};

/// Deeper than this nothing is shown.
pub(super) const DEPTH: usize = 16;

/// One policy's answer about one parent, with names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The parent, as long as its uid stands there.
    pub(super) parent: ObjectId,
    /// The policy.
    pub(super) policy: PolicyId,
    /// The parent's uid.
    pub(super) uid: Arc<str>,
    /// Its kind.
    pub(super) kind: KindId,
    /// Its namespace.
    pub(super) namespace: Namespace,
    /// Its name.
    pub(super) name: Box<str>,
    /// The answer.
    pub(super) answer: Answer,
    /// Since when it has been ready, or has not.
    pub(super) since: Option<Time>,
    /// A fingerprint of everything that is shown of it.
    digest: u64,
}

impl Row {
    pub(super) fn level(&self) -> Level {
        self.answer.reason.level()
    }
}

/// Names of kinds and policies.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Kinds: what people call them, and the same with the group.
    pub(super) kinds: BTreeMap<KindId, (String, String)>,
    /// Policies.
    pub(super) policies: BTreeMap<PolicyId, String>,
}

impl Names {
    /// What people call a kind.
    pub(super) fn kind(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(name, _)| name)
    }

    /// The same with its group.
    pub(super) fn label(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(_, label)| label)
    }

    /// What a policy is called.
    pub(super) fn policy(&self, policy: PolicyId) -> &str {
        self.policies.get(&policy).map_or("", String::as_str)
    }
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// When.
    pub(super) now: Time,
    /// Worst first.
    pub(super) rows: Vec<Row>,
    /// Names of kinds and policies.
    pub(super) names: Arc<Names>,
    /// Where parents live, each place once.
    pub(super) places: Vec<Place>,
    /// What was said of some of them, asked once.
    pub(super) words: tokio::sync::Mutex<FxHashMap<(ObjectId, PolicyId), Words>>,
    /// By parent and policy.
    edges: Vec<ChildOf>,
    by_uid: FxHashMap<Arc<str>, Vec<u32>>,
    by_id: FxHashMap<(ObjectId, PolicyId), u32>,
}

/// What is different from before.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// New, or shown otherwise.
    pub(super) changed: Vec<Row>,
    /// Not there any more.
    pub(super) gone: Vec<Row>,
}

impl Shown {
    /// Makes it. `unready` says since when parents have not been ready, where their conditions do not.
    pub(super) fn new(
        mut world: World,
        reflector: &Reflector,
        unready: &FxHashMap<(ObjectId, PolicyId), Time>,
    ) -> Shown {
        world.edges.sort_unstable_by_key(|e| (e.parent, e.policy, e.child));
        let policies = world.policies.into_iter().map(|(id, words)| (id, words.name)).collect();
        let names = Arc::new(Names { kinds: world.kinds, policies });
        let digests = digests(&world.edges, reflector, world.now);
        let mut shown = Shown { now: world.now, names, edges: world.edges, ..Shown::default() };
        let rows = world.standings.iter().filter_map(|s| {
            let known = unready.get(&(s.parent, s.policy)).copied();
            row(reflector, s.parent, s.policy, s.answer, known)
        });
        shown.rows = rows.collect();
        let names = shown.names.clone();
        shown.rows.sort_by(|a, b| place(&names, a).cmp(&place(&names, b)));
        let places: BTreeSet<Place> =
            shown.rows.iter().map(|row| (row.kind, row.namespace.clone())).collect();
        shown.places = places.into_iter().collect();
        for (at, row) in shown.rows.iter().enumerate() {
            shown.by_uid.entry(row.uid.clone()).or_default().push(at as u32);
            shown.by_id.insert((row.parent, row.policy), at as u32);
        }
        shown.seal(&digests);
        shown
    }

    /// The answers about the parent with this uid.
    pub(super) fn of(&self, uid: &str) -> impl Iterator<Item = &Row> {
        self.by_uid.get(uid).into_iter().flatten().filter_map(|at| self.rows.get(*at as usize))
    }

    /// The worst answer about an object that is a parent too.
    pub(super) fn worst(&self, id: ObjectId) -> Option<&Row> {
        let policies = self.names.policies.keys().filter_map(|policy| self.by_id.get(&(id, *policy)));
        policies.filter_map(|at| self.rows.get(*at as usize)).min_by_key(|row| (row.level(), row.policy))
    }

    /// The children of a parent under a policy.
    pub(super) fn children(&self, parent: ObjectId, policy: PolicyId) -> &[ChildOf] {
        let from = self.edges.partition_point(|e| (e.parent, e.policy) < (parent, policy));
        let to = self.edges.partition_point(|e| (e.parent, e.policy) <= (parent, policy));
        &self.edges[from..to]
    }

    /// What is different from `before`.
    pub(super) fn difference(&self, before: &Shown) -> Difference {
        let held = |of: &Shown, row: &Row| -> Option<u64> {
            of.of(&row.uid).find(|other| other.policy == row.policy).map(|other| other.digest)
        };
        Difference {
            changed: self.rows.iter().filter(|row| held(before, row) != Some(row.digest)).cloned().collect(),
            gone: before.rows.iter().filter(|row| held(self, row).is_none()).cloned().collect(),
        }
    }

    /// Gives every row its fingerprint: its own answer, and what stands below it.
    fn seal(&mut self, digests: &FxHashMap<ObjectId, u64>) {
        let mut done: Vec<Option<u64>> = vec![None; self.rows.len()];
        for at in 0..self.rows.len() {
            self.digest(at, digests, &mut done, 0);
        }
        for (row, digest) in self.rows.iter_mut().zip(done) {
            row.digest = digest.unwrap_or_default();
        }
    }

    fn digest(
        &self,
        at: usize,
        digests: &FxHashMap<ObjectId, u64>,
        done: &mut [Option<u64>],
        depth: usize,
    ) -> u64 {
        if let Some(known) = done[at] {
            return known;
        }
        let row = &self.rows[at];
        let Answer { reason, total, ready, reconciling, stalled } = row.answer;
        let mut sum = hash((reason.word(), total, ready, reconciling, stalled, row.since.map(|s| s.0)));
        // Who is met again below itself is not looked at a second time.
        done[at] = Some(sum);
        if depth >= DEPTH {
            return sum;
        }
        for edge in self.children(row.parent, row.policy) {
            let own = digests.get(&edge.child).copied().unwrap_or_default();
            sum = sum.wrapping_add(hash((edge.child.0, edge.group, own)));
            if let Some(below) = self.worst(edge.child) {
                let below = self.by_id.get(&(below.parent, below.policy)).copied();
                let below = below.map_or(0, |at| self.digest(at as usize, digests, done, depth + 1));
                sum = sum.wrapping_add(hash(below));
            }
        }
        done[at] = Some(sum);
        sum
    }
}

/// Where a row stands in a list: by trouble, then by name. The same for the same world.
pub(super) fn place<'a>(names: &'a Names, row: &'a Row) -> (usize, [&'a str; 5]) {
    let rest = [&*row.namespace, &*row.name, names.label(row.kind), names.policy(row.policy), &*row.uid];
    (row.level() as usize, rest)
}

pub(super) fn hash(what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

fn row(
    reflector: &Reflector,
    parent: ObjectId,
    policy: PolicyId,
    answer: Answer,
    unready: Option<Time>,
) -> Option<Row> {
    let read = reflector.read(parent, |row| {
        let own = row.parent.as_ref()?;
        let view = own.view.answers.iter().find(|a| a.policy == policy)?;
        let told = view.told.filter(|told| told.reason.status() == answer.reason.status());
        Some(Row {
            parent,
            policy,
            uid: Arc::from(&*own.uid),
            kind: row.kind,
            namespace: row.namespace.clone(),
            name: row.name.clone(),
            answer,
            since: unready.or(told.map(|told| told.since)),
            digest: 0,
        })
    });
    read.flatten()
}
