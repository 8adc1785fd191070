//! Rights that policies need and the service lacks, as the API server says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use aggregator::Acceptance;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::Request;
use http::header::CONTENT_TYPE;
use policy::PolicyInUse;
use policy::rbac::{AccessNeed, CrdNames, access_needs, policy_rights};
use serde_json::{Value, json};
use timer::Backoff;
use tracing::{debug, warn};

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
/// Maximum number of lines about rights that one policy lacks.
pub(super) const MAX_MISSING_RIGHTS: usize = 32;

/// Reviews the rights that the policies in force need: after each plan, whenever the server refused something, and while
/// some lack. At rest it asks nothing.
#[derive(Default)]
pub(super) struct RightsReviewer {
    /// What the policies in force need, with their names.
    needed: Vec<(String, AccessNeed)>,
    findings: RightsFindings,
    under_way: Option<BoxFuture<'static, Reviewed>>,
    /// Reviews in a row, since the last plan, that found what the one before had found.
    unchanged: u32,
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
    flags: Option<String>,
}

impl RightsReviewer {
    /// Begins a review for these policies; one that is under way is given up.
    pub(super) fn review_policies(&mut self, context: &KindContext, policies: &[PolicyInUse]) {
        self.unchanged = 0;
        self.collect_needs(context, policies);
        self.begin(context.client.clone(), REVIEW_DELAY, Duration::ZERO);
    }

    fn collect_needs(&mut self, context: &KindContext, policies: &[PolicyInUse]) {
        let mut names = CrdNames::default();
        for kind in context.resolved.iter() {
            names.add_kind(&kind.api.group, &kind.api.kind, &kind.api.plural, kind.api.has_status);
        }
        self.needed.clear();
        for policy in policies.iter().filter(|policy| policy.acceptance == Acceptance::Accepted) {
            let rights = policy_rights(&policy.compiled, &names);
            let needs = access_needs(&rights, &context.namespaces, &context.records.namespace);
            self.needed.extend(needs.into_iter().map(|need| (policy.name.clone(), need)));
        }
        self.findings.lacking.retain(|name, _| policies.iter().any(|policy| policy.name == *name));
    }

    /// The server refused something: unless a review is under way, the rights are reviewed anew.
    pub(super) fn doubt(&mut self, context: &KindContext, policies: &[PolicyInUse]) {
        if self.under_way.is_none() {
            self.collect_needs(context, policies);
            let delay = DOUBT_BACKOFF.delay_after(self.unchanged + 1, context.seed, 0);
            self.begin(context.client.clone(), delay, QUESTION_INTERVAL);
        }
    }

    /// Waits for the end of a review; returns `true` if other rights lack than before. Never completes if none is under
    /// way.
    pub(super) async fn next_result(&mut self, context: &KindContext) -> bool {
        let Some(under_way) = &mut self.under_way else { return std::future::pending().await };
        let reviewed = under_way.await;
        self.under_way = None;
        self.settle(reviewed, context)
    }

    /// What the last review found.
    pub(super) fn findings(&self) -> &RightsFindings {
        &self.findings
    }

    fn settle(&mut self, reviewed: Reviewed, context: &KindContext) -> bool {
        if let Some(flags) = reviewed.flags {
            self.findings.flags = flags;
        }
        // A server that cannot say leaves what was known; the next refusal asks again.
        let Some(denied) = reviewed.denied else {
            self.unchanged = self.unchanged.saturating_add(1);
            return false;
        };
        let mut lacking: BTreeMap<String, Vec<AccessNeed>> = BTreeMap::new();
        for (at, (policy, need)) in self.needed.iter().enumerate() {
            if denied.contains(&at) {
                lacking.entry(policy.clone()).or_default().push(need.clone());
            }
        }
        let changed = lacking != self.findings.lacking;
        self.unchanged = if changed { 0 } else { self.unchanged.saturating_add(1) };
        if !lacking.is_empty() {
            let delay = LACKING_BACKOFF.delay_after(self.unchanged + 1, context.seed, 0);
            self.begin(context.client.clone(), delay, QUESTION_INTERVAL);
        }
        if changed {
            for (policy, needs) in &lacking {
                let rights = describe_rights(needs).join("; ");
                warn!(policy, rights, grant = self.findings.granting_command(policy), "rights are missing");
            }
        }
        self.findings.lacking = lacking;
        changed
    }

