//! Ingest: links and assesses a received object and stores its row, or drops the object if nothing needs it.

use std::collections::BTreeSet;
use std::sync::Arc;

use aggregator::{ChildLink, KindId, ObjectId};
use readiness::Assessment;
use serde_json::value::RawValue;

use super::assess::{RuleAssessment, rule_text};
use super::deletion::remove_deleted_row;
use super::generation_practice::SeenPractice;
use super::interim::{first_interim, give_up_rule, rules_to_evaluate};
use super::judgement_queue::Judgement;
use super::kopf::logged_parents::tell_parent;
use super::links::{lent_selectors, release_links, resolve_links};
use super::memory;
use super::parent::{ParentRow, read_parent_row};
use super::parts::ReflectorParts;
use super::planned::{BroughtBy, ListPass, PlannedInterest};
use super::proofs::take_excerpt;
use super::row::{ObjectRow, find_blocked_owners};
use super::row_place::RowPlace;
use super::row_store::{ApplyOutcome, RowStore, rules_used_by, unused_assessment};
use super::rule_breaker::RuleBreaker;
use super::rules_of_parent::RulesOfParent;
use super::scaled::{BeforeChange, count_on_whole};
use super::slots::RowSlot;
use super::uid_key::UidKey;
use super::unready_since::set_since_from_facts;
use crate::plan::{AssessmentRule, Interest, ParentRule};
use crate::wire::{ChildObject, WireMeta};

/// Ingests an object of the newest list of its kind.
///
/// A list is never older than what was known when it began, because it is read without a resourceVersion. An object in an
/// older version than that is of another history: etcd was restored from a backup, and counts from there. What was known
/// of the history that is gone does not hold, however high its versions are.
pub(super) fn ingest_listed(
    parts: &ReflectorParts,
    pass: &ListPass,
    child: &ChildObject,
    object: Option<&RawValue>,
) -> ApplyOutcome {
    let uid = UidKey::from_text(&child.meta.uid);
    parts.store.tombstones.exhume_listed(uid, child.meta.resource_version, pass.start);
    if let Some(id) = parts.store.rows.find_key(uid) {
        let forget_version = |slot: &mut RowSlot| {
            let version = child.meta.resource_version;
            let is_older = |row: &&mut ObjectRow| version < row.version && row.epoch.is_before(pass.number);
            if let Some(row) = slot.row.as_mut().filter(is_older) {
                row.version = 0;
            }
        };
        parts.store.rows.with_slot(id, forget_version);
    }
    ingest_object(parts, pass.kind, child, object, BroughtBy::List(pass))
}

/// Judges an object by the plan that holds and puts its row. Where the plan moved while it was judged, it is judged again.
pub(super) fn ingest_object(
    parts: &ReflectorParts,
    kind: KindId,
    child: &ChildObject,
    object: Option<&RawValue>,
    by: BroughtBy<'_>,
) -> ApplyOutcome {
    loop {
        let Some(plan) = parts.store.plans.planned(kind) else { return ApplyOutcome::Refused };
        if object.is_none() && plan.interest.reads_whole() {
            // It was read for an older plan, which did not need all of it.
            return ApplyOutcome::Refused;
        }
        if let Some(applied) = ingest_by_plan(parts, &plan, child, object, by) {
            return applied;
        }
    }
}

/// Refuses an object that counts for no parent by this plan; `held` is its row, if it counted before.
fn turn_away(
    parts: &ReflectorParts,
    plan: &PlannedInterest,
    child: &ChildObject,
    held: Option<ObjectId>,
) -> Option<ApplyOutcome> {
    let version = child.meta.resource_version;
    if plan.interest.remembers_outcomes() {
        // The object no longer belongs to the parents that it belonged to before.
        memory::observe_run(&parts.memory, &parts.store, plan, child);
    }
    if let Some(id) = held.filter(|_| plan.holds()) {
        // A late event from the time when the object counted must not bring it back. The same version may, under
        // other rules.
        if version > 1 {
            parts.store.tombstones.add(UidKey::from_text(&child.meta.uid), version - 1);
        }
        remove_deleted_row(parts, id, |row| plan.holds() && row.version <= version);
    }
    plan.holds().then_some(ApplyOutcome::Unwanted)
}

