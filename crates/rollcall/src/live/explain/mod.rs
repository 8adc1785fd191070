//! `rollcall explain`: the root causes first, and what is known of each.

mod advice;
mod draw;
mod leads;
mod ruling;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use controller::args::ClusterArgs;
use controller::core::TreeNode;
use controller::inspect;
use controller::inspect::ask::Ask;
use controller::inspect::below::Owned;
use controller::inspect::command::Object;
use controller::inspect::events::Event;
use controller::inspect::holders::{self, Holder};
use controller::policies::{Compiled, GroupRule};
use readiness::{Limits, Time};
use serde::Serialize;
use watcher::status::ParentStatus;
use watcher::{Parent, look};

use super::gather::Cluster;
use super::pick::{Index, Moments};
use super::survey::Survey;
use super::{ScopeArgs, open};
use crate::eval::{Output, now};
use crate::look::Look;
use crate::text::{put, say};
use leads::{Lead, causes, seek};
use ruling::{Ruling, Value, ruling};

/// `rollcall explain`.
#[derive(Args, Debug)]
#[command(
    after_help = "Nothing is changed: commands are printed, never run. Exit codes: 0 all that was asked about is ready; 1 at least one is not; 2 there is no such object, or it could not be told."
)]
pub(crate) struct ExplainArgs {
    /// Objects as KIND/NAME or KIND NAME: parents, or anything below them.
    #[arg(value_name = "KIND/NAME", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Only so many root causes: the worst.
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// What is printed.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

/// An object by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Named {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// Why one object is as it is.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    object: Named,
    verdict: &'static str,
    reason: String,
    message: String,
    /// The policy that makes it a parent; empty for one that is none.
    policy: String,
    /// Why nothing of this is written on it, or where else it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    causes: Vec<Cause>,
    /// So many more causes are left out.
    more: usize,
    /// What could not be read, and why.
    not_read: Vec<String>,
}

/// One of the objects that hold it back.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cause {
    object: Named,
    /// From the object that was asked about down to this one.
    path: Vec<String>,
    verdict: &'static str,
    reason: String,
    message: String,
    rule: String,
    branch: String,
    values: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// What would change it.
    changes: String,
    tries: Vec<String>,
    holders: Vec<Holder>,
    owns: Vec<Owned>,
    events: Vec<Event>,
}

pub(crate) async fn explain(cluster: &ClusterArgs, args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let (mut cluster, targets) = open(cluster, &args.scope, &args.what).await?;
    if targets.iter().any(|target| target.name.is_none()) {
        bail!("say which: `rollcall explain KIND/NAME`");
    }
    let now = now();
    let survey = cluster.survey(now).await;
    let leads = seek(&survey.trees, &targets);
    let mut told = Vec::new();
    let inquiry = Inquiry {
        cluster: &cluster,
        survey: &survey,
        index: survey.index(),
        moments: &survey.moments(),
        now,
    };
    for lead in &leads {
        told.push(inquiry.explain(lead, args.limit).await);
    }
    cluster.complain();
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&told)? + "\n",
        Output::Yaml => controller::policies::to_yaml(&told)?,
        Output::Table => draw::text(&told, now, Look::of_this_process(true).colour, Look::width()),
    };
    put(&text)?;
    let absent = targets.iter().filter(|target| !leads.iter().any(|lead| target.is(lead.node)));
    let absent: Vec<String> = absent.map(ToString::to_string).collect();
    for what in &absent {
        say(&format!("there is no {what}"));
    }
    let unready = told.iter().any(|explanation| explanation.verdict != "Ready");
    Ok(ExitCode::from(if unready { 1 } else { u8::from(!absent.is_empty()) * 2 }))
}

/// What every answer rests on.
struct Inquiry<'c> {
    cluster: &'c Cluster,
    survey: &'c Survey,
    index: Index<'c>,
    moments: &'c dyn Fn(&TreeNode) -> Moments,
    now: Time,
}

