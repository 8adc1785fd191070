//! Reads which kinds an API server serves, once, for groups that depend on it.

use policy::{FoundGroup, FoundPolicy, depend_on_served_kinds};
use watcher::{ServedKinds, read_served_kinds};

/// Reads which kinds are served, where these groups depend on it.
pub async fn read_needed_kinds<'g>(
    client: &kube::Client,
    groups: impl Iterator<Item = &'g FoundGroup>,
) -> ServedKinds {
    if !depend_on_served_kinds(groups, &ServedKinds::default()) {
        return ServedKinds::default();
    }
    read_kinds_or_why(client).await
}

/// Reads which kinds are served, or why that is not known.
pub async fn read_kinds_or_why(client: &kube::Client) -> ServedKinds {
    let read = read_served_kinds(client).await;
    read.unwrap_or_else(|error| ServedKinds::unknown_for(&watcher::error_text(&error)))
}

/// Fills in the kinds of groups that were read from files, where these leave them to the API server.
pub async fn fill_in_served_kinds(client: &kube::Client, policies: Vec<FoundPolicy>) -> Vec<FoundPolicy> {
    if !policies.iter().any(|policy| policy.groups.is_some()) {
        return policies;
    }
    let served = read_kinds_or_why(client).await;
    policies.into_iter().map(|policy| policy::fill_in_kinds(policy, &served)).collect()
}
