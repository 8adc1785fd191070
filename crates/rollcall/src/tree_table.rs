//! Trees of objects on a terminal or in a file: owners and children, verdicts, ages and reasons.

use rollcall_core::TreeNode;

use crate::eval::{OutputFormat, object_title};
use crate::live::UNCOUNTED_ROLE;
use crate::terminal::TerminalCapabilities;
use crate::text::{StyledLine, TextStyle, print_error_line, sanitize_text, truncate_text, write_stdout};

/// Column width of the longest verdict and a gap.
const VERDICT_WIDTH: usize = 12;
/// Column width of an age and a gap.
const AGE_WIDTH: usize = 6;
/// Gap between two columns.
const COLUMN_GAP: usize = 3;
/// Minimum width of the reason; with less, it gets a line of its own.
const MIN_REASON_WIDTH: usize = 24;

/// Looks up an object's creation time, and the current time, both in milliseconds since the Unix epoch.
pub(crate) type AgeLookup<'a> = &'a dyn Fn(&TreeNode) -> Option<(i64, i64)>;

/// Prints the trees and returns the exit code of the parents.
pub(crate) fn print_trees(
    trees: &[TreeNode],
    output: OutputFormat,
    ages: AgeLookup<'_>,
) -> anyhow::Result<u8> {
    write_stdout(&render_trees(trees, output, ages)?)?;
    Ok(exit_code(trees))
}

/// Says why there are no trees, where none was asked for by name.
pub(crate) fn report_no_parents(trees: &[TreeNode]) {
    if trees.is_empty() {
        print_error_line("no object is a parent under these policies");
    }
}

/// Renders the trees in this format, as wide as the terminal.
pub(crate) fn render_trees(
    trees: &[TreeNode],
    output: OutputFormat,
    ages: AgeLookup<'_>,
) -> anyhow::Result<String> {
    Ok(match output {
        OutputFormat::Json => crate::text::json_text(trees)?,
        OutputFormat::Yaml => policy::to_yaml(&trees)?,
        OutputFormat::Table => build_table(trees, ages).render_text(
            TerminalCapabilities::detect_stdout(true).colour,
            TerminalCapabilities::stdout_width(),
        ),
    })
}

/// Returns the exit code: 0 all ready, 1 at least one not, 2 there is no parent.
pub(crate) fn exit_code(trees: &[TreeNode]) -> u8 {
    if trees.is_empty() {
        return 2;
    }
    u8::from(trees.iter().any(|tree| tree.verdict != "Ready"))
}

/// A table of objects.
struct TreeTable(Vec<TreeTableRow>);

struct TreeTableRow {
    /// Indentation of the first line, and of the lines below it.
    before: String,
    below: String,
    object: String,
    verdict: &'static str,
    age: String,
    reason: String,
    why: String,
}

/// Builds one row for each object, and one for the objects that are left out.
fn build_table(trees: &[TreeNode], ages: AgeLookup<'_>) -> TreeTable {
    let mut rows = Vec::new();
    for tree in trees {
        add_rows(tree, "", "", ages, &mut rows);
    }
    TreeTable(rows)
}

