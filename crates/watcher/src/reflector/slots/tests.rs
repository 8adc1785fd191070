use std::collections::BTreeSet;

use aggregator::KindId;
use readiness::{Level, Reason, Verdict};
use timer::Seed;

use super::*;
use crate::reflector::lists::ListProgress;
use crate::reflector::row::RowLinks;

fn row(kind: u32, namespace: &str) -> ObjectRow {
    ObjectRow {
        kind: KindId(kind),
        finalizers: 0,
        name: "one".into(),
        namespace: namespace.into(),
        version: 1,
        spec_version: crate::wire::SpecVersion::default(),
        created: 0,
        epoch: ListProgress::default().epoch(),
        assessment: Verdict::new(Level::Ready, Reason::Exists).into(),
        extras: None,
        links: RowLinks::default(),
        parent: None,
    }
}

fn put(slots: &SlotTable, number: u64, row: ObjectRow) -> ObjectId {
    let uid = UidKey::from_text(&format!("{number:08x}-0000-4000-8000-000000000000"));
    slots.with_slot_of(uid, |slot| slot.row = Some(row)).0
}

fn found(slots: &SlotTable, place: RowPlace<'_>) -> (BTreeSet<u32>, usize) {
    let mut found = BTreeSet::new();
    let looked_into = slots.for_each_row_in(place, |id, _| assert!(found.insert(id.0), "each once"));
    (found, looked_into)
}

#[test]
fn rows_of_a_place_are_those_that_are_there_whatever_came_and_went() {
    let slots = SlotTable::default();
    let (mut there, mut number) = (Vec::<(ObjectId, u32, String)>::new(), 0);
    let mut drawn = 0;
    let mut draw = |below: u64| {
        drawn += 1;
        Seed(7).number_for(drawn) % below
    };
    for _ in 0..4_000 {
        if draw(3) == 0 && !there.is_empty() {
            let at = usize::try_from(draw(there.len() as u64)).unwrap();
            let (id, ..) = there.swap_remove(at);
            slots.with_slot(id, |slot| slot.row = None);
            assert!(slots.give_back_slot(id).is_some());
        } else {
            // Kinds that share a bit of the filter, among others.
            let kind = u32::try_from(draw(3)).unwrap() * 64 + u32::try_from(draw(2)).unwrap();
            let namespace = format!("team-{}", draw(90));
            number += 1;
            there.push((put(&slots, number, row(kind, &namespace)), kind, namespace));
        }
        let (kind, namespace) = (KindId(u32::try_from(draw(130)).unwrap()), format!("team-{}", draw(91)));
        for namespace in [None, Some(&*namespace)] {
            let expected: BTreeSet<u32> = there
                .iter()
                .filter(|(_, of, within)| *of == kind.0 && namespace.is_none_or(|name| name == within))
                .map(|(id, ..)| id.0)
                .collect();
            assert_eq!(found(&slots, RowPlace { kind, namespace }).0, expected);
        }
    }
}

#[test]
fn whoever_looks_for_a_few_rows_passes_the_others_by() {
    let slots = SlotTable::default();
    let mut number = 0;
    for namespace in 0..500 {
        for _ in 0..200 {
            number += 1;
            put(&slots, number, row(1, &format!("team-{namespace}")));
        }
    }
    let few: Vec<_> = (0..10).map(|at| put(&slots, number + 1 + at, row(2, "shop"))).collect();
    let (of_kind, looked_into) = found(&slots, RowPlace::of_kind(KindId(2)));
    assert_eq!(of_kind.len(), few.len());
    let most = SLOTS_PER_CHUNK * few.len();
    assert!(looked_into <= most, "{looked_into} slots for {} objects", few.len());

    let place = RowPlace { kind: KindId(1), namespace: Some("team-7") };
    let (in_namespace, looked_into) = found(&slots, place);
    assert_eq!(in_namespace.len(), 200);
    assert!(looked_into * 5 < slots.len(), "{looked_into} slots of {} for 200 objects", slots.len());

    // What has gone is not looked for for ever.
    for id in few {
        slots.with_slot(id, |slot| slot.row = None);
    }
    found(&slots, RowPlace::of_kind(KindId(2)));
    assert_eq!(found(&slots, RowPlace::of_kind(KindId(2))).1, 0);
}
