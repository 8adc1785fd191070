//! The story's caption beside the tree.

use super::answer_log::DemoAnswer;

/// A check of something other than the parent's conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DemoCheck {
    /// The claim that is checked.
    pub(super) what: String,
    /// `true` if the claim holds.
    pub(super) holds: bool,
}

/// Current state of the story.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StoryCaption {
    /// Number of the scene, from 1; 0 before the first.
    pub(super) scene: usize,
    /// Number of scenes.
    pub(super) scenes: usize,
    /// Title of the scene.
    pub(super) title: &'static str,
    /// Description of the current step.
    pub(super) what: &'static str,
    /// Consequence without Rollcall, beyond the verdicts of other tools.
    pub(super) moral: &'static str,
    /// Verdicts of other tools.
    pub(super) others: String,
    /// Current conditions of the parent.
    pub(super) answer: DemoAnswer,
    /// Former conditions of the parent, oldest first.
    pub(super) past_answers: Vec<DemoAnswer>,
    /// Checks that held in this scene.
    pub(super) checked: Vec<DemoCheck>,
    /// Number of expectations that were met.
    pub(super) met: usize,
    /// Address at which metrics are served.
    pub(super) listening: String,
    /// Command that inspects the cluster with kubectl.
    pub(super) kubectl: String,
    /// Start of the story, in milliseconds since the Unix epoch.
    pub(super) since: i64,
    /// `true` once the story is over.
    pub(super) over: bool,
}
