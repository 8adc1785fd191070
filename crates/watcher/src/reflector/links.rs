//! For whom an object counts.

use aggregator::{Link, ObjectId, PolicyId, SelectorId, Target};

use super::{Reflector, Row, lock, slots};
use crate::plan::{ChildRule, Find, Interest};
use crate::wire::{Child, Meta, may_be_claimed};

impl Reflector {
    /// Would an object with such metadata get a row?
    pub fn wants(&self, interest: &Interest, meta: &Meta) -> bool {
        let links = self.links(interest, meta);
        self.release(&links);
        !links.is_empty() || !self.parent_rules(interest, meta).is_empty()
    }

    /// For whom an object counts. What it refers to is held until [`Reflector::release`].
    pub(super) fn links(&self, interest: &Interest, meta: &Meta) -> Vec<Link> {
        let mut links = Vec::new();
        for rule in &interest.child {
            if rule.ignore.as_ref().is_some_and(|s| s.matches(&meta.labels)) {
                continue;
            }
            match &rule.find {
                Find::Owner { group, kind } => self.owner_links(rule, group, kind, meta, &mut links),
                Find::Claims if !may_be_claimed(&meta.name) => {}
                Find::References | Find::Claims => {
                    let mut selectors = lock(&self.selectors);
                    let name = std::iter::once(&*meta.name);
                    let id = selectors.id(rule.policy, rule.group, &meta.namespace, name);
                    links.push(link(rule, Target::Selector(id)).otherwise());
                }
                Find::Labels { keys, of } => self.label_links(rule, keys, of, meta, &mut links),
            }
        }
        links
    }

    /// By what whoever owns this object selects, because it claims volumes.
    pub(super) fn lends(&self, interest: &Interest, child: &Child) -> Box<[(PolicyId, SelectorId)]> {
        let Some(claims) = child.claims.as_ref().filter(|_| !interest.claims.is_empty()) else {
            return Box::default();
        };
        let mut selectors = lock(&self.selectors);
        let mut lends = Vec::new();
        for name in claims.names(&child.meta.name, child.facts.spec.replicas) {
            for (policy, group) in &interest.claims {
                let name = std::iter::once(&*name);
                lends.push((*policy, selectors.id(*policy, *group, &child.meta.namespace, name)));
            }
        }
        lends.into()
    }

    fn label_links(
        &self,
        rule: &ChildRule,
        keys: &[Box<str>],
        (group, kind): &(Box<str>, Box<str>),
        meta: &Meta,
        links: &mut Vec<Link>,
    ) {
        let value = |key: &str| meta.labels.iter().find(|(l, _)| **l == *key).map(|(_, v)| &**v);
        let Some(values) = keys.iter().map(|k| value(k)).collect::<Option<Vec<_>>>() else { return };
        let owners = meta.owners.iter().filter(|o| *o.kind == **kind && group_of(&o.api_version) == &**group);
        let mut uids: Vec<&str> = owners.map(|o| &*o.uid).collect();
        if uids.is_empty() {
            uids.push("");
        }
        let mut selectors = lock(&self.selectors);
        for uid in uids {
            let values = values.iter().copied().chain([uid]);
            let id = selectors.id(rule.policy, rule.group, &meta.namespace, values);
            links.push(link(rule, Target::Selector(id)));
        }
    }

    pub(super) fn owner_links(
        &self,
        rule: &ChildRule,
        group: &str,
        kind: &str,
        meta: &Meta,
        links: &mut Vec<Link>,
    ) {
        for owner in meta.owners.iter().filter(|o| *o.kind == *kind && group_of(&o.api_version) == group) {
            let uid = slots::Uid::of(&owner.uid);
            let known = self.find(&owner.uid).map(|id| link(rule, Target::Object(id)));
            if known.is_some_and(|link| links.contains(&link)) {
                continue;
            }
            let (id, ()) = self.place(uid, |slot| {
                slot.refer(&meta.namespace);
                Some(())
            });
            links.push(link(rule, Target::Object(id)));
        }
    }

    /// Lets go of everything that a row referred to, which is none any more.
    pub(super) fn let_go(&self, row: &Row) {
        self.release(row.links.as_slice());
        let lent = row.aside.iter().flat_map(|aside| &aside.lends).map(|(_, id)| *id);
        let answers = row.parent.iter().flat_map(|parent| &parent.view.answers);
        let mut others = lent.chain(answers.flat_map(|answer| answer.selects.iter().copied())).peekable();
        if others.peek().is_some() {
            let mut selectors = lock(&self.selectors);
            others.for_each(|id| selectors.release(id));
        }
    }

    /// Lets go of the owners and selections that links referred to.
    fn release(&self, links: &[Link]) {
        for link in links {
            match link.target() {
                Target::Selector(id) => lock(&self.selectors).release(id),
                Target::Object(id) => {
                    let last = self.slots.with(id, |slot| {
                        slot.refs = slot.refs.saturating_sub(1);
                        slot.refs == 0 && slot.row.is_none()
                    });
                    if last == Some(true) {
                        // The driver lets the engine forget it, and then gives its place back.
                        self.mark(id);
                    }
                }
            }
        }
    }

    /// A namespaced object cannot own one in another namespace: the API treats such an owner as absent, so do we.
    pub(super) fn is_stranger(&self, owner: ObjectId, namespace: &str) -> bool {
        let lives_in = self.read(owner, |row| row.namespace.clone());
        lives_in.is_some_and(|n| !n.is_empty() && *n != *namespace)
    }

    /// An owner was seen to live elsewhere than some that refer to it thought: those are looked at again.
    pub(super) fn mark_strangers(&self, owner: ObjectId) {
        let mut strangers = Vec::new();
        self.slots.each(|id, slot| {
            let refers = |row: &Row| row.links.as_slice().iter().any(|l| l.target() == Target::Object(owner));
            if slot.row.as_ref().is_some_and(refers) {
                strangers.push(id);
            }
        });
        for id in strangers {
            self.mark(id);
        }
    }
}

fn link(rule: &ChildRule, target: Target) -> Link {
    Link::new(rule.policy, rule.group, rule.lens, target)
}

pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
