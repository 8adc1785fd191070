//! What parents say of themselves, held against what a suggested policy says of them.

use std::collections::BTreeMap;

use readiness::RuleKind;
use readiness::rollup::ParentReason;
use rollcall_core::{NodeToken, TreeNode};

use super::super::node_reason::{find_undetermined, is_node_ready};
use super::super::policy_cluster::PolicyCluster;
use super::super::survey::ClusterSurvey;
use super::parent_evidence::{ParentEvidence, SeenParent};
use super::suggested_policy::{PolicySuggestion, SuggestedChildren, compile_suggestions};
use crate::eval::current_time;

/// Begins the sentence that stands where the state of now does not tell it.
pub(super) const ORDER_UNSEEN: &str = "whether its Ready waits for its children cannot be seen";

/// A parent, and what the policy that is suggested for it says of it.
type JudgedParent<'a> = (&'a SeenParent, &'a TreeNode);

/// Judges all parents by what is suggested, and compares that with what they say themselves.
pub(super) async fn judge_suggestions(
    client: &kube::Client,
    namespace: Option<&str>,
    suggestions: &mut [PolicySuggestion],
    seen: &BTreeMap<(String, String), ParentEvidence>,
) -> anyhow::Result<()> {
    let compiled = compile_suggestions(suggestions)?;
    let policies = compiled.into_iter().map(|(found, policy)| (found.name, policy)).collect();
    let mut cluster = PolicyCluster::of_policies(client.clone(), policies, namespace.map(str::to_owned));
    let trees = ClusterSurvey::read(&mut cluster, &[], current_time()).await?.trees;
    cluster.report_unread();
    for suggestion in suggestions.iter_mut().filter(|suggestion| suggestion.left_out.is_none()) {
        let key = (suggestion.group.clone(), suggestion.kind.clone());
        if let Some(evidence) = seen.get(&key) {
            compare_words(suggestion, evidence, &trees);
        }
    }
    Ok(())
}

/// Compares what the parents say of themselves with what their children say.
fn compare_words(suggestion: &mut PolicySuggestion, evidence: &ParentEvidence, trees: &[TreeNode]) {
    let mut nodes = BTreeMap::new();
    for tree in trees {
        collect_judged(suggestion, tree, &mut nodes);
    }
    let judged = evidence.parents.iter().filter_map(|parent| {
        let node = nodes.get(&(&*parent.namespace, &*parent.name))?;
        Some((parent, *node))
    });
    let judged: Vec<JudgedParent<'_>> = judged.collect();
    let (well, unwell): (Vec<_>, Vec<_>) =
        judged.iter().copied().partition(|(_, node)| has_ready_children(suggestion, node));
    let false_words: Vec<_> =
        unwell.iter().filter(|(parent, _)| parent.own_ready == Some(true)).copied().collect();
    let ready: Vec<_> = well.iter().filter(|(_, node)| is_node_ready(node)).copied().collect();
    note_contradictions(suggestion, &ready, !false_words.is_empty());
    if suggestion.left_out.is_some() {
        return;
    }
    let unjudged = suggestion.objects - well.len() - unwell.len();
    if unjudged > 0 {
        let all = suggestion.objects;
        suggestion.evidence.push(format!("{unjudged} of {all} could not be judged by this policy"));
    }
    if let Some((_, tree)) = false_words.first() {
        suggestion.evidence.push(format!(
            "{} say Ready while their children are not: {}/{}: {}",
            false_words.len(),
            tree.namespace,
            tree.name,
            tree.detail
        ));
    } else if !well.is_empty() || !unwell.is_empty() {
        let counts = JudgedCounts { ready: ready.len(), well: well.len(), unwell: unwell.len(), unjudged };
        note_agreement(suggestion, &counts);
    }
    if suggestion.left_out.is_none() {
        note_failures(suggestion, &judged);
    }
}

/// How many parents there are, by what a policy says of them.
struct JudgedCounts {
    ready: usize,
    /// Those whose children are ready.
    well: usize,
    unwell: usize,
    unjudged: usize,
}

