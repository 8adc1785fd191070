//! The configuration of each tool.

use std::fmt::Write as _;

use policy::to_yaml;
use serde_json::{Value, json};

use super::super::condition_answer::{
    AnsweringPolicy, ConditionAnswer, KindAnswers, READY_REASON, TERMINAL_REASONS,
};
use super::cel_answer::CelObject;
use super::kro_id::kro_id;
use super::reading_tool::ReadingTool;
use crate::text::print_error_line;

/// Stands for what policies do not say.
const UNKNOWN_VERSION: &str = "VERSION";

/// A kind of parent, and what is to be read of it.
pub(super) struct ReadKind {
    group: String,
    kind: String,
    answers: KindAnswers,
}

impl ReadKind {
    pub(super) fn new(group: String, kind: String, answers: KindAnswers) -> ReadKind {
        ReadKind { group, kind, answers }
    }

    /// Says what the configuration cannot say.
    pub(super) fn print_notes(&self, tool: Option<ReadingTool>) {
        let ReadKind { group, kind, answers } = self;
        let wants_version =
            tool.is_none_or(|tool| matches!(tool, ReadingTool::Flux | ReadingTool::KubeStateMetrics));
        if wants_version && answers.version.is_none() {
            print_error_line(&format!(
                "{kind}.{group}: no policy names a version: replace {UNKNOWN_VERSION} by the one that is applied"
            ));
        }
        // Expressions take the one that is Rollcall's; a type alone does not tell.
        let reads_types = tool.is_none_or(|tool| {
            matches!(tool, ReadingTool::Kubectl | ReadingTool::Helm | ReadingTool::Pulumi)
        });
        for answer in answers.conditions.iter().filter(|_| reads_types) {
            let blind = blind_tools(tool, answer);
            if let (Some(fallback), false) = (&answer.fallback, blind.is_empty()) {
                let condition = &answer.condition;
                print_error_line(&format!(
                    "{kind}.{group}: where {condition} is another writer's, {fallback} is to be waited for: {blind} cannot tell"
                ));
            }
        }
        if tool.is_none_or(|tool| tool == ReadingTool::Helm) && !self.helm_can_tell() {
            print_error_line(&format!("{kind}.{group}: {}", helm_gap_text(&self.answers)));
        }
        if answers.conditions.iter().any(|answer| !answer.always) {
            print_error_line(&format!(
                "{kind}.{group}: a policy selects some parents only; all others, which have no condition, read as not ready"
            ));
        }
    }

    fn version(&self) -> &str {
        self.answers.version.as_deref().unwrap_or(UNKNOWN_VERSION)
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version().to_owned()
        } else {
            format!("{}/{}", self.group, self.version())
        }
    }

    /// The kind as kubectl takes it.
    fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }

    fn conditions(&self) -> &[ConditionAnswer] {
        &self.answers.conditions
    }

    /// Returns `true` if Helm can wait for all that Rollcall says of a parent of this kind.
    pub(super) fn helm_can_tell(&self) -> bool {
        self.conditions().len() <= 1
    }
}

/// The tools, of those that are printed for, that cannot tell whether a condition or its fallback carries the answer.
fn blind_tools(tool: Option<ReadingTool>, answer: &ConditionAnswer) -> String {
    // Helm takes either where it reads annotations.
    let helm = (ReadingTool::Helm, "Helm", answer.condition == "Ready");
    let blind = [(ReadingTool::Kubectl, "kubectl", true), helm, (ReadingTool::Pulumi, "Pulumi", true)];
    let blind =
        blind.into_iter().filter(|(one, _, is_blind)| *is_blind && tool.is_none_or(|tool| tool == *one));
    blind.map(|(_, name, _)| name).collect::<Vec<_>>().join(", ")
}

/// Why nothing is printed for Helm where several conditions count.
fn helm_gap_text(answers: &KindAnswers) -> String {
    let types: Vec<&str> = answers.conditions.iter().map(|answer| &*answer.condition).collect();
    format!(
        "left out for Helm: a parent is ready when {} are all True, and to Helm it is as soon as one of its success conditions \
         is met; give the kind one policy, or wait with `rollcall wait` or Flux",
        types.join(" and ")
    )
}

