//! Waits until all targets and their children are ready.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use controller::args::ClusterArgs;
use rollcall_core::TreeNode;
use tokio::time::{Instant, timeout_at};
use watcher::ParentObject;

use super::super::follow::ClusterFollower;
use super::super::node_reason::{find_undetermined, is_node_ready};
use super::super::open_cluster;
use super::super::pick::{missing_targets, pick_targets};
use super::super::policy_cluster::PolicyCluster;
use super::super::scope_args::ScopeArgs;
use super::super::target::ObjectTarget;
use super::super::uncounted::{PolicyAnswers, worst_uncounted};
use super::super::uncounted_search::{SearchDepth, add_uncounted};
use super::quiet_span::QuietSpan;
use super::status_line::{StatusLine, UNANSWERED_TEXT, end_unanswered};
use super::wait_limit::WaitLimit;
use crate::eval::current_time;

/// Time after which what no policy counts is looked for, and again after each time. 5 s and 30 s.
const FIRST_LOOK_BELOW: Duration = Duration::from_secs(5);
const LOOK_BELOW_INTERVAL: Duration = Duration::from_secs(30);

/// What no policy counts below the objects that are waited for: it is not waited for, and may be why it takes so long.
struct UncountedCauses {
    due: Instant,
    text: String,
}

impl UncountedCauses {
    /// What policies say in all of these trees, if it is time to look.
    fn collect_answers(&self, trees: impl FnOnce() -> Vec<TreeNode>) -> Option<PolicyAnswers> {
        (self.due <= Instant::now()).then(|| PolicyAnswers::collect(&trees()))
    }

    /// Looks below these trees, and keeps the worst that is found.
    async fn look_below(
        &mut self,
        cluster: &mut PolicyCluster,
        mut trees: Vec<TreeNode>,
        answers: &PolicyAnswers,
        deadline: Instant,
    ) {
        self.due = Instant::now() + LOOK_BELOW_INTERVAL;
        let depth = SearchDepth::Everything;
        let added = add_uncounted(cluster, &mut trees, answers, depth, current_time());
        if timeout_at(deadline, added).await.is_ok() {
            let worst = trees.iter().filter(|tree| !is_node_ready(tree)).find_map(worst_uncounted);
            self.text = worst.map(|node| format!("; not counted: {}", node_text(node))).unwrap_or_default();
        }
    }
}

/// Result of one evaluation.
#[derive(Debug, PartialEq, Eq)]
enum WaitState {
    Ready,
    /// Not ready yet, with the reason.
    Waiting(String),
    /// Failed permanently, with the reason.
    Failed(String),
    /// Unknown, with the reason.
    Undetermined(String),
}

/// Waits until the objects and all of their children are ready, or one has failed for good.
pub(super) async fn wait_until_ready(
    cluster: &ClusterArgs,
    scope: &ScopeArgs,
    what: &[String],
    limit: WaitLimit,
) -> anyhow::Result<ExitCode> {
    let deadline = limit.deadline;
    let mut line = StatusLine::default();
    let Ok(opened) = timeout_at(deadline, open_cluster(cluster, scope, what)).await else {
        return end_unanswered(&mut line);
    };
    let (mut cluster, targets) = opened?;
    if targets.iter().any(|target| target.name.is_none()) {
        bail!("name an object: `rollcall wait KIND/NAME`");
    }
    let Ok(mut following) = timeout_at(deadline, ClusterFollower::new(&mut cluster)).await else {
        return end_unanswered(&mut line);
    };
    let mut last = UNANSWERED_TEXT.to_owned();
    let mut quiet = QuietSpan::default();
    let mut below = UncountedCauses { due: Instant::now() + FIRST_LOOK_BELOW, text: String::new() };
    while timeout_at(deadline, following.wait_for_change(&mut cluster)).await.is_ok() {
        let (objects, now) = (following.known_objects(), current_time());
        let answers = below.collect_answers(|| cluster.build_trees(&objects, now));
        // A single look judges as if nothing changed until the policies have their say: none would say a thing at once.
        let debounce = if limit.is_single_look { cluster.longest_debounce() } else { Duration::ZERO };
        let judged_at = now + debounce;
        let found = quiet.find_targets(&cluster, &objects, &targets, now, |since| {
            pick_targets(cluster.build_trees_since(&objects, (since, judged_at)), &targets)
        });
        if cluster.adopt_unchosen(&targets, &found, &objects)? {
            following.note_more_asked();
            continue;
        }
        let state = match check_targets(&found, &targets) {
            WaitState::Ready => confirm_ready(&cluster, following.trouble_text()),
            WaitState::Waiting(why) => find_unseen(&cluster, &objects, &found, &targets)
                .map_or(WaitState::Waiting(why), WaitState::Undetermined),
            state => state,
        };
        let (text, word, code) = match state {
            WaitState::Waiting(why) => {
                if let Some(answers) = answers {
                    below.look_below(&mut cluster, found, &answers, deadline).await;
                }
                let why = why + &below.text;
                let why = following.trouble_text().map_or(why.clone(), |trouble| format!("{trouble}; {why}"));
                last = why;
                if limit.is_single_look {
                    break;
                }
                line.show_text(&last);
                continue;
            }
            WaitState::Ready => (found.iter().map(node_title).collect::<Vec<_>>().join(", "), "ready", 0),
            WaitState::Failed(why) => (why, "failed", 1),
            WaitState::Undetermined(why) => (why, "could not be determined", 2),
        };
        line.end_with(&text, word)?;
        cluster.report_unread();
        return Ok(ExitCode::from(code));
    }
    line.end_with(&last, "waited too long")?;
    cluster.report_unread();
    Ok(ExitCode::from(124))
}