fn add_rows(node: &TreeNode, before: &str, below: &str, ages: AgeLookup<'_>, rows: &mut Vec<TreeTableRow>) {
    let role = match node.role {
        "optional" => " (optional)",
        UNCOUNTED_ROLE => " (not counted)",
        _ => "",
    };
    let line =
        |text: &str| sanitize_text(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    rows.push(TreeTableRow {
        before: before.to_owned(),
        below: below.to_owned(),
        object: line(&object_title(&node.kind, &node.namespace, &node.name)) + role,
        verdict: node.verdict,
        age: ages(node).map_or(String::new(), |(created, now)| format_age(now - created)),
        reason: line(node.reason.as_str()),
        why: line(&node.detail),
    });
    let last = node.children.len() + usize::from(node.more > 0);
    let fork = |at: usize| {
        if at + 1 == last {
            (format!("{below}└─ "), format!("{below}   "))
        } else {
            (format!("{below}├─ "), format!("{below}│  "))
        }
    };
    for (at, child) in node.children.iter().enumerate() {
        let (before, below) = fork(at);
        add_rows(child, &before, &below, ages, rows);
    }
    if node.more > 0 {
        let (before, below) = fork(last - 1);
        let (age, reason, why) = Default::default();
        let object = format!("and {} more", node.more);
        rows.push(TreeTableRow { before, below, object, verdict: "", age, reason, why });
    }
}

impl TreeTable {
    /// Renders the table in this width; without one, as wide as needed.
    fn render_text(&self, colour: bool, width: Option<usize>) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let lines = match width {
            Some(width) => self.render_within(width),
            None => self.render_wide(),
        };
        lines.into_iter().map(|line| line.fit_width(width.unwrap_or(usize::MAX), colour) + "\n").collect()
    }

    fn age_width(&self) -> usize {
        if self.0.iter().any(|row| !row.age.is_empty()) { AGE_WIDTH } else { 0 }
    }

    /// Renders all text, in columns as wide as needed.
    fn render_wide(&self) -> Vec<StyledLine> {
        let widest = |of: &dyn Fn(&TreeTableRow) -> usize| self.0.iter().map(of).max().unwrap_or(0);
        let object = widest(&TreeTableRow::title_width).max(6) + COLUMN_GAP;
        let reason = widest(&|row| row.reason.chars().count()).max(6) + COLUMN_GAP;
        let ages = self.age_width();
        let (at, mut out) =
            ([object, object + VERDICT_WIDTH + ages, object + VERDICT_WIDTH + ages + reason], Vec::new());
        let head = StyledLine::new(TextStyle::Plain, "OBJECT")
            .pad_to(at[0])
            .append_text(TextStyle::Plain, "VERDICT");
        let head = if ages > 0 {
            head.pad_to(object + VERDICT_WIDTH).append_text(TextStyle::Plain, "AGE")
        } else {
            head
        };
        out.push(
            head.pad_to(at[1])
                .append_text(TextStyle::Plain, "REASON")
                .pad_to(at[2])
                .append_text(TextStyle::Plain, "MESSAGE"),
        );
        for row in &self.0 {
            let line = row
                .title_line(usize::MAX)
                .pad_to(at[0])
                .append_text(TextStyle::of_verdict(row.verdict), row.verdict);
            let line = if ages > 0 {
                line.pad_to(object + VERDICT_WIDTH).append_text(TextStyle::Dim, &*row.age)
            } else {
                line
            };
            out.push(
                line.pad_to(at[1])
                    .append_text(TextStyle::Plain, &*row.reason)
                    .pad_to(at[2])
                    .append_text(TextStyle::Plain, &*row.why),
            );
        }
        out
    }

    /// Renders the table in this width: the reason beside the verdict, or below it on a narrow terminal.
    fn render_within(&self, width: usize) -> Vec<StyledLine> {
        let ages = self.age_width();
        let widest = self.0.iter().map(TreeTableRow::title_width).max().unwrap_or(0) + COLUMN_GAP;
        let beside = width.saturating_sub(VERDICT_WIDTH + ages);
        let narrow = beside < 2 * MIN_REASON_WIDTH;
        let object =
            if narrow { widest.min(beside) } else { widest.min(beside - MIN_REASON_WIDTH).min(width / 2) };
        let mut out = Vec::new();
        for row in &self.0 {
            let line = row
                .title_line(object.saturating_sub(1))
                .pad_to(object)
                .append_text(TextStyle::of_verdict(row.verdict), row.verdict);
            let line = if ages > 0 {
                line.pad_to(object + VERDICT_WIDTH).append_text(TextStyle::Dim, &*row.age)
            } else {
                line
            };
            let why = row.short_reason();
            if narrow {
                out.push(line);
                if !why.is_empty() {
                    out.push(
                        StyledLine::new(TextStyle::Dim, &*row.below)
                            .append_text(TextStyle::Dim, format!("  {why}")),
                    );
                }
            } else {
                out.push(line.pad_to(object + VERDICT_WIDTH + ages).append_text(TextStyle::Plain, why));
            }
        }
        out
    }
}

