//! What the parent says, as anybody sees it who watches it through the API server.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;

use super::cast::{NAMESPACE, SHOP};

/// After a watch could not be opened.
const PAUSE: Duration = Duration::from_millis(100);

/// What it said once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// `status` of its Ready condition; empty where it has none.
    pub(super) status: String,
    /// `reason`.
    pub(super) reason: String,
    /// `message`.
    pub(super) message: String,
    /// Which of `Reconciling` and `Stalled` were True beside it.
    pub(super) beside: Vec<String>,
}

/// Everything it said, in order, each thing once.
pub(super) type Log = watch::Receiver<Vec<Said>>;

impl Said {
    /// Listens for as long as the log is held.
    pub(super) fn listen(client: kube::Client) -> Log {
        let (log, heard) = watch::channel(Vec::new());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = log.closed() => return,
                    _ = follow(&client, &log) => tokio::time::sleep(PAUSE).await,
                }
            }
        });
        heard
    }

    /// What this object says.
    pub(super) fn read(object: &Value) -> Said {
        let entries = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let beside = ["Reconciling", "Stalled"]
            .into_iter()
            .filter(|kind| entries.iter().any(|e| e["type"].as_str() == Some(kind) && e["status"] == "True"));
        let beside = beside.map(str::to_owned).collect();
        let ready = entries.iter().find(|e| e["type"] == "Ready").unwrap_or(&Value::Null);
        let [status, reason, message] = ["status", "reason", "message"].map(|field| text(ready, field));
        Said { status, reason, message, beside }
    }
}

async fn follow(client: &kube::Client, log: &watch::Sender<Vec<Said>>) -> Result<(), kube::Error> {
    let kind = ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: SHOP.api.to_owned(),
        kind: SHOP.kind.to_owned(),
        plural: "shops".to_owned(),
    };
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &kind);
    let only = WatchParams::default().fields(&format!("metadata.name={}", SHOP.name));
    let mut events = api.watch(&only, "0").await?.boxed();
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(shop) | WatchEvent::Modified(shop) = event
            && let Ok(object) = serde_json::to_value(&shop)
        {
            let said = Said::read(&object);
            log.send_if_modified(|log| {
                let news = log.last() != Some(&said);
                if news {
                    log.push(said);
                }
                news
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
        assert_eq!(Said::read(&json!({})).status, "");
        assert_eq!(Said::read(&json!({ "status": true })).reason, "");
    }

    #[test]
    fn conditions_beside_ready_are_named_while_they_are_true() {
        let said = Said::read(&json!({ "status": { "conditions": [
            { "type": "Ready", "status": "False", "reason": "ChildrenStuck", "message": "1 of 2 not ready" },
            { "type": "Stalled", "status": "True" },
            { "type": "Reconciling", "status": "False" },
        ] } }));
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "ChildrenStuck"));
        assert_eq!(said.beside, ["Stalled"]);
    }
}