/// Ingests an object by this plan. `None` if the plan no longer holds.
fn ingest_by_plan(
    parts: &ReflectorParts,
    plan: &Arc<PlannedInterest>,
    child: &ChildObject,
    object: Option<&RawValue>,
    by: BroughtBy<'_>,
) -> Option<ApplyOutcome> {
    let (interest, meta, store) = (&*plan.interest, &child.meta, &parts.store);
    let uid = UidKey::from_text(&meta.uid);
    if meta.uid.is_empty() || store.tombstones.covers(uid, meta.resource_version) {
        memory::observe_late_object(&parts.memory, store, interest, child);
        return Some(ApplyOutcome::Stale);
    }
    let of_parent = store.namespaces.parent_rules(interest, meta, object);
    let rules = &of_parent.rules;
    let held = store.rows.find_key(uid);
    let mut is_echo = false;
    let known = |slot: &mut RowSlot| {
        let row = slot.row.as_ref()?;
        is_echo |= matches!(by, BroughtBy::Watch) && is_echo_of(store, plan, row, meta.resource_version);
        Some((row.version, row.finalizers, BeforeChange::of_row(row, interest)))
    };
    let before = held.and_then(|id| store.rows.with_slot(id, known).flatten());
    if before.is_some_and(|(version, ..)| meta.resource_version < version)
        && held.is_some_and(|id| store.is_overtaken(id, meta.resource_version, by))
    {
        return Some(ApplyOutcome::Stale);
    }
    if is_echo {
        return Some(ApplyOutcome::Same);
    }
    if before.is_none() && store.awaits_list(interest.id, meta, by) {
        return Some(ApplyOutcome::Refused);
    }
    let links = resolve_links(store.link_tables(), interest, meta);
    let parent = object.and_then(|object| read_parent(parts, interest, child, object, (&of_parent, held)));
    if links.is_empty() && parent.is_none() {
        return turn_away(parts, plan, child, held.filter(|_| before.is_some()));
    }
    if interest.remembers_outcomes() {
        memory::observe_run(&parts.memory, &parts.store, plan, child);
    }
    let known_generation = || held.and_then(|id| store.rows.parent_generation(id));
    let generation = parent.as_ref().map(|p| (p.view.generation, known_generation()));
    let known_before = before.map_or(BeforeChange::Unknown, |(_, _, before)| before);
    let (row, awaited) = derive_row(parts, plan, (child, object), (links, parent), known_before);
    let finalizers = row.finalizers;
    let signs = ParentSigns::of_row(&row, interest);
    let applied = store.store_row(uid, row, Some(plan), by)?;
    if !awaited.is_empty() && applied != ApplyOutcome::Stale {
        await_rules(parts, plan, awaited, child, object);
    }
    if let Some(id) = store.rows.find_key(uid) {
        let place = RowPlace { kind: interest.id, namespace: Some(&meta.namespace) };
        signs.learn(parts, rules, (id, place), uid);
    }
    if applied != ApplyOutcome::Stale {
        remember_for_parent(parts, rules, meta, generation);
    }
    if let Some((_, id)) =
        before.zip(held).filter(|((_, old, _), _)| *old != finalizers && applied != ApplyOutcome::Stale)
    {
        parts.finalizers.record_change(&store.rows, id, meta);
    }
    Some(applied)
}

/// What a row that is stored tells of other parents, and what is known beside it may tell of its own.
struct ParentSigns {
    has_mark: bool,
    has_no_evidence: bool,
    heeds_log: bool,
    practice: Option<SeenPractice>,
}

impl ParentSigns {
    fn of_row(row: &ObjectRow, interest: &Interest) -> ParentSigns {
        let parent = row.parent.as_deref();
        ParentSigns {
            has_mark: parent.is_some_and(ParentRow::has_kopf_mark),
            has_no_evidence: parent.is_some_and(ParentRow::has_no_evidence),
            heeds_log: parent.is_some_and(ParentRow::heeds_log),
            practice: parent.map(|parent| parent.seen_practice(interest.counted)),
        }
    }

