//! A spec of a policy that was accepted, as the policy's own status keeps it.

use std::sync::Arc;

use api::ReadinessPolicySpec;
use api::policy::{AcceptedPolicy, EarlierPolicy};

use crate::found_policy::FoundPolicy;
use crate::kept_text::text_without_defaults;

/// Longest spec that is kept in the status of its policy, in bytes of JSON text.
const MAX_KEPT_SPEC: usize = 64 << 10;

/// A spec that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedSpec {
    pub(super) uid: String,
    /// The generation that it was accepted with.
    pub generation: i64,
    pub(super) spec: ReadinessPolicySpec,
    /// As the status of the policy keeps it.
    pub kept: Arc<AcceptedPolicy>,
}

impl AcceptedSpec {
    pub(super) fn of(found: &FoundPolicy, spec: &ReadinessPolicySpec) -> AcceptedSpec {
        let text = text_without_defaults(spec).filter(|text| text.len() <= MAX_KEPT_SPEC);
        let omitted = text.is_none().then(|| format!("the spec has more than {} KiB", MAX_KEPT_SPEC >> 10));
        let kept = AcceptedPolicy {
            generation: found.generation,
            spec: text,
            omitted,
            version: Some(own_version()),
            earlier: earlier_than(&own_version(), found.status.accepted.as_ref()),
        };
        AcceptedSpec {
            uid: found.uid.clone(),
            generation: found.generation,
            spec: spec.clone(),
            kept: Arc::new(kept),
        }
    }

    /// As the policy's own status has it: what was accepted last, and what another version had accepted before that.
    pub(super) fn kept_by(found: &FoundPolicy) -> impl Iterator<Item = AcceptedSpec> {
        let kept = found.status.accepted.as_ref().map(|kept| Arc::new(kept.clone()));
        kept.into_iter().flat_map(|kept| {
            let last = kept.spec.as_deref().map(|spec| (kept.generation, spec));
            let earlier = kept.earlier.as_ref().map(|earlier| (earlier.generation, &*earlier.spec));
            let read = |(generation, text): (i64, &str)| {
                let spec = serde_json::from_str(text).ok()?;
                Some(AcceptedSpec { uid: found.uid.clone(), generation, spec, kept: Arc::clone(&kept) })
            };
            [last, earlier].into_iter().flatten().filter_map(read).collect::<Vec<_>>()
        })
    }
}

/// What `kept` has of another version than this one, with which a rollback can go on.
fn earlier_than(version: &str, kept: Option<&AcceptedPolicy>) -> Option<EarlierPolicy> {
    let kept = kept?;
    if kept.version.as_deref() == Some(version) {
        return kept.earlier.clone();
    }
    let AcceptedPolicy { generation, spec, version, .. } = kept.clone();
    Some(EarlierPolicy { generation, spec: spec?, version })
}

/// Minor version of this program: within one, every program reads what another has accepted.
fn own_version() -> String {
    concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR")).to_owned()
}
