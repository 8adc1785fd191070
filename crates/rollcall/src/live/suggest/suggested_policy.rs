//! A policy for a kind of parent, with what it rests on.

use std::fmt::Write as _;

use policy::{CompiledPolicy, FoundPolicy, compile, is_status_owned_by_others, parse_manifests};
use readiness::RuleKind;
use serde::Serialize;
use serde_json::{Value, json};
use watcher::ApiKind;

use super::super::target::KindName;
use super::owner_survey::OwnedKinds;
use super::parent_evidence::ParentEvidence;
use crate::limits::STUCK_AFTER;
use crate::text::sanitize_text;

/// Children of one kind, as the parents of a kind own them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SuggestedChildren {
    pub(super) group: String,
    pub(super) kind: String,
    /// Number of parents that own some.
    pub(super) owners: usize,
    /// Largest number that one parent owns.
    pub(super) most: usize,
    /// There is a parent that owns none, is not being deleted, and does not say of itself that it is not ready.
    #[serde(skip)]
    pub(super) may_lack: bool,
}

/// What is suggested for a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicySuggestion {
    pub(super) group: String,
    pub(super) kind: String,
    /// Number of objects of the kind.
    pub(super) objects: usize,
    pub(super) children: Vec<SuggestedChildren>,
    /// What it rests on, one sentence each.
    pub(super) evidence: Vec<String>,
    /// The policy; null where none is needed.
    pub(super) policy: Value,
    /// Why none is suggested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<String>,
    /// The operator writes `Ready` itself.
    #[serde(skip)]
    pub(super) own_ready: bool,
    /// The definition of the kind lacks the default of the first read, and has room for it.
    #[serde(skip)]
    pub(super) lacks_default: bool,
}

impl PolicySuggestion {
    /// Suggests a policy for a kind of parents by what they own and show.
    pub(super) fn of_kind(api: &ApiKind, owned: &OwnedKinds, seen: &ParentEvidence) -> PolicySuggestion {
        let mut suggestion = PolicySuggestion {
            group: api.group.clone(),
            kind: api.kind.clone(),
            objects: seen.count(),
            children: Vec::new(),
            evidence: Vec::new(),
            policy: Value::Null,
            left_out: None,
            own_ready: seen.parents.iter().any(|parent| parent.own_ready.is_some()),
            lacks_default: false,
        };
        suggestion.add_children(owned, seen);
        if suggestion.children.is_empty() {
            suggestion.left_out = Some("what it owns has no readiness of its own".to_owned());
            return suggestion;
        }
        suggestion.policy = suggestion.compose_policy(api, seen);
        suggestion
    }

    fn add_children(&mut self, owned: &OwnedKinds, seen: &ParentEvidence) {
        let mut plain = Vec::new();
        for (child, counts) in &owned.children {
            let (owning, lacking): (Vec<_>, Vec<_>) =
                seen.parents.iter().partition(|parent| counts.contains_key(&parent.uid));
            let counts: Vec<usize> =
                owning.iter().filter_map(|parent| counts.get(&parent.uid)).copied().collect();
            if counts.is_empty() {
                continue;
            }
            if !has_readiness(child) {
                plain.push(child.kind.clone());
                continue;
            }
            self.children.push(SuggestedChildren {
                group: child.group.clone(),
                kind: child.kind.clone(),
                owners: counts.len(),
                most: counts.iter().copied().max().unwrap_or_default(),
                // What one lacks that is not ready may be what it is not ready for.
                may_lack: lacking
                    .iter()
                    .any(|parent| parent.unready_word.is_none() && !parent.is_being_deleted),
            });
        }
        if !plain.is_empty() {
            let what = format!("it owns {} too, which have no readiness of their own", plain.join(", "));
            self.evidence.push(what);
        }
        let is_expected = |child: &&SuggestedChildren| child.owners < self.objects && !child.may_lack;
        let expected: Vec<_> = self.children.iter().filter(is_expected).map(|child| &*child.kind).collect();
        if !expected.is_empty() {
            self.evidence.push(format!(
                "not all own {}, and those that do not say that they are not ready: it is expected of them too",
                expected.join(", ")
            ));
        }
    }

