//! Many workloads that are not ready, and what is asked of their pods.

use std::sync::atomic::Ordering;

use readiness::{Level, RuleKind};
use serde_json::{Value, json};
use watcher::plan::Interest;
use watcher::{ApiKind, ParentObject, ReflectorObject};

use super::{KIND, PERIOD, ResyncStage, interest, list_of, uid};

const PODS: &str = "/api/v1/pods";
/// How many workloads are not ready. The names of some begin with those of others in their namespace.
const UNREADY: u32 = 40;

fn namespace_of(n: u32) -> String {
    format!("team-{}", n % 10)
}

fn pods_path_of(n: u32) -> String {
    format!("/api/v1/namespaces/{}/pods", namespace_of(n))
}

fn events_path_of(n: u32) -> String {
    format!("/api/v1/namespaces/{}/events", namespace_of(n))
}

/// The kind of the workloads, and how many pods each has of how many that it wants.
#[derive(Clone, Copy)]
struct WorkloadSort {
    kind: &'static str,
    plural: &'static str,
    pods: u32,
    wanted: u32,
}

const DEPLOYMENTS: WorkloadSort =
    WorkloadSort { kind: "Deployment", plural: "deployments", pods: 1, wanted: 1 };
const STATEFUL_SETS: WorkloadSort =
    WorkloadSort { kind: "StatefulSet", plural: "statefulsets", pods: 1, wanted: 3 };

impl WorkloadSort {
    fn list_path(self) -> String {
        format!("/apis/apps/v1/{}", self.plural)
    }

    fn path_of(self, n: u32) -> String {
        format!("/apis/apps/v1/namespaces/{}/{}/web-{n}", namespace_of(n), self.plural)
    }

    /// A workload without a ready pod, of this generation of its spec.
    fn workload(self, n: u32, (generation, version): (u32, u32)) -> Value {
        json!({ "apiVersion": "apps/v1", "kind": self.kind,
            "metadata": { "namespace": namespace_of(n), "name": format!("web-{n}"), "uid": uid(n),
                "generation": generation, "resourceVersion": version.to_string(), "ownerReferences":
                [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": uid(99) }] },
            "spec": { "replicas": self.wanted, "podManagementPolicy": "Parallel",
                "selector": { "matchLabels": { "part-of": format!("web-{n}") } } },
            "status": { "observedGeneration": generation, "replicas": self.pods, "updatedReplicas": self.pods,
                "unavailableReplicas": self.pods } })
    }

    /// The pod of a workload, which waits for this reason.
    fn pod(self, n: u32, version: u32, reason: &str) -> Value {
        let (kind, name, owner) = match self.kind {
            "Deployment" => ("ReplicaSet", format!("web-{n}-5d"), format!("set-{n}")),
            kind => (kind, format!("web-{n}"), uid(n)),
        };
        let phase = if reason == "CrashLoopBackOff" { "Running" } else { "Pending" };
        json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "namespace": namespace_of(n), "name": format!("web-{n}-0"), "uid": format!("pod-{n}"),
                "resourceVersion": version.to_string(), "labels": { "part-of": format!("web-{n}") },
                "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences":
                [{ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": owner, "controller": true }] },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": "False" }],
                "containerStatuses": [{ "name": "main", "ready": false, "restartCount": 0,
                    "state": { "waiting": { "reason": reason } } }] } })
    }

    /// Serves the pods, of which some have another version and wait for another reason.
    fn serve_pods(self, stage: &ResyncStage, changed: impl Fn(u32) -> Option<(u32, &'static str)>) {
        let pod = |n: u32| {
            let (version, reason) = changed(n).unwrap_or((5, "CrashLoopBackOff"));
            self.pod(n, version, reason)
        };
        stage.server.serve(PODS, list_of(&(0..UNREADY).map(pod).collect::<Vec<_>>()));
        for team in 0..10 {
            let of_team = (0..UNREADY).filter(|n| n % 10 == team).map(pod).collect::<Vec<_>>();
            stage.server.serve(&pods_path_of(team), list_of(&of_team));
        }
    }

    /// A resync of such workloads, all of which are crash-looping.
    fn start(self) -> ResyncStage {
        let api = ApiKind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
            namespaced: true,
            has_status: true,
        };
        let judge = RuleKind::from_group_kind("apps", self.kind);
        let (stage, found) = ResyncStage::start_kind(20, Interest { judge, ..interest() }, api);
        found.listed.store(UNREADY as usize, Ordering::Relaxed);
        (0..UNREADY).for_each(|n| self.observe(&stage, n, (1, 5)));
        self.serve(&stage);
        self.serve_pods(&stage, |_| None);
        (0..10).for_each(|team| stage.server.serve(&events_path_of(team), list_of(&[])));
        stage
    }

    /// The watch delivers a version of a workload, and the server has it.
    fn observe(self, stage: &ResyncStage, n: u32, version: (u32, u32)) {
        let workload = self.workload(n, version);
        stage.server.serve(&self.path_of(n), workload.clone());
        let object: ParentObject = serde_json::from_value(workload).unwrap();
        stage.reflector.apply_object(KIND, object.as_child(), object.raw_text());
    }

    /// Serves the list of all as they were at first.
    fn serve(self, stage: &ResyncStage) {
        let all = (0..UNREADY).map(|n| self.workload(n, (1, 5))).collect::<Vec<_>>();
        stage.server.serve(&self.list_path(), list_of(&all));
    }
}

