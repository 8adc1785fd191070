//! What parents say of themselves, held against what a suggested policy says of them.

use std::collections::BTreeMap;

use readiness::RuleKind;
use rollcall_core::TreeNode;

use super::super::node_reason::{find_undetermined, is_node_ready};
use super::super::policy_cluster::PolicyCluster;
use super::super::survey::ClusterSurvey;
use super::parent_evidence::{ParentEvidence, SeenParent};
use super::suggested_policy::{PolicySuggestion, compile_suggestions};
use crate::eval::current_time;

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
    let (ready, unready): (Vec<JudgedParent<'_>>, Vec<_>) = judged.partition(|(_, node)| is_node_ready(node));
    let false_words: Vec<_> =
        unready.iter().filter(|(parent, _)| parent.own_ready == Some(true)).copied().collect();
    note_contradictions(suggestion, &ready, !false_words.is_empty());
    if suggestion.left_out.is_some() {
        return;
    }
    let unjudged = suggestion.objects - ready.len() - unready.len();
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
    } else if !ready.is_empty() || !unready.is_empty() {
        note_agreement(suggestion, ready.len(), unready.len(), unjudged > 0);
    }
}

/// Notes how many are ready, where none says `Ready` while its children are not.
fn note_agreement(suggestion: &mut PolicySuggestion, ready: usize, unready: usize, are_some_unjudged: bool) {
    if !suggestion.own_ready {
        let all = ready + unready;
        suggestion.evidence.push(format!("by this policy {ready} of {all} are ready now"));
    } else if unready > 0 {
        suggestion
            .leave_out(format!("it says Ready itself, and not of the {unready} whose children are not"));
    } else {
        let which = if are_some_unjudged { "the others" } else { "all" };
        suggestion
            .evidence
            .push(format!("whether its Ready waits for its children cannot be seen: {which} are ready now"));
    }
}

/// Notes which parents that are ready by what they own say of themselves that they are not: what they own does not tell all. Where
/// one has failed, or is still running, a policy over that would tell a falsehood for as long; it is of use only where their own
/// `Ready` tells one as well.
fn note_contradictions(suggestion: &mut PolicySuggestion, ready: &[JudgedParent<'_>], has_false_words: bool) {
    let said = ready.iter().filter_map(|(parent, _)| Some((parent, parent.unready_word.as_ref()?)));
    let said: Vec<_> = said.collect();
    let Some((parent, word)) = said.iter().find(|(_, word)| word.has_failed).or(said.first()) else { return };
    let what = format!("{} of {} say of themselves that they are not ready", said.len(), suggestion.objects);
    let which = format!("{}/{}: {}", parent.namespace, parent.name, word.detail);
    let runs = RuleKind::from_group_kind(&suggestion.group, &suggestion.kind) == RuleKind::Run;
    if has_false_words || !word.has_failed && !runs {
        suggestion.evidence.push(format!(
            "{what}, and would be by this policy: {which}; a `proof` over their status would wait for them"
        ));
        return;
    }
    let failed = if word.has_failed { ", one of them failed" } else { "" };
    let why = if suggestion.own_ready {
        "its own Ready tells more"
    } else if word.has_failed {
        "what it owns does not tell how it is"
    } else {
        "it is ready when it has ended, which what it owns does not tell"
    };
    suggestion.leave_out(format!("{what} while all that they own is{failed}: {which}; {why}"));
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
