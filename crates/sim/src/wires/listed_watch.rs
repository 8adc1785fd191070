//! A list and watch of what is neither a policy nor an object of a kind, over a faulty wire: labels of namespaces, scripts of
//! rules, ReadinessGroups, or PodDisruptionBudgets.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use rollcall_core::StagedList;

use crate::scenario::{Dice, DiceStream};
use crate::timeline::{ListStep, ListedSet, SimEvent, SimTimeline};

/// Items by name, as the server has them at one moment.
pub(crate) type ListedItems<V> = BTreeMap<&'static str, V>;

/// What takes in what a list and watch brings.
pub(crate) trait ListedReceiver<V>: Default {
    /// A list begins.
    fn begin_list(&mut self);
    /// An item of the list under way.
    fn stage_item(&mut self, name: &'static str, value: V);
    /// The list is complete.
    fn finish_list(&mut self);
    /// An item was created or changed.
    fn apply_item(&mut self, name: &'static str, value: V);
    /// An item was deleted, which was this one.
    fn remove_item(&mut self, name: &'static str, value: V);
}

impl<V: Copy> ListedReceiver<V> for StagedList<&'static str, V> {
    fn begin_list(&mut self) {
        StagedList::begin_list(self);
    }

    fn stage_item(&mut self, name: &'static str, value: V) {
        StagedList::stage_item(self, name, value);
    }

    fn finish_list(&mut self) {
        StagedList::finish_list(self);
    }

    fn apply_item(&mut self, name: &'static str, value: V) {
        StagedList::apply_item(self, name, value);
    }

    fn remove_item(&mut self, name: &'static str, _: V) {
        StagedList::remove_item(self, &name);
    }
}

/// The list or watch.
#[derive(Default)]
enum ListedWire<V> {
    #[default]
    Down,
    /// Items that are still to be delivered, and the position from which the watch goes on.
    Listing(VecDeque<(&'static str, V)>, usize),
    /// Position among the server's states.
    Watching(usize),
}

/// The server's items with their history, and what one life of the process knows of them.
pub(crate) struct ListedWatch<V, L = StagedList<&'static str, V>> {
    of: ListedSet,
    /// Names of all items that are there now and then.
    names: Vec<&'static str>,
    /// Randomness of those who change items, and of the way of items to the service.
    editor: Dice,
    wire_dice: Dice,
    /// All states of the server, the newest last, each with the item that was changed.
    states: Vec<(&'static str, ListedItems<V>)>,
    list: L,
    /// Position of the newest state of which the process was told all; `None` before it was listed.
    told: Option<usize>,
    wire: ListedWire<V>,
    /// Position from which a broken watch can go on; `None` where its history is forgotten.
    resume_from: Option<usize>,
    /// Each page counts as the whole list: a sabotage.
    takes_half: bool,
}

impl<V: Copy + PartialEq> ListedWatch<V> {
    /// Returns the items that the process knows; `None` before they were listed.
    pub(crate) fn known(&self) -> Option<&ListedItems<V>> {
        self.list.items()
    }
}

impl<V: Copy + PartialEq + Debug, L: ListedReceiver<V>> ListedWatch<V, L> {
    pub(crate) fn new(
        seed: u64,
        (of, editor, wire): (ListedSet, DiceStream, DiceStream),
        first: ListedItems<V>,
        takes_half: bool,
    ) -> ListedWatch<V, L> {
        ListedWatch {
            of,
            names: first.keys().copied().collect(),
            editor: editor.dice(seed),
            wire_dice: wire.dice(seed),
            states: vec![("", first)],
            list: L::default(),
            told: None,
            wire: ListedWire::Down,
            resume_from: None,
            takes_half,
        }
    }

    /// Draws which items are there at first; the others may be created later.
    pub(crate) fn draw_absent(mut self, percent: usize) -> ListedWatch<V, L> {
        for (_, items) in &mut self.states {
            items.retain(|_, _| !self.editor.chance(percent));
        }
        self
    }

    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self) {
        (self.list, self.wire) = (L::default(), ListedWire::Down);
        (self.told, self.resume_from) = (None, None);
    }

    /// Returns what takes in what is listed and watched.
    pub(crate) fn receiver(&self) -> &L {
        &self.list
    }

    /// Returns the newest items of which the process was told all; `None` before they were listed.
    pub(crate) fn told(&self) -> Option<&ListedItems<V>> {
        self.told.map(|position| &self.states[position].1)
    }

    /// Returns the items that the server has.
    pub(crate) fn stored(&self) -> &ListedItems<V> {
        self.states
            .last()
            .map(|(_, items)| items)
            .expect("invariant: the first state is there from the start")
    }

    /// Returns the position of the first state from `from` on that had these items.
    pub(crate) fn find_state(&self, items: &ListedItems<V>, from: usize) -> Option<usize> {
        (from..self.states.len()).find(|at| self.states[*at].1 == *items)
    }

    fn schedule(&self, timeline: &mut SimTimeline, after: i64, step: ListStep) {
        timeline.schedule_event(after, SimEvent::of_list(self.of, step));
    }

    /// Starts the service's list.
    pub(crate) fn start_watch(&mut self, timeline: &mut SimTimeline) {
        let after = self.wire_dice.between(0, 100);
        self.schedule(timeline, after, ListStep::List);
    }

    /// Changes, creates or deletes an item; `draw` returns its new value, if it is there then.
    pub(crate) fn edit_item(
        &mut self,
        timeline: &mut SimTimeline,
        draw: impl FnOnce(&mut Dice, Option<V>) -> Option<V>,
    ) {
        let mut items = self.stored().clone();
        let name = self.names[self.editor.below(self.names.len())];
        let before = items.remove(name);
        let after = draw(&mut self.editor, before);
        items.extend(after.map(|value| (name, value)));
        let done = match (before, after) {
            (None, Some(value)) => format!("created: {value:?}"),
            (_, Some(value)) => format!("changed: {value:?}"),
            (_, None) => "deleted".to_owned(),
        };
        timeline.log_event(format_args!("{:?}: {name} is {done}", self.of));
        self.states.push((name, items));
        let lag = self.wire_dice.between(1, 400);
        self.schedule(timeline, lag, ListStep::Deliver);
        let pause = self.editor.between(500, 60_000);
        self.schedule(timeline, pause, ListStep::Edit);
    }

    /// Runs a step of the wire; returns `true` if something else is known than before.
    pub(crate) fn run_step(&mut self, timeline: &mut SimTimeline, step: ListStep, is_calm: bool) -> bool {
        match step {
            ListStep::Edit => {}
            ListStep::List => self.begin_list(timeline),
            ListStep::Page => return self.deliver_page(timeline, is_calm),
            ListStep::Deliver => return self.deliver_changes(timeline, is_calm),
        }
        false
    }

    fn begin_list(&mut self, timeline: &mut SimTimeline) {
        if !matches!(self.wire, ListedWire::Down) {
            return;
        }
        if let Some(position) = self.resume_from {
            self.wire = ListedWire::Watching(position);
            return self.schedule(timeline, 0, ListStep::Deliver);
        }
        let left = self.stored().iter().map(|(name, value)| (*name, *value)).collect();
        self.wire = ListedWire::Listing(left, self.states.len() - 1);
        self.list.begin_list();
        timeline.log_event(format_args!("{:?}: list", self.of));
        let after = self.wire_dice.between(0, 50);
        self.schedule(timeline, after, ListStep::Page);
    }

    fn deliver_page(&mut self, timeline: &mut SimTimeline, is_calm: bool) -> bool {
        let is_broken = !is_calm && self.wire_dice.chance(12);
        let ListedWire::Listing(left, position) = &mut self.wire else { return false };
        if is_broken {
            timeline.log_event(format_args!("{:?}: the list breaks off", self.of));
            self.break_wire(timeline);
            return false;
        }
        let Some((name, value)) = left.pop_front() else {
            let position = *position;
            (self.wire, self.resume_from) = (ListedWire::Watching(position), Some(position));
            self.list.finish_list();
            self.told = Some(position);
            self.schedule(timeline, 0, ListStep::Deliver);
            return true;
        };
        if self.takes_half {
            let is_left = |of: &str| of == name || left.iter().any(|(left, _)| *left == of);
            let delivered = self.states[*position].1.iter().filter(|(of, _)| !is_left(of));
            self.list.finish_list();
            self.list.begin_list();
            delivered.for_each(|(name, value)| self.list.stage_item(name, *value));
        }
        self.list.stage_item(name, value);
        let is_slow = !is_calm && self.wire_dice.chance(15);
        let after = self.wire_dice.between(0, if is_slow { 5_000 } else { 40 });
        self.schedule(timeline, after, ListStep::Page);
        self.takes_half
    }

    fn deliver_changes(&mut self, timeline: &mut SimTimeline, is_calm: bool) -> bool {
        let ListedWire::Watching(position) = &mut self.wire else { return false };
        let (from, to) = (*position + 1, self.states.len());
        *position = to - 1;
        (self.resume_from, self.told) = (Some(to - 1), Some(to - 1));
        for (before, (name, items)) in self.states[from - 1..to].iter().zip(&self.states[from..to]) {
            match (items.get(name), before.1.get(name)) {
                (Some(value), _) => self.list.apply_item(name, *value),
                (None, Some(gone)) => self.list.remove_item(name, *gone),
                (None, None) => {}
            }
        }
        if !is_calm && self.wire_dice.chance(20) {
            self.break_wire(timeline);
        }
        from < to
    }

    /// The list or watch breaks; half of the time the server does not know its position any more, and answers 410.
    fn break_wire(&mut self, timeline: &mut SimTimeline) {
        self.wire = ListedWire::Down;
        if self.wire_dice.chance(50) {
            self.resume_from = None;
        }
        let again = self.wire_dice.between(50, 8_000);
        self.schedule(timeline, again, ListStep::List);
    }
}
