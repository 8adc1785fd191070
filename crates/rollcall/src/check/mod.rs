//! `rollcall check`: validates policies without a cluster and prints the kinds they would watch and the rights they
//! need.

mod read_policy;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use policy::rbac::{CrdNames, RbacRule, policy_rights};
use policy::{
    CompiledPolicy, ConfigMapName, PolicyClaim, PolicyProblem, ProtectedKind, document_objects,
    is_status_owned_by_others, open_categories,
};
use rollcall_yaml::{DocumentPositions, DuplicateKey, SourcePosition, YamlReadError};
use serde::Serialize;
use serde_json::Value;

use crate::text::sanitize_text;

/// `rollcall check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Files with ReadinessPolicies and ReadinessGroups, YAML or JSON; `-` is standard input. CRDs in them provide the plural names and
    /// scopes of their kinds.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Kinds, besides Secret, whose content no rule may read, as `rollcall run` has them.
    #[arg(long, env = "ROLLCALL_PROTECTED_KINDS", value_delimiter = ',', value_name = "KIND")]
    protected_kinds: Vec<ProtectedKind>,
    /// Output format: `text` prints one line per finding; `json` prints one array of findings.
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: CheckFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    Text,
    Json,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckSeverity {
    Ok,
    Warning,
    Error,
}

/// One finding about a policy file.
#[derive(Clone, Debug, Serialize)]
struct CheckFinding {
    file: String,
    line: u32,
    column: u32,
    severity: CheckSeverity,
    policy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
    message: String,
    /// Kinds that the policy would watch, as `databases.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watches: Vec<String>,
    /// Rights that the policy needs, as `patch databases/status.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<String>,
}

/// A valid policy and its position in the file.
struct ValidPolicy {
    file: String,
    place: SourcePosition,
    name: String,
    compiled: CompiledPolicy,
}

pub(crate) fn run_check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (mut findings, mut valid, mut crds) = (Vec::new(), Vec::new(), Vec::new());
    for file in &args.files {
        check_file(file, &args.protected_kinds, &mut findings, &mut valid, &mut crds)?;
    }
    let crds = CrdNames::from_crds(&crds);
    findings.extend(rival_findings(&valid));
    findings.extend(valid.iter().filter_map(shadow_finding));
    findings.extend(valid.iter().filter_map(category_finding));
    findings.extend(valid.iter().map(|policy| valid_finding(policy, &crds)));
    let text = match args.output {
        CheckFormat::Text => findings.iter().map(CheckFinding::to_line).collect(),
        CheckFormat::Json => crate::text::json_text(&findings)?,
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("failed to write"),
        _ if findings.is_empty() => anyhow::bail!("no ReadinessPolicy or ReadinessGroup in the given files"),
        // Only unreadable files: no policy could be checked.
        _ if findings.iter().all(|finding| finding.policy.is_empty()) => Ok(ExitCode::from(2)),
        _ => Ok(ExitCode::from(u8::from(findings.iter().any(|f| f.severity == CheckSeverity::Error)))),
    }
}

fn check_file(
    file: &Path,
    protected: &[ProtectedKind],
    findings: &mut Vec<CheckFinding>,
    valid: &mut Vec<ValidPolicy>,
    crds: &mut Vec<Value>,
) -> anyhow::Result<()> {
    let (text, name) = if file.as_os_str() == "-" {
        (std::io::read_to_string(std::io::stdin()).context("failed to read standard input")?, "-".to_owned())
    } else {
        let text = std::fs::read_to_string(file);
        (text.with_context(|| format!("failed to read {}", file.display()))?, file.display().to_string())
    };
    let documents = match read_values(&text) {
        Ok(documents) => documents,
        Err(error) => {
            findings.push(yaml_finding(&name, &error));
            return Ok(());
        }
    };
    let places = rollcall_yaml::read_positions(text.as_bytes());
    let (file, empty) = (PolicyFile { name, text: &text, protected }, DocumentPositions::default());
    for (at, (value, duplicates)) in documents.into_iter().enumerate() {
        let document = places.get(at).unwrap_or(&empty);
        findings.extend(duplicates.iter().map(|duplicate| file.duplicate_finding(&value, duplicate)));
        for (within, object) in document_objects(value) {
            if object["kind"] == "CustomResourceDefinition" {
                crds.push(object);
                continue;
            }
            let within = within.map_or(String::new(), |within| within + ".");
            match file.check_document(document, &within, object) {
                Ok(policy) => valid.push(policy),
                Err(found) => findings.extend(found),
            }
        }
    }
    Ok(())
}

