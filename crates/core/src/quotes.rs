//! The words in which a parent is quoted by those above it.
//!
//! **Invariant:** they are settled once, whenever what the parent itself is to say is rendered, and part of that. Those above
//! use nothing else, and hear of it where they move: so what is said of a parent is what it says, at every depth.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{GroupRole, ObjectId, ParentDraft};
use readiness::Time;
use readiness::rollup::ParentReason;
use watcher::reflector::name_hash;

use super::Core;
use super::causes::truncate_message;

/// Longest quote, in bytes: well within the message that it is a part of.
const MAX_QUOTE_BYTES: usize = 512;
/// Parents below parents that are quoted anew before those above them. Deeper ones follow once their owners hear of them.
const MAX_QUOTE_DEPTH: usize = 16;

/// How each parent that is not ready, and is a child itself, is quoted.
#[derive(Default)]
pub(super) struct Quotes {
    texts: BTreeMap<ObjectId, Box<str>>,
    /// Used anew in every turn: parents to be quoted anew, and those that have been.
    stale: BTreeSet<ObjectId>,
    fresh: BTreeSet<ObjectId>,
}

impl Quotes {
    /// What is quoted of `parent`; empty where that is nothing.
    pub(super) fn of(&self, parent: ObjectId) -> &str {
        self.texts.get(&parent).map_or("", |text| text)
    }

    /// An object is gone: whoever comes to its place is not quoted so.
    pub(super) fn forget(&mut self, id: ObjectId) {
        self.texts.remove(&id);
    }
}

impl Core {
    /// Settles how these parents are quoted, before any of them is rendered; those below come first.
    pub(super) fn quote_drafts(&mut self, drafts: &[ParentDraft], now: Time) {
        self.quotes.stale = drafts.iter().map(|draft| draft.parent).collect();
        self.quotes.fresh.clear();
        while let Some(parent) = self.quotes.stale.first().copied() {
            self.quote_anew(parent, now, 0);
        }
    }

    fn quote_anew(&mut self, parent: ObjectId, now: Time, depth: usize) {
        self.quotes.stale.remove(&parent);
        self.quotes.fresh.insert(parent);
        if depth < MAX_QUOTE_DEPTH {
            for child in self.unquoted_below(parent) {
                if !self.quotes.fresh.contains(&child) {
                    self.quote_anew(child, now, depth + 1);
                }
            }
        }
        let quoted = self.engine.has_owners(parent);
        let quote = if quoted { self.quote(parent, now) } else { String::new() };
        if self.quotes.of(parent) != quote {
            self.engine.requote(parent, if quote.is_empty() { 0 } else { name_hash(&quote) }, now);
            if quote.is_empty() {
                self.quotes.forget(parent);
            } else {
                self.quotes.texts.insert(parent, quote.into());
            }
        }
    }

    /// Parents among what holds `parent` back that are to be quoted anew, or were not quoted when they were judged: nobody
    /// was above them then.
    fn unquoted_below(&self, parent: ObjectId) -> Vec<ObjectId> {
        let mut below = Vec::new();
        for policy in self.engine.policies_of(parent) {
            for role in [GroupRole::Critical, GroupRole::Optional] {
                let children =
                    self.engine.unready_children(parent, policy, role).map(|trouble| trouble.child);
                below.extend(children.filter(|child| {
                    self.engine.is_parent(*child)
                        && (self.quotes.stale.contains(child) || self.quotes.of(*child).is_empty())
                }));
            }
        }
        below
    }

    /// The first thing that `parent` says, under the policy that makes least of it; empty where it is ready.
    fn quote(&self, parent: ObjectId, now: Time) -> String {
        let policies = self.engine.policies_of(parent);
        let answers = policies.filter_map(|policy| Some((policy, self.engine.answer_of(parent, policy)?)));
        let worst = answers.min_by_key(|(policy, answer)| (answer.reason.child_level(), *policy));
        let Some((policy, answer)) = worst.filter(|(_, a)| a.reason != ParentReason::AllChildrenReady) else {
            return String::new();
        };
        let names = self.names_causes(parent, policy, answer.reason);
        let first = names.then(|| self.first_cause(parent, policy, now)).flatten();
        truncate_message(first.unwrap_or_else(|| answer.reason.as_str().to_owned()), MAX_QUOTE_BYTES)
    }
}
