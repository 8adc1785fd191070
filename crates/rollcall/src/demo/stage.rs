//! What the story is told with: scenes, what happens in them, and what is expected of the parent then.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use controller::core::TreeNode;
use tokio::sync::{mpsc, watch};

use super::cast::{Part, SHOP};
use super::cluster::{Cluster, Meter};
use super::pace::Pace;
use super::peers;
use super::said::{Log, Said};
use super::show::{Caption, Check, Show};

/// How often something is asked for that does not say by itself when it moves.
const AGAIN: Duration = Duration::from_millis(100);
/// Whatever is expected comes within this time, or never.
const BOUND: Duration = Duration::from_secs(30);

/// An expectation that was not met.
#[derive(Debug)]
pub(super) struct Unmet(String);

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unmet {}

/// An object of the tree, its verdict, and what is in the reason that is drawn beside it.
pub(super) type Row = (Part, &'static str, &'static str);

/// What the parent's condition is expected to say, and what the tree below it is to show then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expect {
    status: &'static str,
    reason: &'static str,
    text: &'static str,
    stalled: bool,
    tree: &'static [Row],
}

/// The condition has this status and this reason.
pub(super) fn says(status: &'static str, reason: &'static str) -> Expect {
    Expect { status, reason, text: "", stalled: false, tree: &[] }
}

impl Expect {
    /// This is in its message.
    pub(super) fn with(self, text: &'static str) -> Expect {
        Expect { text, ..self }
    }

    /// It is told not to wait any longer.
    pub(super) fn stalled(self) -> Expect {
        Expect { stalled: true, ..self }
    }

    /// These are below the parent, and nothing else is.
    pub(super) fn over(self, tree: &'static [Row]) -> Expect {
        Expect { tree, ..self }
    }

    fn met_by(self, said: &Said) -> bool {
        let stalled = said.beside.iter().any(|kind| kind == "Stalled");
        said.status == self.status
            && said.reason == self.reason
            && said.message.contains(self.text)
            && stalled == self.stalled
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stalled = if self.stalled { " Stalled=True" } else { "" };
        write!(f, "Ready={} {}{stalled} {:?}", self.status, self.reason, self.text)
    }
}

/// The stage.
pub(super) struct Stage {
    /// What the story acts upon.
    pub(super) cluster: Arc<Cluster>,
    /// What Rollcall says of itself.
    pub(super) meter: Meter,
    pace: Pace,
    said: Log,
    trees: watch::Receiver<Arc<Vec<TreeNode>>>,
    show: Show,
    caption: Caption,
    /// What was said up to here is answered for.
    mark: usize,
    /// What was looked at and not found as expected.
    unmet: Vec<String>,
    /// Somebody says when it goes on.
    keys: Option<mpsc::Receiver<()>>,
}

impl Stage {
    pub(super) fn new(
        cluster: Arc<Cluster>,
        meter: Meter,
        said: Log,
        trees: watch::Receiver<Arc<Vec<TreeNode>>>,
        pace: Pace,
        show: Show,
        caption: Caption,
    ) -> Stage {
        Stage { cluster, meter, pace, said, trees, show, caption, mark: 0, unmet: Vec::new(), keys: None }
    }

    /// A new scene.
    pub(super) fn scene(&mut self, scene: usize, scenes: usize, title: &'static str) -> anyhow::Result<()> {
        if self.caption.since == 0 {
            self.caption.since = self.cluster.now();
        }
        self.caption = Caption { scene, scenes, title, checked: Vec::new(), ..self.caption.clone() };
        Ok(self.show.scene(&self.caption)?)
    }

    /// This happens now, and means that.
    pub(super) fn tell(&mut self, what: &'static str, moral: &'static str) {
        self.caption = Caption { what, moral, ..self.caption.clone() };
        self.show.now(&self.caption);
    }

    /// From now on somebody says when it goes on.
    pub(super) fn wait_for(&mut self, keys: mpsc::Receiver<()>) {
        self.keys = Some(keys);
    }

    async fn turn_the_page(&mut self) {
        let Some(keys) = &mut self.keys else { return tokio::time::sleep(self.pace.reading()).await };
        if keys.recv().await.is_none() {
            self.keys = None;
        }
    }

    /// Something takes this long in the story.
    pub(super) async fn takes(&self, span: Duration) {
        tokio::time::sleep(self.pace.takes(span)).await;
    }

    /// The same, but never longer: what has to be quick to be what it is.
    pub(super) async fn takes_at_most(&self, span: Duration) {
        tokio::time::sleep(self.pace.takes(span).min(span)).await;
    }

    /// The next thing that the parent says is this; until then it does not say True.
    pub(super) async fn expect(&mut self, expect: Expect) -> anyhow::Result<()> {
        self.hear(expect).await?;
        self.show(expect).await
    }

    /// The same, but nothing is shown yet.
    pub(super) async fn hear(&mut self, expect: Expect) -> anyhow::Result<()> {
        let mark = self.mark;
        let next = |log: &Vec<Said>| -> Option<Result<usize, Unmet>> {
            for (at, said) in log.iter().enumerate().skip(mark) {
                if expect.met_by(said) {
                    return Some(Ok(at));
                }
                if said.status == "True" {
                    return Some(Err(Unmet(format!(
                        "the parent said Ready=True ({}) where it should only have said {expect}",
                        said.message
                    ))));
                }
            }
            None
        };
        let found = match tokio::time::timeout(BOUND, self.said.wait_for(|log| next(log).is_some())).await {
            Ok(Ok(log)) => next(&log),
            _ => None,
        };
        let at = found.unwrap_or_else(|| Err(self.unmet(&expect)))?;
        self.mark = at + 1;
        Ok(())
    }

