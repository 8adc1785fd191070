//! Evidence of how an object ended that is gone.

use super::super::{Reflector, lock, slots};
use super::sight::whose;
use super::{End, Memory, Outcome};
use crate::plan::Interest;
use crate::wire::Child;

impl Reflector {
    /// What comes late of an object that is gone may still tell how it ended, and of one that was heard of, whose it was.
    pub(in crate::reflector) fn late(&self, interest: &Interest, child: &Child) {
        if !interest.remembers() {
            return;
        }
        let uid = slots::Uid::of(&child.meta.uid);
        let owners: Vec<_> = whose(interest, &child.meta).iter().map(|w| slots::Uid::of(&w.uid)).collect();
        let mut memory = lock(&self.memory);
        if memory.of.contains_key(&uid) && !memory.is_sure_of(uid) {
            self.keep_for(&mut memory, uid, &owners);
            self.project(&memory, uid);
            memory.each_of(uid, |outcome| std::mem::take(&mut outcome.heard));
            self.memory_moved(&memory);
        }
        drop(memory);
        let end = End::of(readiness::outcome(interest.judge, &child.facts).as_ref());
        self.tell_end(&child.meta.uid, &end, Outcome::is_unseen);
    }

    /// There is evidence of how an object ended that is gone, and that was seen to be whose it is remembered for; whether that
    /// was news.
    pub fn evidence(&self, uid: &str, end: &End) -> bool {
        self.tell_end(uid, end, Outcome::is_unseen)
    }

    /// An object is seen to be of these parents, and of no others. What it had taken the place of, by hearsay, for others than
    /// these counts again.
    pub(super) fn keep_for(&self, memory: &mut Memory, uid: slots::Uid, parents: &[slots::Uid]) {
        for back in memory.leave_all_but(uid, parents) {
            let id = self.index.get(&back).map(|id| *id);
            let there = id.and_then(|id| self.read(id, |row| !row.is_remembered())) == Some(true);
            memory.each_of(back, |outcome| !std::mem::replace(&mut outcome.gone, !there));
            self.project(memory, back);
        }
    }

    pub(super) fn tell_end(&self, uid: &str, end: &End, whether: impl Fn(&Outcome) -> bool) -> bool {
        let uid = slots::Uid::of(uid);
        let mut memory = lock(&self.memory);
        let mut news = false;
        memory.each_of(uid, |outcome| {
            let open = whether(outcome) && *end != End::Open;
            if open {
                outcome.end = end.clone();
                outcome.heard = false;
            }
            news |= open;
            open
        });
        if news {
            self.project(&memory, uid);
            self.memory_moved(&memory);
        }
        news
    }
}
