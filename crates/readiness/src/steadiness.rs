//! Steadiness of an object that is not ready.

/// How far a progressing object can still be counted on by a parent that was ready with it. The order is the severity,
/// worst first.
///
/// A parent that is not ready yet becomes ready with ready children alone: steadiness keeps an answer and gives none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Steadiness {
    /// Not at all.
    #[default]
    Unsteady,
    /// Its spec changed a moment ago, and its controller has not observed that. Until then it was rolled out and available.
    Unobserved,
    /// It is rolled out for its current template and available: only the number of its replicas moves, or a disruption
    /// within its budget goes on.
    Available,
}
