//! A spec of a policy that was accepted, as the policy's own status keeps it.

use std::sync::Arc;

use api::ReadinessPolicySpec;
use api::policy::AcceptedPolicy;

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
        let kept = AcceptedPolicy { generation: found.generation, spec: text, omitted };
        AcceptedSpec {
            uid: found.uid.clone(),
            generation: found.generation,
            spec: spec.clone(),
            kept: Arc::new(kept),
        }
    }

    /// As the policy's own status has it.
    pub(super) fn kept_by(found: &FoundPolicy) -> Option<AcceptedSpec> {
        let kept = found.status.accepted.as_ref()?;
        let spec = found.accepted_spec()?;
        Some(AcceptedSpec {
            uid: found.uid.clone(),
            generation: kept.generation,
            spec,
            kept: Arc::new(kept.clone()),
        })
    }
}
