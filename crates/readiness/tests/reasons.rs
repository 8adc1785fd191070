//! Reasons, texts, moments and kinds: what each is called, to the letter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::time::Duration;

use readiness::{
    BoundedText, CountedUnit, CustomReason, FinalizerHold, Level, Reason, RuleKind, Time, TruthValue,
    Verdict, likely_holder,
};
use readiness::{
    condition_priority, is_count_field, is_current_field, is_part_state_field, is_pausing_annotation,
    is_state_field, is_state_field_within, millis_to_seconds, says_paused,
};

fn text() -> BoundedText {
    BoundedText::new("said")
}

#[test]
fn a_reason_has_one_token_and_one_line() {
    let held = FinalizerHold::new(Time(0), &["f".into()], &[]);
    let table = [
        (Reason::Ready, "Ready", "ready"),
        (Reason::Missing, "Missing", "does not exist"),
        (Reason::RuleCrashed, "RuleCrashed", "the rule that evaluates it crashed"),
        (
            Reason::RuleTooSlow,
            "RuleTooSlow",
            "its rule exceeded its limits several times in a row and is not evaluated for a while",
        ),
        (Reason::RuleAwaited, "RuleAwaited", "its rule has not evaluated it yet"),
        (
            Reason::RuleOverdue,
            "RuleTooSlow",
            "its rule is busy with other objects and has not evaluated it in time",
        ),
        (Reason::RuleOutOfDate, "RuleAwaited", "its rule reads the clock; not evaluated again yet"),
        (Reason::RuleChanged, "RuleChanged", "its rule changed; not evaluated again yet"),
        (Reason::OutcomeUnseen, "OutcomeUnseen", "gone, and its outcome was not observed"),
        (
            Reason::OutcomeHeardOf,
            "OutcomeUnseen",
            "gone; Events about it do not name its owner: its outcome was not observed",
        ),
        (Reason::RuleLimit(text()), "RuleLimit", "said"),
        (Reason::RuleFailed(text()), "RuleFailed", "said"),
        (Reason::ReplicaFailure(text()), "ReplicaFailure", "said"),
        (Reason::JobFailed(text()), "JobFailed", "said"),
        (Reason::Unschedulable(text()), "Unschedulable", "unschedulable: said"),
        (Reason::Pending(text()), "Pending", "pending: said"),
        (Reason::Waiting(text()), "ContainerWaiting", "waiting: said"),
        (Reason::ContainerFailed(text()), "ContainerFailed", "said"),
        (Reason::PodFailed(text()), "PodFailed", "said"),
        (
            Reason::Finalizers(Box::new(held)),
            "Finalizers",
            "finalizer f, terminating since 1970-01-01T00:00:00Z",
        ),
        (Reason::SaysFailed(text()), "SaysFailed", "said"),
        (Reason::SaysError(text()), "SaysError", "said"),
        (Reason::SaysProgressing(text()), "SaysProgressing", "said"),
        (Reason::SaysSuspended(text()), "SaysSuspended", "said"),
        (Reason::SaysTerminating(text()), "SaysTerminating", "said"),
        (Reason::SaysUnknown(text()), "SaysUnknown", "said"),
        (Reason::Count(CountedUnit::Created, 1, 2), "ReplicasNotCreated", "1 of 2 replicas created"),
        (Reason::Count(CountedUnit::Surplus, 1, 2), "ReplicasLeftOver", "1 of 2 replicas left over"),
        (Reason::Count(CountedUnit::Healthy, 1, 2), "BudgetNotMet", "1 of 2 pods healthy"),
        (
            Reason::NoProgress(Box::new(Reason::Count(CountedUnit::Ready, 1, 2))),
            "NoProgress",
            "1 of 2 replicas ready, without progress",
        ),
    ];
    for (reason, token, line) in table {
        assert_eq!(
            (reason.as_token(), reason.token().as_str(), reason.to_string().as_str()),
            (token, token, line)
        );
    }
}

#[test]
fn a_users_reason_keeps_its_token_but_not_in_metrics() {
    let custom = Reason::from_custom_rule("TooHot", "at 300 degrees");
    assert_eq!(
        (custom.as_token(), custom.token().as_str(), custom.to_string().as_str()),
        ("TooHot", "Custom", "at # degrees")
    );
    assert_eq!(Reason::from_custom_rule("TooHot", "").to_string(), "TooHot");
}

