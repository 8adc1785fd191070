//! A row in the place of an object that is gone.

use aggregator::{Link, Target};
use readiness::Assessment;

use super::super::{Reflector, Row, slots};
use super::{Memory, Outcome, Whose};
use crate::plan::{After, ChildRule, Find, Interest};
use crate::wire::Meta;

/// What makes a row one of an object that is gone: links that count for one generation of the parent alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reflector) struct Remembered {
    pub(in crate::reflector) only: Box<[(Link, u64)]>,
}

impl Reflector {
    /// Puts a row in the place of an object that is gone, as it is remembered; or takes that away where nobody remembers
    /// it any more. Whether there is one now.
    pub(super) fn project(&self, memory: &Memory, uid: slots::Uid) -> bool {
        let parents = memory.of.get(&uid).map_or(&[][..], Vec::as_slice);
        let known = parents.iter().filter_map(|p| memory.parents.get(p));
        let known: Vec<(&Whose, &Outcome)> = known
            .filter_map(|m| Some((&m.whose, m.outcomes.iter().find(|o| slots::Uid::of(&o.uid) == uid)?)))
            .filter(|(_, outcome)| outcome.gone)
            .collect();
        let row = known.first().and_then(|(_, first)| {
            let interest = memory.interests.get(&first.kind)?;
            self.remembered_row(interest, first, &known, uid)
        });
        let remembered = row.is_some();
        match row {
            Some(row) => _ = self.put(uid, row),
            None => self.drop_remembered(uid),
        }
        remembered
    }

    fn remembered_row(
        &self,
        interest: &Interest,
        outcome: &Outcome,
        known: &[(&Whose, &Outcome)],
        uid: slots::Uid,
    ) -> Option<Row> {
        let meta = Meta {
            name: outcome.name.clone(),
            namespace: outcome.namespace.clone(),
            uid: outcome.uid.clone(),
            resource_version: outcome.version,
            created: outcome.created,
            labels: outcome.labels.clone(),
            owners: known.iter().map(|(whose, _)| whose.reference()).collect(),
            ..Meta::default()
        };
        let (mut links, mut only) = (Vec::new(), Vec::new());
        for rule in remembering(interest, &meta) {
            let Find::Owner { group, kind } = &rule.find else { continue };
            let from = links.len();
            self.owner_links(rule, group, kind, &meta, &mut links);
            for link in &mut links[from..] {
                *link = link.otherwise();
                if rule.after == After::RememberGeneration {
                    only.extend(self.generation_for(*link, known).map(|generation| (*link, generation)));
                }
            }
        }
        if links.is_empty() {
            return None;
        }
        let assessment = Assessment::from(outcome.verdict());
        let assessed = vec![assessment; interest.lenses.len().max(1)];
        let mut row = self.row(interest, &meta, assessed, links, None);
        let held = self.index.get(&uid).map(|id| *id);
        row.generation = held.and_then(|id| self.read(id, |row| row.generation)).unwrap_or(0);
        row.aside.get_or_insert_default().remembered = Some(Remembered { only: only.into() });
        Some(row)
    }

    fn generation_for(&self, link: Link, known: &[(&Whose, &Outcome)]) -> Option<u64> {
        let for_whom =
            known.iter().find(|(whose, _)| self.find(&whose.uid).map(Target::Object) == Some(link.target()));
        for_whom.and_then(|(_, outcome)| outcome.generation)
    }

    fn drop_remembered(&self, uid: slots::Uid) {
        if let Some(id) = self.index.get(&uid).map(|id| *id)
            && self.read(id, Row::is_remembered) == Some(true)
        {
            self.drop_row(id);
        }
    }

    /// Links that count for the generation that the parent has now.
    pub(in crate::reflector) fn is_outdated(&self, link: Link, only: &[(Link, u64)]) -> bool {
        let Some((_, generation)) = only.iter().find(|(l, _)| *l == link) else { return false };
        let Target::Object(parent) = link.target() else { return false };
        let now = self.read(parent, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
        now.is_some_and(|now| now != *generation)
    }
}

/// The rules under which the end of an object with such metadata is remembered. What a schedule runs is none of it:
/// that is for the schedule to say.
pub(super) fn remembering<'i>(interest: &'i Interest, meta: &Meta) -> impl Iterator<Item = &'i ChildRule> {
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
        .filter(move |(rule, passed_over)| !scheduled && !passed_over && rule.after != After::Forget)
        .map(|(rule, _)| rule)
}
