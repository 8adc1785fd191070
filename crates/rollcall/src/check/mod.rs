//! `rollcall check`: is a policy valid, what would it watch, and what rights does it need? Without a cluster.

mod places;
mod read;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use controller::policies::{Compiled, Problem, belongs_to_others, objects};
use controller::rbac::{Crds, Need, libraries, needs, records};
use serde::Serialize;
use serde_json::Value;

use places::{Document, Place};

/// `rollcall check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Files with ReadinessPolicies, YAML or JSON; `-` is standard input. CRDs among them tell how their kinds are called.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// `text`: one line per finding; `json`: one array of them.
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Ok,
    Warning,
    Error,
}

/// One thing that was found out.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    file: String,
    line: u32,
    column: u32,
    severity: Severity,
    policy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
    message: String,
    /// Kinds that it would watch, as `databases.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watches: Vec<String>,
    /// Rights that it needs, as `patch databases/status.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<String>,
}

/// A policy that is valid, and where it stands.
struct Valid {
    file: String,
    place: Place,
    name: String,
    compiled: Compiled,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (mut findings, mut valid, mut crds) = (Vec::new(), Vec::new(), Vec::new());
    for file in &args.files {
        check_file(file, &mut findings, &mut valid, &mut crds)?;
    }
    let crds = Crds::read(&crds);
    findings.extend(rivals(&valid));
    findings.extend(valid.iter().filter_map(shadowed));
    findings.extend(valid.iter().map(|policy| fine(policy, &crds)));
    let text = match args.output {
        Format::Text => findings.iter().map(Finding::line).collect(),
        Format::Json => serde_json::to_string_pretty(&findings)? + "\n",
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("failed to write"),
        _ if findings.is_empty() => anyhow::bail!("no ReadinessPolicy in the given files"),
        // Nothing but files that cannot be read: it could not be told.
        _ if findings.iter().all(|finding| finding.policy.is_empty()) => Ok(ExitCode::from(2)),
        _ => Ok(ExitCode::from(u8::from(findings.iter().any(|f| f.severity == Severity::Error)))),
    }
}

fn check_file(
    file: &Path,
    findings: &mut Vec<Finding>,
    valid: &mut Vec<Valid>,
    crds: &mut Vec<Value>,
) -> anyhow::Result<()> {
    let (text, name) = if file.as_os_str() == "-" {
        (std::io::read_to_string(std::io::stdin()).context("failed to read standard input")?, "-".to_owned())
    } else {
        let text = std::fs::read_to_string(file);
        (text.with_context(|| format!("failed to read {}", file.display()))?, file.display().to_string())
    };
    let places = places::read(text.as_bytes());
    let values: Vec<Value> = match serde_saphyr::from_multiple(&text) {
        Ok(values) => values,
        Err(error) => {
            findings.push(not_yaml(&name, &error));
            return Ok(());
        }
    };
    let (file, empty) = (Text { name, text: &text }, Document::default());
    for (at, value) in values.into_iter().enumerate() {
        let document = places.get(at).unwrap_or(&empty);
        for (within, object) in objects(value) {
            if object["kind"] == "CustomResourceDefinition" {
                crds.push(object);
                continue;
            }
            let within = within.map_or(String::new(), |within| within + ".");
            match file.check(document, &within, object) {
                Ok(policy) => valid.push(policy),
                Err(found) => findings.extend(found),
            }
        }
    }
    Ok(())
}

/// One file.
struct Text<'t> {
    name: String,
    text: &'t str,
}

impl Text<'_> {
    /// Checks what stands in a document, in there below `within`.
    fn check(&self, document: &Document, within: &str, object: Value) -> Result<Valid, Vec<Finding>> {
        let policy = object["metadata"]["name"].as_str().unwrap_or("(no name)").to_owned();
        let finding = |problem: &Problem| {
            let field = format!("{within}{}", problem.field);
            let place = match problem.at {
                Some(at) => document.within(&field, at, self.text),
                None => document.find(&field),
            };
            Finding::new(&self.name, place, Severity::Error, &policy, &problem.field, &problem.what)
        };
        match read::checked(object) {
            Ok(compiled) => {
                let place = document.find(&format!("{within}metadata.name"));
                Ok(Valid { file: self.name.clone(), place, name: policy, compiled })
            }
            Err(problems) => {
                let mut found: Vec<Finding> = problems.iter().map(finding).collect();
                found.sort_by_key(|finding| (finding.line, finding.column));
                Err(found)
            }
        }
    }
}

