use super::*;
use serde_json::json;
use watcher::status::time;

fn pod(name: &str, status: &Value) -> ChildObject {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "r", "controller": true });
    let meta = json!({ "name": name, "uid": name, "ownerReferences": [owner] });
    let pod = json!({ "metadata": meta, "status": status });
    serde_json::from_value::<Box<RawValue>>(pod).map(|text| ChildObject::from_raw(&text)).unwrap_or_default()
}

fn waiting(reason: &str) -> Value {
    let container = json!({ "name": "web", "ready": false, "state": { "waiting": { "reason": reason } } });
    json!({ "phase": "Pending", "containerStatuses": [container] })
}

#[test]
fn the_worst_pod_explains_and_of_those_the_first_by_name() {
    let pods = [
        pod("c", &waiting("ImagePullBackOff")),
        pod("b", &waiting("ImagePullBackOff")),
        pod("a", &waiting("ContainerCreating")),
    ];
    let found = worst_pod_cause(&pods, "web", &StuckLimits::default())
        .map(|r| (r.name, r.assessment.verdict.reason.to_string()));
    assert_eq!(found, Some(("Pod b".into(), "waiting: ImagePullBackOff".to_owned())));
}

#[test]
fn pods_that_are_well_or_leaving_explain_nothing() {
    let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let mut leaving = pod("a", &waiting("ErrImagePull"));
    leaving.meta.deleted = Some(readiness::Time(1));
    assert_eq!(worst_pod_cause(&[pod("b", &ready), leaving], "web", &StuckLimits::default()), None);
    // A pod with the same labels that is controlled by another workload.
    assert_eq!(worst_pod_cause(&[pod("a", &waiting("ErrImagePull"))], "api", &StuckLimits::default()), None);
}

/// StatefulSet that lacks pods, under policies with these limits in minutes.
fn lacking(minutes: &[u64]) -> UnreadyWorkload {
    let pending = |minutes: &u64| std::time::Duration::from_secs(60 * minutes);
    let limits = minutes
        .iter()
        .map(|minutes| StuckLimits { pending: pending(minutes), ..StuckLimits::default() })
        .collect();
    let set = json!({ "metadata": { "name": "web", "uid": "r", "generation": 1 }, "spec": { "replicas": 3 },
        "status": { "observedGeneration": 1, "replicas": 1 } });
    let set = serde_json::from_value::<Box<RawValue>>(set).map(|text| ChildObject::from_raw(&text)).unwrap();
    let silent = EventExplainedWorkload::from_child(RuleKind::StatefulSet, &set, false).map(Box::new);
    let text = String::new;
    UnreadyWorkload {
        owner: ObjectId(0),
        interest: Arc::new(Interest::for_kind(KindId(0), "apps", "StatefulSet")),
        namespace: text(),
        name: "web".to_owned(),
        uid: text(),
        version: 0,
        spec_version: watcher::wire::SpecVersion::default(),
        selector: text(),
        labels: LabelMatcher::default(),
        limits,
        event_explained: silent,
        since: None,
        lookup: WorkloadLookup::Pods,
    }
}

#[test]
fn what_makes_it_stuck_first_explains_a_workload_that_lacks_pods() {
    let denied = json!({ "items": [{ "involvedObject": { "uid": "r" }, "reason": "FailedCreate", "message": "quota",
        "source": { "component": "statefulset-controller" },
        "metadata": { "creationTimestamp": "2026-01-01T00:01:00Z" } }] });
    let explained = |pod: ChildObject, events: &Value| {
        let below = lacking(&[10]);
        let (cause, lack) = below.explain_by_pods(&[pod]);
        let now = Time(1_767_225_720_000);
        let found =
            below.explain_by_events(events, PodShortage { now, ..lack.unwrap() }, cause).pop().unwrap();
        let told = |found: RefinedCause| {
            let stuck = found.assessment.then.map_or("never".to_owned(), |then| then.0.to_string());
            format!("{} {}", &stuck[stuck.len().saturating_sub(9)..], found.assessment.verdict.reason)
        };
        found.map_or("nothing".to_owned(), told)
    };
    let born = |second: u8, status: &Value| {
        let mut pod = pod("web-0", status);
        pod.meta.created = Some(Time(1_767_225_600_000 + i64::from(second) * 1_000));
        pod.facts.created = pod.meta.created;
        pod
    };
    let well = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let mut crash = waiting("CrashLoopBackOff");
    crash["phase"] = json!("Running");
    let unscheduled = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "no node", "lastTransitionTime": "2026-01-01T00:00:05Z" }] });
    let starting = waiting("ContainerCreating");
    let none = json!({ "items": [] });
    let quota = "00:11:00Z FailedCreate: quota";
    assert_eq!(explained(born(0, &well), &denied), quota);
    assert_eq!(explained(born(0, &crash), &denied), quota, "a crash loop alone is never stuck");
    assert_eq!(explained(born(0, &crash), &none), "never waiting: CrashLoopBackOff");
    assert_eq!(explained(born(0, &unscheduled), &denied), "00:10:00Z unschedulable: no node", "since longer");
    assert_eq!(explained(born(0, &starting), &denied), "00:10:00Z FailedCreate: quota", "that says more");
    assert_eq!(explained(born(61, &well), &denied), "nothing", "the pod came after the refusal");
}

