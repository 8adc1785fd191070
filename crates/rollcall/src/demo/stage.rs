//! Primitives of the story: scenes, steps, and expectations on the parent's conditions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rollcall_core::TreeNode;
use tokio::sync::{mpsc, watch};

use super::answer_log::{AnswerLog, DemoAnswer};
use super::cluster::{DemoCluster, MetricsReader};
use super::fixtures::{DemoObject, SHOP};
use super::pace::StoryPace;
use super::peers;
use super::story_caption::{DemoCheck, StoryCaption};
use super::story_output::StoryOutput;

/// Poll interval for values that have no change notification.
const METRIC_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time to wait for an expectation.
const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(30);

/// An expectation that was not met.
#[derive(Debug)]
pub(super) struct UnmetExpectation(String);

impl fmt::Display for UnmetExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnmetExpectation {}

/// An object of the tree, its verdict, and a part of the reason drawn beside it.
pub(super) type ExpectedRow = (DemoObject<'static>, &'static str, &'static str);

/// The expected condition of the parent, and the expected tree below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParentExpectation {
    status: &'static str,
    reason: &'static str,
    text: &'static str,
    stalled: bool,
    tree: &'static [ExpectedRow],
}

/// Expects a condition with this status and reason.
pub(super) fn expect_condition(status: &'static str, reason: &'static str) -> ParentExpectation {
    ParentExpectation { status, reason, text: "", stalled: false, tree: &[] }
}

impl ParentExpectation {
    /// Expects this text in the condition's message.
    pub(super) fn with_message(self, text: &'static str) -> ParentExpectation {
        ParentExpectation { text, ..self }
    }

    /// Expects `Stalled` to be True.
    pub(super) fn with_stalled(self) -> ParentExpectation {
        ParentExpectation { stalled: true, ..self }
    }

    /// Expects exactly these objects below the parent.
    pub(super) fn with_tree(self, tree: &'static [ExpectedRow]) -> ParentExpectation {
        ParentExpectation { tree, ..self }
    }

    fn is_met_by(self, answer: &DemoAnswer) -> bool {
        let stalled = answer.other_conditions.iter().any(|kind| kind == "Stalled");
        answer.status == self.status
            && answer.reason == self.reason
            && answer.message.contains(self.text)
            && stalled == self.stalled
    }
}

impl fmt::Display for ParentExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stalled = if self.stalled { " Stalled=True" } else { "" };
        write!(f, "Ready={} {}{stalled} {:?}", self.status, self.reason, self.text)
    }
}

/// State of the running story.
pub(super) struct StoryStage {
    /// The cluster the story acts on.
    pub(super) cluster: Arc<DemoCluster>,
    /// Metrics of the service.
    pub(super) meter: MetricsReader,
    pace: StoryPace,
    answers: AnswerLog,
    trees: watch::Receiver<Arc<Vec<TreeNode>>>,
    show: StoryOutput,
    caption: StoryCaption,
    /// Index in the log of answers up to which expectations have been checked.
    answered_up_to: usize,
    /// Checks that did not hold.
    unmet: Vec<String>,
    /// Key presses that continue the story, with `--step`.
    keys: Option<mpsc::Receiver<()>>,
}

impl StoryStage {
    pub(super) fn new(
        cluster: Arc<DemoCluster>,
        meter: MetricsReader,
        answers: AnswerLog,
        trees: watch::Receiver<Arc<Vec<TreeNode>>>,
        pace: StoryPace,
        show: StoryOutput,
        caption: StoryCaption,
    ) -> StoryStage {
        StoryStage {
            cluster,
            meter,
            pace,
            answers,
            trees,
            show,
            caption,
            answered_up_to: 0,
            unmet: Vec::new(),
            keys: None,
        }
    }

    /// Begins a new scene.
    pub(super) fn begin_scene(
        &mut self,
        scene: usize,
        scenes: usize,
        title: &'static str,
    ) -> anyhow::Result<()> {
        if self.caption.since == 0 {
            self.caption.since = self.cluster.now_millis();
        }
        self.caption = StoryCaption { scene, scenes, title, checked: Vec::new(), ..self.caption.clone() };
        Ok(self.show.show_scene(&self.caption)?)
    }