/// Documents of a file, each with its duplicate keys.
fn read_values(text: &str) -> Result<Vec<(Value, Vec<DuplicateKey>)>, YamlReadError> {
    let documents = rollcall_yaml::read_all(text.as_bytes())?.into_iter().map(|document| {
        let value = serde_json::from_str(&document.json);
        let refused = |error: serde_json::Error| YamlReadError {
            line: 1,
            what: format!("not YAML that can be a policy: {error}"),
            ..YamlReadError::default()
        };
        Ok((value.map_err(refused)?, document.duplicate_keys))
    });
    documents.collect()
}

/// Text of one policy file.
struct PolicyFile<'t> {
    name: String,
    text: &'t str,
    protected: &'t [ProtectedKind],
}

impl PolicyFile<'_> {
    /// The API server refuses an object with a duplicate key, unless it is told not to look.
    fn duplicate_finding(&self, document: &Value, duplicate: &DuplicateKey) -> CheckFinding {
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let place = SourcePosition { line: count(duplicate.line), column: count(duplicate.column) };
        let policy = document["metadata"]["name"].as_str().unwrap_or("(no name)");
        CheckFinding::new(&self.name, place, CheckSeverity::Error, policy, "", &duplicate.to_string())
    }

    /// Checks the object at the path `within` of a document.
    fn check_document(
        &self,
        document: &DocumentPositions,
        within: &str,
        object: Value,
    ) -> Result<ValidPolicy, Vec<CheckFinding>> {
        let policy = object["metadata"]["name"].as_str().unwrap_or("(no name)").to_owned();
        let finding = |problem: &PolicyProblem| {
            let field = format!("{within}{}", problem.field);
            let place = match problem.at {
                Some(at) => document.find_within(&field, at, self.text),
                None => document.find_field(&field),
            };
            CheckFinding::new(&self.name, place, CheckSeverity::Error, &policy, &problem.field, &problem.what)
        };
        match read_policy::check_policy(object, self.protected) {
            Ok(compiled) => {
                let place = document.find_field(&format!("{within}metadata.name"));
                Ok(ValidPolicy { file: self.name.clone(), place, name: policy, compiled })
            }
            Err(problems) => {
                let mut found: Vec<CheckFinding> = problems.iter().map(finding).collect();
                found.sort_by_key(|finding| (finding.line, finding.column));
                Err(found)
            }
        }
    }
}

fn yaml_finding(file: &str, error: &YamlReadError) -> CheckFinding {
    let (line, column) = error.begin.unwrap_or((error.line, 1));
    let count = |n: u64| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
    let place = SourcePosition { line: count(line), column: count(column) };
    CheckFinding::new(file, place, CheckSeverity::Error, "", "", &error.what)
}

/// Returns a finding for every policy that would write the same condition on the same parents as one before it: in a cluster
/// the later one is refused.
fn rival_findings(valid: &[ValidPolicy]) -> Vec<CheckFinding> {
    let claims: Vec<_> = valid.iter().map(|policy| PolicyClaim::new(&policy.compiled)).collect();
    let mut found = Vec::new();
    for (at, policy) in valid.iter().enumerate() {
        // Groups that are judged by one policy are parents each.
        let is_rival = |first: &usize| policy.compiled.shape.is_none() && claims[*first] == claims[at];
        if let Some(first) = (0..at).find(is_rival) {
            let what = format!("policy {} has the same parents and the same condition", valid[first].name);
            let (file, name) = (&policy.file, &policy.name);
            found.push(CheckFinding::new(
                file,
                policy.place,
                CheckSeverity::Error,
                name,
                "spec.condition.type",
                &what,
            ));
        }
    }
    found
}

