//! Whether an object is wanted to be something else than before, which its owner decides, or only more or fewer of the same, which
//! others decide, too.

use std::hash::Hasher as _;

use aggregator::SpecMark;
use rustc_hash::FxHasher;

/// Set where the number of replicas was last set through the subresource `scale`: by an autoscaler, or `kubectl scale`.
const SCALED: u32 = 1 << 31;

/// What an object is wanted to be: its generation, and the last one with which more changed than the number of replicas through the
/// subresource `scale`. What an autoscaler does is no deed of the operator to whom the object belongs.
///
/// What an operator itself scales through that subresource cannot be told from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecVersion {
    mark: SpecMark,
    /// Digest of the spec without the number of replicas, or 0 where it has none, and [`SCALED`].
    digest: u32,
}

impl SpecVersion {
    /// Of an object of this generation, by the digest of its spec if that has a number of replicas.
    pub(super) fn new(generation: i64, digest: Option<SpecDigest>, is_scaled: bool) -> SpecVersion {
        let [a, b, ..] = generation.to_le_bytes();
        let generation = u16::from_le_bytes([a, b]);
        let scaled = if is_scaled { SCALED } else { 0 };
        let digest = digest.map_or(0, SpecDigest::high_bits) | scaled;
        SpecVersion { mark: SpecMark { generation, wanted_by_operator: generation }, digest }
    }

    /// This version of an object that had the other before: where it was only scaled meanwhile, its operator wants the same.
    #[must_use]
    pub(crate) fn following(mut self, before: SpecVersion) -> SpecVersion {
        if self.digest & SCALED != 0 && (self.digest ^ before.digest) & !SCALED == 0 {
            self.mark.wanted_by_operator = before.mark.wanted_by_operator;
        }
        self
    }

    /// Returns `true` if this version of an object and the other differ in the number of replicas alone.
    pub(crate) fn has_equal_template(self, other: SpecVersion) -> bool {
        self.digest & !SCALED != 0 && (self.digest ^ other.digest) & !SCALED == 0
    }

    /// Number of generations since the other version.
    pub(crate) fn generations_since(self, other: SpecVersion) -> u16 {
        self.mark.generation.wrapping_sub(other.mark.generation)
    }

    /// What the engine compares.
    pub(crate) fn mark(self) -> SpecMark {
        self.mark
    }
}

/// Digest of a spec without its number of replicas. Fields that [`super::spec::UNREAD_SPEC_FIELDS`] names are not in it: a spec
/// with these and a number of replicas is one of a custom resource.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpecDigest(u64);

impl SpecDigest {
    /// Adds a field, in any order.
    pub(super) fn add_field(&mut self, key: &str, text: &str) {
        if key != "replicas" {
            let mut hasher = FxHasher::default();
            hasher.write(key.as_bytes());
            hasher.write(text.as_bytes());
            self.0 = self.0.wrapping_add(hasher.finish());
        }
    }

    fn high_bits(self) -> u32 {
        let [.., a, b, c, d] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d]) & !SCALED
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::SpecVersion;
    use crate::wire::ChildObject;

    fn workload(generation: i64, spec: &Value, scaler: Option<&str>) -> SpecVersion {
        let entry = |manager: &str, subresource: Option<&str>| {
            let mut entry = json!({ "manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z",
                "fieldsV1": { "f:spec": { "f:replicas": {} } } });
            if let Some(subresource) = subresource {
                entry["subresource"] = json!(subresource);
            }
            entry
        };
        let status = json!({ "manager": "kube-controller-manager", "subresource": "status",
            "fieldsV1": { "f:status": { "f:replicas": {} } } });
        let managers = [entry(scaler.unwrap_or("operator"), scaler.map(|_| "scale")), status];
        let object = json!({ "metadata": { "name": "web", "uid": "u", "generation": generation, "managedFields": managers },
            "spec": spec, "status": { "replicas": 1 } });
        let object: ChildObject = serde_json::from_str(&object.to_string()).unwrap();
        object.meta.spec_version
    }

    fn wanted(version: SpecVersion) -> u16 {
        version.mark().wanted_by_operator
    }

    #[test]
    fn what_is_scaled_beside_its_operator_is_not_wanted_otherwise_and_everything_else_is() {
        let image =
            |image: &str, replicas: u32| json!({ "replicas": replicas, "template": { "image": image } });
        let mut version = workload(1, &image("a:1", 3), None);
        // An autoscaler scales, again and again.
        for (generation, replicas) in [(2, 5), (3, 6), (4, 2), (5, 8)] {
            let seen = workload(generation, &image("a:1", replicas), Some("kube-controller-manager"));
            version = seen.following(version);
            assert_eq!(wanted(version), 1, "generation {generation}");
            assert_eq!(i64::from(version.mark().generation), generation);
            // The same version again, as a list brings it.
            assert_eq!(seen.following(version), version);
        }
        // The operator has a new image rolled out by what the autoscaler wants.
        version = workload(6, &image("a:2", 8), Some("kube-controller-manager")).following(version);
        assert_eq!(wanted(version), 6);
        // It sets the number itself: nobody's but its deed.
        version = workload(7, &image("a:2", 4), None).following(version);
        assert_eq!(wanted(version), 7);
        // Both in one version that was seen: an image and a number.
        version = workload(9, &image("a:3", 9), Some("kubectl")).following(version);
        assert_eq!(wanted(version), 9);
    }

    #[test]
    fn of_an_object_without_a_number_of_replicas_each_generation_is_wanted() {
        let first = workload(1, &json!({ "size": 1 }), None);
        assert_eq!(workload(1, &json!({ "size": 2 }), None).following(first), first);
        assert_eq!(wanted(workload(2, &json!({ "size": 1 }), None).following(first)), 2);
        assert_eq!(wanted(workload(2, &json!({ "size": 1 }), Some("kubectl")).following(first)), 2);
    }
}