fn not_yaml(file: &str, error: &serde_saphyr::Error) -> Finding {
    let place = error.location().map_or(Place { line: 1, column: 1 }, |at| Place {
        line: u32::try_from(at.line()).unwrap_or(1),
        column: u32::try_from(at.column()).unwrap_or(1),
    });
    Finding::new(file, place, Severity::Error, "", "", &format!("not YAML: {error}"))
}

/// Two policies that would write one condition: in a cluster the later one is refused.
fn rivals(valid: &[Valid]) -> Vec<Finding> {
    let key = |v: &Valid| {
        (v.compiled.parent.group.clone(), v.compiled.parent.kind.clone(), v.compiled.condition.clone())
    };
    let mut found = Vec::new();
    for (at, policy) in valid.iter().enumerate() {
        if let Some(first) = valid[..at].iter().find(|first| key(first) == key(policy)) {
            let what = format!("policy {} has the same parent and the same condition", first.name);
            let (file, name) = (&policy.file, &policy.name);
            found.push(Finding::new(file, policy.place, Severity::Error, name, "spec.condition.type", &what));
        }
    }
    found
}

/// A parent whose status is somebody else's.
fn shadowed(policy: &Valid) -> Option<Finding> {
    let parent = &policy.compiled.parent;
    belongs_to_others(&parent.group).then(|| {
        let what =
            format!("the status of {} belongs to others: judged in shadow only, never written", parent.kind);
        Finding::new(&policy.file, policy.place, Severity::Warning, &policy.name, "spec.parent.group", &what)
    })
}

fn fine(policy: &Valid, crds: &Crds) -> Finding {
    let one = std::slice::from_ref(&policy.compiled);
    let all = needs(one, crds);
    let within = |group: &str| if group.is_empty() { String::new() } else { format!(".{group}") };
    let each = |need: &Need| {
        let group = within(&need.group);
        need.resources.iter().map(|resource| format!("{resource}{group}")).collect::<Vec<_>>()
    };
    let watches = all.iter().filter(|need| need.verbs.contains(&"watch")).flat_map(each).collect();
    let right = |need: &Need| {
        each(need).iter().map(|resource| format!("{} {resource}", need.verbs.join(","))).collect::<Vec<_>>()
    };
    let scripts = libraries(one).into_iter().map(|library| format!("get,list,watch configmap {library}"));
    let own: Vec<Need> = records(one).into_iter().collect();
    let needs = all.iter().chain(&own).flat_map(right).chain(scripts).collect();
    let kinds: Vec<&str> = policy.compiled.groups.iter().map(|g| g.kind.kind.as_str()).collect();
    let mode = if policy.compiled.shadow { "shadow" } else { "write" };
    let what = format!(
        "{} by {}; condition {}, mode {mode}",
        policy.compiled.parent.kind,
        kinds.join(", "),
        policy.compiled.condition
    );
    Finding {
        watches,
        needs,
        ..Finding::new(&policy.file, policy.place, Severity::Ok, &policy.name, "", &what)
    }
}

impl Finding {
    fn new(file: &str, at: Place, severity: Severity, policy: &str, field: &str, message: &str) -> Finding {
        Finding {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            severity,
            policy: policy.to_owned(),
            field: field.to_owned(),
            // One line, whatever an error of a library looks like.
            message: message.split_whitespace().collect::<Vec<_>>().join(" "),
            watches: Vec::new(),
            needs: Vec::new(),
        }
    }
}

impl Finding {
    fn line(&self) -> String {
        format!("{self}\n")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Error => "error",
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
