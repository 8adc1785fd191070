//! Links from an object to the parents for which it counts.

use aggregator::{ChildLink, KindId, LinkTarget, ObjectId, PolicyId, SelectorId};

use super::{ObjectRow, Reflector, lock_mutex, slots};
use crate::plan::{ChildRule, FindChildrenBy, Interest};
use crate::wire::{ChildObject, WireMeta, may_be_claim_name};

impl Reflector {
    /// Returns `true` if an object with this metadata would get a row.
    pub fn wants_object(&self, kind: KindId, meta: &WireMeta) -> bool {
        let Some(interest) = self.interest(kind) else { return false };
        let links = self.resolve_links(&interest, meta);
        self.release_links(&links);
        !links.is_empty() || !self.parent_rules(&interest, meta).is_empty()
    }

    /// Resolves the links of an object. Their targets are held until [`Reflector::release_links`].
    pub(super) fn resolve_links(&self, interest: &Interest, meta: &WireMeta) -> Vec<ChildLink> {
        let mut links = Vec::new();
        for rule in &interest.child {
            if rule.ignore.as_ref().is_some_and(|s| s.matches(&meta.labels)) {
                continue;
            }
            match &rule.find {
                FindChildrenBy::Owner { group, kind } => {
                    self.add_owner_links(rule, group, kind, meta, &mut links);
                }
                FindChildrenBy::Claims if !may_be_claim_name(&meta.name) => {}
                FindChildrenBy::References | FindChildrenBy::Claims => {
                    let mut selectors = lock_mutex(&self.selectors);
                    let name = std::iter::once(&*meta.name);
                    let id = selectors.intern_selection(rule.policy, rule.group, &meta.namespace, name);
                    links.push(make_link(rule, LinkTarget::Selector(id)).with_other_source());
                }
                FindChildrenBy::Labels { keys, of } => self.add_label_links(rule, keys, of, meta, &mut links),
            }
        }
        links
    }

    /// Returns the selectors that the object lends to its owner because it claims volumes.
    pub(super) fn lent_selectors(
        &self,
        interest: &Interest,
        child: &ChildObject,
    ) -> Box<[(PolicyId, SelectorId)]> {
        let Some(claims) = child.claims.as_ref().filter(|_| !interest.claims.is_empty()) else {
            return Box::default();
        };
        let mut selectors = lock_mutex(&self.selectors);
        let mut lends = Vec::new();
        for name in claims.claim_names(&child.meta.name, child.facts.spec.replicas) {
            for (policy, group) in &interest.claims {
                let name = std::iter::once(&*name);
                lends.push((
                    *policy,
                    selectors.intern_selection(*policy, *group, &child.meta.namespace, name),
                ));
            }
        }
        lends.into()
    }

    fn add_label_links(
        &self,
        rule: &ChildRule,
        keys: &[Box<str>],
        (group, kind): &(Box<str>, Box<str>),
        meta: &WireMeta,
        links: &mut Vec<ChildLink>,
    ) {
        let value = |key: &str| meta.labels.iter().find(|(l, _)| **l == *key).map(|(_, v)| &**v);
        let Some(values) = keys.iter().map(|k| value(k)).collect::<Option<Vec<_>>>() else { return };
        let owners =
            meta.owners.iter().filter(|o| *o.kind == **kind && api_group_of(&o.api_version) == &**group);
        let mut uids: Vec<&str> = owners.map(|o| &*o.uid).collect();
        if uids.is_empty() {
            uids.push("");
        }
        let mut selectors = lock_mutex(&self.selectors);
        for uid in uids {
            let values = values.iter().copied().chain([uid]);
            let id = selectors.intern_selection(rule.policy, rule.group, &meta.namespace, values);
            links.push(make_link(rule, LinkTarget::Selector(id)));
        }
    }

    pub(super) fn add_owner_links(
        &self,
        rule: &ChildRule,
        group: &str,
        kind: &str,
        meta: &WireMeta,
        links: &mut Vec<ChildLink>,
    ) {
        for owner in meta.owners.iter().filter(|o| *o.kind == *kind && api_group_of(&o.api_version) == group)
        {
            let uid = slots::UidKey::from_text(&owner.uid);
            let known = self.find_object(&owner.uid).map(|id| make_link(rule, LinkTarget::Object(id)));
            if known.is_some_and(|link| links.contains(&link)) {
                continue;
            }
            let (id, ()) = self.with_slot_of(uid, |slot| {
                slot.add_reference(&meta.namespace);
                Some(())
            });
            links.push(make_link(rule, LinkTarget::Object(id)));
        }
    }

    /// Releases everything that a removed row referred to.
    pub(super) fn release_row(&self, row: &ObjectRow) {
        self.release_links(row.links.as_slice());
        let lent = row.extras.iter().flat_map(|aside| &aside.lent_selectors).map(|(_, id)| *id);
        let answers = row.parent.iter().flat_map(|parent| &parent.view.answers);
        let mut others = lent.chain(answers.flat_map(|answer| answer.selects.iter().copied())).peekable();
        if others.peek().is_some() {
            let mut selectors = lock_mutex(&self.selectors);
            others.for_each(|id| selectors.release_selection(id));
        }
    }

    /// Releases the owners and selections that the links referred to.
    fn release_links(&self, links: &[ChildLink]) {
        for link in links {
            match link.target() {
                LinkTarget::Selector(id) => lock_mutex(&self.selectors).release_selection(id),
                LinkTarget::Object(id) => {
                    let last = self.slots.with_slot(id, |slot| {
                        slot.refs = slot.refs.saturating_sub(1);
                        slot.refs == 0 && slot.row.is_none()
                    });
                    if last == Some(true) {
                        // The driver removes it from the engine and then recycles its slot.
                        self.mark_dirty(id);
                    }
                }
            }
        }
    }

    /// Returns `true` if the owner lives in another namespace: a namespaced object cannot own one elsewhere. The API
    /// treats such an owner as absent, and so does Rollcall.
    pub(super) fn is_cross_namespace(&self, owner: ObjectId, namespace: &str) -> bool {
        let lives_in = self.read_row(owner, |row| row.namespace.clone());
        lives_in.is_some_and(|n| !n.is_empty() && *n != *namespace)
    }

    /// Marks the objects whose owner was observed in another namespace than they refer to, so that they are shown to
    /// the engine again.
    pub(super) fn mark_cross_namespace_children(&self, owner: ObjectId) {
        let mut strangers = Vec::new();
        self.slots.for_each_slot(|id, slot| {
            let refers = |row: &ObjectRow| {
                row.links.as_slice().iter().any(|l| l.target() == LinkTarget::Object(owner))
            };
            if slot.row.as_ref().is_some_and(refers) {
                strangers.push(id);
            }
        });
        for id in strangers {
            self.mark_dirty(id);
        }
    }
}

fn make_link(rule: &ChildRule, target: LinkTarget) -> ChildLink {
    ChildLink::new(rule.policy, rule.group, rule.rule_index, target)
}

pub(super) fn api_group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
