//! `suggest` on what real operators have left of their objects: `operators/README.md` says how that was recorded.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cluster::{LiveCluster, OWN_NAMESPACE, condition, done};
use super::operator_recording::OperatorRecording;
use super::service::{RunningService, until};

/// All that is suggested for what an operator has left. A `?` follows a kind of children that may be missing.
const SUGGESTED: [(&str, &str); 5] = [
    (
        "kuberay",
        "\
RayCluster: Pod Service
- 5 of 5 say which generation their operator has observed: it is waited for
- by this policy 5 of 5 are ready now
- its definition lacks the default by which a new object does not look ready at its first read: rollcall crd-defaults
RayJob: Service Job RayCluster
- its operator does not say which generation it has handled: `settle` decides, and a `proof` would be better
- by this policy 1 of 2 are ready now
- 1 of 2 say of themselves that they have failed, and so does this policy: kuberay/fails-job: jobDeploymentStatus Failed: AppFailed
- its definition has status.observedGeneration, which none carries of its operator's: an operator that writes it is waited for
- its definition drops status.conditions, so that nothing can be written there before it declares them
RayService:
- not all own Service, and those that do not say that they are not ready: it is expected of them too
- its operator writes Ready itself, which is left to it
- 2 of 2 say which generation their operator has observed: it is waited for
left out: it says Ready itself, and not of the 1 whose children are not",
    ),
    (
        "mongodb",
        "\
MongoDBCommunity: Service StatefulSet
- it owns Secret too, which have no readiness of their own
- not all own Service, StatefulSet, and those that do not say that they are not ready: it is expected of them too
- its operator does not say which generation it has handled: `settle` decides, and a `proof` would be better
- by this policy 1 of 3 are ready now
- 1 of 3 say of themselves that they have failed, and so does this policy: mongodb/fails: phase Failed
- its definition drops status.conditions, so that nothing can be written there before it declares them",
    ),
    (
        "prometheus-operator",
        "\
Alertmanager: Service StatefulSet
- it owns Secret too, which have no readiness of their own
- not all own Service, StatefulSet, and those that do not say that they are not ready: it is expected of them too
- 3 of 3 say which generation their operator has observed: it is waited for
- by this policy 1 of 3 are ready now
- 2 of 3 say of themselves that they have failed, and so does this policy: prometheus-operator/breaks: Reconciled=False: \
ReconciliationFailed
- its definition has no room for the default by which a new object does not look ready at its first read: its status requires \
`availableReplicas`, so an object could not be created with a default status: make it optional or give it a default, and 4 more \
like it
Prometheus: Service StatefulSet
- it owns ConfigMap, Secret too, which have no readiness of their own
- 2 of 2 say which generation their operator has observed: it is waited for
- by this policy 1 of 2 are ready now
- its definition has no room for the default by which a new object does not look ready at its first read: its status requires \
`availableReplicas`, so an object could not be created with a default status: make it optional or give it a default, and 4 more \
like it
ThanosRuler: Service StatefulSet
- it owns ConfigMap, Secret too, which have no readiness of their own
- 1 of 1 say which generation their operator has observed: it is waited for
- by this policy 1 of 1 are ready now
- its definition has no room for the default by which a new object does not look ready at its first read: its status requires \
`availableReplicas`, so an object could not be created with a default status: make it optional or give it a default, and 4 more \
like it",
    ),
    (
        // Of WebApp nothing is said: its instances own nothing by reference.
        "kro",
        "\
ResourceGraphDefinition:
- not all own GraphRevision, and those that do not say that they are not ready: it is expected of them too
- its operator writes Ready itself, which is left to it
- 2 of 2 say which generation their operator has observed: it is waited for
- its status belongs to another controller: it is never written
left out: it says Ready itself, and not of the 1 whose children are not",
    ),
    (
        "training-operator",
        "\
PyTorchJob:
- its operator does not say which generation it has handled: `settle` decides, and a `proof` would be better
left out: 1 of 3 say of themselves that they are not ready while all that they own is: training-operator/runs: Created: \
PyTorchJobCreated; it is ready when it has ended, which what it owns does not tell",
    ),
];

/// What the policies say of the operators' objects, and what these say themselves.
const JUDGED: [(&str, &str); 3] = [
    (
        "kuberay",
        "\
RayCluster fails-job: Ready, and it says Well
RayCluster fails-serve: Ready, and it says Well
RayCluster works: Ready, and it says Well
RayCluster works-job: Ready, and it says Well
RayCluster works-serve: Ready, and it says Well
RayJob fails-job: Failed, and it says Failed
RayJob works-job: Ready, and it says Well",
    ),
    (
        "mongodb",
        "\
MongoDBCommunity fails: Failed, and it says Failed
MongoDBCommunity works: Ready, and it says Well
MongoDBCommunity waits: Progressing, and it says NotYet",
    ),
    (
        "prometheus-operator",
        "\
Alertmanager breaks: Failed, and it says Failed
Alertmanager fails: Failed, and it says Failed
Alertmanager works: Ready, and it says Well
Prometheus waits: Progressing, and it says NotYet
Prometheus works: Ready, and it says Well
ThanosRuler works: Ready, and it says Well",
    ),
];

