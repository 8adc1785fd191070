//! A second cache of the objects that were fed to the product's own, kept as simply as possible. The product's answers
//! are judged by it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::world::{ModelObject, SimBudget, SimBudgets};

/// Objects by UID, as shown in one life of the process.
#[derive(Default)]
pub(crate) struct ShownObjects {
    /// Newest state shown of each object.
    pub(crate) held: BTreeMap<String, Rc<ModelObject>>,
    /// State that the loop has observed.
    pub(crate) observed: BTreeMap<String, Rc<ModelObject>>,
    changed: BTreeSet<String>,
    /// What shows of an object that it is gone.
    gone: BTreeMap<String, GoneEvidence>,
    now: ShownMoment,
    /// The lists of each kind.
    lists: BTreeMap<usize, ShownLists>,
    /// PodDisruptionBudgets, by namespace and name.
    budgets: SimBudgets,
    /// Kinds of which nothing is taken in: they are not served, or not followed.
    forgotten: BTreeSet<usize>,
}

/// What shows that an object is gone. Nothing up to this version of it is news.
#[derive(Clone, Copy, Debug)]
struct GoneEvidence {
    version: u64,
    /// The server told of its deletion (`None`), or some answer did not have it: the how manieth of those. Such an answer
    /// may have been wrong, and a read that was sent after it knows better.
    absence: Option<u64>,
}

/// When a read was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShownMoment {
    /// Number of answers so far in which an object was not found.
    absences: u64,
    /// Number of lists so far that were finished.
    lists_finished: u64,
}

/// How far the lists of a kind are.
#[derive(Clone, Copy, Debug, Default)]
struct ShownLists {
    is_under_way: bool,
    /// Position of the last one among the finished lists of all kinds.
    finish_order: u64,
}

/// The loop's earlier and current state of an object.
pub(crate) type ShownChange = (Option<Rc<ModelObject>>, Option<Rc<ModelObject>>);

impl ShownObjects {
    /// The service was told of these PodDisruptionBudgets. What is shown from now on is read by them.
    pub(crate) fn set_budgets(&mut self, budgets: SimBudgets) {
        self.budgets = budgets;
    }

    /// Returns the moment at which a read is sent.
    pub(crate) fn moment(&self) -> ShownMoment {
        self.now
    }

    /// A list of this kind begins.
    pub(crate) fn begin_list(&mut self, kind: usize) {
        self.lists.entry(kind).or_default().is_under_way = true;
    }

    /// Applies an object in the answer to a live read that was sent at this moment. Of one that is not held a list tells, or has
    /// told since.
    pub(crate) fn apply_live(&mut self, model: ModelObject, sent: ShownMoment) {
        let tells = |lists: &ShownLists| lists.is_under_way || sent.lists_finished < lists.finish_order;
        let awaits_list = self.lists.get(&model.kind).is_none_or(tells);
        self.refute_absence(&model.uid, sent);
        if self.held.contains_key(&model.uid) || !awaits_list {
            self.apply_object(model);
        }
    }

    /// Applies an object of a list that was begun at this moment.
    pub(crate) fn apply_listed(&mut self, model: ModelObject, sent: ShownMoment) {
        self.refute_absence(&model.uid, sent);
        self.apply_newer(model, true);
    }

    /// A read that was sent at this moment has an object.
    fn refute_absence(&mut self, uid: &str, sent: ShownMoment) {
        let refuted = |gone: &GoneEvidence| gone.absence.is_some_and(|number| number <= sent.absences);
        if self.gone.get(uid).is_some_and(refuted) {
            self.gone.remove(uid);
        }
    }

    /// Applies a shown object; ignored if it is older than the held one.
    pub(crate) fn apply_object(&mut self, model: ModelObject) {
        self.apply_newer(model, false);
    }

