//! A view that is kept up change by change shows what one that is built anew shows.

use std::collections::BTreeSet;
use std::time::Duration;

use aggregator::Acceptance;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use rollcall_core::Core;
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;

use super::*;

const NOW: Time = Time(1_800_000_000_000);
const PARENTS: u64 = 12;

fn object(kind: &str, name: &str, owner: Option<&str>, version: u64, phase: &str) -> ParentObject {
    let api = if kind == "Pod" { "v1" } else { "example.com/v1" };
    let owners = owner.map(
        |owner| json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": owner, "uid": owner }]),
    );
    let value: Value = json!({ "apiVersion": api, "kind": kind, "status": { "phase": phase }, "metadata": {
        "name": name, "namespace": "shop", "uid": name, "generation": 1, "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners } });
    serde_json::from_str(&value.to_string()).unwrap()
}

/// Databases with one pod each.
struct Databases {
    core: Core,
    kinds: [KindId; 2],
    now: Time,
    version: u64,
}

impl Databases {
    fn begin() -> Databases {
        let mut registry = IdRegistry::default();
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s", "mode": "shadow",
            "children": [{ "kind": { "kind": "Pod" } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let (id, name) = (registry.new_policy_id(), "databases".to_owned());
        let policy = PolicyInUse { id, name, compiled, acceptance: Acceptance::Accepted };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
        let kind = |kind: &str| *plan.kinds.iter().find(|(_, of)| of.key.1 == kind).unwrap().0;
        let kinds = [kind("Database"), kind("Pod")];
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        for id in plan.kinds.keys() {
            core.set_kind_name(*id, &plan.kinds[id].key.1, &plan.kinds[id].key.0);
        }
        load_objects(&mut core, &plan, &[], NOW);
        Databases { core, kinds, now: NOW, version: 1 }
    }

    fn apply(&mut self, kind: usize, object: &ParentObject) {
        self.core.reflector.apply_object(self.kinds[kind], &object.child, Some(&object.text));
    }

    /// One of them comes, goes, or turns.
    fn step(&mut self, dice: u64) {
        self.version += 1;
        let (parent, phase) = (dice % PARENTS, ["Pending", "Running", "Failed"][(dice / 64 % 3) as usize]);
        let (name, pod) = (format!("db-{parent}"), format!("pod-{parent}"));
        match dice / 1_024 % 5 {
            0 => self.apply(0, &object("Database", &name, None, self.version, "")),
            1 => self.core.reflector.delete_object(&name, self.version),
            _ => self.apply(1, &object("Pod", &pod, Some(&name), self.version, phase)),
        }
        self.turn(dice / 8_192 % 8);
    }

    fn turn(&mut self, times: u64) {
        for _ in 0..times {
            self.core.run_turn(self.now);
            self.now = self.now + Duration::from_millis(500);
        }
    }
}

/// All that a view shows, in its order.
fn shown(view: &PageView) -> (Vec<PageRow>, BTreeSet<KindNamespace>) {
    (view.rows().cloned().collect(), view.places().cloned().collect())
}

#[test]
fn a_view_that_is_kept_up_shows_what_one_that_is_built_anew_shows() {
    for seed in 0..40 {
        let (seed, mut of) = (Seed(seed), Databases::begin());
        let (mut view, mut told) = (PageView::default(), BTreeSet::<Arc<str>>::new());
        for step in 0..60 {
            of.step(seed.number_for(step));
            if seed.number_for(1_000 + step) % 3 == 0 {
                continue;
            }
            let after = Some(view.number).filter(|number| *number > 0);
            let changes = of.core.take_parent_changes(after, of.now);
            let (next, difference) = view.with_changes(&changes, &of.core.reflector);
            let all = next.rows().map(|row| row.uid.clone());
            if difference.is_whole {
                told = all.collect();
            } else {
                told.extend(difference.changed.iter().map(|row| row.uid.clone()));
                difference.gone.iter().for_each(|row| assert!(told.remove(&row.uid), "{}", row.uid));
                assert_eq!(told, all.collect(), "who reads the changes knows who there is");
            }
            for row in next.rows() {
                assert_eq!(next.rows_of(&row.uid), [row]);
                assert_eq!(next.worst_row(row.parent), Some(row));
            }
            view = next;
        }
        // What is gone from the reflector is shown until the loop has observed it.
        of.turn(1);
        let after = Some(view.number);
        let last = view.with_changes(&of.core.take_parent_changes(after, of.now), &of.core.reflector).0;
        let anew = of.core.take_parent_changes(None, of.now);
        let anew = PageView::default().with_changes(&anew, &of.core.reflector).0;
        assert_eq!(shown(&last), shown(&anew), "{seed:?}");
    }
}

#[test]
fn what_is_not_ready_comes_first_and_of_it_the_groups() {
    let order =
        [(Level::Failed, true), (Level::Suspended, true), (Level::Failed, false), (Level::Stuck, false)];
    let order = order.into_iter().chain([(Level::Ready, true), (Level::Ready, false)]);
    let ranks: Vec<_> = order.map(|(level, is_group)| list_rank(level, is_group)).collect();
    assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    assert!(is_group_label("ReadinessGroup.rollcall.dev"));
    for other in ["ReadinessGroup", "ReadinessGroup.example.com", "ReadinessGroups.rollcall.dev", "Database"]
    {
        assert!(!is_group_label(other), "{other}");
    }
}

#[test]
fn a_parent_is_found_by_its_name_whatever_is_said_of_it() {
    let parents = ParentReason::ALL.map(|reason| ("shop", reason.as_str(), reason));
    let elsewhere = ("else", ParentReason::ALL[0].as_str(), ParentReason::AllChildrenReady);
    let view = PageView::of_parents(&parents.into_iter().chain([elsewhere]).collect::<Vec<_>>());
    let find = |label, namespace, name| view.uid_of_name(label, namespace, name);
    for (at, (_, name, _)) in parents.iter().enumerate() {
        assert_eq!(
            find("Database.example.com", "shop", name).as_deref(),
            Some(&*format!("uid-{at}")),
            "{name}"
        );
    }
    let last = format!("uid-{}", parents.len());
    assert_eq!(find("Database.example.com", "else", elsewhere.1).as_deref(), Some(&*last));
    for (label, namespace, name) in [
        ("Database", "shop", parents[0].1),
        ("Database.example.com", "", parents[0].1),
        ("Database.example.com", "shop", "nobody"),
        ("Database.example.com", "shop", ""),
    ] {
        assert_eq!(find(label, namespace, name), None, "{label} {namespace} {name}");
    }
}