/// Returns a finding if the parent's status belongs to another controller.
fn shadow_finding(policy: &ValidPolicy) -> Option<CheckFinding> {
    let parent = &policy.compiled.parent;
    is_status_owned_by_others(&parent.group).then(|| {
        let what = format!(
            "the status of {} belongs to another controller: evaluated in shadow mode only, never written",
            parent.kind
        );
        CheckFinding::new(
            &policy.file,
            policy.place,
            CheckSeverity::Warning,
            &policy.name,
            "spec.parent.group",
            &what,
        )
    })
}

/// Returns a finding if the kinds of a group are those of a category: only an API server knows them.
fn category_finding(policy: &ValidPolicy) -> Option<CheckFinding> {
    let categories = open_categories(&policy.compiled);
    (!categories.is_empty()).then(|| {
        let what = format!(
            "which kinds are in category {} only the API server knows: what the group watches and needs is not listed here; \
             `rollcall plan` asks the server",
            categories.join(" and in category ")
        );
        CheckFinding::new(&policy.file, policy.place, CheckSeverity::Warning, &policy.name, "spec.members", &what)
    })
}

fn valid_finding(policy: &ValidPolicy, crds: &CrdNames) -> CheckFinding {
    let rights = policy_rights(&policy.compiled, crds);
    let right = |rule: &RbacRule| {
        rule.qualified_resources()
            .map(|resource| format!("{} {resource}", rule.verbs.join(",")))
            .collect::<Vec<_>>()
    };
    let watches = rights.kinds.iter().filter(|rule| rule.verbs.contains(&"watch"));
    let watches = watches.flat_map(RbacRule::qualified_resources).collect();
    let script =
        |(library, rule): &(ConfigMapName, RbacRule)| format!("{} configmap {library}", rule.verbs.join(","));
    let scripts = rights.libraries.iter().map(script);
    let needs = rights.kinds.iter().chain(&rights.records).flat_map(right).chain(scripts).collect();
    let kinds: Vec<&str> = policy.compiled.groups.iter().map(|g| g.kind.kind.as_str()).collect();
    let categories = open_categories(&policy.compiled);
    let of_categories = categories.iter().map(|category| format!("category {category}"));
    let kinds: Vec<_> = kinds.into_iter().map(str::to_owned).chain(of_categories).collect();
    let mode = if policy.compiled.shadow { "shadow" } else { "write" };
    let what = format!(
        "{} by {}; condition {}, mode {mode}",
        policy.compiled.parent.kind,
        kinds.join(", "),
        policy.compiled.condition
    );
    CheckFinding {
        watches,
        needs,
        ..CheckFinding::new(&policy.file, policy.place, CheckSeverity::Ok, &policy.name, "", &what)
    }
}

impl CheckFinding {
    fn new(
        file: &str,
        at: SourcePosition,
        severity: CheckSeverity,
        policy: &str,
        field: &str,
        message: &str,
    ) -> CheckFinding {
        CheckFinding {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            severity,
            policy: policy.to_owned(),
            field: field.to_owned(),
            // One line, also if the library's error message has several.
            message: message.split_whitespace().collect::<Vec<_>>().join(" "),
            watches: Vec::new(),
            needs: Vec::new(),
        }
    }
}

impl CheckFinding {
    /// Names, fields and messages have text of the file in them, whose author is not known.
    fn to_line(&self) -> String {
        format!("{}\n", sanitize_text(&self.to_string()))
    }
}

impl fmt::Display for CheckFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            CheckSeverity::Ok => "ok",
            CheckSeverity::Warning => "warning",
            CheckSeverity::Error => "error",
        };
        write!(f, "{}:{}:{}: {severity}: ", self.file, self.line, self.column)?;
        for part in [&self.policy, &self.field].into_iter().filter(|part| !part.is_empty()) {
            write!(f, "{part}: ")?;
        }
        f.write_str(&self.message)?;
        if !self.watches.is_empty() {
            write!(f, "; watches {}; needs {}", self.watches.join(", "), self.needs.join("; "))?;
        }
        Ok(())
    }
}
