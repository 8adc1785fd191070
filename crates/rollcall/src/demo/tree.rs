//! The live tree as lines: who belongs to whom, how ready, why, and for how long.

use controller::core::TreeNode;

use crate::forest::age;
use crate::text::{Line, Style, cut};

/// Where the verdict stands, and how wide reasons and ages are, on a line of 80.
const VERDICT: usize = 32;
const REASON: usize = VERDICT + 12;
const AGE: usize = 4;

/// Every tree, at `now` (milliseconds since the Unix epoch), in lines of that width.
pub(super) fn lines(trees: &[TreeNode], now: i64, width: usize) -> Vec<Line> {
    let mut out = Vec::new();
    for tree in trees {
        node(tree, "", "", now, width, &mut out);
    }
    out
}

fn node(node: &TreeNode, before: &str, below: &str, now: i64, width: usize, out: &mut Vec<Line>) {
    out.push(line(node, before, now, width));
    let last = node.children.len().saturating_sub(1);
    for (at, child) in node.children.iter().enumerate() {
        let (branch, rail) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        self::node(child, &format!("{below}{branch}"), &format!("{below}{rail}"), now, width, out);
    }
}

fn line(node: &TreeNode, before: &str, now: i64, width: usize) -> Line {
    let optional = if node.role == "optional" { " (optional)" } else { "" };
    let name = cut(&format!("{} {}{optional}", node.kind, node.name), VERDICT - 1 - before.chars().count());
    let why = why(node);
    let room = width.saturating_sub(REASON + AGE + 1);
    Line::new(Style::Dim, before)
        .then(Style::Plain, name)
        .to(VERDICT)
        .then(Style::of(node.verdict), node.verdict)
        .to(REASON)
        .then(Style::Plain, cut(why, room))
        .to(width.saturating_sub(AGE))
        .then(Style::Dim, format!("{:>AGE$}", age(now - node.since)))
}

/// What is drawn beside a verdict.
pub(super) fn why(node: &TreeNode) -> &str {
    // A parent's whole message stands elsewhere; a leaf has only this line.
    let why = if node.policy.is_empty() { &node.detail } else { &node.reason };
    if why == "ready" { "" } else { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(kind: &str, name: &str, verdict: &'static str, detail: &str) -> TreeNode {
        TreeNode {
            kind: kind.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            verdict,
            reason: "Reason".to_owned(),
            detail: detail.to_owned(),
            since: 1_000,
            role: "critical",
            ..TreeNode::default()
        }
    }

    fn shop() -> TreeNode {
        let database = TreeNode {
            policy: "databases".to_owned(),
            reason: "ChildrenFailed".to_owned(),
            children: vec![
                leaf("Pod", "books-db-0", "Failed", "waiting: CrashLoopBackOff"),
                leaf("Job", "books-db-migrate", "Ready", "complete"),
            ],
            ..leaf("Database", "books-db", "Failed", "1 of 2 not ready")
        };
        TreeNode {
            policy: "shops".to_owned(),
            reason: "ChildrenFailed".to_owned(),
            children: vec![database, leaf("Deployment", "books-web", "Ready", "ready")],
            ..leaf("Shop", "books", "Failed", "1 of 2 not ready")
        }
    }

    #[test]
    fn a_tree_is_drawn_within_eighty_columns() {
        let drawn: Vec<_> = lines(&[shop()], 4_500, 80).iter().map(|line| line.fit(80, false)).collect();
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
            let line = lines(std::slice::from_ref(&long), 0, width)[0].fit(width, false);
            assert!(line.chars().count() <= width, "{line}");
        }
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let told = [-5, 0, 119_999, 120_000, 7_200_000, 200_000_000].map(age);
        assert_eq!(told, ["0s", "0s", "119s", "2m", "2h", "2d"]);
    }
}