    /// Begins a review after this delay, with such an interval between two questions; zero for several at a time.
    fn begin(&mut self, client: kube::Client, delay: Duration, interval: Duration) {
        if self.needed.is_empty() {
            self.under_way = None;
            return;
        }
        // Each right is asked for once, however many policies need it.
        let mut places: BTreeMap<String, (AccessNeed, Vec<usize>)> = BTreeMap::new();
        for (at, (_, need)) in self.needed.iter().enumerate() {
            let known = places.entry(need.to_string()).or_insert_with(|| (need.clone(), Vec::new()));
            known.1.push(at);
        }
        let asked: Vec<_> = places.into_values().collect();
        self.under_way = Some(
            async move {
                tokio::time::sleep(delay).await;
                review_all(&client, asked, interval).await
            }
            .boxed(),
        );
    }
}

async fn review_all(
    client: &kube::Client,
    asked: Vec<(AccessNeed, Vec<usize>)>,
    interval: Duration,
) -> Reviewed {
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
                return Reviewed { denied: None, flags: None };
            }
        }
    }
    let flags = if denied.is_empty() { None } else { account_flags(client).await };
    Reviewed { denied: Some(denied), flags }
}

/// Flags of `rollcall rbac` for the service account that this service runs as; `None` where the server does not say who
/// that is, or it is no service account.
async fn account_flags(client: &kube::Client) -> Option<String> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(review.to_string().into_bytes()).ok()?;
    let answer = client.request::<Value>(request).await.ok()?;
    let user = answer["status"]["userInfo"]["username"].as_str()?;
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let mut flags = String::new();
    if namespace != "rollcall-system" {
        _ = write!(flags, " -n {namespace}");
    }
    if name != "rollcall" {
        _ = write!(flags, " --service-account {name}");
    }
    Some(flags)
}

/// Rights as lines such as `get,list,watch databases.example.com: the parents of the policy`, of which there are few.
pub(super) fn describe_rights(needs: &[AccessNeed]) -> Vec<String> {
    let mut lines: Vec<(AccessNeed, Vec<&str>)> = Vec::new();
    for need in needs {
        let same = |known: &AccessNeed| AccessNeed { verb: need.verb, ..known.clone() } == *need;
        match lines.iter_mut().find(|(known, _)| same(known)) {
            Some((_, verbs)) => verbs.push(need.verb),
            None => lines.push((need.clone(), vec![need.verb])),
        }
    }
    let total = lines.len();
    let shown = lines.iter().take(MAX_MISSING_RIGHTS).map(|(need, verbs)| {
        let right = need.to_string();
        let on = right.strip_prefix(need.verb).unwrap_or(&right);
        format!("{}{on}: {}", verbs.join(","), need.purpose)
    });
    let more = (total > MAX_MISSING_RIGHTS).then(|| format!("and {} more", total - MAX_MISSING_RIGHTS));
    shown.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(verb: &'static str, resource: &str) -> AccessNeed {
        AccessNeed {
            verb,
            group: "example.com".to_owned(),
            resource: resource.to_owned(),
            namespace: None,
            name: None,
            purpose: "the parents",
            essential: true,
        }
    }

    #[test]
    fn verbs_of_one_resource_are_one_line_and_lines_are_few() {
        let needs =
            [need("list", "databases"), need("watch", "databases"), need("patch", "databases/status")];
        let lines = describe_rights(&needs);
        assert_eq!(
            lines,
            [
                "list,watch databases.example.com: the parents",
                "patch databases/status.example.com: the parents"
            ]
        );
        let many: Vec<_> = (0..50).map(|n| need("list", &format!("kinds{n}"))).collect();
        let lines = describe_rights(&many);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (33, Some("and 18 more")));
    }

    #[test]
    fn what_grants_it_names_the_policy_and_the_account() {
        let findings = RightsFindings { flags: " -n home".to_owned(), ..RightsFindings::default() };
        assert_eq!(findings.granting_command("db"), "rollcall rbac db -n home | kubectl apply -f -");
    }
}
