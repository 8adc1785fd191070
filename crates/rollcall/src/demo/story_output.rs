//! The two output modes of the story.

use std::sync::Arc;

use rollcall_core::TreeNode;
use tokio::sync::watch;

use super::story_caption::StoryCaption;
use super::transcript;
use crate::terminal::TerminalCapabilities;
use crate::text::StyledLine;

/// Output mode of the story.
pub(super) enum StoryOutput {
    /// A full-screen view, redrawn on every change of the caption or the tree.
    Live(watch::Sender<StoryCaption>),
    /// A transcript, line by line.
    Lines(TerminalCapabilities),
}

impl StoryOutput {
    /// Publishes the caption of a new step.
    pub(super) fn update_caption(&self, caption: &StoryCaption) {
        if let StoryOutput::Live(shown) = self {
            shown.send_replace(caption.clone());
        }
    }

    /// Prints the state after a step has had its effect.
    pub(super) fn show_state(
        &self,
        caption: &StoryCaption,
        trees: &Arc<Vec<TreeNode>>,
        now: i64,
    ) -> std::io::Result<()> {
        match self {
            StoryOutput::Live(shown) => _ = shown.send_replace(caption.clone()),
            StoryOutput::Lines(look) => {
                transcript::write_lines(&transcript::beat_lines(caption, trees, now), *look)?;
            }
        }
        Ok(())
    }

    /// Prints a check.
    pub(super) fn show_check(&self, caption: &StoryCaption) -> std::io::Result<()> {
        match (self, caption.checked.as_slice()) {
            (StoryOutput::Live(shown), _) => _ = shown.send_replace(caption.clone()),
            (StoryOutput::Lines(look), [before @ .., last]) => {
                let mut lines = transcript::check_lines(last, transcript::TRANSCRIPT_WIDTH);
                if before.is_empty() {
                    lines.insert(0, StyledLine::default());
                }
                transcript::write_lines(&lines, *look)?;
            }
            (StoryOutput::Lines(_), []) => {}
        }
        Ok(())
    }

    /// Prints the heading of a new scene.
    pub(super) fn show_scene(&self, caption: &StoryCaption) -> std::io::Result<()> {
        match self {
            StoryOutput::Live(_) => Ok(()),
            StoryOutput::Lines(look) => transcript::write_lines(&transcript::scene_heading(caption), *look),
        }
    }

    /// Prints the ending.
    pub(super) fn show_end(&self, caption: &StoryCaption, stays: bool) -> std::io::Result<()> {
        match self {
            StoryOutput::Live(shown) => _ = shown.send_replace(caption.clone()),
            StoryOutput::Lines(look) => {
                transcript::write_lines(&transcript::ending_lines(caption, stays), *look)?;
            }
        }
        Ok(())
    }
}
