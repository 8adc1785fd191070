//! What is shown beside the tree, and the two ways of showing it.

use std::sync::Arc;

use controller::core::TreeNode;
use tokio::sync::watch;

use super::said::Said;
use super::transcript;
use crate::look::Look;
use crate::text::Line;

/// Something beside what the parent says that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// What is so, or should be.
    pub(super) what: String,
    /// Whether it is.
    pub(super) holds: bool,
}

/// What is going on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Caption {
    /// Which scene, from 1; 0 before the first.
    pub(super) scene: usize,
    /// Of how many.
    pub(super) scenes: usize,
    /// Its title.
    pub(super) title: &'static str,
    /// What happens.
    pub(super) what: &'static str,
    /// What that would mean without Rollcall, beyond what others say.
    pub(super) moral: &'static str,
    /// What others say.
    pub(super) others: String,
    /// What the parent says.
    pub(super) said: Said,
    /// What it said before, oldest first.
    pub(super) past: Vec<Said>,
    /// What else was found to be as expected in this scene.
    pub(super) checked: Vec<Check>,
    /// How many expectations were met.
    pub(super) met: usize,
    /// Where metrics are served.
    pub(super) listening: String,
    /// How to look at the cluster with one's own tools.
    pub(super) kubectl: String,
    /// When the story began, in milliseconds since the Unix epoch.
    pub(super) since: i64,
    /// The story is over.
    pub(super) over: bool,
}

/// The two ways of showing a story.
pub(super) enum Show {
    /// A picture that is redrawn whenever this or the tree moves.
    Live(watch::Sender<Caption>),
    /// Line after line.
    Lines(Look),
}

impl Show {
    /// The story moved on: something new is happening now.
    pub(super) fn now(&self, caption: &Caption) {
        if let Show::Live(shown) = self {
            shown.send_replace(caption.clone());
        }
    }

    /// What was to happen has happened, and this is how everything stands.
    pub(super) fn then(
        &self,
        caption: &Caption,
        trees: &Arc<Vec<TreeNode>>,
        now: i64,
    ) -> std::io::Result<()> {
        match self {
            Show::Live(shown) => _ = shown.send_replace(caption.clone()),
            Show::Lines(look) => transcript::write(&transcript::beat(caption, trees, now), *look)?,
        }
        Ok(())
    }

    /// Something beside what the parent says was looked at.
    pub(super) fn checked(&self, caption: &Caption) -> std::io::Result<()> {
        match (self, caption.checked.as_slice()) {
            (Show::Live(shown), _) => _ = shown.send_replace(caption.clone()),
            (Show::Lines(look), [before @ .., last]) => {
                let mut lines = transcript::checked(last, transcript::WIDTH);
                if before.is_empty() {
                    lines.insert(0, Line::default());
                }
                transcript::write(&lines, *look)?;
            }
            (Show::Lines(_), []) => {}
        }
        Ok(())
    }

    /// A new scene begins.
    pub(super) fn scene(&self, caption: &Caption) -> std::io::Result<()> {
        match self {
            Show::Live(_) => Ok(()),
            Show::Lines(look) => transcript::write(&transcript::scene(caption), *look),
        }
    }

    /// The story is over.
    pub(super) fn end(&self, caption: &Caption, stays: bool) -> std::io::Result<()> {
        match self {
            Show::Live(shown) => _ = shown.send_replace(caption.clone()),
            Show::Lines(look) => transcript::write(&transcript::end(caption, stays), *look)?,
        }
        Ok(())
    }
}
