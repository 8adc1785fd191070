//! What a parent counts of one child.

use std::fmt;

use crate::Level;
use crate::steadiness::Steadiness;

/// A child's level as its parent counts it, with what sets it apart from others of this level: it failed permanently, as
/// stated by the API, or a parent that was ready with it can still count on it. Weights are ordered by level, worst first.
///
/// A child whose newest version awaits its rule has the level that stands for it meanwhile, and is unjudged: it keeps an
/// answer and gives none.
///
/// It is one byte because every change of a child moves several of them: whether it is unjudged, the level, and in the last
/// two bits the mark.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildWeight(u8);

const MARK_BITS: u8 = 2;
const MARK_MASK: u8 = (1 << MARK_BITS) - 1;
const UNOBSERVED_MARK: u8 = Steadiness::Unobserved as u8;
const AVAILABLE_MARK: u8 = Steadiness::Available as u8;
const TERMINAL_MARK: u8 = 3;
/// Next to the level, of which [`Level::Ready`] is the last.
const UNJUDGED_BIT: u8 = (Level::Ready as u8 + 1) << MARK_BITS;
const _: () =
    assert!(Level::ALL.len().is_power_of_two() && UNJUDGED_BIT as usize == Level::ALL.len() << MARK_BITS);

impl ChildWeight {
    /// Number of different marks.
    pub(crate) const MARK_COUNT: usize = 1 << MARK_BITS;
    /// Position of the mark of a child that failed permanently, after those of its steadiness.
    pub(crate) const TERMINAL_INDEX: usize = TERMINAL_MARK as usize;

    /// Weight of a child at this level that is not terminal and, unless it is ready, not steady.
    pub const fn of(level: Level) -> ChildWeight {
        ChildWeight((level as u8) << MARK_BITS)
    }

    /// Returns the weight of a child that failed permanently if that is so. Such a child is not steady.
    #[must_use]
    pub const fn with_terminal(self, is_terminal: bool) -> ChildWeight {
        if is_terminal { ChildWeight(self.0 | TERMINAL_MARK) } else { self }
    }

    /// Returns the weight of a child that is this steady, unless it failed permanently.
    #[must_use]
    pub const fn with_steadiness(self, steadiness: Steadiness) -> ChildWeight {
        if self.is_terminal() {
            return self;
        }
        ChildWeight((self.0 & !MARK_MASK) | steadiness as u8)
    }

    /// Returns the weight of a child whose newest version awaits its rule.
    #[must_use]
    pub const fn unjudged(self) -> ChildWeight {
        ChildWeight(self.0 | UNJUDGED_BIT)
    }

    /// Its newest version awaits its rule.
    #[inline]
    pub const fn is_unjudged(self) -> bool {
        self.0 & UNJUDGED_BIT != 0
    }

    /// Its level.
    #[inline]
    pub const fn level(self) -> Level {
        Level::ALL[self.level_index()]
    }

    /// The child is ready.
    #[inline]
    pub const fn is_ready(self) -> bool {
        self.level_index() == Level::Ready as usize
    }

    /// The child failed permanently, as stated by the API.
    #[inline]
    pub const fn is_terminal(self) -> bool {
        self.0 & MARK_MASK == TERMINAL_MARK
    }

    /// How far a parent that was ready with the child can still count on it.
    #[inline]
    pub const fn steadiness(self) -> Steadiness {
        match self.0 & MARK_MASK {
            UNOBSERVED_MARK => Steadiness::Unobserved,
            AVAILABLE_MARK => Steadiness::Available,
            _ => Steadiness::Unsteady,
        }
    }

    /// Position of its level in [`Level::ALL`].
    #[inline]
    pub(crate) const fn level_index(self) -> usize {
        (self.0 >> MARK_BITS) as usize % Level::ALL.len()
    }

    /// Position of its mark: that of its steadiness, or of a permanent failure.
    #[inline]
    pub(crate) const fn mark_index(self) -> usize {
        (self.0 & MARK_MASK) as usize
    }
}

impl fmt::Debug for ChildWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.level())?;
        match (self.is_terminal(), self.steadiness()) {
            (true, _) => f.write_str(" (terminal)")?,
            (false, Steadiness::Unsteady) => {}
            (false, steadiness) => write!(f, " ({steadiness:?})")?,
        }
        if self.is_unjudged() { f.write_str(" (unjudged)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a weight is made of: level, permanent failure, steadiness.
    type Parts = (Level, bool, Steadiness);

    fn all_parts() -> Vec<Parts> {
        use Steadiness::{Available, Unobserved, Unsteady};
        let marks = [(false, Unsteady), (false, Unobserved), (false, Available), (true, Unsteady)];
        let of_level = |level| marks.map(|(is_terminal, steadiness)| (level, is_terminal, steadiness));
        Level::ALL.into_iter().flat_map(of_level).collect()
    }

    fn weight_of((level, is_terminal, steadiness): Parts) -> ChildWeight {
        ChildWeight::of(level).with_terminal(is_terminal).with_steadiness(steadiness)
    }

    #[test]
    fn a_weight_has_the_parts_that_it_was_made_of() {
        for parts in all_parts() {
            let weight = weight_of(parts);
            assert_eq!((weight.level(), weight.is_terminal(), weight.steadiness()), parts);
            assert_eq!(weight.is_ready(), parts.0 == Level::Ready);
            assert_eq!(weight.with_terminal(false), weight);
        }
    }

    #[test]
    fn what_failed_permanently_is_not_steady() {
        for steadiness in [Steadiness::Unobserved, Steadiness::Available] {
            let terminal = ChildWeight::of(Level::Failed).with_terminal(true);
            assert_eq!(terminal.with_steadiness(steadiness), terminal);
            assert_eq!(
                ChildWeight::of(Level::Failed).with_steadiness(steadiness).with_terminal(true),
                terminal
            );
        }
    }

    #[test]
    fn weights_are_ordered_as_their_parts_are() {
        for left in all_parts() {
            for right in all_parts() {
                assert_eq!(weight_of(left).cmp(&weight_of(right)), left.cmp(&right), "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn a_child_that_awaits_its_rule_keeps_all_that_stands_for_it() {
        for parts in all_parts() {
            let (judged, awaited) = (weight_of(parts), weight_of(parts).unjudged());
            assert_eq!((awaited.level(), awaited.is_terminal(), awaited.steadiness()), parts);
            assert_eq!(
                (awaited.level_index(), awaited.mark_index()),
                (judged.level_index(), judged.mark_index())
            );
            assert_eq!((awaited.is_unjudged(), judged.is_unjudged()), (true, false));
            assert_eq!(awaited.unjudged(), awaited);
        }
    }

    #[test]
    fn a_weight_is_printed_with_its_mark() {
        let failed = ChildWeight::of(Level::Failed);
        let progressing = ChildWeight::of(Level::Progressing);
        assert_eq!(format!("{failed:?}"), "Failed");
        assert_eq!(format!("{:?}", failed.with_terminal(true)), "Failed (terminal)");
        let available = progressing.with_steadiness(Steadiness::Available);
        assert_eq!(format!("{available:?}"), "Progressing (Available)");
        assert_eq!(format!("{:?}", ChildWeight::of(Level::Ready).unjudged()), "Ready (unjudged)");
    }
}
