//! When the current generation of a parent began: what was logged before that is not about it.

use std::num::NonZeroU32;

use readiness::Time;
use serde_json::value::RawValue;

use super::KopfMark;
use crate::plan::{KopfMarkRule, ParentRule};
use crate::status::raw_json;
use crate::wire::WireMeta;

/// The second in which the current generation of a parent began; none of one that Events say nothing about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::reflector) struct GenerationStart(Option<NonZeroU32>);

impl GenerationStart {
    /// Reads it of a parent with this mark, where one of these rules says that the operator is Kopf's.
    pub(in crate::reflector) fn where_heeded(
        mark: KopfMark,
        rules: &[&ParentRule],
        object: &RawValue,
        meta: &WireMeta,
    ) -> GenerationStart {
        let is_heeded = mark == KopfMark::Unexplained
            && rules.iter().any(|rule| rule.kopf_marks == KopfMarkRule::Expected);
        if is_heeded { GenerationStart::of_object(object, meta) } else { GenerationStart::default() }
    }

    /// Reads it from the owners of the spec, or from the creation.
    fn of_object(object: &RawValue, meta: &WireMeta) -> GenerationStart {
        let fields = raw_json::get_path(object, &["metadata", "managedFields"])
            .and_then(raw_json::list_elements)
            .unwrap_or_default();
        let of_spec =
            fields.into_iter().filter(|field| raw_json::get_path(field, &["fieldsV1", "f:spec"]).is_some());
        let changed = of_spec.filter_map(|field| {
            Time::from_rfc3339(&raw_json::string_value(raw_json::get_member(field, "time")?)?)
        });
        let start = changed.max().max(meta.created);
        GenerationStart(start.and_then(second_of))
    }

    /// Returns `true` if the log may say something of the generation.
    pub(in crate::reflector) fn is_known(self) -> bool {
        self.0.is_some()
    }

    /// Returns `true` if what was logged then may be about this generation: times of Events have whole seconds, too.
    pub(super) fn may_have_logged(self, at: Time) -> bool {
        self.0.zip(second_of(at)).is_some_and(|(start, at)| at >= start)
    }
}

#[cfg(test)]
impl GenerationStart {
    /// Of this second since the epoch.
    pub(super) fn at_second(second: u32) -> GenerationStart {
        GenerationStart(NonZeroU32::new(second))
    }
}

fn second_of(time: Time) -> Option<NonZeroU32> {
    u32::try_from(time.0.div_euclid(1_000)).ok().and_then(NonZeroU32::new)
}
