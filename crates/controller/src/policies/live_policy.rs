//! Live reads by which the deletion of a policy is confirmed.

use std::time::Duration;

use readiness::Time;
use watcher::wire::ChildObject;
use watcher::{ApiFailureCause, ApiKind, LiveReadError, ParentObject, error_text, get_live, get_live_head};

use super::watched_kinds::policy_kind;

/// Name of the definition of policies.
const POLICY_DEFINITION: &str = "readinesspolicies.rollcall.dev";

/// How long a policy that went with its definition stays in force once there is a definition again: whoever applies that applies the
/// policies behind it, by hand or in a later wave. 10 min.
const RETURN_GRACE: Duration = Duration::from_mins(10);

/// What is known of a policy that may be gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPolicy {
    /// A time at which it, or what tells of it, was there.
    pub(super) seen: Option<Time>,
    /// The time of now, by the server's clock.
    pub(super) now: Time,
}

impl KnownPolicy {
    /// Returns how much longer it stays in force if it went with a former definition; `None` if it did not, or long ago.
    fn grace_left(self, definition: &ChildObject) -> Option<Duration> {
        let (seen, defined) = self.seen.zip(definition.meta.created)?;
        let left = (defined + RETURN_GRACE) - self.now;
        (seen < defined && !left.is_zero()).then_some(left)
    }
}

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
/// them: what they say stays in force until they are back, too, or the definition has been for a while, or this process ends.
pub(super) async fn read_live_policy(
    client: &kube::Client,
    name: &str,
    known: KnownPolicy,
) -> Result<Option<ParentObject>, String> {
    let live = get_live::<ParentObject>(client, &policy_kind(), None, name).await;
    let live = live.map_err(|error| error_text(&error))?;
    if live.is_some() {
        return Ok(live);
    }
    match get_live_head::<ChildObject>(client, &definition_kind(), None, POLICY_DEFINITION).await {
        Ok(Some(definition)) if definition.meta.deleted.is_none() => match known.grace_left(&definition) {
            None => Ok(None),
            Some(left) => Err(format!(
                "it went with a former definition of policies, and there is a new one: create it again, or it is taken for deleted \
                 in {} s",
                left.as_secs()
            )),
        },
        Ok(_) => Err(format!("the definition {POLICY_DEFINITION} is deleted, and all policies with it")),
        // The role is of an earlier version.
        Err(LiveReadError { cause: ApiFailureCause::Forbidden, .. }) => Ok(None),
        Err(error) => Err(error_text(&error)),
    }
}
