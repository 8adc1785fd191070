//! Quotes: the texts by which the messages of other parents name a parent below them.
//!
//! **Invariant:** a quote is made once, when the message of the parent itself is rendered, and is part of that message. Parents
//! above use nothing else, and are evaluated again when it changes: so the quote equals the parent's own message at every depth.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{Engine, GroupRole, ObjectId, ParentDraft, PolicyId};
use readiness::Time;
use readiness::rollup::ParentReason;
use watcher::reflector::{Reflector, name_hash};
use watcher::status::truncate_text;

use super::causes::CauseFinder;
use super::kind_names::KindNames;
use super::policy_summary::PolicySummary;
use super::quote_texts::QuoteTexts;

/// Longest quote, in bytes: well within the message that it is a part of.
const MAX_QUOTE_BYTES: usize = 512;
/// Parents below parents that are quoted again before those above them. Deeper ones follow once their owners are evaluated.
const MAX_QUOTE_DEPTH: usize = 16;

/// Quotes of all parents, and those that are due to be quoted again in a turn.
#[derive(Default)]
pub(super) struct Quotes {
    pub(super) texts: QuoteTexts,
    /// Cleared in every turn: parents to quote again, and those that have been quoted.
    stale: BTreeSet<ObjectId>,
    fresh: BTreeSet<ObjectId>,
}

/// What quotes are made of.
pub(super) struct QuoteSources<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) reflector: &'a Reflector,
    pub(super) kinds: &'a KindNames,
    pub(super) policies: &'a BTreeMap<PolicyId, PolicySummary>,
}

impl QuoteSources<'_> {
    fn causes<'s>(&'s self, quotes: &'s QuoteTexts) -> CauseFinder<'s> {
        let QuoteSources { engine, reflector, kinds, policies } = self;
        CauseFinder { engine, reflector, kinds, policies, quotes }
    }
}

impl Quotes {
    /// Settles how these parents are quoted, before any of them is rendered; those below come first.
    pub(super) fn quote_drafts(&mut self, from: &mut QuoteSources<'_>, drafts: &[ParentDraft], now: Time) {
        self.stale = drafts.iter().map(|draft| draft.parent).collect();
        self.fresh.clear();
        while let Some(parent) = self.stale.first().copied() {
            self.quote_anew(from, parent, now, 0);
        }
    }

    fn quote_anew(&mut self, from: &mut QuoteSources<'_>, parent: ObjectId, now: Time, depth: usize) {
        self.stale.remove(&parent);
        self.fresh.insert(parent);
        if depth < MAX_QUOTE_DEPTH {
            for child in self.unquoted_below(from.engine, parent) {
                if !self.fresh.contains(&child) {
                    self.quote_anew(from, child, now, depth + 1);
                }
            }
        }
        let quoted = from.engine.reader().has_owners(parent);
        let quote = if quoted { self.quote(from, parent, now) } else { String::new() };
        if self.texts.of(parent) != quote {
            from.engine.requote(parent, if quote.is_empty() { 0 } else { name_hash(&quote) }, now);
            self.texts.set(parent, quote);
        }
    }

    /// Parents among what holds `parent` back that are to be quoted again, or were not quoted when they were judged,
    /// because no parent was above them then.
    fn unquoted_below(&self, engine: &Engine, parent: ObjectId) -> Vec<ObjectId> {
        let mut below = Vec::new();
        for policy in engine.policies_of(parent) {
            for role in [GroupRole::Critical, GroupRole::Optional] {
                let children = engine.unready_children(parent, policy, role).map(|trouble| trouble.child);
                below.extend(children.filter(|child| {
                    engine.is_parent(*child)
                        && (self.stale.contains(child) || self.texts.of(*child).is_empty())
                }));
            }
        }
        below
    }

    /// The first thing that `parent` says, under the policy that makes least of it; empty where it is ready.
    fn quote(&self, from: &QuoteSources<'_>, parent: ObjectId, now: Time) -> String {
        let policies = from.engine.policies_of(parent);
        let answers = policies.filter_map(|policy| Some((policy, from.engine.answer_of(parent, policy)?)));
        let causes = from.causes(&self.texts);
        // Every edit and every process gives new ids: which policy is quoted must not depend on them.
        let worst = answers.min_by_key(|(policy, answer)| {
            (answer.counted_reason().child_level(), causes.policy_name(*policy), *policy)
        });
        let worst = worst.map(|(policy, answer)| (policy, answer.counted_reason()));
        let Some((policy, reason)) = worst.filter(|(_, reason)| *reason != ParentReason::AllChildrenReady)
        else {
            return String::new();
        };
        // What stands under a refused policy rests on the children of a predecessor.
        let names = from.engine.is_accepted(policy) && causes.names_causes(parent, policy, reason);
        let first = names.then(|| causes.first_cause(parent, policy, now)).flatten();
        truncate_text(first.unwrap_or_else(|| reason.as_str().to_owned()), MAX_QUOTE_BYTES)
    }
}