    /// Must be called after the row is stored.
    fn learn(
        self,
        parts: &ReflectorParts,
        rules: &[&ParentRule],
        (id, place): (ObjectId, RowPlace<'_>),
        uid: UidKey,
    ) {
        let store = &parts.store;
        parts.kopf_marks.learn(store, rules, (id, place), (self.has_mark, self.has_no_evidence));
        if self.heeds_log {
            tell_parent(&parts.kopf_logs, &store.rows, uid);
        }
        parts.generation_marks.learn(&store.rows, place.kind, id, self.practice);
    }
}

/// Returns `true` for a row that this plan holds in the version that a watch brings: of an answer to a write, most of the time, or of
/// a live read. What they brought stands. For seconds after a definition has changed, a watch that was opened before goes on to
/// show the same versions by the schema that is gone.
fn is_echo_of(store: &RowStore, plan: &PlannedInterest, row: &ObjectRow, version: u64) -> bool {
    row.version == version
        && version > 0
        && plan.has_put(&row.namespace, row.epoch)
        && row.epoch == store.plans.list_epoch(plan.interest.id, &row.namespace)
}

/// The row of an object by a plan, and the rules that it awaits.
fn derive_row(
    parts: &ReflectorParts,
    plan: &PlannedInterest,
    (child, object): (&ChildObject, Option<&RawValue>),
    (links, parent): (Vec<ChildLink>, Option<Box<ParentRow>>),
    before: BeforeChange,
) -> (ObjectRow, Vec<u16>) {
    let (interest, meta, store) = (&*plan.interest, &child.meta, &parts.store);
    let (mut assessed, awaited) = assess_by_rules(parts, plan, (child, object), &links);
    let counts_on_budgets = interest.judge.counts_on_disruption_budget();
    let budgets = if counts_on_budgets { parts.budgets.find_covering(child) } else { Vec::new() };
    let whole = count_on_whole(interest, child, &mut assessed, (before, &budgets));
    let mut row = store.build_row(interest, meta, assessed, links, parent);
    for rule_index in &awaited {
        row.await_rule_since(*rule_index, parts.assessor.now());
    }
    if whole.is_some() {
        row.extras.get_or_insert_default().whole = whole;
    }
    if let Some(blocked) = find_blocked_owners(meta) {
        row.extras.get_or_insert_default().blocked_owners = Some(blocked);
    }
    let lends = lent_selectors(&store.selectors, interest, child);
    if !lends.is_empty() {
        row.extras.get_or_insert_default().lent_selectors = lends;
    }
    if let Some((rule, object)) = interest.excerpt.as_ref().zip(object) {
        row.extras.get_or_insert_default().excerpt = Some(take_excerpt(rule, child, object));
    }
    set_since_from_facts(&mut row, interest, &child.facts);
    (row, awaited)
}

/// Tells the memory of outcomes of an object that was stored; `generation` is that of a parent, with the one before.
fn remember_for_parent(
    parts: &ReflectorParts,
    rules: &[&ParentRule],
    meta: &WireMeta,
    generation: Option<(u64, Option<u64>)>,
) {
    if rules.iter().any(|rule| rule.remembers_selected) {
        memory::on_selection_observed(&parts.memory, &parts.store, &meta.uid);
    }
    if generation.is_some_and(|(now, before)| before != Some(now)) {
        memory::on_parent_observed(&parts.memory, &parts.store, &meta.uid);
    }
}

/// What is known of an object by each rule, up to the last by which it counts for a parent, and which rules it awaits. Groups bring
/// rules of their own: whoever may create them must not have all objects of a kind judged by these.
fn assess_by_rules(
    parts: &ReflectorParts,
    plan: &PlannedInterest,
    (child, object): (&ChildObject, Option<&RawValue>),
    links: &[ChildLink],
) -> (Vec<Assessment>, Vec<u16>) {
    let (interest, defers) = (&*plan.interest, parts.judgements.is_used());
    let mut awaited = Vec::new();
    let used: BTreeSet<u16> = links.iter().map(|link| link.rule_index).chain([0]).collect();
    let assess = |(at, (judged_by, breaker)): (u16, (&AssessmentRule, &Option<Arc<RuleBreaker>>))| {
        if !used.contains(&at) {
            return unused_assessment();
        }
        let by = (judged_by, breaker.as_deref(), defers);
        match parts.assessor.assess_child(interest, child, object, by) {
            RuleAssessment::Known(assessment) => assessment,
            RuleAssessment::Awaited => {
                awaited.push(at);
                first_interim(parts.assessor.now())
            }
        }
    };
    let rules = interest.assessment_rules.iter().zip(&plan.breakers).take(rules_used_by(links));
    let assessed = (0..).zip(rules).map(assess).collect();
    (assessed, awaited)
}

/// Queues an object whose row was put for the rules that it awaits. Where there is no room, it is Unknown until it is read
/// again, within half a minute.
fn await_rules(
    parts: &ReflectorParts,
    plan: &Arc<PlannedInterest>,
    awaited: Vec<u16>,
    child: &ChildObject,
    object: Option<&RawValue>,
) {
    let meta = &child.meta;
    let Some((object, id)) = object.zip(parts.store.rows.find(&meta.uid)) else { return };
    let awaited = parts.store.rows.read(id, |row| rules_to_evaluate(row, awaited)).unwrap_or_default();
    let mut text: Option<Arc<str>> = None;
    for rule_index in &awaited {
        let rule = plan
            .interest
            .assessment_rules
            .get(usize::from(*rule_index))
            .and_then(|judged_by| judged_by.rule.as_ref());
        let Some(rule) = rule else { continue };
        // All rules of a kind read the same.
        let text = text.get_or_insert_with(|| rule_text(rule, child, object).into());
        let of = (id, (&*meta.namespace, &*meta.uid), meta.resource_version);
        let judgement = Judgement::new((plan, *rule_index), of, text.clone(), parts.assessor.now());
        let is_stored = || parts.store.rows.holds_version(id, &meta.uid, meta.resource_version);
        if !parts.judgements.push(judgement, is_stored) {
            let gives_up = |slot: &mut RowSlot| {
                let of = (*rule_index, meta.resource_version);
                slot.row.as_mut().map(|row| give_up_rule(row, of, parts.assessor.now()))
            };
            if parts.store.rows.change_slot(id, gives_up).flatten() == Some(true) {
                parts.store.rows.mark_dirty(id);
            }
        }
    }
}

fn read_parent(
    parts: &ReflectorParts,
    interest: &Interest,
    child: &ChildObject,
    object: &RawValue,
    (of_parent, held): (&RulesOfParent<'_>, Option<ObjectId>),
) -> Option<Box<ParentRow>> {
    if interest.parent.is_empty() && interest.release.is_empty() {
        return None;
    }
    let (rules, meta) = (&of_parent.rules, &child.meta);
    if rules.is_empty() && interest.is_for_others(&meta.labels) {
        return None;
    }
    let before = held.and_then(|id| {
        parts.store.rows.read(id, |row| row.parent.as_ref().map(|p| p.to_previous_state(rules)))
    });
    let mut before = before.flatten().unwrap_or_default();
    before.expects_mark = parts.kopf_marks.expects_mark(rules, &meta.namespace);
    before.expects_generation = parts.generation_marks.expects_generation(interest.id, rules);
    let last = parts.last_written.find(UidKey::from_text(&meta.uid));
    let row = read_parent_row(
        child,
        object,
        interest,
        of_parent,
        &parts.store.selectors,
        (&before, &parts.kopf_logs),
        last.as_deref(),
    );
    // A parent that no policy selects is of interest only while it carries conditions of Rollcall's.
    (of_parent.is_selected() || row.status.written().next().is_some()).then(|| Box::new(row))
}

/// Returns `true` if an object with this metadata would get a row.
pub(super) fn wants_object(parts: &ReflectorParts, kind: KindId, meta: &WireMeta) -> bool {
    let Some(plan) = parts.store.plans.planned(kind) else { return false };
    let links = resolve_links(parts.store.link_tables(), &plan.interest, meta);
    release_links(parts.store.link_tables(), &links);
    !links.is_empty() || parts.store.namespaces.parent_rules(&plan.interest, meta, None).is_selected()
}
