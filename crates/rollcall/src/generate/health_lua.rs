//! `rollcall health-lua`: the Argo CD health script that reads the conditions of policies' parents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};

use policy::{CompiledPolicy, FoundPolicy};

use super::condition_answer::{
    ConditionAnswer, KindAnswers, TERMINAL_REASONS, answers_by_kind, answers_of_policies,
};
use crate::text::{print_error_line, print_stdout, write_file};

/// The script without its first lines, which declare the conditions to read.
const SCRIPT_BODY: &str = include_str!("health.lua");

/// `rollcall health-lua`.
#[derive(Args, Debug)]
pub(crate) struct HealthLuaArgs {
    /// Files with ReadinessPolicies [default: none: one script for any kind on which Rollcall writes `Ready`].
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format [default: `script` without policies, `configmap` with them].
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<HealthLuaFormat>,
    /// For `directory`: folder to write to.
    #[arg(long, value_name = "FOLDER", required_if_eq("format", "directory"))]
    to: Option<PathBuf>,
    /// Namespace of Argo CD.
    #[arg(short, long, default_value = "argocd", value_name = "NAMESPACE")]
    namespace: String,
    /// Also report Degraded while a child has failed that may still recover, such as a crash loop. Argo CD ends the
    /// sync of a degraded application.
    #[arg(long)]
    degraded_on_failed: bool,
}

/// Output format for Argo CD's configuration.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum HealthLuaFormat {
    /// Print the script alone to standard output.
    Script,
    /// Write GROUP/KIND/health.lua, laid out as Argo CD's own resource_customizations.
    Directory,
    /// Print a patch for argocd-cm: one key per kind.
    Configmap,
    /// Print the `ArgoCD` resource for the Argo CD operator, which overwrites argocd-cm.
    Operator,
}

pub(crate) fn print_health_lua(args: &HealthLuaArgs) -> anyhow::Result<ExitCode> {
    if args.files.is_empty() {
        let only_script = args.format.is_none_or(|format| format == HealthLuaFormat::Script);
        ensure!(only_script, "this format needs policies: name files with -f");
        let ready = ConditionAnswer { condition: "Ready".to_owned(), fallback: None, always: true };
        print_stdout(&render_script(
            "any kind on which Rollcall writes Ready",
            &[ready],
            args.degraded_on_failed,
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let kinds = answers_by_kind(&args.files)?;
    if kinds.is_empty() {
        print_error_line("these policies write no condition, so there is nothing for Argo CD to read");
        return Ok(ExitCode::from(1));
    }
    let scripts = render_scripts(kinds, args.degraded_on_failed);
    match args.format.unwrap_or(HealthLuaFormat::Configmap) {
        HealthLuaFormat::Script => {
            let mut texts = scripts.into_values();
            let (Some(text), None) = (texts.next(), texts.next()) else {
                bail!("several kinds have a script each: choose another --format");
            };
            print_stdout(&text)?;
        }
        HealthLuaFormat::Directory => {
            write_scripts(&scripts, args.to.as_deref().context("--to is missing")?)?;
        }
        HealthLuaFormat::Configmap => print_stdout(&config_map(&scripts, &args.namespace))?,
        HealthLuaFormat::Operator => print_stdout(&operator_manifest(&scripts, &args.namespace))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a patch for argocd-cm with which Argo CD reads what these policies write; `None` if they write nothing.
pub(crate) fn argocd_health(policies: Vec<(FoundPolicy, CompiledPolicy)>) -> anyhow::Result<Option<String>> {
    let scripts = render_scripts(answers_of_policies(policies)?, false);
    Ok((!scripts.is_empty()).then(|| config_map(&scripts, "argocd")))
}

fn render_scripts(kinds: BTreeMap<(String, String), KindAnswers>, degraded_on_failed: bool) -> KindScripts {
    let script = |((group, kind), answers): ((String, String), KindAnswers)| {
        let text = render_script(&format!("{kind}.{group}"), &answers.conditions, degraded_on_failed);
        ((group, kind), text)
    };
    kinds.into_iter().map(script).collect()
}

fn render_script(what: &str, answers: &[ConditionAnswer], degraded_on_failed: bool) -> String {
    let mut text = format!(
        "-- Argo CD's health of {what}, by what Rollcall writes on it. Made by `rollcall health-lua`.\nlocal answers = {{\n"
    );
    for ConditionAnswer { condition, fallback, always } in answers {
        let fallback = fallback.as_ref().map_or(String::new(), |f| format!(", fallback = {}", quote_lua(f)));
        let _ = writeln!(text, "  {{ type = {}{fallback}, always = {always} }},", quote_lua(condition));
    }
    let terminal = TERMINAL_REASONS.map(|reason| format!("{reason} = true")).join(", ");
    let failing = if degraded_on_failed { "ChildrenFailed = true" } else { "" };
    let _ = write!(
        text,
        "}}\n-- Reasons that degrade whatever else is said.\nlocal failing = {{ {failing} }}\n\
         -- Beside Ready stands Stalled where it is for good; beside other types the reason has to tell.\n\
         local terminal = {{ {terminal} }}\n\n\
         {SCRIPT_BODY}"
    );
    text
}

/// Returns a Lua string literal of any text.
fn quote_lua(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        other => format!("\\{other:03}"),
    };
    format!("\"{}\"", text.bytes().map(one).collect::<Vec<_>>().concat())
}

type KindScripts = BTreeMap<(String, String), String>;

fn write_scripts(scripts: &KindScripts, root: &Path) -> anyhow::Result<()> {
    for ((group, kind), text) in scripts {
        let file = root.join(group).join(kind).join("health.lua");
        write_file(&file, text)?;
        print_error_line(&file.display().to_string());
    }
    Ok(())
}

fn config_map(scripts: &KindScripts, namespace: &str) -> String {
    let mut text = format!(
        "# kubectl patch configmap argocd-cm -n {namespace} --patch-file FILE\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\n  namespace: {namespace}\ndata:\n"
    );
    for ((group, kind), script) in scripts {
        let _ =
            write!(text, "  resource.customizations.health.{group}_{kind}: |\n{}", indent_lines(script, 4));
    }
    text
}

fn operator_manifest(scripts: &KindScripts, namespace: &str) -> String {
    let mut text = format!(
        "# A merge replaces the whole list: add these checks to the existing ones.\n\
         apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\nmetadata:\n  name: argocd\n  namespace: {namespace}\n\
         spec:\n  resourceHealthChecks:\n"
    );
    for ((group, kind), script) in scripts {
        let script = indent_lines(script, 8);
        let _ = write!(text, "    - group: {group}\n      kind: {kind}\n      check: |\n{script}");
    }
    text
}

fn indent_lines(text: &str, by: usize) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{:by$}{line}\n", "") };
    text.lines().map(line).collect::<Vec<_>>().concat()
}