#[test]
fn a_crash_loop_makes_its_workload_stuck_though_it_runs_for_a_moment_each_time() {
    let crash = |restarts: u32| {
        let ended = json!({ "exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:04:00Z",
            "finishedAt": "2026-01-01T00:04:02Z" });
        let container = json!({ "name": "web", "ready": false, "restartCount": restarts,
            "state": { "waiting": { "reason": "CrashLoopBackOff" } }, "lastState": { "terminated": ended } });
        pod(
            "web-0",
            &json!({ "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{ "type": "Ready", "status": "False" }], "containerStatuses": [container] }),
        )
    };
    let told = |restarts: u32| {
        let found = worst_pod_cause(&[crash(restarts)], "web", &StuckLimits::default());
        let assessment = found.expect("it explains").assessment;
        assert_eq!(assessment.verdict.reason.to_string(), "waiting: CrashLoopBackOff");
        assessment.then.map(|then| (then.0.to_string(), then.1.level, then.1.reason.to_string()))
    };
    let stuck = ("2026-01-01T00:10:00Z".to_owned(), Level::Stuck);
    let words = "waiting: CrashLoopBackOff, without progress".to_owned();
    assert_eq!(told(4), Some((stuck.0, stuck.1, words)));
    assert_eq!(told(1), None);
}

#[test]
fn each_policy_has_its_own_limit_for_what_lies_below() {
    let below = lacking(&[3, 60]);
    let stuck = |found: &[Option<RefinedCause>]| -> Vec<String> {
        let then =
            |found: &Option<RefinedCause>| Some(found.as_ref()?.assessment.then.as_ref()?.0.to_string());
        found.iter().map(|found| then(found).unwrap_or_default()).map(|at| at[11..].to_owned()).collect()
    };
    let unscheduled = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "no node", "lastTransitionTime": "2026-01-01T00:00:05Z" }] });
    let mut born = pod("web-0", &unscheduled);
    born.facts.created = time::parse_rfc3339("2026-01-01T00:00:00Z");
    let (causes, lack) = below.explain_by_pods(&[born]);
    assert_eq!(stuck(&causes), ["00:03:00Z", "01:00:00Z"]);
    let denied = json!({ "items": [{ "involvedObject": { "uid": "r" }, "reason": "FailedCreate", "message": "quota",
        "source": { "component": "statefulset-controller" },
        "metadata": { "creationTimestamp": "2026-01-01T00:00:01Z" } }] });
    let lack = PodShortage { now: time::parse_rfc3339("2026-01-01T00:02:00Z").unwrap(), ..lack.unwrap() };
    assert_eq!(stuck(&below.explain_by_events(&denied, lack, vec![None, None])), ["00:03:01Z", "01:00:01Z"]);
    assert_eq!(stuck(&below.explain_by_events(&denied, lack, causes)), ["00:03:00Z", "01:00:00Z"]);
}

#[test]
fn selectors_are_written_as_the_api_reads_them() {
    let written = |selector: Value| serde_json::from_value(selector).ok().and_then(|s| selector_text(&s));
    let expressions = json!([
        { "key": "tier", "operator": "In", "values": ["a", "b"] },
        { "key": "old", "operator": "DoesNotExist" },
    ]);
    let all = json!({ "matchLabels": { "app": "web" }, "matchExpressions": expressions });
    assert_eq!(written(all), Some("app=web,tier in (a,b),!old".to_owned()));
    assert_eq!(written(json!({})), None, "an empty selector would select every pod");
}

#[test]
fn a_pod_is_that_of_a_workload_which_controls_it_and_selects_it_in_its_namespace() {
    let expressions = json!([
        { "key": "tier", "operator": "In", "values": ["a", "b"] },
        { "key": "track", "operator": "NotIn", "values": ["canary"] },
        { "key": "team", "operator": "Exists" },
        { "key": "old", "operator": "DoesNotExist" },
    ]);
    let selector = json!({ "matchLabels": { "app": "web" }, "matchExpressions": expressions });
    let labels = label_matcher(serde_json::from_value(selector).unwrap());
    let workload = UnreadyWorkload { namespace: "shop".to_owned(), labels, ..lacking(&[10]) };
    let has = |namespace: &str, controller: &str, labels: &str| {
        let labels = labels.split_whitespace().filter_map(|label| label.split_once('='));
        let labels: serde_json::Map<_, _> =
            labels.map(|(key, value)| (key.to_owned(), json!(value))).collect();
        let owner = json!({ "kind": "ReplicaSet", "name": controller, "uid": "r", "controller": true });
        let pod = json!({ "metadata": { "name": "web-0", "namespace": namespace, "labels": labels,
            "ownerReferences": [owner] } });
        let pod: Box<RawValue> = serde_json::from_value(pod).unwrap();
        workload.has_pod(&ChildObject::from_raw(&pod).meta)
    };
    for (namespace, controller, labels, expected) in [
        ("shop", "web-5d", "app=web tier=a team=x", true),
        ("shop", "web-5d", "app=web tier=b team=x track=stable", true),
        ("other", "web-5d", "app=web tier=a team=x", false),
        ("shop", "api-5d", "app=web tier=a team=x", false),
        ("shop", "web-api-5d", "app=web-api tier=a team=x", false),
        ("shop", "web-5d", "app=web tier=c team=x", false),
        ("shop", "web-5d", "app=web tier=a team=x track=canary", false),
        ("shop", "web-5d", "app=web tier=a", false),
        ("shop", "web-5d", "app=web tier=a team=x old=", false),
    ] {
        assert_eq!(has(namespace, controller, labels), expected, "{namespace} {controller} {labels}");
    }
}