#[test]
fn the_cause_below_names_the_trouble_and_the_object_itself_decides_how_final_it_is() {
    let base = || Reason::Count(CountedUnit::Ready, 0, 1);
    let below = base().with_cause("Pod web-0", Reason::PodFailed(text()));
    assert_eq!(below.to_string(), "0 of 1 replicas ready; Pod web-0 said");
    assert_eq!(
        (below.as_token(), below.token().as_str(), below.is_terminal()),
        ("PodFailed", "PodFailed", false)
    );
    let failed = Reason::ProgressDeadlineExceeded.with_cause("Pod web-0", base());
    assert!(failed.is_terminal());
}

#[test]
fn only_the_apis_own_last_word_is_terminal_and_only_of_what_failed() {
    let terminal = [
        Reason::ProgressDeadlineExceeded,
        Reason::JobFailed(text()),
        Reason::PodFailed(text()),
        Reason::VolumeLost,
        Reason::SaysFailed(text()),
    ];
    for reason in terminal {
        assert!(reason.is_terminal(), "{reason:?}");
        assert!(Verdict::new(Level::Failed, reason.clone()).is_terminal());
        assert!(!Verdict::new(Level::Stuck, reason).is_terminal());
    }
    for reason in
        [Reason::SaysError(text()), Reason::ReplicaFailure(text()), Reason::LastRunFailed, Reason::Ready]
    {
        assert!(!reason.is_terminal(), "{reason:?}");
        assert!(!Verdict::new(Level::Failed, reason).is_terminal());
    }
}

#[test]
fn a_reason_weighs_what_hangs_on_it() {
    let of_text = size_of::<Box<str>>() + 4;
    assert_eq!(Reason::Ready.heap_size(), 0);
    assert_eq!(Reason::Count(CountedUnit::Ready, 1, 2).heap_size(), 0);
    assert_eq!(Reason::JobFailed(text()).heap_size(), of_text);
    assert_eq!(Reason::SaysUnknown(text()).heap_size(), of_text);
    assert_eq!(Reason::from_custom_rule("Token", "said").heap_size(), size_of::<CustomReason>() + 5 + 4);
    let stuck = Reason::NoProgress(Box::new(Reason::JobFailed(text())));
    assert_eq!(stuck.heap_size(), size_of::<Reason>() + of_text);
    let below = Reason::JobFailed(text()).with_cause("Pod a", Reason::from_custom_rule("Token", "said"));
    let parts = of_text + size_of::<CustomReason>() + 9;
    assert_eq!(below.heap_size(), 2 * size_of::<Reason>() + size_of::<Box<str>>() + "Pod a".len() + parts);
    let held = FinalizerHold::new(Time(0), &["f".into()], &[]);
    let words = held.to_string().len();
    assert_eq!(Reason::Finalizers(Box::new(held)).heap_size(), words);
}

#[test]
fn three_finalizers_are_named_and_the_rest_counted() {
    let held = |count: usize| {
        let names: Vec<Box<str>> = ["a", "b", "c", "d"][..count].iter().map(|name| (*name).into()).collect();
        FinalizerHold::new(Time(0), &names, &[]).to_string()
    };
    let since = "terminating since 1970-01-01T00:00:00Z";
    assert_eq!(held(1), format!("finalizer a, {since}"));
    assert_eq!(held(3), format!("finalizers a, b, c, {since}"));
    assert_eq!(held(4), format!("finalizers a, b, c and 1 more, {since}"));
}

#[test]
fn a_finalizer_is_named_up_to_96_bytes_and_by_who_set_it_alone() {
    let name: Box<str> = "x".repeat(97).into();
    let set = |by: &str| (name.clone(), by.into());
    let held = |setters: &[(Box<str>, Box<str>)]| {
        FinalizerHold::new(Time(0), std::slice::from_ref(&name), setters).to_string()
    };
    let cut = "x".repeat(96);
    let since = "terminating since 1970-01-01T00:00:00Z";
    assert_eq!(held(&[]), format!("finalizer {cut}, {since}"));
    assert_eq!(held(&[set("me")]), format!("finalizer {cut} (set by me), {since}"));
    assert_eq!(held(&[set("me"), set("me")]), format!("finalizer {cut} (set by me), {since}"));
    assert_eq!(held(&[set("me"), set("you")]), format!("finalizer {cut}, {since}"));
    assert_eq!(held(&[("y".into(), "me".into())]), format!("finalizer {cut}, {since}"));
}

#[test]
fn a_finalizer_by_name_goes_before_its_domain() {
    let waits = |name| likely_holder(name).map(|holder| holder.waits);
    let generic = Some("the Kubernetes controller of that name");
    assert_eq!(waits("kubernetes.io/pvc-protection"), Some("the last Pod that uses the claim"));
    assert_eq!(waits("kubernetes.io/other"), generic);
    assert_eq!(waits("x.kubernetes.io"), generic);
    assert_eq!(waits("orphan"), Some("its dependents, which are being orphaned"));
    assert_eq!(waits("orphan/x"), Some("its dependents, which are being orphaned"));
    assert_eq!(waits("xorphan"), None);
    assert_eq!(waits("kubernetes.io.example.com/x"), None);
}