    /// Publishes the description of a step and its consequence.
    pub(super) fn describe_event(&mut self, what: &'static str, moral: &'static str) {
        self.caption = StoryCaption { what, moral, ..self.caption.clone() };
        self.show.update_caption(&self.caption);
    }

    /// Makes the story wait for a key press at every step.
    pub(super) fn wait_for_keys(&mut self, keys: mpsc::Receiver<()>) {
        self.keys = Some(keys);
    }

    async fn pause_for_reader(&mut self) {
        let Some(keys) = &mut self.keys else { return tokio::time::sleep(self.pace.reading_time()).await };
        if keys.recv().await.is_none() {
            self.keys = None;
        }
    }

    /// Pauses for the duration `span` of the story.
    pub(super) async fn pause_story(&self, span: Duration) {
        tokio::time::sleep(self.pace.scale_duration(span)).await;
    }

    /// Like [`StoryStage::pause_story`], but never longer than `span` of real time, for steps that must be quick.
    pub(super) async fn pause_at_most(&self, span: Duration) {
        tokio::time::sleep(self.pace.scale_duration(span).min(span)).await;
    }

    /// Waits for the parent's next answer, which must match; until then it must not be True. Shows the result.
    pub(super) async fn expect_answer(&mut self, expect: ParentExpectation) -> anyhow::Result<()> {
        self.await_answer(expect).await?;
        self.show_answer(expect).await
    }

    /// Like [`StoryStage::expect_answer`], without showing the result.
    pub(super) async fn await_answer(&mut self, expect: ParentExpectation) -> anyhow::Result<()> {
        let mark = self.answered_up_to;
        let next = |log: &Vec<DemoAnswer>| -> Option<Result<usize, UnmetExpectation>> {
            for (at, answer) in log.iter().enumerate().skip(mark) {
                if expect.is_met_by(answer) {
                    return Some(Ok(at));
                }
                if answer.status == "True" {
                    return Some(Err(UnmetExpectation(format!(
                        "the parent said Ready=True ({}) where it should only have said {expect}",
                        answer.message
                    ))));
                }
            }
            None
        };
        let found =
            match tokio::time::timeout(EXPECTATION_TIMEOUT, self.answers.wait_for(|log| next(log).is_some()))
                .await
            {
                Ok(Ok(log)) => next(&log),
                _ => None,
            };
        let at = found.unwrap_or_else(|| Err(self.unmet_error(&expect)))?;
        self.answered_up_to = at + 1;
        Ok(())
    }

    /// Checks that the parent's last answer still holds, although the tree has changed.
    pub(super) async fn expect_unchanged(&mut self, expect: ParentExpectation) -> anyhow::Result<()> {
        self.await_tree(expect.tree).await?;
        let answer = self.answers.borrow().last().cloned().unwrap_or_default();
        if !expect.is_met_by(&answer) {
            return Err(self.unmet_error(&expect).into());
        }
        self.answered_up_to = self.answers.borrow().len();
        self.show_answer(expect).await
    }

    /// Waits until the tree shows exactly these objects below the parent.
    pub(super) async fn await_tree(&mut self, rows: &[ExpectedRow]) -> Result<(), UnmetExpectation> {
        self.await_tree_when(rows, |_, shown| shown).await
    }

    /// Records a check of something other than the parent's conditions. A failed check does not stop the story, but
    /// fails it at the end.
    pub(super) fn record_check(&mut self, what: impl Into<String>, holds: bool) -> anyhow::Result<()> {
        let what = what.into();
        if holds {
            self.caption.met += 1;
        } else {
            self.unmet.push(what.clone());
        }
        self.caption.checked.push(DemoCheck { what, holds });
        Ok(self.show.show_check(&self.caption)?)
    }

    /// Waits until this metric series, as the service serves it, reaches this value.
    pub(super) async fn await_metric(&mut self, series: &str, value: f64) -> anyhow::Result<()> {
        let meter = self.meter.clone();
        let reached = async {
            while meter.read_series(series).await?.is_none_or(|now| now < value) {
                tokio::time::sleep(METRIC_POLL_INTERVAL).await;
            }
            anyhow::Ok(())
        };
        let reached = tokio::time::timeout(EXPECTATION_TIMEOUT, reached).await;
        let holds = reached.is_ok_and(|read| read.is_ok());
        self.record_check(format!("{series} {value}"), holds)
    }

