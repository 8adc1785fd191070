//! API groups of objects.

use watcher::ParentObject;

/// The API group of an object.
pub fn api_group(object: &ParentObject) -> &str {
    object.child.meta.api_version.split_once('/').map_or("", |(group, _)| group)
}
