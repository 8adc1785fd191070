//! Whether an object is wanted to be something else than before, which its owner decides, or only more or fewer of the same, which
//! others decide, too.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// Set where the number of replicas was last set through the subresource `scale`: by an autoscaler, or `kubectl scale`.
const SCALED: u32 = 1 << 31;
/// Bits of the generation.
const GENERATION: u32 = 0xffff;

/// Changes with `metadata.generation`, unless nothing but the number of replicas has changed, and that through the subresource
/// `scale`: what an autoscaler does is no deed of the operator to whom the object belongs.
///
/// What an operator itself scales through that subresource cannot be told from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecMark(u32);

impl SpecMark {
    /// Of an object of this generation, by the digest of its spec if that has a number of replicas.
    pub(super) fn new(generation: i64, digest: Option<SpecDigest>, is_scaled: bool) -> SpecMark {
        let generation = u32::try_from(generation & i64::from(GENERATION)).unwrap_or(0);
        let scaled = if is_scaled { SCALED } else { 0 };
        SpecMark(digest.map_or(0, SpecDigest::high_bits) | scaled | generation)
    }

    /// The mark of this version of an object that had the other before: the same, where it was only scaled meanwhile.
    #[must_use]
    pub(crate) fn following(self, before: SpecMark) -> SpecMark {
        let is_only_scaled = self.0 & SCALED != 0 && (self.0 ^ before.0) & !(SCALED | GENERATION) == 0;
        if is_only_scaled { SpecMark(before.0 | SCALED) } else { self }
    }

    /// What the engine compares.
    pub(crate) fn bits(self) -> u32 {
        self.0 & !SCALED
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

    /// The bits of a mark between that of scaling and those of the generation.
    fn high_bits(self) -> u32 {
        let [.., a, b] = self.0.to_le_bytes();
        u32::from(u16::from_le_bytes([a, b]) >> 1) << 16
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::wire::ChildObject;
    use crate::wire::spec_mark::SpecMark;

    fn workload(generation: i64, spec: &Value, scaler: Option<&str>) -> SpecMark {
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
        object.meta.spec_mark
    }

    #[test]
    fn what_is_scaled_beside_its_operator_is_not_wanted_otherwise_and_everything_else_is() {
        let image =
            |image: &str, replicas: u32| json!({ "replicas": replicas, "template": { "image": image } });
        let first = workload(1, &image("a:1", 3), None);
        // An autoscaler scales, again and again.
        let mut mark = first;
        for (generation, replicas) in [(2, 5), (3, 6), (4, 2), (5, 8)] {
            let seen = workload(generation, &image("a:1", replicas), Some("kube-controller-manager"));
            mark = seen.following(mark);
            assert_eq!(mark.bits(), first.bits(), "generation {generation}");
            // The same version again, as a list brings it.
            assert_eq!(seen.following(mark), mark);
        }
        // The operator has a new image rolled out by what the autoscaler wants.
        let rolled = workload(6, &image("a:2", 8), Some("kube-controller-manager")).following(mark);
        assert_ne!(rolled.bits(), mark.bits());
        // It sets the number itself: nobody's but its deed.
        let set = workload(7, &image("a:2", 4), None).following(rolled);
        assert_ne!(set.bits(), rolled.bits());
        // Both in one version that was seen: an image and a number.
        let both = workload(9, &image("a:3", 9), Some("kubectl")).following(set);
        assert_ne!(both.bits(), set.bits());
    }

    #[test]
    fn an_object_without_a_number_of_replicas_is_marked_by_its_generation() {
        let first = workload(1, &json!({ "size": 1 }), None);
        assert_eq!(workload(1, &json!({ "size": 2 }), None).following(first).bits(), first.bits());
        assert_ne!(workload(2, &json!({ "size": 1 }), None).following(first).bits(), first.bits());
        assert_ne!(workload(2, &json!({ "size": 1 }), Some("kubectl")).following(first).bits(), first.bits());
    }
}
