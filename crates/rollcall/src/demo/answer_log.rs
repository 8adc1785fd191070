//! The parent's conditions, as any watch through the API server sees them.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;

use super::fixtures::{DEMO_NAMESPACE, SHOP};

/// Delay before reopening a watch that could not be opened.
const REWATCH_PAUSE: Duration = Duration::from_millis(100);

/// One state of the parent's conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DemoAnswer {
    /// `status` of its Ready condition; empty if it has none.
    pub(super) status: String,
    /// `reason` of its Ready condition.
    pub(super) reason: String,
    /// `message` of its Ready condition.
    pub(super) message: String,
    /// Those of `Reconciling` and `Stalled` that were True at the time.
    pub(super) other_conditions: Vec<String>,
}

/// Every state of the parent's conditions in order, without repetitions.
pub(super) type AnswerLog = watch::Receiver<Vec<DemoAnswer>>;

impl DemoAnswer {
    /// Watches the parent for as long as the log is held.
    pub(super) fn watch_answers(client: kube::Client) -> AnswerLog {
        let (log, answers) = watch::channel(Vec::new());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = log.closed() => return,
                    _ = follow_shop(&client, &log) => tokio::time::sleep(REWATCH_PAUSE).await,
                }
            }
        });
        answers
    }

    /// Reads the conditions of this object.
    pub(super) fn from_object(object: &Value) -> DemoAnswer {
        let entries = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let beside = ["Reconciling", "Stalled"]
            .into_iter()
            .filter(|kind| entries.iter().any(|e| e["type"].as_str() == Some(kind) && e["status"] == "True"));
        let beside = beside.map(str::to_owned).collect();
        let ready = entries.iter().find(|e| e["type"] == "Ready").unwrap_or(&Value::Null);
        let [status, reason, message] = ["status", "reason", "message"].map(|field| text(ready, field));
        DemoAnswer { status, reason, message, other_conditions: beside }
    }
}

async fn follow_shop(client: &kube::Client, log: &watch::Sender<Vec<DemoAnswer>>) -> Result<(), kube::Error> {
    let kind = ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: SHOP.api.to_owned(),
        kind: SHOP.kind.to_owned(),
        plural: "shops".to_owned(),
    };
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), DEMO_NAMESPACE, &kind);
    let only = WatchParams::default().fields(&format!("metadata.name={}", SHOP.name));
    let mut events = api.watch(&only, "0").await?.boxed();
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(shop) | WatchEvent::Modified(shop) = event
            && let Ok(object) = serde_json::to_value(&shop)
        {
            let answer = DemoAnswer::from_object(&object);
            log.send_if_modified(|log| {
                let is_new = log.last() != Some(&answer);
                if is_new {
                    log.push(answer);
                }
                is_new
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_parent_without_conditions_says_nothing() {
        assert_eq!(DemoAnswer::from_object(&json!({})).status, "");
        assert_eq!(DemoAnswer::from_object(&json!({ "status": true })).reason, "");
    }

    #[test]
    fn conditions_beside_ready_are_named_while_they_are_true() {
        let answer = DemoAnswer::from_object(&json!({ "status": { "conditions": [
            { "type": "Ready", "status": "False", "reason": "ChildrenStuck", "message": "1 of 2 not ready" },
            { "type": "Stalled", "status": "True" },
            { "type": "Reconciling", "status": "False" },
        ] } }));
        assert_eq!((answer.status.as_str(), answer.reason.as_str()), ("False", "ChildrenStuck"));
        assert_eq!(answer.other_conditions, ["Stalled"]);
    }
}