    fn compose_policy(&mut self, api: &ApiKind, seen: &ParentEvidence) -> Value {
        let count = seen.count();
        let children = self.children.iter().map(|child| {
            let mut kind = json!({ "kind": child.kind });
            if !child.group.is_empty() {
                kind["group"] = json!(child.group);
            }
            let mut entry = json!({ "kind": kind });
            if child.may_lack {
                entry["expect"] = json!({ "min": 0 });
            }
            entry
        });
        let mut spec = json!({
            "parent": { "group": api.group, "kind": api.kind },
            "children": children.collect::<Vec<_>>(),
            "mode": "shadow",
        });
        if self.own_ready {
            spec["condition"] = json!({ "type": "ChildrenReady" });
            self.evidence.push("its operator writes Ready itself, which is left to it".to_owned());
        }
        self.evidence.push(match (seen.kopf_marks, seen.generations) {
            (marked, _) if marked == count && count > 0 => {
                spec["evidence"] = json!("kopf");
                "Kopf leaves its mark on every object: one without it is not handled yet".to_owned()
            }
            (0, 0) => "its operator does not say which generation it has handled: `settle` decides, and a \
                       `proof` would be better"
                .to_owned(),
            (0, spoken) => format!(
                "{spoken} of {count} say which generation their operator has observed: it is waited for"
            ),
            (marked, _) => format!("Kopf leaves its mark on {marked} of {count}"),
        });
        if is_status_owned_by_others(&api.group) {
            self.evidence.push("its status belongs to another controller: it is never written".to_owned());
        }
        json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": format!("{}.{}", api.plural, api.group) }, "spec": spec,
        })
    }

    /// Name of the definition of the kind.
    pub(super) fn crd_name(&self) -> &str {
        self.policy["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Leaves the kind out.
    pub(super) fn leave_out(&mut self, why: String) {
        self.policy = Value::Null;
        self.left_out = Some(why);
    }

    /// Lets the policy write conditions.
    pub(super) fn let_write(&mut self) {
        if let Some(spec) = self.policy["spec"].as_object_mut() {
            spec.remove("mode");
        }
    }

    /// The suggestion as YAML with comments.
    pub(super) fn to_text(&self) -> String {
        let objects =
            if self.objects == 1 { "1 object".to_owned() } else { format!("{} objects", self.objects) };
        let mut text = format!("# {}.{}: {objects}\n", self.kind, self.group);
        for what in &self.evidence {
            _ = writeln!(text, "# - {}", one_line(what));
        }
        if let Some(why) = &self.left_out {
            _ = writeln!(text, "# left out: {}", one_line(why));
            return text + "\n";
        }
        let spec = &self.policy["spec"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        _ = write!(
            text,
            "---\napiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {{ name: {} }}\nspec:\n  \
             parent: {{ group: {}, kind: {} }}\n  children:\n",
            word(&self.policy["metadata"]["name"]),
            self.group,
            self.kind
        );
        for child in &self.children {
            let group =
                if child.group.is_empty() { String::new() } else { format!("group: {}, ", child.group) };
            let line = format!("    - kind: {{ {group}kind: {} }}", child.kind);
            let most = if child.most > 1 { format!(", up to {} each", child.most) } else { String::new() };
            _ = writeln!(text, "{line:60} # {} of {} own some{most}", child.owners, self.objects);
            if child.may_lack {
                text.push_str("      expect: { min: 0 }\n");
            }
        }
        if self.own_ready {
            text.push_str("  condition: { type: ChildrenReady }\n");
        }
        if let Some(evidence) = spec["evidence"].as_str() {
            _ = writeln!(text, "  evidence: {evidence}");
        }
        if let Some(mode) = spec["mode"].as_str() {
            _ = writeln!(text, "  mode: {mode}");
        }
        text.push('\n');
        text
    }
}

/// Compiles what is suggested, as a policy that is read from a file. Of what is printed only the policy itself is taken: what it
/// rests on quotes objects that anyone may have written.
pub(super) fn compile_suggestions(
    suggestions: &[PolicySuggestion],
) -> anyhow::Result<Vec<(FoundPolicy, CompiledPolicy)>> {
    let mut policies = Vec::new();
    for suggestion in suggestions.iter().filter(|suggestion| suggestion.left_out.is_none()) {
        for manifest in parse_manifests(&suggestion.policy.to_string())? {
            let policy::PolicyManifest::Policy(found) = manifest else { continue };
            let spec = found.spec.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
            let compiled = compile(spec, STUCK_AFTER)
                .map_err(|problems| anyhow::anyhow!("{}: {problems:?}", found.name))?;
            policies.push((*found, compiled));
        }
    }
    Ok(policies)
}

/// The text in one line of a comment: it may quote objects of whomever, and what follows a line break would be YAML.
fn one_line(text: &str) -> String {
    sanitize_text(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Kinds that are ready because they exist say nothing of a parent.
fn has_readiness(kind: &KindName) -> bool {
    let rule = RuleKind::from_group_kind(&kind.group, &kind.kind);
    !matches!(rule, RuleKind::Plain | RuleKind::EndpointSlice | RuleKind::PodDisruptionBudget)
}
