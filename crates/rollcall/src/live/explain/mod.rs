//! `rollcall explain`: the root causes first, and all that is known about each.

mod advice;
mod deletion;
mod group_advice;
mod object_explanation;
mod render;
mod reread;
mod root_causes;
mod ruling;
mod slow;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use controller::args::ClusterArgs;
use inspect::client::InspectClient;
use inspect::holder_signs::LifeSigns;
use inspect::kubectl::KubectlObject;
use policy::{CompiledPolicy, GroupRule};
use readiness::{StuckLimits, Time};
use rollcall_core::TreeNode;
use tokio::sync::OnceCell;
use watcher::ParentObject;
use watcher::status::{OwnTypes, ParentStatus, written_types};

use super::node_reason::is_node_ready;
use super::open_cluster;
use super::pick::{NodeTimes, TreeObjectIndex};
use super::policy_cluster::PolicyCluster;
use super::scope_args::ScopeArgs;
use super::survey::ClusterSurvey;
use super::uncounted::{PolicyAnswers, UNCOUNTED_ROLE};
use super::uncounted_search::{SearchDepth, add_uncounted};
use crate::eval::{OutputFormat, current_time};
use crate::terminal::TerminalCapabilities;
use crate::text::{print_error_line, write_stdout};
use object_explanation::{ExplainedCause, ExplainedObjectName, ObjectExplanation};
use reread::reread_object;
use root_causes::{TreeNodePath, find_root_causes, find_target_nodes};
use ruling::{ExplainedRuling, explain_ruling};

/// `rollcall explain`.
#[derive(Args, Debug)]
#[command(
    after_help = "With --slow it tells what the rollout of the current generation waited for, from the write of the spec until the \
                  object was told ready, or until now: the parts follow each other and sum up to the whole. It reads the times \
                  that the objects below and the kubelet's Events carry, so it can tell for as long as these are there. An object that turned \
                  since is told apart: its rollout ends when it was told ready first, by its Events, or else when its last child was \
                  ready. That of a ReadinessGroup begins with the newest change of a member.\n\n\
                  Nothing is changed: commands are printed, never run. Exit codes: 0 all given objects are ready; 1 at least one is not; 2 an object does not exist or could not be read."
)]
pub(crate) struct ExplainArgs {
    /// Objects as KIND/NAME or KIND NAME: parents, or any of their descendants.
    #[arg(value_name = "KIND/NAME", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Show what the rollout of the current generation waited for, one thing after the other, instead of root causes.
    #[arg(long)]
    slow: bool,
    /// Maximum number of root causes to show: the worst.
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Output format.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: OutputFormat,
}

pub(crate) async fn explain_targets(cluster: &ClusterArgs, args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let (mut cluster, targets) = open_cluster(cluster, &args.scope, &args.what).await?;
    if targets.iter().any(|target| target.name.is_none()) {
        bail!("name an object: `rollcall explain KIND/NAME`");
    }
    let now = current_time();
    let mut survey = ClusterSurvey::read(&mut cluster, &targets, now).await?;
    let answers = PolicyAnswers::collect(&survey.trees);
    survey.trees.retain(|tree| targets.iter().any(|target| target.stands_in(tree)));
    let depth = if args.slow { SearchDepth::Everything } else { SearchDepth::AboveWorkloads };
    let mut uncounted = add_uncounted(&mut cluster, &mut survey.trees, &answers, depth, now).await;
    survey.add_kinds(std::mem::take(&mut uncounted.kinds));
    let leads = find_target_nodes(&survey.trees, &targets);
    let counted_times = survey.node_times();
    let inquiry = ExplainContext {
        cluster: &cluster,
        survey: &survey,
        index: survey.object_index(),
        moments: &|node| uncounted.node_times(node).unwrap_or_else(|| counted_times(node)),
        signs: OnceCell::new(),
        now,
    };
    let text = if args.slow {
        inquiry.rollouts_text(&leads, args.output).await?
    } else {
        inquiry.causes_text(&leads, args).await?
    };
    cluster.report_unread();
    write_stdout(&text)?;
    let absent = targets.iter().filter(|target| !leads.iter().any(|lead| target.matches_node(lead.node)));
    let absent: Vec<String> =
        absent.map(|target| cluster.missing_target_text(target, survey.has_object(target))).collect();
    for what in &absent {
        print_error_line(what);
    }
    let unready = leads.iter().any(|lead| !is_node_ready(lead.node));
    Ok(ExitCode::from(cluster.exit_code(if unready { 1 } else { u8::from(!absent.is_empty()) * 2 })))
}

