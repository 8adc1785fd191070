//! The configuration of each tool.

use std::fmt::Write as _;

use policy::to_yaml;
use serde_json::{Value, json};

use super::super::condition_answer::{
    AnsweringPolicy, ConditionAnswer, KindAnswers, READY_REASON, TERMINAL_REASONS,
};
use super::cel_answer::CelObject;
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
            if let Some(fallback) = &answer.fallback {
                let condition = &answer.condition;
                print_error_line(&format!(
                    "{kind}.{group}: where {condition} is another writer's, {fallback} is to be waited for: kubectl, Helm and \
                     Pulumi cannot tell"
                ));
            }
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
        let mut id = kind.kind.clone();
        id[..1].make_ascii_lowercase();
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
    let mut texts = Vec::new();
    for kind in kinds {
        // kstatus, by which Helm 4 waits, reads Ready, Reconciling and Stalled.
        let others: Vec<_> = kind.conditions().iter().filter(|answer| answer.condition != "Ready").collect();
        if others.len() < kind.conditions().len() {
            texts.push(format!(
                "# Helm 4: `--wait` reads the Ready of a {} as it is, and its generation.\n",
                kind.kind
            ));
        }
        if others.is_empty() {
            continue;
        }
        let path = |answer: &ConditionAnswer, field: &str| {
            format!("{{.conditions[?(@.type==\"{}\")].{field}}}", answer.condition)
        };
        let ready = others.iter().map(|answer| format!("{} == \"{READY_REASON}\"", path(answer, "reason")));
        let failed = others.iter().flat_map(|answer| {
            TERMINAL_REASONS.map(|reason| format!("{} == \"{reason}\"", path(answer, "reason")))
        });
        let lists = [ready.collect::<Vec<_>>(), failed.collect()].map(|list| json!(list).to_string());
        let what = format!(
            "# Helm, where it has HIP-0025: annotations of a {} in the chart. Paths begin at its status. The generation is not\n\
             # compared, so that after an upgrade the answer about the spec of before may be taken.\n",
            kind.kind
        );
        let annotations =
            json!({ "helm.sh/readiness-success": lists[0], "helm.sh/readiness-failure": lists[1] });
        texts.push(format!("{what}{}", to_yaml(&json!({ "metadata": { "annotations": annotations } }))?));
    }
    Ok(texts.join("---\n"))
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
        let AnsweringPolicy { label, name, is_group } = policy;
        let query = format!("sum(rollcall_parents{{policy=\"{label}\", verdict!=\"Ready\"}})");
        let metric = json!({
            "name": "not-ready", "interval": "30s", "count": 5, "failureLimit": 1,
            "successCondition": "len(result) > 0 && result[0] == 0",
            "provider": { "prometheus": { "address": "{{args.prometheus}}", "query": query } },
        });
        let template = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
            "metadata": { "name": format!("rollcall-{name}") },
            "spec": { "args": [{ "name": "prometheus" }], "metrics": [metric] },
        });
        let what = if *is_group {
            format!(
                "# Argo Rollouts: group {name} is ready over two minutes, and so are those that select as it does: they are counted \
                 together.\n"
            )
        } else {
            format!("# Argo Rollouts: no parent of policy {name} is not ready, over two minutes.\n")
        };
        texts.push(format!("{what}{}", to_yaml(&template)?));
    }
    Ok(texts.join("---\n"))
}