/// Returns the configuration of a tool for these kinds.
pub(super) fn render_for(tool: ReadingTool, kinds: &[ReadKind]) -> anyhow::Result<String> {
    match tool {
        ReadingTool::Flux => flux(kinds),
        ReadingTool::Kro => kro(kinds),
        ReadingTool::Kubectl => Ok(kubectl(kinds)),
        ReadingTool::Helm => helm(kinds),
        ReadingTool::Pulumi => pulumi(kinds),
        ReadingTool::KubeStateMetrics => kube_state_metrics(kinds),
        ReadingTool::ArgoRollouts => argo_rollouts(kinds),
    }
}

fn flux(kinds: &[ReadKind]) -> anyhow::Result<String> {
    let object = CelObject(String::new());
    let checks: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            json!({
                "apiVersion": kind.api_version(), "kind": kind.kind,
                "current": object.ready_expression(kind.conditions()),
                "failed": object.failed_expression(kind.conditions()),
            })
        })
        .collect();
    let what = "# Flux: in spec of the Kustomization that applies the parents, with `wait: true`. Their CRDs need the default that\n\
                # `rollcall crd-defaults` prints: an expression cannot read a status that is not there.\n";
    Ok(format!("{what}{}", to_yaml(&json!({ "healthCheckExprs": checks }))?))
}

fn kro(kinds: &[ReadKind]) -> anyhow::Result<String> {
    let mut texts = Vec::new();
    for kind in kinds {
        let id = kro_id(&kind.kind);
        let object = CelObject(format!("{id}."));
        let ready = format!("${{{}}}", object.ready_expression(kind.conditions()));
        let what =
            format!("# kro: beside the template of a {}. `{id}` is the id of that resource.\n", kind.kind);
        texts.push(format!("{what}{}", to_yaml(&json!({ "readyWhen": [ready] }))?));
    }
    Ok(texts.join("---\n"))
}

fn kubectl(kinds: &[ReadKind]) -> String {
    let mut text =
        "# kubectl: it compares the generation. `rollcall wait` also ends where a parent has failed for good, and says why.\n"
            .to_owned();
    for kind in kinds {
        for answer in kind.conditions() {
            let (resource, condition) = (kind.resource(), &answer.condition);
            let _ = writeln!(
                text,
                "kubectl wait {resource}/NAME -n NAMESPACE --for=condition={condition} --timeout=10m"
            );
        }
    }
    text
}

fn helm(kinds: &[ReadKind]) -> anyhow::Result<String> {
    let texts: anyhow::Result<Vec<String>> = kinds.iter().map(helm_kind).collect();
    Ok(texts?.join("---\n"))
}

/// One condition of a kind: Helm is ready as soon as one expression holds, an expression compares one path, and with annotations it
/// does not read what it waits for otherwise.
fn helm_kind(kind: &ReadKind) -> anyhow::Result<String> {
    let answer = match kind.conditions() {
        [answer] if answer.condition != "Ready" => answer,
        // kstatus, by which Helm 4 waits, reads Ready, Reconciling and Stalled.
        [_] => {
            return Ok(format!(
                "# Helm 4: `--wait` reads the Ready of a {} as it is, and its generation.\n",
                kind.kind
            ));
        }
        _ => return Ok(format!("# Helm: {}: {}.\n", kind.kind, helm_gap_text(&kind.answers))),
    };
    let path = |of: &str, field: &str| format!("{{.conditions[?(@.type==\"{of}\")].{field}}}");
    // One of them has the reason, whichever carries the answer.
    let ready = answer.types().map(|of| format!("{} == \"{READY_REASON}\"", path(of, "reason")));
    let failed = answer.types().flat_map(|of| match of {
        "Ready" => vec![format!("{} == \"True\"", path("Stalled", "status"))],
        _ => TERMINAL_REASONS.map(|reason| format!("{} == \"{reason}\"", path(of, "reason"))).to_vec(),
    });
    let lists = [ready.collect::<Vec<_>>(), failed.collect()].map(|list| json!(list).to_string());
    let what = format!(
        "# Helm, where it has HIP-0025: annotations of a {} in the chart. Paths begin at its status. The generation is not\n\
         # compared, so that after an upgrade the answer about the spec of before may be taken.\n",
        kind.kind
    );
    let annotations = json!({ "helm.sh/readiness-success": lists[0], "helm.sh/readiness-failure": lists[1] });
    Ok(format!("{what}{}", to_yaml(&json!({ "metadata": { "annotations": annotations } }))?))
}