impl TreeTableRow {
    fn title_width(&self) -> usize {
        self.before.chars().count() + self.object.chars().count()
    }

    fn title_line(&self, width: usize) -> StyledLine {
        let room = width.saturating_sub(self.before.chars().count());
        StyledLine::new(TextStyle::Dim, &*self.before)
            .append_text(TextStyle::Plain, truncate_text(&self.object, room))
    }

    /// Returns the shortest useful reason; empty for a ready object.
    fn short_reason(&self) -> &str {
        match (self.verdict, &*self.why) {
            ("Ready" | "", _) => "",
            (_, "") => &self.reason,
            (_, why) => why,
        }
    }
}

/// Formats an age in its largest unit.
pub(crate) fn format_age(millis: i64) -> String {
    match millis.max(0) / 1_000 {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7_200 => format!("{}m", s / 60),
        s @ 7_200..172_800 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use readiness::Reason;
    use rollcall_core::NodeReason;

    use super::*;

    fn node(kind: &str, name: &str, verdict: &'static str, why: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            verdict,
            reason: NodeReason::Object(Reason::from_custom_rule("Reason", why)),
            detail: why.to_owned(),
            children,
            ..TreeNode::default()
        }
    }

    fn forest() -> Vec<TreeNode> {
        let pod = node("Pod", "books-db-0", "Failed", "waiting: CrashLoopBackOff", vec![]);
        let mut db =
            node("Database", "books-db", "Failed", "1 of 2 not ready: Pod books-db-0 failed", vec![pod]);
        db.more = 2;
        let claim = node("PersistentVolumeClaim", "media", "Ready", "", vec![]);
        vec![node("Shop", "books", "Failed", "1 of 3 not ready", vec![db, claim])]
    }

    fn drawn(width: Option<usize>) -> Vec<String> {
        let text = build_table(&forest(), &|_| Some((0, 5_000))).render_text(false, width);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn in_a_file_nothing_is_cut() {
        assert_eq!(
            drawn(None),
            [
                "OBJECT                                VERDICT     AGE   REASON   MESSAGE",
                "Shop shop/books                       Failed      5s    Reason   1 of 3 not ready",
                "├─ Database shop/books-db             Failed      5s    Reason   1 of 2 not ready: Pod books-db-0 failed",
                "│  ├─ Pod shop/books-db-0             Failed      5s    Reason   waiting: CrashLoopBackOff",
                "│  └─ and 2 more",
                "└─ PersistentVolumeClaim shop/media   Ready       5s    Reason",
            ]
        );
    }

    #[test]
    fn on_a_narrow_terminal_reasons_go_below() {
        assert_eq!(
            drawn(Some(40)),
            [
                "Shop shop/books       Failed      5s",
                "  1 of 3 not ready",
                "├─ Database shop/boo… Failed      5s",
                "│    1 of 2 not ready: Pod books-db-0 f…",
                "│  ├─ Pod shop/books… Failed      5s",
                "│  │    waiting: CrashLoopBackOff",
                "│  └─ and 2 more",
                "└─ PersistentVolumeC… Ready       5s",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [1, 5, 12, 20, 40, 60, 80, 120] {
            for line in drawn(Some(width)) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn what_the_cluster_says_cannot_steer_the_terminal() {
        let hostile = node("Pod", "a\x1b[2J\u{202e}b", "Failed", "gone\r\x1b]0;title\x07", vec![]);
        let text = build_table(&[hostile], &|_| None).render_text(false, Some(100));
        assert!(!text.contains(['\x1b', '\r', '\x07', '\u{202e}']), "{text:?}");
        assert!(text.contains("\\u{1b}[2J\\u{202e}b"), "{text}");
    }
}
