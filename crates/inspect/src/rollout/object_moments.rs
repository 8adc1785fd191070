//! When things happened to an object, by its own fields.

use readiness::Time;
use serde_json::Value;

use crate::field_managers::field_managers;

/// Reads a timestamp.
pub(super) fn moment(value: &Value) -> Option<Time> {
    Time::from_rfc3339(value.as_str()?)
}

/// Time since which an object that is ready has been so.
pub(super) fn told_since(object: &Value) -> Option<Time> {
    let status = &object["status"];
    if let Some(end) = moment(&status["completionTime"]) {
        return Some(end);
    }
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    // The end of a Deployment's last rollout; its condition `Available` may be older.
    let rolled_out =
        conditions().find(|c| c["type"] == "Progressing" && c["reason"] == "NewReplicaSetAvailable");
    if let Some(at) = rolled_out.and_then(|condition| moment(&condition["lastUpdateTime"])) {
        return Some(at);
    }
    let says = ["Ready", "Available", "Complete", "Succeeded", "Established"];
    let said =
        says.iter().find_map(|name| conditions().find(|c| c["type"] == *name && c["status"] == "True"));
    if let Some(at) = said.and_then(|condition| moment(&condition["lastTransitionTime"])) {
        return Some(at);
    }
    let ended = status["containerStatuses"].as_array()?.iter();
    ended
        .map(|container| moment(&container["state"]["terminated"]["finishedAt"]))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .max()
}

/// Time at which the spec of the current generation was written: that of the creation, or of the last write of a manager of
/// the spec.
pub fn spec_changed_at(object: &Value) -> Option<Time> {
    let created = moment(&object["metadata"]["creationTimestamp"]);
    if object["metadata"]["generation"].as_i64().is_none_or(|generation| generation <= 1) {
        return created;
    }
    let wrote = field_managers(object)
        .filter(|manager| manager.subresource.is_empty() && manager.owns_path(&["f:spec"]))
        .filter_map(|manager| Time::from_rfc3339(manager.time));
    wrote.max().or(created)
}

/// Time at which the rollout of a group began whose members these are: its own generation does not change with them. What a
/// controller makes of a member is no change of the group.
pub fn members_changed_at(group: &Value, members: &[Value]) -> Option<Time> {
    members.iter().filter_map(member_changed_at).chain(spec_changed_at(group)).max()
}

/// Time at which the spec of a member was written; `None` of what a controller made.
pub fn member_changed_at(member: &Value) -> Option<Time> {
    let mut owners = member["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    if owners.any(|owner| owner["controller"] == true) { None } else { spec_changed_at(member) }
}

/// Time at which this condition became True for the current generation.
pub fn told_ready_at(object: &Value, condition: &str) -> Option<Time> {
    let conditions = object["status"]["conditions"].as_array()?;
    let told = conditions.iter().find(|told| told["type"] == condition && told["status"] == "True")?;
    let is_current = told["observedGeneration"].is_null()
        || told["observedGeneration"] == object["metadata"]["generation"];
    moment(&told["lastTransitionTime"]).filter(|_| is_current)
}