fn pulumi(kinds: &[ReadKind]) -> anyhow::Result<String> {
    let mut texts = Vec::new();
    for kind in kinds {
        let conditions: Vec<String> =
            kind.conditions().iter().map(|answer| format!("condition={}", answer.condition)).collect();
        let wait_for = match &conditions[..] {
            [one] => one.clone(),
            all => json!(all).to_string(),
        };
        let what = format!("# Pulumi: annotation of a {}.\n", kind.kind);
        let annotations = json!({ "pulumi.com/waitFor": wait_for });
        texts.push(format!("{what}{}", to_yaml(&json!({ "metadata": { "annotations": annotations } }))?));
    }
    Ok(texts.join("---\n"))
}

fn kube_state_metrics(kinds: &[ReadKind]) -> anyhow::Result<String> {
    let resources: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            let condition = json!({
                "name": "status_condition",
                "help": "Conditions of the parent, Rollcall's among them.",
                "each": { "type": "StateSet", "stateSet": {
                    "path": ["status", "conditions"], "labelName": "status", "valueFrom": ["status"],
                    "labelsFromPath": { "condition": ["type"], "reason": ["reason"] },
                    "list": ["True", "False", "Unknown"],
                } },
            });
            json!({
                "groupVersionKind": { "group": kind.group, "version": kind.version(), "kind": kind.kind },
                "metricNamePrefix": format!("kube_{}", kind.kind.to_lowercase()),
                "labelsFromPath": { "namespace": ["metadata", "namespace"], "name": ["metadata", "name"] },
                "metrics": [condition],
            })
        })
        .collect();
    let config = json!({ "kind": "CustomResourceStateMetrics", "spec": { "resources": resources } });
    let what = "# kube-state-metrics: --custom-resource-state-config-file, and the right to list and watch these kinds. Rollcall's own\n\
                # metrics count parents by policy and verdict, and need none of this.\n";
    Ok(format!("{what}{}", to_yaml(&config)?))
}

fn argo_rollouts(kinds: &[ReadKind]) -> anyhow::Result<String> {
    let mut texts = Vec::new();
    for policy in kinds.iter().flat_map(|kind| &kind.answers.policies) {
        let AnsweringPolicy { label, name, group_namespace } = policy;
        let mut args = vec![json!({ "name": "prometheus" })];
        let query = if let Some(namespace) = group_namespace {
            let known = (!namespace.is_empty()).then(|| json!({ "name": "namespace", "value": namespace }));
            args.push(known.unwrap_or_else(|| json!({ "name": "namespace" })));
            not_ready_group_query(label, name)
        } else {
            format!("sum(rollcall_parents{{policy=\"{label}\", verdict!=\"Ready\"}})")
        };
        let metric = json!({
            "name": "not-ready", "interval": "30s", "count": 5, "failureLimit": 1,
            "successCondition": "len(result) > 0 && result[0] == 0",
            "provider": { "prometheus": { "address": "{{args.prometheus}}", "query": query } },
        });
        let template = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
            "metadata": { "name": format!("rollcall-{name}") },
            "spec": { "args": args, "metrics": [metric] },
        });
        let what = if group_namespace.is_some() {
            format!("# Argo Rollouts: group {name} is ready over two minutes.\n")
        } else {
            format!("# Argo Rollouts: no parent of policy {name} is not ready, over two minutes.\n")
        };
        texts.push(format!("{what}{}", to_yaml(&template)?));
    }
    Ok(texts.join("---\n"))
}

/// Series that count parents are those of all groups that select alike; one that is not ready has series of its own, as long as there
/// are not too many of them: those without are counted as not ready, too. Where nobody counts the group there is no value.
fn not_ready_group_query(label: &str, name: &str) -> String {
    let own = format!(
        "rollcall_parent_not_ready_info{{policy=\"{label}\", namespace=\"{{{{args.namespace}}}}\", name=\"{name}\"}}"
    );
    format!(
        "(sum({own} or vector(0)) + sum(rollcall_parents_not_exported)) and on() (sum(rollcall_parents{{policy=\"{label}\"}}) > 0)"
    )
}
