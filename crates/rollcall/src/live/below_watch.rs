//! What no policy counts below trees that are watched: searched again and again beside the drawing.

use std::collections::BTreeSet;
use std::time::Duration;

use readiness::Time;
use rollcall_core::TreeNode;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::uncounted::{PolicyAnswers, UncountedFindings};
use super::uncounted_search::UncountedSearch;

/// Time between two searches while nothing changes. 10 s.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two searches after a change of what is followed. 3 s.
const SEARCH_INTERVAL_AFTER_CHANGE: Duration = Duration::from_secs(3);
/// Searches take at most one n-th of the time, with n this number.
const SEARCH_TIME_SHARE: u32 = 4;

/// The last findings, and the search that is going on.
pub(super) struct BelowWatch {
    search: UncountedSearch,
    findings: UncountedFindings,
    running: Option<(Instant, AbortOnDropHandle<UncountedFindings>)>,
    /// Time at which the last search ended, and from which on the next one may begin.
    ended: Option<(Instant, Instant)>,
    /// What could not be read and was told.
    told: BTreeSet<String>,
}

impl BelowWatch {
    pub(super) fn new(search: UncountedSearch) -> BelowWatch {
        BelowWatch {
            search,
            findings: UncountedFindings::default(),
            running: None,
            ended: None,
            told: BTreeSet::new(),
        }
    }

    /// The last findings; empty before the first search has ended.
    pub(super) fn findings(&self) -> &UncountedFindings {
        &self.findings
    }

    /// Adds what was found last to these trees.
    pub(super) fn add_to(&self, trees: &mut [TreeNode], answers: &PolicyAnswers) {
        self.findings.add_to(trees, answers);
    }

    /// Begins a search below these trees if none is going on and it is time for one; `changed` if what is followed has
    /// changed since.
    pub(super) fn search_if_due(&mut self, trees: &[TreeNode], changed: bool, now: Time) {
        let interval = if changed { SEARCH_INTERVAL_AFTER_CHANGE } else { SEARCH_INTERVAL };
        let is_early = self.ended.is_some_and(|(at, earliest)| Instant::now() < earliest.max(at + interval));
        if self.running.is_some() || is_early {
            return;
        }
        let (search, trees) = (self.search.clone(), trees.to_vec());
        let running = tokio::spawn(async move { search.find_below(&trees, now).await });
        self.running = Some((Instant::now(), AbortOnDropHandle::new(running)));
    }

    /// Waits until the search that is going on has ended; for ever if there is none. What it found is kept.
    pub(super) async fn wait_for_findings(&mut self) {
        let Some((_, running)) = &mut self.running else { return std::future::pending().await };
        let found = running.await;
        let now = Instant::now();
        let began = self.running.take().map_or(now, |(began, _)| began);
        self.ended = Some((now, now + (now - began) * (SEARCH_TIME_SHARE - 1)));
        // One that panicked says nothing; the next one may.
        self.findings = found.unwrap_or_default();
    }

    /// What could not be read; called once for each drawing.
    pub(super) fn tell_unread(&mut self) -> UnreadBelow {
        let lines = self.findings.unread.iter().map(|(what, why)| format!("not read: {what}: {why}"));
        let all: BTreeSet<String> = lines.collect();
        let news = all.difference(&self.told).cloned().collect();
        self.told.clone_from(&all);
        UnreadBelow { all: all.into_iter().collect(), news }
    }
}

/// Lines about what could not be read.
#[derive(Debug, Default)]
pub(super) struct UnreadBelow {
    pub(super) all: Vec<String>,
    /// Those that the drawing before did not have.
    pub(super) news: Vec<String>,
}