    /// What the parent said last still holds, although the tree has moved.
    pub(super) async fn still(&mut self, expect: Expect) -> anyhow::Result<()> {
        self.drawn(expect.tree).await?;
        let said = self.said.borrow().last().cloned().unwrap_or_default();
        if !expect.met_by(&said) {
            return Err(self.unmet(&expect).into());
        }
        self.mark = self.said.borrow().len();
        self.show(expect).await
    }

    /// The tree shows these below the parent.
    pub(super) async fn drawn(&mut self, rows: &[Row]) -> Result<(), Unmet> {
        self.drawn_when(rows, |_, shown| shown).await
    }

    /// Something beside what the parent says. The story goes on where it does not hold, and ends as one that failed.
    pub(super) fn check(&mut self, what: impl Into<String>, holds: bool) -> anyhow::Result<()> {
        let what = what.into();
        if holds {
            self.caption.met += 1;
        } else {
            self.unmet.push(what.clone());
        }
        self.caption.checked.push(Check { what, holds });
        Ok(self.show.checked(&self.caption)?)
    }

    /// This series, as the service serves it, reaches this value.
    pub(super) async fn counted(&mut self, series: &str, value: f64) -> anyhow::Result<()> {
        let meter = self.meter.clone();
        let reached = async {
            while meter.read(series).await?.is_none_or(|now| now < value) {
                tokio::time::sleep(AGAIN).await;
            }
            anyhow::Ok(())
        };
        let reached = tokio::time::timeout(BOUND, reached).await;
        let holds = reached.is_ok_and(|read| read.is_ok());
        self.check(format!("{series} {value}"), holds)
    }

    fn unmet(&self, expect: &impl fmt::Display) -> Unmet {
        let said = self.said.borrow().last().cloned().unwrap_or_default();
        let Said { status, reason, message, beside, .. } = said;
        let (title, within) = (self.caption.title, BOUND.as_secs());
        Unmet(format!(
            "{title}: expected {expect} within {within} s, but the parent says Ready={status} {reason} {message:?} {}",
            beside.join(" ")
        ))
    }

    /// Shows what the parent said last of what was expected, and how everything stands.
    pub(super) async fn show(&mut self, expect: Expect) -> anyhow::Result<()> {
        let said = self.mark.checked_sub(1).and_then(|at| self.said.borrow().get(at).cloned());
        let said = said.unwrap_or_default();
        // The picture is to show what was told: the tree is gathered a moment after the write. Where that took so long
        // that the parent has said more by then, the newer tree will do.
        let (log, mark) = (self.said.clone(), self.mark);
        let as_told = |reason: &str, shown| shown && reason == expect.reason;
        self.drawn_when(expect.tree, |reason, shown| as_told(reason, shown) || log.borrow().len() > mark)
            .await?;
        // What a plain GET says, the watch has to have said, now or since.
        let live = self.cluster.get(SHOP).await?;
        let read = Said::read(&live);
        let heard = |log: &Vec<Said>| log.iter().skip(mark.saturating_sub(1)).any(|said| *said == read);
        if !matches!(tokio::time::timeout(BOUND, self.said.wait_for(heard)).await, Ok(Ok(_))) {
            return Err(Unmet(format!("GET says {read:?}, and no watch ever said that")).into());
        }
        self.caption.others = peers::without_rollcall(&live, self.cluster.now());
        let before = std::mem::replace(&mut self.caption.said, said);
        if !before.status.is_empty() && before != self.caption.said {
            self.caption.past.push(before);
        }
        self.caption.met += 1;
        let trees = self.trees.borrow().clone();
        self.show.then(&self.caption, &trees, self.cluster.now())?;
        self.turn_the_page().await;
        Ok(())
    }

    /// `holds` is told the parent's reason, and whether exactly these are drawn below it.
    async fn drawn_when(&mut self, rows: &[Row], holds: impl Fn(&str, bool) -> bool) -> Result<(), Unmet> {
        let shows = |root: &TreeNode| holds(&root.reason, rows_below(root, rows));
        let drawn = |trees: &Arc<Vec<TreeNode>>| trees.iter().any(|t| t.kind == SHOP.kind && shows(t));
        match tokio::time::timeout(BOUND, self.trees.wait_for(drawn)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Unmet(format!("{}: the tree never showed {rows:?}", self.caption.title))),
        }
    }

    /// The story is over.
    pub(super) fn end(&mut self, once: bool) -> anyhow::Result<()> {
        if !self.unmet.is_empty() {
            return Err(Unmet(format!("not as expected: {}", self.unmet.join("; "))).into());
        }
        self.caption.over = true;
        Ok(self.show.end(&self.caption, !once)?)
    }
}

/// These are below the root, and nothing else.
fn rows_below(root: &TreeNode, rows: &[Row]) -> bool {
    fn below<'a>(node: &'a TreeNode, out: &mut Vec<&'a TreeNode>) {
        for child in &node.children {
            out.push(child);
            below(child, out);
        }
    }
    let mut nodes = Vec::new();
    below(root, &mut nodes);
    let shown = |(part, verdict, why): &Row| {
        let is =
            |n: &&TreeNode| (n.kind.as_str(), n.name.as_str(), n.verdict) == (part.kind, part.name, *verdict);
        nodes.iter().any(|n| is(n) && super::tree::why(n).contains(why))
    };
    nodes.len() == rows.len() && rows.iter().all(shown)
}
