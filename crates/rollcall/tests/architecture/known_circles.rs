//! Circles that stand for now, each with the reason.

/// Circles among files as [`find_circles`](super::module_circles::find_circles) writes them, and why each stands. One
/// that is gone must leave this list, and no other may come.
pub(crate) const KNOWN_CIRCLES: [(&str, &str); 1] = [(
    "watcher: reflector <-> reflector::deletion <-> reflector::memory <-> reflector::memory::expected <-> reflector::memory::remembered_row <-> reflector::memory::trace <-> reflector::memory_account <-> reflector::planned <-> reflector::refinement <-> reflector::row <-> reflector::slots <-> reflector::unready_since",
    "The reflector owns the rows and all that hangs on them, and each file adds methods to it.",
)];