    /// The same; of one in the version that is held it is only known that it `is_read_anew` where a list brings it.
    fn apply_newer(&mut self, model: ModelObject, is_read_anew: bool) {
        let buried = self.gone.get(&model.uid).is_some_and(|gone| model.version <= gone.version);
        let older = self.held.get(&model.uid).is_some_and(|held| held.version > model.version);
        if !buried && !older && !self.forgotten.contains(&model.kind) {
            self.changed.insert(model.uid.clone());
            let before = self.held.get(&model.uid).map(Rc::as_ref);
            let is_of_namespace =
                |name: &str| name.split_once('/').is_some_and(|(namespace, _)| namespace == model.namespace);
            let budgets = self.budgets.iter().filter(|(name, _)| is_of_namespace(name));
            let budgets: Vec<SimBudget> = budgets.map(|(_, budget)| *budget).collect();
            let model = model.follow(before, &budgets, is_read_anew);
            self.held.insert(model.uid.clone(), Rc::new(model));
        }
    }

    /// Applies a deletion.
    pub(crate) fn delete_object(&mut self, uid: &str, version: u64) {
        self.bury_object(uid, GoneEvidence { version, absence: None });
        if self.held.get(uid).is_some_and(|held| held.version <= version) {
            self.remove_object(uid);
        }
    }

    /// An answer did not have an object that was held at this version when it was asked for. What was shown of it since, the
    /// answer knows nothing of.
    pub(crate) fn miss_object(&mut self, uid: &str, version: u64) {
        if self.held.get(uid).is_some_and(|held| held.version <= version) {
            self.now.absences += 1;
            self.bury_object(uid, GoneEvidence { version, absence: Some(self.now.absences) });
            self.remove_object(uid);
        }
    }

    /// What is known from a later version stays known.
    fn bury_object(&mut self, uid: &str, gone: GoneEvidence) {
        let known = self.gone.get(uid);
        if known.is_none_or(|known| {
            (known.version, known.absence.is_none()) <= (gone.version, gone.absence.is_none())
        }) {
            self.gone.insert(uid.to_owned(), gone);
        }
    }

    fn remove_object(&mut self, uid: &str) {
        self.held.remove(uid);
        self.changed.insert(uid.to_owned());
    }

    /// Applies the end of a list as of `revision`: objects missing from it are gone, and a late event from before does not
    /// bring them back. Objects shown with a newer version than the list's are kept.
    pub(crate) fn finish_list(&mut self, kind: usize, revision: u64, uids: &BTreeSet<String>) {
        self.now.lists_finished += 1;
        self.lists.insert(kind, ShownLists { is_under_way: false, finish_order: self.now.lists_finished });
        let gone: Vec<(String, u64)> = self
            .held
            .values()
            .filter(|t| t.kind == kind && !uids.contains(&t.uid) && t.version <= revision)
            .map(|t| (t.uid.clone(), t.version))
            .collect();
        for (uid, version) in gone {
            self.miss_object(&uid, version);
        }
    }

    /// A kind is read from now on.
    pub(crate) fn follow_kind(&mut self, kind: usize) {
        self.forgotten.remove(&kind);
    }

    /// Forgets a kind that is not served or not followed any more, and whatever was known of its objects. Nothing of it is taken in
    /// before it is followed anew.
    pub(crate) fn forget_kind(&mut self, kind: usize) {
        self.forgotten.insert(kind);
        let held: Vec<String> =
            self.held.values().filter(|t| t.kind == kind).map(|t| t.uid.clone()).collect();
        for uid in held {
            self.remove_object(&uid);
        }
    }

    /// Moves the shown state to the observed state; returns each changed object before and after.
    pub(crate) fn take_changes(&mut self) -> Vec<ShownChange> {
        let mut steps = Vec::new();
        for uid in std::mem::take(&mut self.changed) {
            let new = self.held.get(&uid).cloned();
            let old = match &new {
                Some(new) => self.observed.insert(uid, new.clone()),
                None => self.observed.remove(&uid),
            };
            steps.push((old, new));
        }
        steps
    }

    /// Returns all objects that the loop has observed.
    pub(crate) fn all_observed(&self) -> Vec<Rc<ModelObject>> {
        self.observed.values().cloned().collect()
    }

    /// Returns all objects that were shown.
    pub(crate) fn all_held(&self) -> Vec<Rc<ModelObject>> {
        self.held.values().cloned().collect()
    }

    /// Returns `true` if an object was shown that the loop has not observed.
    pub(crate) fn is_behind(&self) -> bool {
        !self.changed.is_empty()
    }
}
