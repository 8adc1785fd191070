//! Whose word `status.observedGeneration` is: where Rollcall writes it, and what an operator's silence means there.

use aggregator::HandledEvidence;
use aggregator::HandledEvidence::{Handled, Masked, NotYet, Silent, Unmarked};
use serde_json::{Value, json};
use watcher::plan::{Interest, KopfMarkRule, ObservedGenerationRule};
use watcher::reflector::Reflector;

use crate::objects::{NOW, apply, parents, uid, widget};

/// Entries of managedFields: manager and the fields of the status that it owns.
fn managed(by: &[(&str, Value)]) -> Value {
    let one = |(manager, fields): &(&str, Value)| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
    by.iter().map(one).collect()
}

fn of_status(fields: &Value) -> Value {
    json!({"f:status": fields})
}

/// Reads a parent of generation 3 and returns its evidence and whether Rollcall writes its `status.observedGeneration`.
fn read(reflector: &Reflector, interest: &Interest, n: u32, fields: &Value, status: &Value) {
    let mut parent = widget(n, 3, status);
    parent["metadata"]["uid"] = json!(uid(1_000 + n));
    parent["metadata"]["managedFields"] = fields.clone();
    apply(reflector, interest, &parent);
}

fn known(reflector: &Reflector, n: u32) -> (HandledEvidence, bool) {
    let id = reflector.find_object(&uid(1_000 + n)).unwrap();
    let evidence = reflector.with_view(id, NOW, |view| view.unwrap().parent.unwrap().evidence);
    let keeps = reflector.read_row(id, |row| row.parent.as_ref().unwrap().targets[0].keeps_generation);
    (evidence, keeps.unwrap())
}

/// The interest in parents under a policy of this mode.
fn under(mode: ObservedGenerationRule, marks: KopfMarkRule) -> Interest {
    let mut interest = parents(vec![]);
    (interest.parent[0].observed_generation, interest.parent[0].kopf_marks) = (mode, marks);
    interest
}

#[test]
fn the_field_is_written_where_it_hides_nothing_and_silence_behind_it_proves_nothing() {
    use ObservedGenerationRule::{Auto, Write};
    let user = ("kubectl", json!({"f:spec": {}}));
    let generation = || of_status(&json!({"f:observedGeneration": {}}));
    let ours = ("rollcall", generation());
    let phase = ("operator", of_status(&json!({"f:phase": {}})));
    let entry = json!([{"type": "Synced", "status": "True", "observedGeneration": 3}]);
    for (mode, by, status, expected) in [
        // The default stands, and nobody has written a status.
        (Auto, vec![user.clone()], json!({"observedGeneration": 0}), (Silent, true)),
        // We wrote it about this very generation, or about the one before.
        (Auto, vec![ours.clone()], json!({"observedGeneration": 3}), (Silent, true)),
        (Auto, vec![ours.clone()], json!({"observedGeneration": 2}), (Masked, true)),
        // A writer of the status may keep it: an equal value would leave no trace.
        (Auto, vec![phase.clone()], json!({"observedGeneration": 0, "phase": "Busy"}), (Silent, false)),
        (Auto, vec![phase.clone(), ours.clone()], json!({"observedGeneration": 3}), (Silent, false)),
        (Auto, vec![phase.clone(), ours.clone()], json!({"observedGeneration": 2}), (Unmarked, false)),
        // It keeps it, alone or beside us by an apply of the same value.
        (Auto, vec![("operator", generation())], json!({"observedGeneration": 3}), (Handled, false)),
        (
            Auto,
            vec![("operator", generation()), ours.clone()],
            json!({"observedGeneration": 2}),
            (NotYet, false),
        ),
        // Another mark speaks for it.
        (
            Auto,
            vec![phase.clone(), ours.clone()],
            json!({"observedGeneration": 2, "conditions": entry}),
            (Handled, true),
        ),
        // A policy says that it does not keep it.
        (Write, vec![phase.clone(), ours.clone()], json!({"observedGeneration": 2}), (Silent, true)),
        (Write, vec![ours.clone()], json!({"observedGeneration": 2}), (Silent, true)),
    ] {
        let reflector = Reflector::new(|| ());
        read(&reflector, &under(mode, KopfMarkRule::Learned), 1, &managed(&by), &status);
        assert_eq!(known(&reflector, 1), expected, "{mode:?} {by:?} {status}");
    }
}

#[test]
fn an_operator_that_keeps_it_for_one_parent_is_awaited_on_all_of_the_kind_whichever_was_read_first() {
    use ObservedGenerationRule::{Auto, Write};
    let theirs = managed(&[("operator", of_status(&json!({"f:observedGeneration": {}})))]);
    let ours = managed(&[("rollcall", of_status(&json!({"f:observedGeneration": {}})))]);
    let (none, supplied) = (managed(&[("kubectl", json!({"f:spec": {}}))]), json!({"observedGeneration": 0}));
    let answers = |mode, marks| {
        let (reflector, interest) = (Reflector::new(|| ()), under(mode, marks));
        read(&reflector, &interest, 1, &none, &supplied);
        read(&reflector, &interest, 2, &ours, &json!({"observedGeneration": 2}));
        let before = (known(&reflector, 1), known(&reflector, 2));
        read(&reflector, &interest, 3, &theirs, &json!({"observedGeneration": 3}));
        reflector.take_dirty(10);
        read(&reflector, &interest, 4, &none, &supplied);
        read(&reflector, &interest, 3, &theirs, &json!({"observedGeneration": 3}));
        let after: Vec<_> = [1, 2, 4].map(|n| known(&reflector, n)).to_vec();
        (before, after)
    };
    let (before, after) = answers(Auto, KopfMarkRule::Learned);
    assert_eq!(before, ((Silent, true), (Masked, true)));
    assert_eq!(after, [(Unmarked, false); 3]);
    // Where a policy says that the operator does not keep it, or that it handles only some of them, each speaks for itself.
    assert_eq!(answers(Write, KopfMarkRule::Learned).1, [(Silent, true); 3]);
    assert_eq!(answers(Auto, KopfMarkRule::Optional).1, [(Silent, true), (Masked, true), (Silent, true)]);
}

#[test]
fn that_it_is_awaited_is_told_of_those_that_were_read_before() {
    let (reflector, interest) = (Reflector::new(|| ()), parents(vec![]));
    let none = managed(&[("kubectl", json!({"f:spec": {}}))]);
    read(&reflector, &interest, 1, &none, &json!({"observedGeneration": 0}));
    let first = reflector.find_object(&uid(1_001)).unwrap();
    reflector.take_dirty(10);
    let theirs = managed(&[("operator", of_status(&json!({"f:observedGeneration": {}})))]);
    read(&reflector, &interest, 2, &theirs, &json!({"observedGeneration": 1}));
    assert!(reflector.take_dirty(10).contains(&first));
    // Once: nothing is visited again for each parent that is read from now on.
    read(&reflector, &interest, 3, &theirs, &json!({"observedGeneration": 3}));
    read(&reflector, &interest, 4, &none, &json!({"observedGeneration": 0}));
    assert!(!reflector.take_dirty(10).contains(&first));
}