#[test]
fn words_that_tick_are_left_out_and_others_stay() {
    let foreign = |text: &str| BoundedText::from_foreign(text).to_string();
    for word in ["5", "3/10", "1.5", "5m0s", "12:30:01", "2026-01-02T03:04:05Z", "1,000", "3+2"] {
        assert_eq!(foreign(&format!("({word})")), "(#)", "{word}");
    }
    for word in ["a5", "5x", "10.0.0.1", "v1", "-", "…", "1.2.3"] {
        assert_eq!(foreign(word), word, "{word}");
    }
    assert_eq!(foreign("1.2.3:80"), "#", "a moment with a fraction has colons");
    assert_eq!(foreign("90%, then"), "#%, then");
    assert_eq!(foreign("  a \n\t b  "), "a b");
    assert_eq!(foreign(&"ab ".repeat(80)).len(), 160);
    assert_eq!(foreign(&format!("{} b c", "a".repeat(158))), format!("{} b", "a".repeat(158)));
    assert_eq!(&*BoundedText::new("5s ago"), "5s ago", "our own words stay");
}

#[test]
fn a_span_between_moments_is_never_negative_and_never_overflows() {
    let second = Duration::from_secs(1);
    assert_eq!(Time(5_000) + second, Time(6_000));
    assert_eq!(Time(i64::MAX) + second, Time(i64::MAX));
    assert_eq!(Time(0) + Duration::MAX, Time(i64::MAX));
    assert_eq!(Time(6_000) - Time(5_000), second);
    assert_eq!(Time(5_000) - Time(6_000), Duration::ZERO);
    assert_eq!(Time(i64::MIN) - Time(i64::MAX), Duration::ZERO);
}