/// Everything is ordered once a period, for so many periods; the paths that were asked for in the last of them, sorted.
async fn asked_after(stage: &ResyncStage, periods: u32) -> Vec<String> {
    for _ in 0..periods {
        stage.server.take_asked();
        stage.order_each();
        tokio::time::sleep(PERIOD).await;
    }
    let mut asked = stage.server.take_asked();
    asked.sort();
    asked
}

/// A Deployment whose pod is ready.
fn ready(n: u32, version: u32) -> Value {
    let mut ready = DEPLOYMENTS.workload(n, (1, version));
    ready["status"]["availableReplicas"] = json!(1);
    ready["status"]["readyReplicas"] = json!(1);
    ready["status"]["unavailableReplicas"] = json!(0);
    ready
}

fn reason_of(stage: &ResyncStage, n: u32) -> String {
    let id = stage.reflector.find_object(&uid(n)).unwrap();
    stage.reflector.read_row(id, |row| row.assessment.verdict.reason.to_string()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn many_are_explained_by_few_lists() {
    let stage = DEPLOYMENTS.start();
    let asked = asked_after(&stage, 1).await;
    let lists = |path: &str| asked.iter().filter(|asked| **asked == *path).count();
    assert_eq!((lists(&DEPLOYMENTS.list_path()), lists(PODS)), (2, 2), "by metadata and whole: {asked:?}");
    assert_eq!(asked.len(), 4 + 2 * 2, "the first few are read alone, each with its pods: {asked:?}");
    for n in 0..UNREADY {
        let reason = reason_of(&stage, n);
        assert!(
            reason.contains(&format!("Pod web-{n}-0")) && reason.contains("CrashLoopBackOff"),
            "{reason}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn where_no_pod_has_changed_two_lists_say_so() {
    let stage = DEPLOYMENTS.start();
    assert_eq!(asked_after(&stage, 3).await, [PODS.to_owned(), DEPLOYMENTS.list_path()]);
}

#[tokio::test(start_paused = true)]
async fn the_workload_of_a_pod_that_has_changed_is_explained_again_and_no_other() {
    let stage = DEPLOYMENTS.start();
    asked_after(&stage, 2).await;
    // Of the workload web-1 in the same namespace the pod has only the beginning of the owner's name.
    DEPLOYMENTS.serve_pods(&stage, |n| (n == 11).then_some((6, "ImagePullBackOff")));
    let asked = asked_after(&stage, 1).await;
    assert_eq!(asked, [pods_path_of(11), PODS.to_owned(), DEPLOYMENTS.list_path()]);
    assert!(reason_of(&stage, 11).contains("ImagePullBackOff"), "{}", reason_of(&stage, 11));
    assert!(reason_of(&stage, 1).contains("CrashLoopBackOff"), "{}", reason_of(&stage, 1));
    assert_eq!(asked_after(&stage, 1).await, [PODS.to_owned(), DEPLOYMENTS.list_path()]);
}

#[tokio::test(start_paused = true)]
async fn where_many_pods_have_changed_they_are_listed_whole_once() {
    let stage = DEPLOYMENTS.start();
    asked_after(&stage, 2).await;
    DEPLOYMENTS.serve_pods(&stage, |n| (n >= 10).then_some((6, "ImagePullBackOff")));
    let asked = asked_after(&stage, 1).await;
    assert_eq!(asked, [PODS.to_owned(), PODS.to_owned(), DEPLOYMENTS.list_path()]);
    for n in 0..UNREADY {
        let expected = if n >= 10 { "ImagePullBackOff" } else { "CrashLoopBackOff" };
        assert!(reason_of(&stage, n).contains(expected), "{n}: {}", reason_of(&stage, n));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_whose_spec_has_changed_is_read_again_and_one_whose_status_has_is_not() {
    let stage = DEPLOYMENTS.start();
    asked_after(&stage, 3).await;
    DEPLOYMENTS.observe(&stage, 11, (2, 6));
    DEPLOYMENTS.observe(&stage, 12, (1, 6));
    let mut all = (0..UNREADY).map(|n| DEPLOYMENTS.workload(n, (1, 5))).collect::<Vec<_>>();
    all[11] = DEPLOYMENTS.workload(11, (2, 6));
    all[12] = DEPLOYMENTS.workload(12, (1, 6));
    stage.server.serve(&DEPLOYMENTS.list_path(), list_of(&all));
    let mut asked = asked_after(&stage, 1).await;
    asked.sort();
    let mut expected = [DEPLOYMENTS.list_path(), PODS.to_owned(), DEPLOYMENTS.path_of(11), pods_path_of(11)];
    expected.sort();
    assert_eq!(asked, expected);
    for n in [11, 12] {
        assert!(reason_of(&stage, n).contains("CrashLoopBackOff"), "{}", reason_of(&stage, n));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stuck_after_a_time_says_so_without_another_read() {
    let stage = DEPLOYMENTS.start();
    DEPLOYMENTS.serve_pods(&stage, |_| Some((5, "ContainerCreating")));
    asked_after(&stage, 3).await;
    let at = |n: u32| {
        let id = stage.reflector.find_object(&uid(n)).unwrap();
        let then = stage.reflector.read_row(id, |row| row.assessment.then.clone()).unwrap();
        then.map(|then| (then.1.level, then.0.to_string()))
    };
    let expected = Some((Level::Stuck, "2026-01-01T00:10:00Z".to_owned()));
    assert!((0..UNREADY).all(|n| at(n) == expected), "{:?}", at(0));
}

#[tokio::test(start_paused = true)]
async fn where_the_list_of_pods_is_not_answered_each_workload_has_its_own() {
    let stage = DEPLOYMENTS.start();
    asked_after(&stage, 1).await;
    stage.server.serve(PODS, json!({ "kind": "Status", "status": "Failure", "code": 500 }));
    asked_after(&stage, 1).await;
    let asked = asked_after(&stage, 1).await;
    let alone = asked.iter().filter(|path| path.starts_with("/api/v1/namespaces/")).count();
    assert!(alone >= UNREADY as usize - 5, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn where_pods_may_not_be_listed_in_all_namespaces_each_workload_has_its_own() {
    let stage = DEPLOYMENTS.start();
    asked_after(&stage, 1).await;
    let forbidden = json!({ "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden" });
    stage.server.serve(PODS, forbidden);
    let asked = asked_after(&stage, 1).await;
    let alone = asked.iter().filter(|path| path.starts_with("/api/v1/namespaces/")).count();
    assert!(alone >= UNREADY as usize, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_ceases_to_be_ready_after_all_were_listed_is_read_by_the_next_order() {
    let stage = DEPLOYMENTS.start();
    let apply = |workload: Value| {
        let object: ParentObject = serde_json::from_value(workload).unwrap();
        stage.reflector.apply_object(KIND, object.as_child(), object.raw_text());
    };
    let mut all = (0..UNREADY).map(|n| DEPLOYMENTS.workload(n, (1, 5))).collect::<Vec<_>>();
    all[11] = ready(11, 6);
    stage.server.serve(&DEPLOYMENTS.list_path(), list_of(&all));
    apply(ready(11, 6));
    stage.order_each();
    tokio::time::sleep(PERIOD / 3).await;
    stage.server.take_asked();
    DEPLOYMENTS.observe(&stage, 11, (1, 7));
    stage.order_each();
    tokio::time::sleep(PERIOD / 3).await;
    assert_eq!(stage.server.take_asked(), [DEPLOYMENTS.path_of(11), pods_path_of(11)]);
    assert!(reason_of(&stage, 11).contains("CrashLoopBackOff"), "{}", reason_of(&stage, 11));
}

#[tokio::test(start_paused = true)]
async fn among_very_many_pods_of_others_each_workload_has_its_own_list() {
    let stage = DEPLOYMENTS.start();
    let mut pods = (0..UNREADY).map(|n| DEPLOYMENTS.pod(n, 5, "CrashLoopBackOff")).collect::<Vec<_>>();
    pods.extend((0..2_000).map(|n| {
        json!({ "metadata": { "namespace": "others", "name": format!("pod-{n}"), "uid": format!("other-{n}"),
            "resourceVersion": "5" } })
    }));
    stage.server.serve(PODS, list_of(&pods));
    let asked = asked_after(&stage, 2).await;
    let alone = asked.iter().filter(|path| path.starts_with("/api/v1/namespaces/")).count();
    assert_eq!((alone, asked.len()), (UNREADY as usize, UNREADY as usize + 1), "{asked:?}");
    assert!((0..UNREADY).all(|n| reason_of(&stage, n).contains("CrashLoopBackOff")));
}

#[tokio::test(start_paused = true)]
async fn events_of_workloads_that_lack_pods_are_listed_less_and_less_often_until_something_changes() {
    let stage = STATEFUL_SETS.start();
    let mut listed = Vec::new();
    for _ in 0..40 {
        let asked = asked_after(&stage, 1).await;
        listed.push(asked.iter().filter(|path| **path == events_path_of(7)).count());
    }
    // Four in each namespace.
    let often = listed.iter().position(|count| *count == 0);
    assert!(listed[..2].iter().all(|count| *count == 4) && often.is_some_and(|at| at < 5), "{listed:?}");
    let passes: Vec<usize> = (0..listed.len()).filter(|at| listed[*at] > 0).collect();
    let waits: Vec<usize> = passes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.is_sorted() && waits.last() == Some(&11), "{listed:?}");
    STATEFUL_SETS.serve_pods(&stage, |n| (n == 17).then_some((6, "ImagePullBackOff")));
    let asked = asked_after(&stage, 1).await;
    assert!(asked.contains(&events_path_of(7)), "what has changed: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_or_gone_is_forgotten() {
    let stage = DEPLOYMENTS.start();
    asked_after(&stage, 1).await;
    assert!(!stage.explanations.is_empty());
    for n in 0..UNREADY {
        let object: ParentObject = serde_json::from_value(ready(n, 7)).unwrap();
        if n % 2 == 0 {
            stage.reflector.delete_object(&uid(n), 7);
        } else {
            stage.reflector.apply_object(KIND, object.as_child(), object.raw_text());
        }
    }
    tokio::time::sleep(PERIOD).await;
    assert!(stage.explanations.is_empty());
}
