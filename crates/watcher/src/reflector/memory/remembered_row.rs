//! Rows that stand for deleted objects.

use aggregator::{ChildLink, LinkTarget};
use readiness::Assessment;

use super::super::{ObjectRow, Reflector, slots};
use super::{OutcomeMemory, OutcomeParent, RememberedOutcome};
use crate::plan::{ChildRule, FindChildrenBy, Interest, OutcomeRetention};
use crate::wire::WireMeta;

/// Marks the row of a deleted object: its links count for one generation of the parent only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reflector) struct RememberedLinks {
    pub(in crate::reflector) only: Box<[(ChildLink, u64)]>,
}

impl Reflector {
    /// Projects the rows of several objects.
    pub(super) fn project_rows(&self, memory: &OutcomeMemory, uids: impl IntoIterator<Item = slots::UidKey>) {
        for uid in uids {
            self.project_row(memory, uid);
        }
    }

    /// Stores the row of a deleted object from its remembered outcomes, or removes it if it counts for no parent.
    /// Returns `true` if there is a row now.
    pub(super) fn project_row(&self, memory: &OutcomeMemory, uid: slots::UidKey) -> bool {
        let parents = memory.parents_of.get(&uid).map_or(&[][..], Vec::as_slice);
        let known = parents.iter().filter_map(|p| memory.parents.get(p));
        let known: Vec<(&OutcomeParent, &RememberedOutcome)> = known
            .filter_map(|m| Some((&m.parent, m.counting().find(|run| run.key() == uid)?)))
            .filter(|(_, outcome)| outcome.deleted)
            .collect();
        let row = known.first().and_then(|(_, first)| {
            let interest = memory.interests.get(&first.kind)?;
            self.remembered_row(interest, first, &known, uid)
        });
        let remembered = row.is_some();
        match row {
            Some(row) => _ = self.store_row(uid, row, None),
            None => self.drop_remembered_row(uid),
        }
        remembered
    }

    fn remembered_row(
        &self,
        interest: &Interest,
        outcome: &RememberedOutcome,
        known: &[(&OutcomeParent, &RememberedOutcome)],
        uid: slots::UidKey,
    ) -> Option<ObjectRow> {
        let meta = WireMeta {
            name: outcome.name.clone(),
            namespace: outcome.namespace.clone(),
            uid: outcome.uid.clone(),
            resource_version: outcome.version,
            created: outcome.created,
            labels: outcome.labels.clone(),
            owners: known.iter().map(|(whose, _)| whose.to_owner_ref()).collect(),
            ..WireMeta::default()
        };
        let (mut links, mut only) = (Vec::new(), Vec::new());
        for rule in remembering_rules(interest, &meta) {
            let FindChildrenBy::Owner { group, kind } = &rule.find else { continue };
            let from = links.len();
            self.add_owner_links(rule, group, kind, &meta, &mut links);
            for link in &mut links[from..] {
                *link = link.with_other_source();
                if rule.retention == OutcomeRetention::RememberGeneration {
                    only.extend(self.link_generation(*link, known).map(|generation| (*link, generation)));
                }
            }
        }
        if links.is_empty() {
            return None;
        }
        let assessment = Assessment::from(outcome.to_verdict());
        let assessed = vec![assessment; interest.assessment_rules.len().max(1)];
        let mut row = self.build_row(interest, &meta, assessed, links, None);
        let held = self.index.get(&uid).map(|id| *id);
        row.generation = held.and_then(|id| self.read_row(id, |row| row.generation)).unwrap_or(0);
        row.extras.get_or_insert_default().remembered = Some(RememberedLinks { only: only.into() });
        Some(row)
    }

    fn link_generation(
        &self,
        link: ChildLink,
        known: &[(&OutcomeParent, &RememberedOutcome)],
    ) -> Option<u64> {
        let for_whom = known
            .iter()
            .find(|(whose, _)| self.find_object(&whose.uid).map(LinkTarget::Object) == Some(link.target()));
        for_whom.and_then(|(_, outcome)| outcome.generation)
    }

    fn drop_remembered_row(&self, uid: slots::UidKey) {
        if let Some(id) = self.index.get(&uid).map(|id| *id) {
            self.drop_row(id, ObjectRow::is_remembered);
        }
    }

    /// Returns `true` if the link counts for another generation than the parent's current one.
    pub(in crate::reflector) fn is_outdated_link(&self, link: ChildLink, only: &[(ChildLink, u64)]) -> bool {
        let Some((_, generation)) = only.iter().find(|(l, _)| *l == link) else { return false };
        let LinkTarget::Object(parent) = link.target() else { return false };
        let now = self.read_row(parent, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
        now.is_some_and(|now| now != *generation)
    }
}

/// Returns the rules under which the outcome of an object with this metadata is remembered. Jobs of a CronJob are
/// excluded: the CronJob decides about them.
pub(super) fn remembering_rules<'i>(
    interest: &'i Interest,
    meta: &WireMeta,
) -> impl Iterator<Item = &'i ChildRule> {
    let scheduled = meta.owners.iter().any(|o| &*o.kind == "CronJob" && o.api_version.starts_with("batch/"));
    let passed_over: Vec<bool> = interest
        .child
        .iter()
        .map(|rule| rule.ignore.as_ref().is_some_and(|selector| selector.matches(&meta.labels)))
        .collect();
    interest
        .child
        .iter()
        .zip(passed_over)
        .filter(move |(rule, passed_over)| {
            !scheduled && !passed_over && rule.retention != OutcomeRetention::Forget
        })
        .map(|(rule, _)| rule)
}