/// What the operator says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnWord {
    Well,
    NotYet,
    Failed,
}

/// What an operator says of an object of its own, by its documentation.
fn own_word(object: &Value) -> OwnWord {
    let status = &object["status"];
    let is_true = |kind: &str| condition(object, kind)["status"] == "True";
    let (is_well, has_failed) = match object["kind"].as_str().unwrap() {
        "RayCluster" => (status["state"] == "ready", status["state"] == "failed"),
        "RayJob" => (status["jobStatus"] == "SUCCEEDED", status["jobStatus"] == "FAILED"),
        "RayService" => (is_true("Ready"), object["status"].to_string().contains("DEPLOY_FAILED")),
        "MongoDBCommunity" => (status["phase"] == "Running", status["phase"] == "Failed"),
        "Prometheus" | "Alertmanager" | "ThanosRuler" => (
            is_true("Available") && is_true("Reconciled"),
            condition(object, "Reconciled")["reason"] == "ReconciliationFailed",
        ),
        "ResourceGraphDefinition" => (is_true("Ready"), status["state"] == "Inactive"),
        "PyTorchJob" => (is_true("Succeeded"), is_true("Failed")),
        kind => panic!("who says how a {kind} is?"),
    };
    match (is_well, has_failed) {
        (_, true) => OwnWord::Failed,
        (true, false) => OwnWord::Well,
        (false, false) => OwnWord::NotYet,
    }
}

/// A cluster as an operator has left it, with the policies that are suggested for it.
struct SuggestedCluster {
    cluster: LiveCluster,
    recording: OperatorRecording,
    suggestions: Vec<Value>,
}

impl SuggestedCluster {
    async fn start(operator: &str, test: &str) -> SuggestedCluster {
        let recording = OperatorRecording::read(operator);
        let cluster = recording.restore(&format!("{test}-{operator}")).await;
        let (code, out, err) = rollcall(&cluster, &["suggest", "-o", "json"]).await;
        assert_eq!((code, &*err), (Some(0), ""), "{operator}: {out}");
        let suggestions = serde_json::from_str(&out).unwrap();
        SuggestedCluster { cluster, recording, suggestions }
    }

    fn policies(&self) -> impl Iterator<Item = &Value> {
        self.suggestions.iter().map(|one| &one["policy"]).filter(|policy| !policy.is_null())
    }

    /// Writes the policies into a file, as `suggest` prints them.
    async fn policy_file(&self) -> String {
        let (_, out, err) = rollcall(&self.cluster, &["suggest"]).await;
        assert_eq!(err, "");
        self.cluster.text_file("suggested.yaml", &out)
    }

    /// The objects of the kinds that have a policy.
    fn parents(&self) -> impl Iterator<Item = &Value> {
        let is_parent = |object: &&Value| {
            let api = object["apiVersion"].as_str().unwrap();
            self.policies().any(|policy| {
                let parent = &policy["spec"]["parent"];
                parent["kind"] == object["kind"] && api.starts_with(parent["group"].as_str().unwrap())
            })
        };
        self.recording.objects.iter().filter(is_parent)
    }

    /// The same as the server has them now.
    fn stored_parents(&self) -> Vec<Value> {
        let store = self.cluster.server.lock_store();
        let stored = self.parents().map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (api, kind, meta) = (&object["apiVersion"], &object["kind"], &object["metadata"]);
            let [api, kind, namespace, name] = [api, kind, &meta["namespace"], &meta["name"]].map(text);
            (*store.get(&api, &kind, &namespace, &name).unwrap()).clone()
        });
        stored.collect()
    }
}

