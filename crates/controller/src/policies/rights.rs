//! Rights that policies need and the service lacks, as the API server says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use policy::rbac::{AccessNeed, DemandedRight, GrantDemand, role_flags};
use policy::{PolicyBook, PolicyInUse, Released};
use timer::Backoff;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::own_account::own_account;
use super::right_needs::{NeedScope, RightNeeds};
use super::rights_text::describe_rights;
use crate::access_review::{ReviewSubject, review_access};
use crate::kind_tasks::KindContext;

/// Wait before a review, for the kinds of a new plan to be discovered.
const REVIEW_DELAY: Duration = Duration::from_secs(1);
/// Wait before the rights are reviewed that a refusal puts in doubt: longer after each review that could not explain one.
const DOUBT_BACKOFF: Backoff = Backoff { base: REVIEW_DELAY, cap: Duration::from_mins(1) };
/// Wait before rights are reviewed again that lacked: longer after each review that found the same.
const LACKING_BACKOFF: Backoff = Backoff { base: Duration::from_secs(10), cap: Duration::from_secs(30) };
/// Shortest interval between two questions of a review that no new plan called for. 200 ms.
const QUESTION_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of concurrent reviews.
const MAX_CONCURRENT_REVIEWS: usize = 4;

/// Reviews the rights that the policies in force need: after each plan, whenever the server refused something, and while
/// some lack. At rest it asks nothing.
#[derive(Default)]
pub(super) struct RightsReviewer {
    /// What policies need, as last asked for.
    needs: RightNeeds,
    /// It is not known yet what policies left on parents that are gone.
    awaits_releases: bool,
    findings: RightsFindings,
    next: Option<NextReview>,
    under_way: Option<BoxFuture<'static, Reviewed>>,
    /// Reviews in a row, since the last plan, that found what the one before had found.
    unchanged: u32,
}

/// Review that is due.
#[derive(Clone, Copy)]
struct NextReview {
    at: Instant,
    /// Interval between two of its questions; zero for several at a time.
    interval: Duration,
}

/// What came of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewResult {
    /// The server could not say.
    Unanswered,
    /// The same rights lack as before.
    Unchanged,
    /// Other rights lack than before.
    Changed,
}

/// What the last review found.
#[derive(Default)]
pub(super) struct RightsFindings {
    /// Rights that lack, by policy.
    lacking: BTreeMap<String, Vec<AccessNeed>>,
    /// Flags by which `rollcall rbac` prints roles for this service's own account.
    flags: String,
}

impl RightsFindings {
    #[cfg(test)]
    pub(super) fn with_lacking(policy: &str, needs: Vec<AccessNeed>) -> RightsFindings {
        RightsFindings { lacking: BTreeMap::from([(policy.to_owned(), needs)]), flags: String::new() }
    }

    /// Rights that a policy needs and the service lacks.
    pub(super) fn lacking_for(&self, policy: &str) -> &[AccessNeed] {
        self.lacking.get(policy).map_or(&[], Vec::as_slice)
    }

    /// The command that grants what a policy needs.
    pub(super) fn granting_command(&self, policy: &str) -> String {
        format!("rollcall rbac {policy}{} | kubectl apply -f -", self.flags)
    }
}

/// Answers of the server to one round of reviews.
struct Reviewed {
    /// Indices of the needs that the server denies; `None` where it could not say.
    denied: Option<BTreeSet<usize>>,
    /// Flags of `rollcall rbac` for the service account that this service runs as; `None` where the server does not say who
    /// that is, or it is no service account.
    flags: Option<String>,
}

impl RightsReviewer {
    /// Begins a review for these policies, once their kinds had time to be discovered; one that is under way is given up.
    pub(super) fn review_policies(&mut self, policies: &[PolicyInUse]) {
        self.unchanged = 0;
        self.findings.lacking.retain(|name, _| policies.iter().any(|policy| policy.name == *name));
        self.under_way = None;
        self.review_after(REVIEW_DELAY, Duration::ZERO);
    }

    /// The server refused something: unless a review is under way, the rights are reviewed again.
    pub(super) fn doubt(&mut self, context: &KindContext) {
        if self.under_way.is_none() && self.next.is_none() {
            let delay = DOUBT_BACKOFF.delay_after(self.unchanged + 1, context.seed, 0);
            self.review_after(delay, QUESTION_INTERVAL);
        }
    }

    /// Rights were granted or taken away: they are reviewed again soon.
    pub(super) fn expect_change(&mut self) {
        if self.under_way.is_none() {
            self.unchanged = 0;
            self.review_after(REVIEW_DELAY, QUESTION_INTERVAL);
        }
    }

    /// Says whether it is still to be found out what policies left on parents that are gone.
    pub(super) fn await_releases(&mut self, awaits: bool) {
        if std::mem::replace(&mut self.awaits_releases, awaits) && !awaits {
            self.expect_change();
        }
    }

    fn review_after(&mut self, delay: Duration, interval: Duration) {
        self.next = Some(NextReview { at: Instant::now() + delay, interval });
    }

