//! Live reads by which the deletion of a policy is confirmed.

use watcher::wire::ChildObject;
use watcher::{ApiFailureCause, ApiKind, LiveReadError, ParentObject, error_text, get_live, get_live_head};

use super::watched_kinds::policy_kind;

/// Name of the definition of policies.
const POLICY_DEFINITION: &str = "readinesspolicies.rollcall.dev";

/// CustomResourceDefinition, as it is served.
fn definition_kind() -> ApiKind {
    ApiKind {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        kind: "CustomResourceDefinition".into(),
        plural: "customresourcedefinitions".into(),
        namespaced: false,
        has_status: true,
    }
}

/// Reads a policy live; `None` where it was deleted. The error says why that is not known.
///
/// With its definition go all policies, and the server says of each that it does not exist. Nobody has decided about any of
/// them: what they say stays in force until the definition is back, or this process ends.
pub(super) async fn read_live_policy(
    client: &kube::Client,
    name: &str,
) -> Result<Option<ParentObject>, String> {
    let live = get_live::<ParentObject>(client, &policy_kind(), None, name).await;
    let live = live.map_err(|error| error_text(&error))?;
    if live.is_some() {
        return Ok(live);
    }
    match get_live_head::<ChildObject>(client, &definition_kind(), None, POLICY_DEFINITION).await {
        Ok(Some(definition)) if definition.meta.deleted.is_none() => Ok(None),
        Ok(_) => Err(format!("the definition {POLICY_DEFINITION} is deleted, and all policies with it")),
        // The role is of an earlier version.
        Err(LiveReadError { cause: ApiFailureCause::Forbidden, .. }) => Ok(None),
        Err(error) => Err(error_text(&error)),
    }
}
