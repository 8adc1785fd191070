//! A cluster whose objects are applied as a watch delivers them, under policies in shadow mode: what is counted is the way from
//! an event to an answer, without the sockets.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Acceptance, KindId, ObjectId};
use anyhow::{Context, ensure};
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::Core;
use serde_json::{Value, json};
use watcher::ParentObject;
use watcher::reflector::Reflector;

const START: Time = Time(1_800_000_000_000);
/// Longer than the debounce of a policy, so that each flip is answered in the turn after it.
const STEP: Duration = Duration::from_secs(2);

/// Parents in levels, the lowest of which owns pods.
pub(crate) struct CostCluster {
    core: Core,
    pods: KindId,
    now: Time,
    version: u64,
    /// Number of levels.
    depth: usize,
    top: ObjectId,
}

impl CostCluster {
    /// Builds as many towers of parents as asked for, each with so many levels and so many ready pods below the lowest.
    pub(crate) fn build(towers: usize, depth: usize, pods: usize) -> anyhow::Result<CostCluster> {
        let mut registry = IdRegistry::default();
        let policies = (0..depth).map(|level| level_policy(level, depth, &mut registry));
        let policies = policies.collect::<anyhow::Result<Vec<_>>>()?;
        let plan = build_plan(&policies, &Released::new(), &mut registry, &UnreadLibraries);
        let mut objects = Vec::new();
        for tower in 0..towers {
            for level in 0..depth {
                objects.push(read(&parent(tower, level).to_string())?);
            }
            for number in 0..pods {
                objects.push(read(&pod(tower, depth - 1, number, 1, "True"))?);
            }
        }
        let reflector = Arc::new(Reflector::new(|| ()));
        let mut core = Core::new(reflector, Duration::ZERO, Duration::ZERO, timer::Seed(0));
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), START);
        let pods = plan.kinds.values().find(|kind| kind.key.1 == "Pod").context("pods are followed")?.id;
        let top = core.reflector.find_object("level-0-0").context("the parent is there")?;
        let mut cluster = CostCluster { core, pods, now: START, version: 1, depth, top };
        for _ in 0..2 * depth + 4 {
            cluster.turn();
        }
        cluster.check_answer(ParentReason::AllChildrenReady)?;
        Ok(cluster)
    }

    fn turn(&mut self) {
        self.now = self.now + STEP;
        black_box(self.core.run_turn(self.now));
    }

    fn check_answer(&self, expected: ParentReason) -> anyhow::Result<()> {
        let state = self.core.engine.evaluation_states().find(|state| state.parent == self.top);
        let said = state.context("the parent is evaluated")?.answer.reason;
        ensure!(said == expected, "the parent says {said:?} and not {expected:?}");
        Ok(())
    }

    /// The watch brings the first pod in its next version.
    fn bring(&mut self, ready: &str) -> anyhow::Result<()> {
        self.version += 1;
        let object = read(&pod(0, self.depth - 1, 0, self.version, ready))?;
        self.core.reflector.apply_object(self.pods, &object.child, Some(&object.text));
        Ok(())
    }

    /// So many events that change no verdict.
    pub(crate) fn ignore_events(mut self, turns: u32) -> anyhow::Result<()> {
        for _ in 0..turns {
            self.bring("True")?;
        }
        ensure!(self.core.reflector.take_dirty(1).is_empty(), "an event that changes nothing is processed");
        Ok(())
    }

    /// So many changes of one pod, each until the parent at the top has another answer.
    pub(crate) fn flip(mut self, turns: u32) -> anyhow::Result<()> {
        for turn in 0..turns {
            let (ready, said) = match turn % 2 {
                0 => ("False", ParentReason::ChildrenProgressing),
                _ => ("True", ParentReason::AllChildrenReady),
            };
            self.bring(ready)?;
            self.turn();
            self.turn();
            self.check_answer(said)?;
        }
        Ok(())
    }

    /// So many times the conditions of a parent one of whose pods is not ready.
    pub(crate) fn render(mut self, turns: u32) -> anyhow::Result<()> {
        self.bring("False")?;
        self.turn();
        self.turn();
        self.check_answer(ParentReason::ChildrenProgressing)?;
        for _ in 0..turns {
            black_box(self.core.render_conditions(self.top, self.now)).context("it has conditions")?;
        }
        Ok(())
    }

    /// So many turns in which nothing happens.
    pub(crate) fn idle(mut self, turns: u32) -> anyhow::Result<()> {
        for _ in 0..turns {
            self.turn();
        }
        self.check_answer(ParentReason::AllChildrenReady)
    }
}

/// The policy of one level, whose children are those of the next, or pods.
fn level_policy(level: usize, depth: usize, registry: &mut IdRegistry) -> anyhow::Result<PolicyInUse> {
    let child = match level + 1 {
        below if below < depth => json!({ "group": "example.com", "kind": format!("Level{below}") }),
        _ => json!({ "group": "", "kind": "Pod" }),
    };
    let spec = json!({
        "parent": { "group": "example.com", "kind": format!("Level{level}") }, "settle": "0s", "mode": "shadow",
        "children": [{ "kind": child }],
    });
    let compiled = compile(&serde_json::from_value(spec)?, Duration::from_mins(10));
    let compiled = compiled.map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let name = format!("level-{level}");
    Ok(PolicyInUse { id: registry.new_policy_id(), name, compiled, acceptance: Acceptance::Accepted })
}

fn owner(tower: usize, level: usize) -> Value {
    let name = format!("level-{level}-{tower}");
    json!({ "apiVersion": "example.com/v1", "kind": format!("Level{level}"), "name": name, "uid": name })
}

fn parent(tower: usize, level: usize) -> Value {
    let name = format!("level-{level}-{tower}");
    let owners: Vec<Value> = level.checked_sub(1).map(|above| owner(tower, above)).into_iter().collect();
    json!({
        "apiVersion": "example.com/v1", "kind": format!("Level{level}"), "status": {}, "metadata": {
            "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners,
        },
    })
}

fn pod(tower: usize, level: usize, number: usize, version: u64, ready: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","spec":{{}},"metadata":{{"name":"pod-{tower}-{number}","namespace":"shop",
        "uid":"pod-{tower}-{number}","resourceVersion":"{version}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z",
        "ownerReferences":[{{"apiVersion":"example.com/v1","kind":"Level{level}","name":"level-{level}-{tower}",
        "uid":"level-{level}-{tower}"}}]}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
    )
}

fn read(object: &str) -> anyhow::Result<ParentObject> {
    Ok(serde_json::from_str(object)?)
}