#[test]
fn every_day_follows_the_one_before() {
    // 800 years: two rounds of the calendar, the leap years that are none among them.
    let (mut year, mut month, mut day) = (1600, 1, 1);
    let first = -135_140_i64;
    for days in first..first + 2 * 146_097 {
        let expected = format!("{year:04}-{month:02}-{day:02}T00:00:00Z");
        assert_eq!(Time(days * 86_400_000).to_string(), expected);
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let length = match month {
            2 => 28 + i32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (year, month, day) = match (month, day == length) {
            (12, true) => (year + 1, 1, 1),
            (_, true) => (year, month + 1, 1),
            (_, false) => (year, month, day + 1),
        };
    }
}

#[test]
fn each_kind_of_kubernetes_has_its_table_in_its_own_group_only() {
    use RuleKind::{
        ApiService, CronJob, CustomResourceDefinition, DaemonSet, Deployment, EndpointSlice,
        HorizontalPodAutoscaler, Ingress, Job, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
        PodDisruptionBudget, ReplicaSet, Service, StatefulSet,
    };
    let table = [
        ("apps", "Deployment", Deployment),
        ("extensions", "Deployment", Deployment),
        ("apps", "StatefulSet", StatefulSet),
        ("apps", "DaemonSet", DaemonSet),
        ("apps", "ReplicaSet", ReplicaSet),
        ("", "ReplicationController", ReplicaSet),
        ("", "Pod", Pod),
        ("batch", "Job", Job),
        ("batch", "CronJob", CronJob),
        ("", "Service", Service),
        ("", "PersistentVolumeClaim", PersistentVolumeClaim),
        ("", "PersistentVolume", PersistentVolume),
        ("networking.k8s.io", "Ingress", Ingress),
        ("extensions", "Ingress", Ingress),
        ("autoscaling", "HorizontalPodAutoscaler", HorizontalPodAutoscaler),
        ("policy", "PodDisruptionBudget", PodDisruptionBudget),
        ("discovery.k8s.io", "EndpointSlice", EndpointSlice),
        ("", "Namespace", Namespace),
        ("", "Node", Node),
        ("apiregistration.k8s.io", "APIService", ApiService),
        ("apiextensions.k8s.io", "CustomResourceDefinition", CustomResourceDefinition),
    ];
    for (group, name, kind) in table {
        assert_eq!(RuleKind::from_group_kind(group, name), kind, "{group}/{name}");
        assert!(matches!(RuleKind::from_group_kind("x.io", name), RuleKind::Other | RuleKind::Run), "{name}");
        let pods = matches!(kind, Deployment | StatefulSet | DaemonSet | ReplicaSet | Job);
        assert_eq!(kind.owns_pods(), pods, "{name}");
    }
    for group in ["", "apps", "policy", "storage.k8s.io", "networking.k8s.io", "internal.apiserver.k8s.io"] {
        assert_eq!(RuleKind::from_group_kind(group, "Secret"), RuleKind::Plain, "{group}");
    }
    for group in ["storage", "x.k8s.io", "k8s.io", "storage.k8s.io.example.com"] {
        assert_eq!(RuleKind::from_group_kind(group, "Secret"), RuleKind::Other, "{group}");
    }
    for (name, kind) in [
        ("Job", RuleKind::Run),
        ("SparkjobX", RuleKind::Other),
        ("ScheduledJob", RuleKind::Other),
        ("Request", RuleKind::Other),
    ] {
        assert_eq!(RuleKind::from_group_kind("x.io", name), kind, "{name}");
    }
}

#[test]
fn a_truth_is_read_in_any_spelling() {
    let table = [
        (TruthValue::True, "True", "true TRUE Yes yes"),
        (TruthValue::False, "False", "false FALSE No no"),
        (TruthValue::Unknown, "Unknown", "unknown UNKNOWN"),
        (TruthValue::Absent, "absent", "1 on off y truee"),
    ];
    for (truth, word, spellings) in table {
        assert_eq!(truth.as_str(), word);
        for spelling in spellings.split(' ') {
            assert_eq!(TruthValue::from_text(spelling), truth, "{spelling}");
        }
    }
    assert_eq!([TruthValue::from(true), TruthValue::from(false)], [TruthValue::True, TruthValue::False]);
}

#[test]
fn a_field_tells_how_an_object_is_by_its_name() {
    let field = |ask: fn(&str) -> bool, yes: &str, no: &str| {
        for name in yes.split(' ') {
            assert!(ask(name), "{name}");
        }
        for name in no.split(' ') {
            assert!(!ask(name), "{name}");
        }
    };
    field(
        is_state_field,
        "phase state health databaseStatus conclusion robustness error errorMessage lastError lastOperationState ready available paused",
        "desiredState lastState previousPhase stateHistory currentVersion image lastErrorTime targetState readyVersion errorCode",
    );
    field(
        is_current_field,
        "phase lastOperation previousOperation",
        "lastPhase previousPhase specHash phaseHistory oldPhase history historyState",
    );
    field(
        is_count_field,
        "readyNodes nodes desiredPods totalShards size unavailable",
        "port version replica revision",
    );
    assert!(
        is_state_field_within("error", "message")
            && is_state_field_within("error", "reason")
            && is_state_field_within("x", "phase")
    );
    assert!(!is_state_field_within("x", "message") && !is_state_field_within("error", "code"));
    assert_eq!(
        ["Ready", "Synced", "DatabaseReady", "Degraded", "Blue"].map(condition_priority),
        [3, 2, 1, 1, 0]
    );
    assert_eq!(["ReadyToUse", "AllNodesReady", "Scheduled", "Created"].map(condition_priority), [3, 2, 1, 1]);
}

#[test]
fn an_annotation_pauses_by_its_name_behind_a_domain_and_by_its_value() {
    for (key, pausing) in [
        ("example.com/paused", true),
        ("paused", false),
        ("example.com/owner", false),
        ("example.com/last-applied", false),
    ] {
        assert_eq!(is_pausing_annotation(key), pausing, "{key}");
    }
    for (key, value, pauses) in [
        ("example.com/paused", "True", true),
        ("example.com/paused", "", true),
        ("example.com/paused", "false", false),
        ("example.com/suspend", "1", true),
        ("example.com/suspend", "", false),
        ("example.com/reconciliationLoop", "Disabled", true),
        ("example.com/reconciliation", "true", false),
        ("example.com/owner", "true", false),
    ] {
        assert_eq!(says_paused(key, value), pauses, "{key}={value}");
    }
}

#[test]
fn seconds_of_a_metric_have_the_sign_of_what_they_measure() {
    let shown = [1_500, 0, -1_500].map(|millis| millis_to_seconds(millis).to_string());
    assert_eq!(shown, ["1.5", "0", "-1.5"]);
}

#[test]
fn a_state_is_that_of_a_part_unless_it_is_about_the_past() {
    for (path, field, of_a_part) in [
        ("nodes", "state", true),
        ("nodes[0]", "phase", true),
        ("nodes[0].disks", "health", true),
        ("nodes[0]", "name", false),
        ("events", "state", false),
        ("nodes[0].events", "state", false),
        ("events[0].nodes", "state", false),
        ("nodes", "lastState", false),
    ] {
        assert_eq!(is_part_state_field(path, field), of_a_part, "{path} {field}");
    }
}