/// What is said of targets that are ready as far as is known.
fn confirm_ready(cluster: &PolicyCluster, trouble: Option<String>) -> WaitState {
    // By policies that nobody could read, more may be asked for.
    if let Some(why) = cluster.unknown_policies_text() {
        return WaitState::Undetermined(why.to_owned());
    }
    trouble.map_or(WaitState::Ready, |_| {
        WaitState::Waiting("all were ready when they were last seen".to_owned())
    })
}

/// Why nothing can be said of a target that was not found, if that is not because there is none.
fn find_unseen(
    cluster: &PolicyCluster,
    objects: &[&ParentObject],
    found: &[TreeNode],
    targets: &[ObjectTarget],
) -> Option<String> {
    missing_targets(found, targets).into_iter().find_map(|target| {
        let exists = objects.iter().any(|object| target.matches_object(object));
        cluster.unseen_target_text(target, exists)
    })
}

fn check_targets(found: &[TreeNode], targets: &[ObjectTarget]) -> WaitState {
    let unready: Vec<&TreeNode> = found.iter().filter(|node| !is_node_ready(node)).collect();
    if let Some(lost) = unready.iter().find(|node| node.stalled) {
        return WaitState::Failed(node_text(lost));
    }
    // Waiting grants no missing rights, and accepts no refused policy.
    let blind = unready.iter().find_map(|node| Some((*node, find_undetermined(node)?)));
    if let Some((node, blind)) = blind {
        let above = if std::ptr::eq(node, blind) { String::new() } else { node_title(node) + ": " };
        return WaitState::Undetermined(above + &node_text(blind));
    }
    let lacking = missing_targets(found, targets);
    if unready.is_empty() && lacking.is_empty() {
        return WaitState::Ready;
    }
    let of = if targets.len() > 1 {
        format!("{} of {} ready; ", found.len() - unready.len(), found.len() + lacking.len())
    } else {
        String::new()
    };
    let missing: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    let cause = unready
        .first()
        .map_or_else(|| format!("{} does not exist", missing.join(", ")), |node| node_text(node));
    WaitState::Waiting(of + &cause)
}

fn node_text(node: &TreeNode) -> String {
    format!("{} {}: {}", node_title(node), node.verdict.to_lowercase(), node.detail)
}

fn node_title(node: &TreeNode) -> String {
    format!("{} {}", node.kind, node.name)
}

#[cfg(test)]
mod tests {
    use readiness::rollup::ParentReason;
    use rollcall_core::NodeReason;

    use super::super::super::target::KindName;
    use super::*;

    fn node(name: &str, verdict: &'static str) -> TreeNode {
        let (kind, name, detail) = ("Shop".to_owned(), name.to_owned(), "why".to_owned());
        TreeNode { kind, name, verdict, detail, ..TreeNode::default() }
    }

    fn shops(names: &[&str]) -> Vec<ObjectTarget> {
        let kind = KindName { group: String::new(), kind: "Shop".to_owned() };
        let target = |name: &&str| ObjectTarget {
            kind: kind.clone(),
            namespaced: true,
            namespace: None,
            name: Some((*name).to_owned()),
        };
        names.iter().map(target).collect()
    }

    #[test]
    fn all_must_be_there_and_ready() {
        let waiting = |text: &str| WaitState::Waiting(text.to_owned());
        let two = shops(&["books", "toys"]);
        assert_eq!(check_targets(&[], &shops(&["books"])), waiting("Shop books does not exist"));
        assert_eq!(
            check_targets(&[node("books", "Ready")], &two),
            waiting("1 of 2 ready; Shop toys does not exist")
        );
        let one = [node("books", "Ready"), node("toys", "Progressing")];
        assert_eq!(check_targets(&one, &two), waiting("1 of 2 ready; Shop toys progressing: why"));
        assert_eq!(check_targets(&[node("books", "Ready"), node("toys", "Ready")], &two), WaitState::Ready);
    }

    #[test]
    fn what_has_failed_for_good_is_not_waited_for_and_a_crash_loop_is() {
        let of = shops(&["books"]);
        let lost = TreeNode { stalled: true, ..node("books", "Failed") };
        assert_eq!(check_targets(&[lost], &of), WaitState::Failed("Shop books failed: why".to_owned()));
        assert!(matches!(check_targets(&[node("books", "Failed")], &of), WaitState::Waiting(_)));
        let hidden = TreeNode {
            reason: NodeReason::Parent(ParentReason::KindNotVisible),
            policy: "shops".to_owned(),
            ..node("books", "Unknown")
        };
        assert!(matches!(check_targets(&[hidden], &of), WaitState::Undetermined(_)));
    }
}
