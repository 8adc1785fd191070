//! `rollcall health-lua`: the script by which Argo CD reads the condition of a policy's parents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use controller::policies::{Compiled, belongs_to_others};

use crate::commands::{self, ANY_LIMIT};
use crate::eval;

/// The script after its first lines, which say what it is to look for.
const BODY: &str = include_str!("health.lua");

/// `rollcall health-lua`.
#[derive(Args, Debug)]
pub(crate) struct HealthLuaArgs {
    /// Files with ReadinessPolicies; left out, one script for any kind on which Rollcall writes `Ready`.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What is printed or written; left out, `script` without policies and `configmap` with them.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// For `directory`: where the folders are written to.
    #[arg(long, value_name = "FOLDER", required_if_eq("format", "directory"))]
    to: Option<PathBuf>,
    /// Argo CD's namespace.
    #[arg(short, long, default_value = "argocd", value_name = "NAMESPACE")]
    namespace: String,
    /// Degraded also while a child has failed that may yet recover, such as a crash loop. Argo CD ends the sync of
    /// what is degraded.
    #[arg(long)]
    degraded_on_failed: bool,
}

/// How Argo CD is told.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// The script alone, on standard output.
    Script,
    /// GROUP/KIND/health.lua, as Argo CD's own resource_customizations are laid out.
    Directory,
    /// A patch for argocd-cm: one key for each kind.
    Configmap,
    /// The `ArgoCD` resource of the Argo CD operator, which overwrites argocd-cm.
    Operator,
}

/// One condition that may be found on a kind of parent.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    condition: String,
    fallback: Option<String>,
    /// The policy applies to every parent of the kind: without its condition nothing is known.
    always: bool,
}

pub(crate) fn run(args: &HealthLuaArgs) -> anyhow::Result<ExitCode> {
    if args.files.is_empty() {
        let only_script = args.format.is_none_or(|format| format == Format::Script);
        ensure!(only_script, "which kinds? Name files with their policies by -f");
        let ready = Answer { condition: "Ready".to_owned(), fallback: None, always: true };
        commands::print(&script(
            "any kind on which Rollcall writes Ready",
            &[ready],
            args.degraded_on_failed,
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let kinds = kinds(&args.files)?;
    if kinds.is_empty() {
        eprintln!(
            "rollcall: nothing is written on these parents, so there is nothing that Argo CD could read"
        );
        return Ok(ExitCode::from(1));
    }
    let scripts: BTreeMap<_, _> = kinds
        .into_iter()
        .map(|((group, kind), answers)| {
            let text = script(&format!("{kind}.{group}"), &answers, args.degraded_on_failed);
            ((group, kind), text)
        })
        .collect();
    match args.format.unwrap_or(Format::Configmap) {
        Format::Script => {
            let mut texts = scripts.into_values();
            let (Some(text), None) = (texts.next(), texts.next()) else {
                bail!("several kinds have a script each: choose another --format");
            };
            commands::print(&text)?;
        }
        Format::Directory => write(&scripts, args.to.as_deref().context("--to is missing")?)?,
        Format::Configmap => commands::print(&config_map(&scripts, &args.namespace))?,
        Format::Operator => commands::print(&operator(&scripts, &args.namespace))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The kinds on which these policies write, with what they write. Policies that write nothing are named.
fn kinds(files: &[PathBuf]) -> anyhow::Result<BTreeMap<(String, String), Vec<Answer>>> {
    let mut kinds: BTreeMap<_, Vec<Answer>> = BTreeMap::new();
    for (name, policy) in eval::policies(files, ANY_LIMIT)? {
        let (group, kind) = (&policy.parent.group, &policy.parent.kind);
        if policy.shadow {
            let why = if belongs_to_others(group) { "such parents are" } else { "`mode: shadow` has them" };
            eprintln!("rollcall: policy {name}: {why} only computed, nothing is written on them: no script");
            continue;
        }
        let plain =
            |text: &str, also: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c));
        ensure!(plain(group, ".-") && plain(kind, ""), "policy {name}: {kind}.{group} is not a kind");
        add(kinds.entry((group.clone(), kind.clone())).or_default(), &policy);
    }
    Ok(kinds)
}

fn add(answers: &mut Vec<Answer>, policy: &Compiled) {
    let always = policy.selector.requirements.is_empty() && policy.namespace_selector.is_none();
    let (condition, fallback) = (&policy.condition, &policy.fallback);
    if let Some(same) = answers.iter_mut().find(|a| a.condition == *condition && a.fallback == *fallback) {
        same.always |= always;
        return;
    }
    let (condition, fallback) = (condition.clone(), fallback.clone());
    answers.push(Answer { condition, fallback, always });
}

fn script(what: &str, answers: &[Answer], degraded_on_failed: bool) -> String {
    let mut text = format!(
        "-- Argo CD's health of {what}, by what Rollcall writes on it. Made by `rollcall health-lua`.\nlocal answers = {{\n"
    );
    for Answer { condition, fallback, always } in answers {
        let fallback = fallback.as_ref().map_or(String::new(), |f| format!(", fallback = {}", quoted(f)));
        let _ = writeln!(text, "  {{ type = {}{fallback}, always = {always} }},", quoted(condition));
    }
    let failing = if degraded_on_failed { "ChildrenFailed = true" } else { "" };
    let _ = write!(
        text,
        "}}\n-- Reasons that degrade whatever else is said.\nlocal failing = {{ {failing} }}\n\
         -- Beside Ready stands Stalled where it is for good; beside other types the reason has to tell.\n\
         local terminal = {{ ChildrenFailed = true, ChildrenStuck = true, DeadlineExceeded = true, OperatorSilent = true }}\n\n\
         {BODY}"
    );
    text
}

/// A string of Lua, whatever is in it.
fn quoted(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        other => format!("\\{other:03}"),
    };
    format!("\"{}\"", text.bytes().map(one).collect::<Vec<_>>().concat())
}

type Scripts = BTreeMap<(String, String), String>;

fn write(scripts: &Scripts, root: &Path) -> anyhow::Result<()> {
    for ((group, kind), text) in scripts {
        let folder = root.join(group).join(kind);
        let file = folder.join("health.lua");
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, text))
            .with_context(|| format!("failed to write {}", file.display()))?;
        eprintln!("{}", file.display());
    }
    Ok(())
}

fn config_map(scripts: &Scripts, namespace: &str) -> String {
    let mut text = format!(
        "# kubectl patch configmap argocd-cm -n {namespace} --patch-file FILE\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\n  namespace: {namespace}\ndata:\n"
    );
    for ((group, kind), script) in scripts {
        let _ = write!(text, "  resource.customizations.health.{group}_{kind}: |\n{}", indented(script, 4));
    }
    text
}

fn operator(scripts: &Scripts, namespace: &str) -> String {
    let mut text = format!(
        "# The list is one value to whoever merges: put these beside the checks that are there.\n\
         apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\nmetadata:\n  name: argocd\n  namespace: {namespace}\n\
         spec:\n  resourceHealthChecks:\n"
    );
    for ((group, kind), script) in scripts {
        let script = indented(script, 8);
        let _ = write!(text, "    - group: {group}\n      kind: {kind}\n      check: |\n{script}");
    }
    text
}

fn indented(text: &str, by: usize) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{:by$}{line}\n", "") };
    text.lines().map(line).collect::<Vec<_>>().concat()
}