async fn rollcall(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

/// A suggestion in a few lines.
fn in_short(suggestion: &Value) -> String {
    let spec = &suggestion["policy"]["spec"];
    let mut first = format!("{}:", suggestion["kind"].as_str().unwrap());
    for child in spec["children"].as_array().into_iter().flatten() {
        let may_be_missing = if child["expect"]["min"] == 0 { "?" } else { "" };
        first.extend([" ", child["kind"]["kind"].as_str().unwrap(), may_be_missing]);
    }
    if let Some(kind) = spec["condition"]["type"].as_str() {
        first.extend([" -> ", kind]);
    }
    let evidence = suggestion["evidence"].as_array().unwrap().iter();
    let evidence = evidence.map(|line| format!("- {}", line.as_str().unwrap()));
    let left_out = suggestion["leftOut"].as_str().map(|why| format!("left out: {why}"));
    [first].into_iter().chain(evidence).chain(left_out).collect::<Vec<_>>().join("\n")
}

/// The verdicts of all parents in these trees, by kind and name.
fn verdicts(trees: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for node in trees.as_array().unwrap() {
        found.extend(verdicts(&node["children"]));
        if node["policy"] != "" {
            let text = |field: &str| node[field].as_str().unwrap();
            found.insert(format!("{} {}", text("kind"), text("name")), text("verdict").to_owned());
        }
    }
    found
}

fn address(kind: &str, object: &Value) -> String {
    format!("{kind} {}", object["metadata"]["name"].as_str().unwrap())
}

/// An address without what the server made up for its name.
fn without_suffix(address: &str) -> &str {
    match address.rsplit_once('-') {
        Some((given, made_up)) if made_up.len() == 5 && made_up != "serve" => given,
        _ => address,
    }
}

#[tokio::test]
async fn each_kind_of_a_real_operator_gets_a_policy_or_the_reason_why_not() {
    for (operator, expected) in SUGGESTED {
        let suggested = SuggestedCluster::start(operator, "suggested").await;
        let shown: Vec<_> = suggested.suggestions.iter().map(in_short).collect();
        assert_eq!(shown.join("\n"), expected, "{operator}");
    }
}

#[tokio::test]
async fn no_suggested_policy_contradicts_the_operator_of_its_objects() {
    for (operator, expected) in JUDGED {
        let suggested = SuggestedCluster::start(operator, "judged").await;
        let file = suggested.policy_file().await;
        let (code, out, err) = rollcall(&suggested.cluster, &["check", "-f", &file]).await;
        assert_eq!(code, Some(0), "{operator}: {out}{err}");
        let (_, out, err) = rollcall(&suggested.cluster, &["tree", "-A", "-f", &file, "-o", "json"]).await;
        let verdicts = verdicts(&serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")));
        let mut lines = Vec::new();
        for object in suggested.parents() {
            let (address, word) = (address(object["kind"].as_str().unwrap(), object), own_word(object));
            let verdict = &verdicts[&address];
            assert_eq!(
                verdict == "Ready",
                word == OwnWord::Well,
                "{address}: {verdict}, and it says {word:?}"
            );
            lines.push(format!("{}: {verdict}, and it says {word:?}", without_suffix(&address)));
        }
        assert_eq!(lines.join("\n"), expected, "{operator}");
    }
}

/// The reason of each parent that is not ready, by policy and name.
fn unready_reasons(service: &RunningService) -> BTreeMap<String, String> {
    let text = service.get("/metrics");
    let series = text.lines().filter(|line| line.starts_with("rollcall_parent_not_ready_info{"));
    let label = |line: &str, name: &str| {
        let (_, after) = line.split_once(&format!("{name}=\"")).unwrap();
        after.split_once('"').unwrap().0.to_owned()
    };
    let reasons = series.map(|line| (label(line, "{name"), label(line, ",policy"), label(line, ",reason")));
    reasons.map(|(name, policy, reason)| (format!("{policy} {name}"), reason)).collect()
}

/// The service itself, under the policies as they are suggested, says of each parent what its operator says, also of those that have
/// failed, and writes nothing. Held against a condition in which an operator tells less, it disagrees.
#[tokio::test(flavor = "multi_thread")]
async fn in_shadow_mode_the_service_says_of_each_parent_what_its_operator_says() {
    let mut services = Vec::new();
    for (operator, _) in JUDGED {
        let suggested = SuggestedCluster::start(operator, "shadow").await;
        let cluster = &suggested.cluster;
        cluster.install();
        for policy in suggested.policies() {
            let mut policy = policy.clone();
            if operator == "prometheus-operator" {
                policy["spec"]["condition"] = json!({ "type": "Available" });
            }
            cluster.create(&policy);
        }
        let before = suggested.stored_parents();
        let service = RunningService::start(cluster, &["--records-namespace", OWN_NAMESPACE], &[]);
        services.push((operator, before, suggested, service));
    }
    for (operator, before, suggested, service) in &services {
        let words = suggested.parents().map(|parent| {
            let kind = parent["kind"].as_str().unwrap();
            let is_of_kind = |policy: &&Value| policy["spec"]["parent"]["kind"] == kind;
            let policy = suggested.policies().find(is_of_kind).unwrap()["metadata"]["name"].as_str().unwrap();
            (address(policy, parent), own_word(parent))
        });
        let words: BTreeMap<String, OwnWord> = words.collect();
        let well = words.values().filter(|word| **word == OwnWord::Well).count();
        until(&format!("{operator}: {well} are ready"), || {
            service.metric("rollcall_parents{", "verdict=\"Ready\"") == u64::try_from(well).unwrap()
        });
        let reasons = unready_reasons(service);
        for (parent, word) in &words {
            let expected = match word {
                OwnWord::Well => None,
                OwnWord::NotYet => Some("ChildrenProgressing"),
                OwnWord::Failed => Some("OperatorFailed"),
            };
            assert_eq!(reasons.get(parent).map(String::as_str), expected, "{operator}: {parent}");
        }
        // An Alertmanager that is available still, and of which the next generation is refused.
        let disagreeing = u64::from(*operator == "prometheus-operator");
        assert_eq!(service.metric("rollcall_shadow_disagreements{", ""), disagreeing, "{operator}");
        assert_eq!(&suggested.stored_parents(), before, "{operator}");
    }
}
