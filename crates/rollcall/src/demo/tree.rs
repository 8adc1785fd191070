//! The live tree as lines: owners and children, verdicts, reasons and ages.

use rollcall_core::TreeNode;

use crate::text::{StyledLine, TextStyle, truncate_text};
use crate::tree_table::format_age;

/// Column of the verdict, and widths of reasons and ages, on an 80-column line.
const VERDICT_COLUMN: usize = 32;
const REASON_COLUMN: usize = VERDICT_COLUMN + 12;
const AGE_COLUMN: usize = 4;

/// Returns the lines of all trees at `now` (milliseconds since the Unix epoch), in this width.
pub(super) fn tree_lines(trees: &[TreeNode], now: i64, width: usize) -> Vec<StyledLine> {
    let mut out = Vec::new();
    for tree in trees {
        draw_node(tree, "", "", now, width, &mut out);
    }
    out
}

fn draw_node(node: &TreeNode, before: &str, below: &str, now: i64, width: usize, out: &mut Vec<StyledLine>) {
    out.push(node_line(node, before, now, width));
    let last = node.children.len().saturating_sub(1);
    for (at, child) in node.children.iter().enumerate() {
        let (branch, rail) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        self::draw_node(child, &format!("{below}{branch}"), &format!("{below}{rail}"), now, width, out);
    }
}

fn node_line(node: &TreeNode, before: &str, now: i64, width: usize) -> StyledLine {
    let optional = if node.role == "optional" { " (optional)" } else { "" };
    let name = truncate_text(
        &format!("{} {}{optional}", node.kind, node.name),
        VERDICT_COLUMN - 1 - before.chars().count(),
    );
    let why = verdict_reason(node);
    let room = width.saturating_sub(REASON_COLUMN + AGE_COLUMN + 1);
    StyledLine::new(TextStyle::Dim, before)
        .append_text(TextStyle::Plain, name)
        .pad_to(VERDICT_COLUMN)
        .append_text(TextStyle::of_verdict(node.verdict), node.verdict)
        .pad_to(REASON_COLUMN)
        .append_text(TextStyle::Plain, truncate_text(why, room))
        .pad_to(width.saturating_sub(AGE_COLUMN))
        .append_text(TextStyle::Dim, format!("{:>AGE_COLUMN$}", format_age(now - node.since)))
}

/// Returns the text drawn beside a verdict.
pub(super) fn verdict_reason(node: &TreeNode) -> &str {
    // A parent's full message is shown elsewhere; a leaf has only this line.
    let why = if node.policy.is_empty() { &node.detail } else { node.reason.as_str() };
    if why == "ready" { "" } else { why }
}

#[cfg(test)]
mod tests {
    use readiness::rollup::ParentReason;
    use rollcall_core::NodeReason;

    use super::*;

    fn leaf(kind: &str, name: &str, verdict: &'static str, detail: &str) -> TreeNode {
        TreeNode {
            kind: kind.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            verdict,
            detail: detail.to_owned(),
            since: 1_000,
            role: "critical",
            ..TreeNode::default()
        }
    }

    fn shop() -> TreeNode {
        let database = TreeNode {
            policy: "databases".to_owned(),
            reason: NodeReason::Parent(ParentReason::ChildrenFailed),
            children: vec![
                leaf("Pod", "books-db-0", "Failed", "waiting: CrashLoopBackOff"),
                leaf("Job", "books-db-migrate", "Ready", "complete"),
            ],
            ..leaf("Database", "books-db", "Failed", "1 of 2 not ready")
        };
        TreeNode {
            policy: "shops".to_owned(),
            reason: NodeReason::Parent(ParentReason::ChildrenFailed),
            children: vec![database, leaf("Deployment", "books-web", "Ready", "ready")],
            ..leaf("Shop", "books", "Failed", "1 of 2 not ready")
        }
    }

    #[test]
    fn a_tree_is_drawn_within_eighty_columns() {
        let drawn: Vec<_> =
            tree_lines(&[shop()], 4_500, 80).iter().map(|line| line.fit_width(80, false)).collect();
        assert_eq!(
            drawn,
            [
                "Shop books                      Failed      ChildrenFailed                    3s",
                "├─ Database books-db            Failed      ChildrenFailed                    3s",
                "│  ├─ Pod books-db-0            Failed      waiting: CrashLoopBackOff         3s",
                "│  └─ Job books-db-migrate      Ready       complete                          3s",
                "└─ Deployment books-web         Ready                                         3s",
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let long = leaf("PersistentVolumeClaim", &"x".repeat(253), "Terminating", &"y".repeat(500));
        for width in [20, 60, 80, 200] {
            let line = tree_lines(std::slice::from_ref(&long), 0, width)[0].fit_width(width, false);
            assert!(line.chars().count() <= width, "{line}");
        }
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let told = [-5, 0, 119_999, 120_000, 7_200_000, 200_000_000].map(format_age);
        assert_eq!(told, ["0s", "0s", "119s", "2m", "2h", "2d"]);
    }
}