/// State shared by all explanations.
struct ExplainContext<'c> {
    cluster: &'c PolicyCluster,
    survey: &'c ClusterSurvey,
    index: TreeObjectIndex<'c>,
    moments: &'c dyn Fn(&TreeNode) -> NodeTimes,
    /// Read once an object is explained that finalizers hold.
    signs: OnceCell<LifeSigns>,
    now: Time,
}

impl ExplainContext<'_> {
    async fn causes_text(&self, leads: &[TreeNodePath<'_>], args: &ExplainArgs) -> anyhow::Result<String> {
        let mut explained = Vec::new();
        for lead in leads {
            explained.push(self.explain_node(lead, args.limit).await);
        }
        if args.output != OutputFormat::Table {
            // A script that reads this need not read what is said beside it.
            for explanation in &mut explained {
                explanation.not_read.extend(self.cluster.unread_texts());
            }
        }
        match args.output {
            OutputFormat::Json => Ok(crate::text::json_text(&explained)?),
            OutputFormat::Yaml => policy::to_yaml(&explained),
            OutputFormat::Table => Ok(render::render_explanations(
                &explained,
                self.now,
                TerminalCapabilities::detect_stdout(true).colour,
                TerminalCapabilities::stdout_width(),
            )),
        }
    }

    async fn rollouts_text(
        &self,
        leads: &[TreeNodePath<'_>],
        output: OutputFormat,
    ) -> anyhow::Result<String> {
        let mut rollouts = Vec::new();
        for lead in leads {
            let policy = self.find_policy(&lead.node.policy);
            rollouts
                .push(slow::explain_rollout(self.cluster, self.survey, lead.node, policy, self.now).await?);
        }
        match output {
            OutputFormat::Json => Ok(crate::text::json_text(&rollouts)?),
            OutputFormat::Yaml => policy::to_yaml(&rollouts),
            OutputFormat::Table => Ok(slow::render_rollouts(&rollouts)),
        }
    }

    async fn explain_node(&self, lead: &TreeNodePath<'_>, limit: usize) -> ObjectExplanation {
        let node = lead.node;
        let mut ask = InspectClient::new(self.cluster.client.clone());
        let all = find_root_causes(lead);
        let mut explained = Vec::new();
        for cause in all.iter().take(limit) {
            explained.push(self.explain_cause(&mut ask, lead, cause).await);
        }
        ObjectExplanation {
            object: ExplainedObjectName::of_node(node),
            verdict: node.verdict,
            reason: node.reason.clone(),
            message: node.detail.clone(),
            policy: node.policy.clone(),
            written: self.describe_written(node),
            since: self.since_text(node),
            causes: explained,
            more: all.len().saturating_sub(limit),
            not_read: ask.refused.into_iter().collect(),
        }
    }

    /// Returns a note if the policy is in shadow mode or its condition belongs to another field manager.
    fn describe_written(&self, node: &TreeNode) -> Option<String> {
        let (policy, found) = (self.find_policy(&node.policy)?, self.index.get(node)?);
        if policy.shadow {
            return Some("no: the policy is in shadow mode".to_owned());
        }
        let own = OwnTypes::of(written_types(&policy.condition, policy.fallback.as_deref()));
        let said = ParentStatus::read(&found.text, &own);
        let (kind, by, _) = said.foreign.iter().find(|(kind, _, _)| **kind == *policy.condition)?;
        let by =
            if by.is_empty() { "another field manager".to_owned() } else { format!("field manager {by}") };
        let of = format!("condition {kind} belongs to {by}");
        Some(match (policy.takeover, &policy.fallback) {
            (true, _) => format!("{of}; the policy takes it over, and both may keep overwriting each other"),
            (_, Some(fallback)) => {
                format!("{of}: Rollcall writes {fallback} instead; let readers use that type")
            }
            (false, None) => format!(
                "no: {of}. Set another type in spec.condition.fallback of the policy, or stop the other from writing it"
            ),
        })
    }

    fn since_text(&self, node: &TreeNode) -> Option<String> {
        Some((self.moments)(node).since?.at.to_string())
    }

    async fn explain_cause(
        &self,
        ask: &mut InspectClient,
        asked: &TreeNodePath<'_>,
        lead: &TreeNodePath<'_>,
    ) -> ExplainedCause {
        let node = lead.node;
        let object = KubectlObject {
            group: &node.group,
            kind: &node.kind,
            namespace: &node.namespace,
            name: &node.name,
        };
        let from = asked.above.len();
        let counts = node.role != UNCOUNTED_ROLE;
        let path =
            lead.above.iter().skip(from).chain([&node]).map(|node| format!("{} {}", node.kind, node.name));
        let mut cause = ExplainedCause {
            object: ExplainedObjectName::of_node(node),
            path: path.collect(),
            verdict: node.verdict,
            reason: node.reason.clone(),
            message: if counts {
                node.detail.clone()
            } else {
                format!("{}; no policy counts it", node.detail)
            },
            counts,
            since: self.since_text(node),
            changes: advice::describe_changes(node).to_owned(),
            tries: advice::suggest_commands(node, &object),
            ..ExplainedCause::default()
        };
        if let Some(found) = self.index.get(node) {
            self.inspect_object(ask, lead, found, &object, &mut cause).await;
        } else if let Some(found) = reread_object(&self.cluster.client, self.survey, ask, node).await {
            self.inspect_object(ask, lead, &found, &object, &mut cause).await;
        }
        cause
    }

    /// Reads the object, its owned objects and its Events for the cause.
    async fn inspect_object(
        &self,
        ask: &mut InspectClient,
        lead: &TreeNodePath<'_>,
        found: &ParentObject,
        object: &KubectlObject<'_>,
        cause: &mut ExplainedCause,
    ) {
        let (rule, limits) = self.find_rule(lead);
        let ExplainedRuling { rule, branch, values, then } = explain_ruling(found, rule, &limits, self.now);
        cause.values = values;
        if lead.node.policy.is_empty() {
            (cause.rule, cause.branch) = (rule, branch);
        } else {
            cause.rule = format!("policy {}", lead.node.policy);
            advice::describe_branch(lead.node).clone_into(&mut cause.branch);
        }
        (cause.owns, cause.events) =
            inspect::inspect_object(ask, &self.cluster.client, found, &limits, self.now).await;
        // A workload waits for its pods, and their cause is what can be changed; except if the workload is being
        // deleted.
        let below = cause
            .owns
            .iter()
            .filter(|_| found.child.meta.deleted.is_none())
            .find_map(|owned| advice::advise_from_owned(owned, object));
        if let Some(found) = below {
            (cause.changes, cause.tries) = found;
        }
        if found.child.meta.deleted.is_some() {
            let signs = (&self.signs, self.now);
            deletion::explain_deletion(ask, signs, lead.node, found, object, cause).await;
        }
        if let Some((at, what)) = then {
            cause.changes = format!("{}; without a change it becomes {what} at {at}", cause.changes);
        }
    }

    /// Returns the rule and the limits that its parent's policy has for it.
    fn find_rule(&self, lead: &TreeNodePath<'_>) -> (Option<&GroupRule>, StuckLimits) {
        let policy = |node: &TreeNode| self.find_policy(&node.policy);
        let Some(policy) = lead.above.last().and_then(|parent| policy(parent)).or_else(|| policy(lead.node))
        else {
            return (None, StuckLimits::default());
        };
        let is = |group: &&policy::CompiledGroup| {
            group.kind.group == lead.node.group && group.kind.kind == lead.node.kind
        };
        (policy.groups.iter().find(is).and_then(|group| group.rule.as_ref()), policy.limits)
    }

    fn find_policy(&self, name: &str) -> Option<&CompiledPolicy> {
        self.cluster.find_policy(name)
    }
}
