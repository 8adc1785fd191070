//! What operators of others have left of their objects, as `operators/` keeps it.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use watcher::status::time::parse_rfc3339;

use super::cluster::LiveCluster;

/// A cluster as an operator has left it.
pub(crate) struct OperatorRecording {
    pub(crate) objects: Vec<Value>,
    crds: Vec<Value>,
    /// When it was recorded, in ms since the epoch.
    recorded_at: i64,
}

impl OperatorRecording {
    /// Reads the recording of this operator.
    pub(crate) fn read(operator: &str) -> OperatorRecording {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/operators/recordings");
        let text = std::fs::read_to_string(folder.join(format!("{operator}.json"))).unwrap();
        let recording: Value = serde_json::from_str(&text).unwrap();
        let list = |field: &str| recording[field].as_array().unwrap().clone();
        let recorded_at = parse_rfc3339(recording["recordedAt"].as_str().unwrap()).unwrap().0;
        OperatorRecording { objects: list("objects"), crds: list("crds"), recorded_at }
    }

    /// Starts a cluster in which it is the moment of the recording: what was so for a minute then has been so for a minute.
    pub(crate) async fn restore(&self, name: &str) -> LiveCluster {
        let cluster = LiveCluster::start(name).await;
        self.crds.iter().for_each(|crd| _ = cluster.create(crd));
        let now = cluster.server.now();
        for object in &self.objects {
            let object = later(object, now - self.recorded_at);
            cluster.server.lock_store().restore_object(now, object).unwrap();
        }
        cluster
    }
}

/// The value with all its times later by so many ms.
fn later(value: &Value, by: i64) -> Value {
    match value {
        Value::Array(all) => all.iter().map(|one| later(one, by)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, one)| (name.clone(), later(one, by))).collect(),
        Value::String(text) => {
            parse_rfc3339(text).map_or_else(|| value.clone(), |at| time_text(at.0 + by).into())
        }
        other => other.clone(),
    }
}

fn time_text(at: i64) -> String {
    let since = Duration::from_millis(at.unsigned_abs());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}
