//! Policies that are said to be gone. They stay in force until the server itself confirms it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use policy::FoundPolicy;
use tracing::warn;
use watcher::ParentObject;
use watcher::plan::LabelMatcher;

use super::live_policy::{KnownPolicy, read_live_policy};
use crate::clock::ServerClock;
use crate::failure_reporter::FailureReporter;

/// Time after which a live read that failed is tried again.
const CONFIRM_RETRY: Duration = Duration::from_secs(5);

type LiveRead = (FoundPolicy, Result<Option<ParentObject>, String>);

/// Policies that a watch or a complete list has said to be gone.
#[derive(Default)]
pub(super) struct Departures {
    suspected: BTreeMap<String, FoundPolicy>,
    reads: FuturesUnordered<BoxFuture<'static, LiveRead>>,
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
}

/// What a live read has shown of a policy that was said to be gone.
#[derive(Debug)]
pub(super) enum Departure {
    /// It is gone, or another one has its name, or it is not for this release any more.
    Confirmed(FoundPolicy),
    /// It is there.
    Refuted(Box<ParentObject>),
    /// It could not be read: it is read again after a while.
    Unconfirmed(FoundPolicy),
    /// The question was dropped meanwhile.
    Superseded,
}

impl Departures {
    /// This policy is said to be gone.
    pub(super) fn suspect(&mut self, found: FoundPolicy) {
        self.suspected.insert(found.name.clone(), found);
    }

    /// A policy of this name is there.
    pub(super) fn refute(&mut self, name: &str) {
        self.suspected.remove(name);
    }

    /// Policies that are said to be gone.
    pub(super) fn suspected(&self) -> impl Iterator<Item = &FoundPolicy> {
        self.suspected.values()
    }

    /// Asks the server about these, at once.
    pub(super) fn confirm(&mut self, client: &kube::Client, clock: &ServerClock, suspects: Vec<FoundPolicy>) {
        for found in suspects {
            self.read((client, clock), found, Duration::ZERO);
        }
    }

    /// Asks the server about this one again, later.
    pub(super) fn retry(&mut self, client: &kube::Client, clock: &ServerClock, found: FoundPolicy) {
        self.read((client, clock), found, CONFIRM_RETRY);
    }

    fn read(&mut self, (client, clock): (&kube::Client, &ServerClock), found: FoundPolicy, after: Duration) {
        let (client, clock) = (client.clone(), clock.clone());
        self.reads.push(Box::pin(async move {
            tokio::time::sleep(after).await;
            let known = KnownPolicy { seen: found.created, now: clock.now() };
            let read = read_live_policy(&client, &found.name, known).await;
            (found, read)
        }));
    }

    /// The next answer of the server; `None` where nothing is asked.
    pub(super) async fn next(&mut self, selector: &LabelMatcher) -> Option<Departure> {
        let (found, read) = self.reads.next().await?;
        Some(self.settle(found, read, selector))
    }

    fn settle(
        &mut self,
        found: FoundPolicy,
        read: Result<Option<ParentObject>, String>,
        selector: &LabelMatcher,
    ) -> Departure {
        if self.suspected.get(&found.name).is_none_or(|suspect| suspect.uid != found.uid) {
            return Departure::Superseded;
        }
        match read {
            Ok(Some(policy))
                if *policy.child.meta.uid == *found.uid && selector.matches(&policy.child.meta.labels) =>
            {
                self.suspected.remove(&found.name);
                Departure::Refuted(Box::new(policy))
            }
            Ok(_) => {
                self.suspected.remove(&found.name);
                Departure::Confirmed(found)
            }
            Err(error) => {
                let policy = found.name.clone();
                self.failures.report("confirm deletion", policy.clone(), move |failures| {
                    warn!(
                        policy,
                        error, failures, "cannot confirm that the policy is deleted; it stays in force"
                    );
                });
                Departure::Unconfirmed(found)
            }
        }
    }
}
