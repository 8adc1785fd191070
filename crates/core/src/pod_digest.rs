//! A digest of pods by their metadata, which says whether an explanation still rests on what is there.

use std::hash::{DefaultHasher, Hash, Hasher};

use watcher::wire::WireMeta;

/// Which pods there are, and in which versions, in whatever order they are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodDigest {
    pods: usize,
    sum: u64,
    /// A pod has no version that can be compared.
    is_uncertain: bool,
}

impl PodDigest {
    /// The digest of these pods.
    pub fn of<'p>(pods: impl IntoIterator<Item = &'p WireMeta>) -> PodDigest {
        let mut digest = PodDigest::default();
        pods.into_iter().for_each(|pod| digest.add_pod(pod));
        digest
    }

    /// Takes in one more pod.
    pub fn add_pod(&mut self, pod: &WireMeta) {
        let mut hasher = DefaultHasher::new();
        (&pod.uid, pod.resource_version).hash(&mut hasher);
        self.pods += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
        self.is_uncertain |= pod.resource_version == 0;
    }

    /// Number of pods.
    pub fn count(&self) -> usize {
        self.pods
    }

    /// Whether these are the same pods in the same versions, for certain.
    pub fn is_same(&self, other: &PodDigest) -> bool {
        let is_certain = !self.is_uncertain && !other.is_uncertain;
        is_certain && (self.pods, self.sum) == (other.pods, other.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, resource_version: u64) -> WireMeta {
        WireMeta { uid: uid.into(), resource_version, ..WireMeta::default() }
    }

    #[test]
    fn pods_are_the_same_where_none_has_changed_come_or_gone() {
        let held = PodDigest::of(&[pod("a", 5), pod("b", 6)]);
        for (pods, expected) in [
            (vec![pod("b", 6), pod("a", 5)], true),
            (vec![pod("a", 5), pod("b", 7)], false),
            (vec![pod("a", 6), pod("b", 5)], false),
            (vec![pod("a", 5)], false),
            (vec![pod("a", 5), pod("c", 6)], false),
            (vec![], false),
        ] {
            assert_eq!(held.is_same(&PodDigest::of(&pods)), expected, "{pods:?}");
        }
        assert!(PodDigest::default().is_same(&PodDigest::of(&[])));
    }

    #[test]
    fn what_has_no_version_may_have_changed() {
        let odd = PodDigest::of(&[pod("a", 0)]);
        assert!(!odd.is_same(&odd));
    }
}
