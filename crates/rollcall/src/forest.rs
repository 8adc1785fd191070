//! Trees of objects on a terminal or in a file: who belongs to whom, how ready, since when there, and why.

use std::process::ExitCode;

use controller::core::TreeNode;

use crate::eval::{Output, title};
use crate::look::Look;
use crate::text::{Line, Style, cut, plain, put, say};

/// Wide enough for the longest verdict and a gap.
const VERDICT: usize = 12;
/// Wide enough for an age and a gap.
const AGE: usize = 6;
/// Between two columns.
const GAP: usize = 3;
/// Where less than this is left for the reason, it gets a line of its own.
const NARROW: usize = 24;

/// When an object was created, in milliseconds since the Unix epoch, and what time it is.
pub(crate) type Ages<'a> = &'a dyn Fn(&TreeNode) -> Option<(i64, i64)>;

/// Prints the trees; the exit code is that of the parents.
pub(crate) fn print(trees: &[TreeNode], output: Output, ages: Ages<'_>) -> anyhow::Result<ExitCode> {
    put(&text(trees, output, ages)?)?;
    if trees.is_empty() {
        say("no object is a parent by these policies");
    }
    Ok(ExitCode::from(code(trees)))
}

/// The trees in that form, as wide as the terminal is.
pub(crate) fn text(trees: &[TreeNode], output: Output, ages: Ages<'_>) -> anyhow::Result<String> {
    Ok(match output {
        Output::Json => serde_json::to_string_pretty(trees)? + "\n",
        Output::Yaml => controller::policies::to_yaml(&trees)?,
        Output::Table => lines(trees, ages).text(Look::of_this_process(true).colour, Look::width()),
    })
}

/// 0 all ready, 1 at least one not, 2 there is none.
pub(crate) fn code(trees: &[TreeNode]) -> u8 {
    if trees.is_empty() {
        return 2;
    }
    u8::from(trees.iter().any(|tree| tree.verdict != "Ready"))
}

/// A table of objects.
struct Table(Vec<Row>);

struct Row {
    /// What leads in this line, and what goes on below it.
    before: String,
    below: String,
    object: String,
    verdict: &'static str,
    age: String,
    reason: String,
    why: String,
}

/// One row for each object, and one for those that are left out.
fn lines(trees: &[TreeNode], ages: Ages<'_>) -> Table {
    let mut rows = Vec::new();
    for tree in trees {
        draw(tree, "", "", ages, &mut rows);
    }
    Table(rows)
}

fn draw(node: &TreeNode, before: &str, below: &str, ages: Ages<'_>, rows: &mut Vec<Row>) {
    let optional = if node.role == "optional" { " (optional)" } else { "" };
    let line = |text: &str| plain(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    rows.push(Row {
        before: before.to_owned(),
        below: below.to_owned(),
        object: line(&title(&node.kind, &node.namespace, &node.name)) + optional,
        verdict: node.verdict,
        age: ages(node).map_or(String::new(), |(created, now)| age(now - created)),
        reason: line(&node.reason),
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
        draw(child, &before, &below, ages, rows);
    }
    if node.more > 0 {
        let (before, below) = fork(last - 1);
        let (age, reason, why) = Default::default();
        let object = format!("and {} more", node.more);
        rows.push(Row { before, below, object, verdict: "", age, reason, why });
    }
}

impl Table {
    /// As text; on a terminal of that width, or as wide as it needs to be.
    fn text(&self, colour: bool, width: Option<usize>) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let lines = match width {
            Some(width) => self.within(width),
            None => self.whole(),
        };
        lines.into_iter().map(|line| line.fit(width.unwrap_or(usize::MAX), colour) + "\n").collect()
    }

    fn ages(&self) -> usize {
        if self.0.iter().any(|row| !row.age.is_empty()) { AGE } else { 0 }
    }

    /// Everything, in columns as wide as they need to be.
    fn whole(&self) -> Vec<Line> {
        let widest = |of: &dyn Fn(&Row) -> usize| self.0.iter().map(of).max().unwrap_or(0);
        let object = widest(&Row::title_width).max(6) + GAP;
        let reason = widest(&|row| row.reason.chars().count()).max(6) + GAP;
        let ages = self.ages();
        let (at, mut out) = ([object, object + VERDICT + ages, object + VERDICT + ages + reason], Vec::new());
        let head = Line::new(Style::Plain, "OBJECT").to(at[0]).then(Style::Plain, "VERDICT");
        let head = if ages > 0 { head.to(object + VERDICT).then(Style::Plain, "AGE") } else { head };
        out.push(head.to(at[1]).then(Style::Plain, "REASON").to(at[2]).then(Style::Plain, "MESSAGE"));
        for row in &self.0 {
            let line = row.title(usize::MAX).to(at[0]).then(Style::of(row.verdict), row.verdict);
            let line = if ages > 0 { line.to(object + VERDICT).then(Style::Dim, &*row.age) } else { line };
            out.push(line.to(at[1]).then(Style::Plain, &*row.reason).to(at[2]).then(Style::Plain, &*row.why));
        }
        out
    }

    /// What fits: the reason beside the verdict, or below it where the terminal is narrow.
    fn within(&self, width: usize) -> Vec<Line> {
        let ages = self.ages();
        let widest = self.0.iter().map(Row::title_width).max().unwrap_or(0) + GAP;
        let beside = width.saturating_sub(VERDICT + ages);
        let narrow = beside < 2 * NARROW;
        let object = if narrow { widest.min(beside) } else { widest.min(beside - NARROW).min(width / 2) };
        let mut out = Vec::new();
        for row in &self.0 {
            let line =
                row.title(object.saturating_sub(1)).to(object).then(Style::of(row.verdict), row.verdict);
            let line = if ages > 0 { line.to(object + VERDICT).then(Style::Dim, &*row.age) } else { line };
            let why = row.short();
            if narrow {
                out.push(line);
                if !why.is_empty() {
                    out.push(Line::new(Style::Dim, &*row.below).then(Style::Dim, format!("  {why}")));
                }
            } else {
                out.push(line.to(object + VERDICT + ages).then(Style::Plain, why));
            }
        }
        out
    }
}

impl Row {
    fn title_width(&self) -> usize {
        self.before.chars().count() + self.object.chars().count()
    }

    fn title(&self, width: usize) -> Line {
        let room = width.saturating_sub(self.before.chars().count());
        Line::new(Style::Dim, &*self.before).then(Style::Plain, cut(&self.object, room))
    }

    /// The one thing to say where there is little room: nothing where it is ready.
    fn short(&self) -> &str {
        match (self.verdict, &*self.why) {
            ("Ready" | "", _) => "",
            (_, "") => &self.reason,
            (_, why) => why,
        }
    }
}

/// An age in its largest unit.
pub(crate) fn age(millis: i64) -> String {
    match millis.max(0) / 1_000 {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7_200 => format!("{}m", s / 60),
        s @ 7_200..172_800 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, name: &str, verdict: &'static str, why: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            verdict,
            reason: "Reason".to_owned(),
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
        let text = lines(&forest(), &|_| Some((0, 5_000))).text(false, width);
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
        let text = lines(&[hostile], &|_| None).text(false, Some(100));
        assert!(!text.contains(['\x1b', '\r', '\x07', '\u{202e}']), "{text:?}");
        assert!(text.contains("\\u{1b}[2J\\u{202e}b"), "{text}");
    }
}