    fn unmet_error(&self, expect: &impl fmt::Display) -> UnmetExpectation {
        let answer = self.answers.borrow().last().cloned().unwrap_or_default();
        let DemoAnswer { status, reason, message, other_conditions: beside, .. } = answer;
        let (title, within) = (self.caption.title, EXPECTATION_TIMEOUT.as_secs());
        UnmetExpectation(format!(
            "{title}: expected {expect} within {within} s, but the parent says Ready={status} {reason} {message:?} {}",
            beside.join(" ")
        ))
    }

    /// Shows the parent's last expected answer and the current tree.
    pub(super) async fn show_answer(&mut self, expect: ParentExpectation) -> anyhow::Result<()> {
        let answer = self.answered_up_to.checked_sub(1).and_then(|at| self.answers.borrow().get(at).cloned());
        let answer = answer.unwrap_or_default();
        // The view should show the tree that belongs to the answer, which is collected a moment after the write. If the
        // parent has changed again by then, the newer tree is shown.
        let (log, mark) = (self.answers.clone(), self.answered_up_to);
        let as_told = |reason: &str, shown| shown && reason == expect.reason;
        self.await_tree_when(expect.tree, |reason, shown| {
            as_told(reason, shown) || log.borrow().len() > mark
        })
        .await?;
        // The state read by a GET must also have been delivered by the watch, by now or later.
        let live = self.cluster.get_object(SHOP).await?;
        let read = DemoAnswer::from_object(&live);
        let shows =
            |log: &Vec<DemoAnswer>| log.iter().skip(mark.saturating_sub(1)).any(|answer| *answer == read);
        if !matches!(tokio::time::timeout(EXPECTATION_TIMEOUT, self.answers.wait_for(shows)).await, Ok(Ok(_)))
        {
            return Err(
                UnmetExpectation(format!("GET returned {read:?}, but no watch ever delivered it")).into()
            );
        }
        self.caption.others = peers::judge_without_rollcall(&live, self.cluster.now_millis());
        let before = std::mem::replace(&mut self.caption.answer, answer);
        if !before.status.is_empty() && before != self.caption.answer {
            self.caption.past_answers.push(before);
        }
        self.caption.met += 1;
        let trees = self.trees.borrow().clone();
        self.show.show_state(&self.caption, &trees, self.cluster.now_millis())?;
        self.pause_for_reader().await;
        Ok(())
    }

    /// Waits for a tree that `holds` accepts; it receives the parent's reason, and `true` if exactly these objects are
    /// drawn below it.
    async fn await_tree_when(
        &mut self,
        rows: &[ExpectedRow],
        holds: impl Fn(&str, bool) -> bool,
    ) -> Result<(), UnmetExpectation> {
        let shows = |root: &TreeNode| holds(root.reason.as_str(), rows_below(root, rows));
        let drawn = |trees: &Arc<Vec<TreeNode>>| trees.iter().any(|t| t.kind == SHOP.kind && shows(t));
        match tokio::time::timeout(EXPECTATION_TIMEOUT, self.trees.wait_for(drawn)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(UnmetExpectation(format!("{}: the tree never showed {rows:?}", self.caption.title))),
        }
    }

    /// Ends the story.
    pub(super) fn end_story(&mut self, once: bool) -> anyhow::Result<()> {
        if !self.unmet.is_empty() {
            return Err(UnmetExpectation(format!("not as expected: {}", self.unmet.join("; "))).into());
        }
        self.caption.over = true;
        Ok(self.show.show_end(&self.caption, !once)?)
    }
}

/// Returns `true` if exactly these objects are below the root.
fn rows_below(root: &TreeNode, rows: &[ExpectedRow]) -> bool {
    fn collect_below<'a>(node: &'a TreeNode, out: &mut Vec<&'a TreeNode>) {
        for child in &node.children {
            out.push(child);
            collect_below(child, out);
        }
    }
    let mut nodes = Vec::new();
    collect_below(root, &mut nodes);
    let shown = |(part, verdict, why): &ExpectedRow| {
        let is =
            |n: &&TreeNode| (n.kind.as_str(), n.name.as_str(), n.verdict) == (part.kind, part.name, *verdict);
        nodes.iter().any(|n| is(n) && super::tree::verdict_reason(n).contains(why))
    };
    nodes.len() == rows.len() && rows.iter().all(shown)
}
