//! What the story is told with: scenes, what happens in them, and what is expected of the parent then.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use controller::core::TreeNode;
use tokio::sync::watch;

use super::cast::{Part, SHOP};
use super::cluster::Cluster;
use super::pace::Pace;
use super::peers;
use super::said::{Log, Said};
use super::show::{Caption, Show};

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

/// What the parent's condition is expected to say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expect {
    status: &'static str,
    reason: &'static str,
    text: &'static str,
    stalled: bool,
}

/// The condition has this status and this reason.
pub(super) fn says(status: &'static str, reason: &'static str) -> Expect {
    Expect { status, reason, text: "", stalled: false }
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
    pace: Pace,
    said: Log,
    trees: watch::Receiver<Arc<Vec<TreeNode>>>,
    show: Show,
    caption: Caption,
    /// What was said up to here is answered for.
    mark: usize,
}

impl Stage {
    pub(super) fn new(
        cluster: Arc<Cluster>,
        said: Log,
        trees: watch::Receiver<Arc<Vec<TreeNode>>>,
        pace: Pace,
        show: Show,
    ) -> Stage {
        let caption = match &show {
            Show::Live(caption) => caption.borrow().clone(),
            Show::Lines(_) => Caption::default(),
        };
        Stage { cluster, pace, said, trees, show, caption, mark: 0 }
    }

    /// A new scene.
    pub(super) fn scene(&mut self, scene: usize, scenes: usize, title: &'static str) -> anyhow::Result<()> {
        if self.caption.since == 0 {
            self.caption.since = self.cluster.now();
        }
        self.caption = Caption { scene, scenes, title, ..self.caption.clone() };
        Ok(self.show.scene(&self.caption)?)
    }

    /// This happens now, and means that.
    pub(super) fn tell(&mut self, what: &'static str, moral: &'static str) {
        self.caption = Caption { what, moral, ..self.caption.clone() };
        self.show.now(&self.caption);
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
        let said = self.said.borrow().get(at).cloned().unwrap_or_default();
        self.met(said).await
    }

    /// What the parent said last still holds, although `part` is known by now.
    pub(super) async fn still(&mut self, expect: Expect, part: Part) -> anyhow::Result<()> {
        self.drawn(&expect, |root| root.children.iter().any(|c| c.name == part.name)).await?;
        let said = self.said.borrow().last().cloned().unwrap_or_default();
        if !expect.met_by(&said) {
            return Err(self.unmet(&expect).into());
        }
        self.mark = self.said.borrow().len();
        self.met(said).await
    }

    /// Something beside what the parent says.
    pub(super) fn check(&mut self, what: &str, holds: bool) -> anyhow::Result<()> {
        if !holds {
            return Err(Unmet(format!("not as expected: {what}")).into());
        }
        self.caption.met += 1;
        Ok(())
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

    async fn met(&mut self, said: Said) -> anyhow::Result<()> {
        // The picture is to show what was told: the tree is gathered a moment after the write.
        let reason = said.reason.clone();
        self.drawn(&reason.clone(), |root| root.reason == reason).await?;
        self.caption.others = peers::without_rollcall(&said.object, self.cluster.now());
        let before = std::mem::replace(&mut self.caption.said, said);
        if !before.status.is_empty() {
            self.caption.past.push(before);
        }
        self.caption.met += 1;
        let trees = self.trees.borrow().clone();
        self.show.then(&self.caption, &trees, self.cluster.now())?;
        tokio::time::sleep(self.pace.reading()).await;
        Ok(())
    }

    async fn drawn(
        &mut self,
        what: &impl fmt::Display,
        holds: impl Fn(&TreeNode) -> bool,
    ) -> Result<(), Unmet> {
        let shop = |trees: &Arc<Vec<TreeNode>>| trees.iter().any(|t| t.kind == SHOP.kind && holds(t));
        let seen = tokio::time::timeout(BOUND, self.trees.wait_for(shop)).await;
        match seen {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Unmet(format!("{}: the tree never showed {what}", self.caption.title))),
        }
    }

    /// The story is over.
    pub(super) fn end(&mut self, once: bool) -> anyhow::Result<()> {
        self.caption.over = true;
        Ok(self.show.end(&self.caption, !once)?)
    }
}
