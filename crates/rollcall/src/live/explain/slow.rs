//! `rollcall explain --slow`: what a rollout waited for, one thing after the other, and for how long.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use inspect::client::InspectClient;
use inspect::rollout::{
    PathPart, RolloutDamping, RolloutEnd, RolloutObject, WaitCause, critical_path, members_changed_at,
    spec_changed_at, told_ready_at,
};
use policy::{CompiledPolicy, GROUP_KIND};
use readiness::{RuleKind, Time};
use rollcall_core::TreeNode;
use serde::Serialize;
use serde_json::Value;

use super::object_explanation::ExplainedObjectName;
use super::reread::reread_object;
use crate::live::node_reason::is_node_ready;
use crate::live::policy_cluster::PolicyCluster;
use crate::live::rollout_text::{duration_text, part_line};
use crate::live::survey::ClusterSurvey;
use crate::text::sanitize_text;

/// Maximum number of objects of one rollout that are read.
const MAX_READ_OBJECTS: usize = 500;
/// One part of the way.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplainedPart {
    object: String,
    cause: WaitCause,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    from: String,
    to: String,
    seconds: f64,
    #[serde(skip)]
    cause_text: String,
}

/// What the rollout of the current generation of an object waited for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplainedRollout {
    object: ExplainedObjectName,
    generation: Option<i64>,
    /// It is over: the object is ready.
    is_over: bool,
    from: String,
    to: String,
    seconds: f64,
    parts: Vec<ExplainedPart>,
    /// Time at which it was told ready last, where the rollout does not explain that it was so late.
    #[serde(skip_serializing_if = "Option::is_none")]
    told_later: Option<String>,
    /// What was written when it began.
    #[serde(skip)]
    written: String,
    /// What is to be said of a time at which it was told ready later.
    #[serde(skip)]
    note: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_read: Vec<String>,
}

/// Explains the rollout of an object, which this policy judges; an error if it cannot be read, or does not say when it began.
pub(super) async fn explain_rollout(
    cluster: &PolicyCluster,
    survey: &ClusterSurvey,
    node: &TreeNode,
    policy: Option<&CompiledPolicy>,
    now: Time,
) -> anyhow::Result<ExplainedRollout> {
    let mut ask = InspectClient::new(cluster.client.clone());
    let unfinished = (!is_node_ready(node)).then_some(now);
    let (client, left) = (&cluster.client, MAX_READ_OBJECTS);
    let mut reader = RolloutReader { client, survey, ask: &mut ask, unfinished, left, is_cut: false };
    let Some(object) = reader.read_object(node).await else {
        let why: Vec<_> = ask.refused.into_iter().collect();
        bail!("{} {} could not be read: {}", node.kind, node.name, why.join("; "));
    };
    let mut members = Vec::new();
    let root = reader.read_tree(node, &object, Some(&mut members)).await;
    if reader.is_cut {
        ask.refused.insert(format!("more than {MAX_READ_OBJECTS} objects"));
    }
    let is_group = is_group(node);
    let from = if is_group { members_changed_at(&object, &members) } else { spec_changed_at(&object) };
    let from = from.with_context(|| format!("{} {} has no timestamps", node.kind, node.name))?;
    let told = policy.and_then(|policy| told_ready_at(&object, &policy.condition));
    let end = match (unfinished, told, policy) {
        (None, Some(told), Some(policy)) => {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let events = ask.list_events(&node.namespace, uid).await;
            Some(RolloutEnd::find(&root, (from, told), &events, damping_of(policy)))
        }
        _ => None,
    };
    // In shadow mode nobody is told: it was over when the last child was ready.
    let to = unfinished.or(end.map(|end| end.at)).or_else(|| root.ready_since()).unwrap_or(now).max(from);
    let parts = critical_path(&root, from, to).into_iter().map(ExplainedPart::from_part).collect();
    let generation = object["metadata"]["generation"].as_i64();
    Ok(ExplainedRollout {
        object: ExplainedObjectName::of_node(node),
        generation,
        written: match generation {
            _ if is_group => " its newest member".to_owned(),
            Some(generation) => format!(" generation {generation}"),
            None => String::new(),
        },
        is_over: unfinished.is_none(),
        from: from.to_string(),
        to: to.to_string(),
        seconds: seconds(from, to),
        parts,
        told_later: end.and_then(|end| end.told_later).map(|told| told.to_string()),
        note: end.and_then(|end| later_text(&end, is_group)),
        not_read: ask.refused.into_iter().collect(),
    })
}