impl Inquiry<'_> {
    async fn explain(&self, lead: &Lead<'_>, limit: usize) -> Explanation {
        let node = lead.node;
        let mut ask = Ask::new(self.cluster.client.clone());
        let all = causes(lead);
        let mut told = Vec::new();
        for cause in all.iter().take(limit) {
            told.push(self.cause(&mut ask, lead, cause).await);
        }
        Explanation {
            object: named(node),
            verdict: node.verdict,
            reason: node.reason.clone(),
            message: node.detail.clone(),
            policy: node.policy.clone(),
            written: self.written(node),
            since: self.since(node),
            causes: told,
            more: all.len().saturating_sub(limit),
            not_read: ask.refused.into_iter().collect(),
        }
    }

    /// What a parent says of itself may be in the hands of somebody else.
    fn written(&self, node: &TreeNode) -> Option<String> {
        let (policy, found) = (self.policy(&node.policy)?, self.index.get(node)?);
        if policy.shadow {
            return Some("no: the policy has it in shadow".to_owned());
        }
        let said = ParentStatus::read(&found.text, &[]);
        let (kind, by, _) = said.foreign.iter().find(|(kind, _, _)| **kind == *policy.condition)?;
        let by = if by.is_empty() { "somebody else".to_owned() } else { format!("field manager {by}") };
        let of = format!("condition {kind} belongs to {by}");
        Some(match (policy.takeover, &policy.fallback) {
            (true, _) => format!("{of}; the policy takes it over, and they may fight"),
            (_, Some(fallback)) => {
                format!("{of}: Rollcall writes {fallback} instead, and readers have to look there")
            }
            (false, None) => format!(
                "no: {of}. Name another type in spec.condition.fallback of the policy, or keep the other from writing it"
            ),
        })
    }

    fn since(&self, node: &TreeNode) -> Option<String> {
        Some((self.moments)(node).since?.at.to_string())
    }

    async fn cause(&self, ask: &mut Ask, asked: &Lead<'_>, lead: &Lead<'_>) -> Cause {
        let node = lead.node;
        let object =
            Object { group: &node.group, kind: &node.kind, namespace: &node.namespace, name: &node.name };
        let from = asked.above.len();
        let path =
            lead.above.iter().skip(from).chain([&node]).map(|node| format!("{} {}", node.kind, node.name));
        let mut cause = Cause {
            object: named(node),
            path: path.collect(),
            verdict: node.verdict,
            reason: node.reason.clone(),
            message: node.detail.clone(),
            since: self.since(node),
            changes: advice::changes(&node.reason).to_owned(),
            tries: advice::tries(&node.reason, &object),
            ..Cause::default()
        };
        if let Some(found) = self.index.get(node) {
            self.look(ask, lead, found, &object, &mut cause).await;
        } else if let Some(found) = self.again(ask, node).await {
            self.look(ask, lead, &found, &object, &mut cause).await;
        }
        cause
    }

    /// Of most objects nobody keeps more than the verdict: those that are explained are read again, whole.
    async fn again(&self, ask: &mut Ask, node: &TreeNode) -> Option<Parent> {
        let api = self.survey.kind(node)?;
        let namespace = Some(&*node.namespace).filter(|_| api.namespaced);
        match look::<Parent>(&self.cluster.client, api, namespace, &node.name).await {
            Ok(found) => found.map(|found| found.typed(&api.api_version(), &api.kind)),
            Err(error) => {
                ask.refused.insert(format!("{} {}: {}", node.kind, node.name, error.detail));
                None
            }
        }
    }

    /// What the object itself, what it owns and its Events say.
    async fn look(
        &self,
        ask: &mut Ask,
        lead: &Lead<'_>,
        found: &Parent,
        object: &Object<'_>,
        cause: &mut Cause,
    ) {
        let (rule, limits) = self.rule(lead);
        let Ruling { rule, branch, values, then } = ruling(found, rule, &limits, self.now);
        cause.values = values;
        if lead.node.policy.is_empty() {
            (cause.rule, cause.branch) = (rule, branch);
        } else {
            cause.rule = format!("policy {}", lead.node.policy);
            advice::branch(&lead.node.reason).clone_into(&mut cause.branch);
        }
        if let Ok(value) = serde_json::from_str(found.text.get()) {
            cause.holders = holders::holders(&value, object);
        }
        (cause.owns, cause.events) =
            inspect::around(ask, &self.cluster.client, found, &limits, self.now).await;
        // A workload waits for its pods; what these wait for is what can be changed. Not so where it is being deleted.
        let below = cause
            .owns
            .iter()
            .filter(|_| cause.holders.is_empty())
            .find_map(|owned| advice::below(owned, object));
        if let Some(found) = below {
            (cause.changes, cause.tries) = found;
        }
        if let Some((at, what)) = then {
            cause.changes = format!("{}; by itself, at {at}, it becomes {what}", cause.changes);
        }
    }

    /// The rule that its parent's policy has for it, and the limits of that policy.
    fn rule(&self, lead: &Lead<'_>) -> (Option<&GroupRule>, Limits) {
        let policy = |node: &TreeNode| self.policy(&node.policy);
        let Some(policy) = lead.above.last().and_then(|parent| policy(parent)).or_else(|| policy(lead.node))
        else {
            return (None, Limits::default());
        };
        let is = |group: &&controller::policies::CompiledGroup| {
            group.kind.group == lead.node.group && group.kind.kind == lead.node.kind
        };
        (policy.groups.iter().find(is).and_then(|group| group.rule.as_ref()), policy.limits)
    }

    fn policy(&self, name: &str) -> Option<&Compiled> {
        self.cluster.policies.iter().find(|(known, _)| known == name).map(|(_, compiled)| compiled)
    }
}

fn named(node: &TreeNode) -> Named {
    Named {
        group: node.group.clone(),
        kind: node.kind.clone(),
        namespace: node.namespace.clone(),
        name: node.name.clone(),
    }
}