    /// Waits for the end of a review of the rights that these policies need. Never completes if none is due.
    pub(super) async fn next_result(
        &mut self,
        context: &KindContext,
        book: &PolicyBook,
        released: &Released,
    ) -> ReviewResult {
        if self.under_way.is_none() {
            let Some(next) = self.next else { return std::future::pending().await };
            tokio::time::sleep_until(next.at).await;
            self.next = None;
            let needs = RightNeeds::of_policies(book, released, &NeedScope::of_context(context));
            // A list of the same policies, after an outage for example, calls for nothing new.
            let asked_before = needs.needed == self.needs.needed;
            let interval = if asked_before { QUESTION_INTERVAL } else { next.interval };
            self.needs = needs;
            self.under_way = Some(self.ask(context, interval));
        }
        let Some(under_way) = &mut self.under_way else { return std::future::pending().await };
        let reviewed = under_way.await;
        self.under_way = None;
        self.settle(reviewed, context)
    }

    /// What the policies in force need, as last reviewed, and what is to be held on to.
    pub(super) fn demand(&self) -> GrantDemand {
        let demanded = |(policy, need): &(String, AccessNeed), lacking| DemandedRight {
            policy: policy.clone(),
            need: need.clone(),
            lacking,
        };
        let lacks = |(policy, need): &(String, AccessNeed)| self.findings.lacking_for(policy).contains(need);
        let needed = self.needs.needed.iter().map(|right| demanded(right, lacks(right)));
        let rights = needed.chain(self.needs.held.iter().map(|right| demanded(right, false))).collect();
        GrantDemand {
            rights,
            unresolved_groups: self.needs.unresolved_groups.clone(),
            awaits_releases: self.awaits_releases,
        }
    }

    /// What the last review found.
    pub(super) fn findings(&self) -> &RightsFindings {
        &self.findings
    }

    fn settle(&mut self, reviewed: Reviewed, context: &KindContext) -> ReviewResult {
        if let Some(flags) = reviewed.flags {
            self.findings.flags = flags;
        }
        // A server that cannot say leaves what was known, and is asked again.
        let Some(denied) = reviewed.denied else {
            self.unchanged = self.unchanged.saturating_add(1);
            self.review_after(
                DOUBT_BACKOFF.delay_after(self.unchanged + 1, context.seed, 0),
                QUESTION_INTERVAL,
            );
            return ReviewResult::Unanswered;
        };
        let mut lacking: BTreeMap<String, Vec<AccessNeed>> = BTreeMap::new();
        for (at, (policy, need)) in self.needs.needed.iter().enumerate() {
            if denied.contains(&at) {
                lacking.entry(policy.clone()).or_default().push(need.clone());
            }
        }
        let changed = lacking != self.findings.lacking;
        self.unchanged = if changed { 0 } else { self.unchanged.saturating_add(1) };
        if !lacking.is_empty() {
            let delay = LACKING_BACKOFF.delay_after(self.unchanged + 1, context.seed, 0);
            self.review_after(delay, QUESTION_INTERVAL);
        }
        if changed {
            for (policy, needs) in &lacking {
                let rights = describe_rights(needs).join("; ");
                warn!(policy, rights, grant = self.findings.granting_command(policy), "rights are missing");
            }
        }
        self.findings.lacking = lacking;
        if changed { ReviewResult::Changed } else { ReviewResult::Unchanged }
    }

    /// Asks for each right once, however many policies need it.
    fn ask(&self, context: &KindContext, interval: Duration) -> BoxFuture<'static, Reviewed> {
        let mut places: BTreeMap<String, (AccessNeed, Vec<usize>)> = BTreeMap::new();
        for (at, (_, need)) in self.needs.needed.iter().enumerate() {
            let known = places.entry(need.to_string()).or_insert_with(|| (need.clone(), Vec::new()));
            known.1.push(at);
        }
        let asked: Vec<_> = places.into_values().collect();
        let (client, aggregate_to) = (context.client.clone(), context.aggregate_to.clone());
        let records_namespace = context.records.namespace.clone();
        async move {
            let denied = review_all(&client, asked, interval).await;
            let lacks = denied.as_ref().is_some_and(|denied| !denied.is_empty());
            let account = if lacks { own_account(&client).await.ok() } else { None };
            let flags = account.map(|account| role_flags(&account, &records_namespace, &aggregate_to));
            Reviewed { denied, flags }
        }
        .boxed()
    }
}

/// Indices of the needs that the server denies; `None` where it could not say.
async fn review_all(
    client: &kube::Client,
    asked: Vec<(AccessNeed, Vec<usize>)>,
    interval: Duration,
) -> Option<BTreeSet<usize>> {
    let reviews = asked.into_iter().map(|(need, places)| async move {
        if !interval.is_zero() {
            tokio::time::sleep(interval).await;
        }
        review_access(client, &ReviewSubject::Own, &need).await.map(|allowed| (allowed, places))
    });
    let at_once = if interval.is_zero() { MAX_CONCURRENT_REVIEWS } else { 1 };
    let mut reviews = stream::iter(reviews).buffered(at_once);
    let mut denied = BTreeSet::new();
    while let Some(review) = reviews.next().await {
        match review {
            Ok((true, _)) => {}
            Ok((false, places)) => denied.extend(places),
            Err(error) => {
                debug!(error, "the API server did not review Rollcall's rights");
                return None;
            }
        }
    }
    Some(denied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grants_it_names_the_policy_and_the_account() {
        let findings = RightsFindings { flags: " -n home".to_owned(), ..RightsFindings::default() };
        assert_eq!(findings.granting_command("db"), "rollcall rbac db -n home | kubectl apply -f -");
    }
}