fn is_group(node: &TreeNode) -> bool {
    (&*node.group, &*node.kind) == GROUP_KIND
}

fn damping_of(policy: &CompiledPolicy) -> RolloutDamping {
    RolloutDamping(policy.settle + policy.hold + policy.debounce.quiet + policy.debounce.cap)
}

/// What is said where an object was told ready later than its rollout explains.
fn later_text(end: &RolloutEnd, is_group: bool) -> Option<String> {
    let (told, at) = (end.told_later?, end.at);
    Some(if end.is_first_known {
        format!("it was told ready first at {at}, turned since, and was told ready again at {told}")
    } else if is_group {
        format!(
            "its last member was ready at {at}; it was told ready at {told}, so it turned since: the rollout can be told until {at}"
        )
    } else {
        format!(
            "its last child was ready at {at}; it was told ready at {told}, which its policy's settle, hold and debounce do not \
             explain: it turned since, or its operator had not handled the generation before; the rollout can be told until {at}"
        )
    })
}

struct RolloutReader<'r> {
    client: &'r kube::Client,
    survey: &'r ClusterSurvey,
    ask: &'r mut InspectClient,
    /// Time at which what has not ended is taken to end.
    unfinished: Option<Time>,
    /// Number of objects that may still be read.
    left: usize,
    /// There were more.
    is_cut: bool,
}

impl RolloutReader<'_> {
    async fn read_object(&mut self, node: &TreeNode) -> Option<Value> {
        let Some(left) = self.left.checked_sub(1) else {
            self.is_cut = true;
            return None;
        };
        self.left = left;
        let found = reread_object(self.client, self.survey, self.ask, node).await?;
        serde_json::from_str(found.text.get()).ok()
    }

    /// Reads what is below an object, and gives the objects of its children away where they are asked for.
    async fn read_tree(
        &mut self,
        node: &TreeNode,
        object: &Value,
        mut members: Option<&mut Vec<Value>>,
    ) -> RolloutObject {
        let is_pod = RuleKind::from_group_kind(&node.group, &node.kind) == RuleKind::Pod;
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let events = if is_pod { self.ask.list_events(&node.namespace, uid).await } else { Vec::new() };
        let mut rollout = RolloutObject::from_object(object, &events, is_node_ready(node), self.unfinished);
        // Nothing but the metadata of a Secret is read, and that says nothing of its time.
        let is_secret = |child: &&TreeNode| child.group.is_empty() && child.kind == "Secret";
        for child in node.children.iter().filter(|child| !is_secret(child)) {
            if let Some(object) = self.read_object(child).await {
                rollout.children.push(Box::pin(self.read_tree(child, &object, None)).await);
                if let Some(members) = &mut members {
                    members.push(object);
                }
            }
        }
        rollout
    }
}

impl ExplainedPart {
    fn from_part(part: PathPart) -> ExplainedPart {
        ExplainedPart {
            cause_text: part.cause_text(),
            object: part.object,
            cause: part.cause,
            detail: part.detail,
            from: part.from.to_string(),
            to: part.to.to_string(),
            seconds: seconds(part.from, part.to),
        }
    }
}

fn seconds(from: Time, to: Time) -> f64 {
    readiness::millis_to_seconds(to.0.saturating_sub(from.0))
}

/// All rollouts as text.
pub(super) fn render_rollouts(rollouts: &[ExplainedRollout]) -> String {
    let mut text = String::new();
    for rollout in rollouts {
        let ExplainedObjectName { kind, namespace, name, .. } = &rollout.object;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let generation = &rollout.written;
        let whole = duration_text(rollout.seconds);
        let head = if rollout.note.is_some() {
            format!("{kind} {namespace}{slash}{name}: rolled out {whole} after{generation} was written")
        } else if rollout.is_over {
            format!("{kind} {namespace}{slash}{name}: ready {whole} after{generation} was written")
        } else {
            format!("{kind} {namespace}{slash}{name}: not ready, {whole} after{generation} was written")
        };
        _ = writeln!(text, "{} ({})", sanitize_text(&head), rollout.from);
        for part in &rollout.parts {
            text += &part_line(part.seconds, rollout.seconds, &part.object, &part.cause_text);
        }
        if let Some(note) = &rollout.note {
            _ = writeln!(text, "  {}", sanitize_text(note));
        }
        for what in &rollout.not_read {
            _ = writeln!(text, "  not read: {}", sanitize_text(what));
        }
    }
    text
}
