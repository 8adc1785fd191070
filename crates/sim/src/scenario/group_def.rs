//! The groups of children that a policy counts.

use aggregator::Quorum;

use super::child_rule::ChildRuleDef;
use super::dice::Dice;
use super::kind_def::small_number;

/// One entry of a policy's `children`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupDef {
    pub(crate) kind: usize,
    pub(crate) by_label: bool,
    pub(crate) critical: bool,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) quorum: Quorum,
    /// Suffix of the expected child's name, which starts with the parent's.
    pub(crate) named: Option<&'static str>,
    /// Rule by which its children are judged.
    pub(crate) rule: ChildRuleDef,
}

impl GroupDef {
    /// Returns a critical group of all children of a kind.
    pub(super) fn of_kind(kind: usize) -> GroupDef {
        GroupDef {
            kind,
            by_label: false,
            critical: true,
            min: 0,
            max: None,
            quorum: Quorum::All,
            named: None,
            rule: ChildRuleDef::Native,
        }
    }
}

/// Draws the groups of leaf children, by owner and by label.
pub(super) fn draw_leaf_groups(dice: &mut Dice) -> Vec<GroupDef> {
    let mut groups = Vec::new();
    for kind in 0..4 {
        if dice.chance(65) {
            let quorum = match dice.below(8) {
                0 => Quorum::Count(1),
                1 => Quorum::Percent(50),
                _ => Quorum::All,
            };
            groups.push(GroupDef {
                by_label: kind == 3,
                critical: groups.is_empty() || dice.chance(80),
                min: small_number(dice.below(3).min(1)),
                max: dice.chance(10).then_some(3),
                quorum,
                named: dice.chance(10).then_some("x0"),
                ..GroupDef::of_kind(kind)
            });
        }
    }
    if groups.is_empty() {
        groups.push(GroupDef::of_kind(0));
    }
    groups
}
