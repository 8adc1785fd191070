//! What Events tell of the operators of a cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parent_evidence::ParentEvidence;

/// Number of Events that are read.
const MAX_EVENTS: usize = 500;
/// Number of reasons that are named.
const MAX_REASONS: usize = 3;
/// Reason under which Kopf posts how its handlers end.
const KOPF_LOG: &str = "Logging";
/// Rollcall's own Events say nothing of an operator.
const OWN_REPORTER: &str = "rollcall.dev/controller";

/// Group and kind of what an Event is about.
type EventSubject = (String, String);

/// Events of a cluster, or of a namespace, by what they are about.
#[derive(Debug, Default)]
pub(super) struct PostedEvents {
    /// Number of Warnings by their reason.
    warnings: BTreeMap<EventSubject, BTreeMap<String, usize>>,
    kopf_logs: BTreeMap<EventSubject, usize>,
}

impl PostedEvents {
    /// Reads some Events, with the rights of the caller.
    pub(super) async fn read(client: &kube::Client, namespace: Option<&str>) -> Result<PostedEvents, String> {
        let scope = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
        let path = format!("/api/v1{scope}/events?limit={MAX_EVENTS}");
        let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
        let list = client.request::<Value>(request).await.map_err(watcher::error_text)?;
        let mut events = PostedEvents::default();
        for event in list["items"].as_array().into_iter().flatten() {
            events.add_event(event);
        }
        Ok(events)
    }

    fn add_event(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["involvedObject"];
        let version = text(&about["apiVersion"]);
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let subject = (group.to_owned(), text(&about["kind"]));
        let reason = text(&event["reason"]);
        if reason == KOPF_LOG {
            *self.kopf_logs.entry(subject).or_default() += 1;
        } else if event["type"] == "Warning" && event["reportingComponent"] != OWN_REPORTER {
            *self.warnings.entry(subject).or_default().entry(reason).or_default() += 1;
        }
    }

    /// What they tell of a kind of parents, one sentence each.
    pub(super) fn describe(&self, group: &str, kind: &str, seen: &ParentEvidence) -> Vec<String> {
        let subject = (group.to_owned(), kind.to_owned());
        let mut said = Vec::new();
        if seen.kopf_marks > 0 {
            said.push(match (self.kopf_logs.contains_key(&subject), seen.kopf_outcomes > 0) {
                (_, true) => "its Kopf operator keeps how its handlers ended: a failure is told".to_owned(),
                (true, false) => {
                    "its Kopf operator posts how its handlers end: with evidence kopf a failure is told"
                        .to_owned()
                }
                (false, false) => {
                    "nothing shows whether the handlers of its Kopf operator succeed: a `proof`, or the \
                                   module of deploy/examples/kopf, would"
                        .to_owned()
                }
            });
        }
        if let Some(reasons) = self.warnings.get(&subject) {
            let mut counted: Vec<_> = reasons.iter().map(|(reason, count)| (*count, reason)).collect();
            counted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            let named = counted.iter().take(MAX_REASONS).map(|(count, reason)| format!("{reason} ({count})"));
            said.push(format!(
                "Events warn of some: {}; a policy tells what their status and their children say, not what Events do",
                named.collect::<Vec<_>>().join(", ")
            ));
        }
        said
    }
}
