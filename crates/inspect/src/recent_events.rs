//! Latest Events about an object.

use serde::Serialize;
use serde_json::Value;

/// Maximum number of Events shown.
const MAX_RECENT_EVENTS: usize = 5;

/// One Event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentEvent {
    /// Time of the last occurrence.
    pub at: String,
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// Reason, in CamelCase.
    pub reason: String,
    /// Kind and name of the object, as in `Pod web-0`.
    pub about: String,
    /// Reporting component.
    pub from: String,
    /// Message.
    pub message: String,
    /// Number of occurrences, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Latest of these Events, newest first.
pub fn latest_events(events: &[Value]) -> Vec<RecentEvent> {
    let mut all: Vec<RecentEvent> = events.iter().map(parse_event).collect();
    all.sort_by(|a, b| (&b.at, &a.about, &a.reason).cmp(&(&a.at, &b.about, &b.reason)));
    all.truncate(MAX_RECENT_EVENTS);
    all
}

fn parse_event(event: &Value) -> RecentEvent {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let series = &event["series"];
    let moments =
        [&series["lastObservedTime"], &event["lastTimestamp"], &event["eventTime"], &event["firstTimestamp"]];
    let created = &event["metadata"]["creationTimestamp"];
    let at = moments.into_iter().chain([created]).find_map(Value::as_str).unwrap_or_default();
    let from = [&event["source"]["component"], &event["reportingComponent"]];
    let about = &event["involvedObject"];
    RecentEvent {
        // Some timestamps have microseconds; users read seconds.
        at: at.split_once('.').map_or_else(|| at.to_owned(), |(second, _)| format!("{second}Z")),
        r#type: text(&event["type"]),
        reason: text(&event["reason"]),
        about: format!("{} {}", text(&about["kind"]), text(&about["name"])),
        from: from
            .into_iter()
            .filter_map(Value::as_str)
            .find(|from| !from.is_empty())
            .unwrap_or_default()
            .to_owned(),
        message: text(&event["message"]),
        count: series["count"].as_u64().or_else(|| event["count"].as_u64()).filter(|count| *count > 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_comes_first_whichever_field_says_when() {
        let old = json!({ "reason": "Old", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1 });
        let new =
            json!({ "reason": "New", "eventTime": "2026-01-01T00:00:02.123456Z", "lastTimestamp": null });
        let again = json!({ "reason": "Again", "eventTime": "2026-01-01T00:00:00.5Z",
            "series": { "count": 7, "lastObservedTime": "2026-01-01T00:00:01.9Z" } });
        let told: Vec<_> =
            latest_events(&[old, new, again]).into_iter().map(|e| (e.reason, e.at, e.count)).collect();
        assert_eq!(told[0], ("New".to_owned(), "2026-01-01T00:00:02Z".to_owned(), None));
        assert_eq!(told[1], ("Again".to_owned(), "2026-01-01T00:00:01Z".to_owned(), Some(7)));
        assert_eq!(told[2].0, "Old");
    }
}
