//! Where objects are: their kind, and their namespace.

use aggregator::KindId;

use super::row::ObjectRow;
use super::selector_interner::name_hash;

/// The objects of a kind, in one namespace or in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowPlace<'a> {
    pub(super) kind: KindId,
    pub(super) namespace: Option<&'a str>,
}

impl RowPlace<'_> {
    /// The objects of a kind, wherever they are.
    pub(super) fn of_kind(kind: KindId) -> RowPlace<'static> {
        RowPlace { kind, namespace: None }
    }

    /// Returns `true` if this row is there.
    pub(super) fn contains(&self, row: &ObjectRow) -> bool {
        row.kind == self.kind && self.namespace.is_none_or(|namespace| *namespace == *row.namespace)
    }
}

/// Tells of a few rows whether one of a place may be among them: never no where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlaceFilter {
    kinds: u64,
    namespaces: u64,
}

impl PlaceFilter {
    /// This row is among them.
    pub(super) fn add(&mut self, row: &ObjectRow) {
        self.kinds |= kind_bit(row.kind);
        self.namespaces |= namespace_bit(row.kind, &row.namespace);
    }

    /// Returns `false` if none of them is there.
    pub(super) fn may_hold(&self, place: RowPlace<'_>) -> bool {
        let namespace_bits = place.namespace.map_or(u64::MAX, |name| namespace_bit(place.kind, name));
        self.kinds & kind_bit(place.kind) != 0 && self.namespaces & namespace_bits != 0
    }
}

fn kind_bit(kind: KindId) -> u64 {
    1 << (u64::from(kind.0) % 64)
}

/// By kind and namespace: two kinds of one namespace are two places.
fn namespace_bit(kind: KindId, namespace: &str) -> u64 {
    1 << (name_hash(namespace).wrapping_add(u64::from(kind.0)) % 64)
}