/// Notes how many are ready, where none says `Ready` while its children are not.
fn note_agreement(suggestion: &mut PolicySuggestion, judged: &JudgedCounts) {
    let JudgedCounts { ready, well, unwell, unjudged } = judged;
    if !suggestion.own_ready {
        suggestion.evidence.push(format!("by this policy {ready} of {} are ready now", well + unwell));
    } else if *unwell > 0 {
        suggestion.leave_out(format!("it says Ready itself, and not of the {unwell} whose children are not"));
    } else {
        let which = if *unjudged > 0 { "the others" } else { "all" };
        suggestion.evidence.push(format!("{ORDER_UNSEEN}: those of {which} are ready now"));
    }
}

/// Notes which parents say of themselves that they have failed, which the policy says of them, too.
fn note_failures(suggestion: &mut PolicySuggestion, judged: &[JudgedParent<'_>]) {
    let failed = judged.iter().filter_map(|(parent, node)| {
        let word = parent.unready_word.as_ref().filter(|word| word.has_failed)?;
        has_operator_failed(node).then_some((parent, word))
    });
    let failed: Vec<_> = failed.collect();
    let Some((parent, word)) = failed.first() else { return };
    suggestion.evidence.push(format!(
        "{} of {} say of themselves that they have failed, and so does this policy: {}/{}: {}",
        failed.len(),
        suggestion.objects,
        parent.namespace,
        parent.name,
        word.detail
    ));
}

/// Notes which parents that are ready by this policy say of themselves that they are not: what they own does not tell all. Where one
/// is still running, a policy over that would tell a falsehood for as long; it is of use only where their own `Ready` tells one as
/// well.
fn note_contradictions(suggestion: &mut PolicySuggestion, ready: &[JudgedParent<'_>], has_false_words: bool) {
    let said = ready.iter().filter_map(|(parent, _)| Some((parent, parent.unready_word.as_ref()?)));
    let said: Vec<_> = said.collect();
    let Some((parent, word)) = said.first() else { return };
    let what = format!("{} of {} say of themselves that they are not ready", said.len(), suggestion.objects);
    let which = format!("{}/{}: {}", parent.namespace, parent.name, word.detail);
    let runs = RuleKind::from_group_kind(&suggestion.group, &suggestion.kind) == RuleKind::Run;
    if has_false_words || !runs {
        suggestion.evidence.push(format!(
            "{what}, and would be by this policy: {which}; a `proof` over their status would wait for them"
        ));
        return;
    }
    let why = if suggestion.own_ready {
        "its own Ready tells more"
    } else {
        "it is ready when it has ended, which what it owns does not tell"
    };
    suggestion.leave_out(format!("{what} while all that they own is: {which}; {why}"));
}

/// Returns `true` if all that the policy asks of the children holds, also where the parent itself says that it has failed.
fn has_ready_children(suggestion: &PolicySuggestion, node: &TreeNode) -> bool {
    let is_of =
        |child: &TreeNode, kind: &SuggestedChildren| child.group == kind.group && child.kind == kind.kind;
    let mut expected = suggestion.children.iter().filter(|kind| !kind.may_lack);
    let mut critical = node.children.iter().filter(|child| child.role == "critical");
    is_node_ready(node)
        || has_operator_failed(node)
            && critical.all(is_node_ready)
            && expected.all(|kind| node.children.iter().any(|child| is_of(child, kind)))
}

fn has_operator_failed(node: &TreeNode) -> bool {
    node.reason.token() == NodeToken::Parent(ParentReason::OperatorFailed)
}

/// Adds the parents of this kind that could be judged, also those below others, by namespace and name.
fn collect_judged<'t>(
    suggestion: &PolicySuggestion,
    node: &'t TreeNode,
    judged: &mut BTreeMap<(&'t str, &'t str), &'t TreeNode>,
) {
    let is_of_kind = node.group == suggestion.group && node.kind == suggestion.kind;
    if is_of_kind && find_undetermined(node).is_none() {
        judged.insert((&node.namespace, &node.name), node);
    }
    for child in &node.children {
        collect_judged(suggestion, child, judged);
    }
}
