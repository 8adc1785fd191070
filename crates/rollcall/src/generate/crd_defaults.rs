//! `rollcall crd-defaults`: the patch that makes the very first read of a parent true.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use controller::policies::to_yaml;
use serde_json::Value;

use super::schema;
use crate::{commands, eval};

/// `rollcall crd-defaults`.
#[derive(Args, Debug)]
pub(crate) struct CrdDefaultsArgs {
    /// Files with CustomResourceDefinitions; other objects in them are passed over.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Format::Kustomize, value_name = "FORMAT")]
    format: Format,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A kustomize component, for the repository that owns the CRDs.
    Kustomize,
    /// One CRD's JSON Patch, for `kubectl patch crd NAME --type json --patch-file FILE`.
    Patch,
    /// The CRDs themselves, patched.
    Crd,
}

/// One CRD and what it lacks.
struct Lack {
    crd: Value,
    name: String,
    ops: Vec<Value>,
}

pub(crate) fn run(args: &CrdDefaultsArgs) -> anyhow::Result<ExitCode> {
    let mut crds = Vec::new();
    for file in &args.files {
        crds.extend(eval::objects(file)?.into_iter().filter(|o| o["kind"] == "CustomResourceDefinition"));
    }
    ensure!(!crds.is_empty(), "there is no CustomResourceDefinition in what was given");
    let mut refused = false;
    let lacks: Vec<Lack> = crds.into_iter().map(|crd| lack(crd, &mut refused)).collect();
    if lacks.iter().all(|lack| lack.ops.is_empty()) && !refused {
        eprintln!("rollcall: the defaults are there; nothing to do");
    }
    commands::print(&match args.format {
        Format::Kustomize => component(&lacks),
        Format::Patch => patch(&lacks)?,
        Format::Crd => patched(lacks)?,
    })?;
    Ok(ExitCode::from(u8::from(refused)))
}

fn lack(crd: Value, refused: &mut bool) -> Lack {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut refuse = |version: &str, why: &str| {
        *refused = true;
        eprintln!("rollcall: {name}{version}: no default: {why}");
    };
    let mut ops = Vec::new();
    if crd["apiVersion"] != "apiextensions.k8s.io/v1" || crd["spec"]["preserveUnknownFields"] == true {
        refuse("", "it is not in the shape of apiextensions.k8s.io/v1 with a structural schema");
        return Lack { crd, name, ops };
    }
    for (at, version) in crd["spec"]["versions"].as_array().into_iter().flatten().enumerate() {
        match schema::missing(version, at) {
            Ok(missing) => ops.extend(missing),
            Err(all) => {
                let version = format!(" {}", version["name"].as_str().unwrap_or_default());
                for why in &all {
                    refuse(&version, why);
                }
            }
        }
    }
    Lack { crd, name, ops }
}

fn component(lacks: &[Lack]) -> String {
    let mut text = "\
# The first read of a parent says that its children are pending. Made by `rollcall crd-defaults`; save it as
# kustomization.yaml in a folder of its own and name that folder under `components`.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
"
    .to_owned();
    let needed: Vec<&Lack> = lacks.iter().filter(|lack| !lack.ops.is_empty()).collect();
    text += if needed.is_empty() { "patches: []\n" } else { "patches:\n" };
    for Lack { name, ops, .. } in needed {
        let _ = write!(
            text,
            "  - target:\n      group: apiextensions.k8s.io\n      version: v1\n      \
             kind: CustomResourceDefinition\n      name: {name}\n    patch: |-\n"
        );
        for op in ops {
            let _ = writeln!(text, "      - {op}");
        }
    }
    text
}

fn patch(lacks: &[Lack]) -> anyhow::Result<String> {
    let [lack] = lacks else { bail!("a JSON Patch is for one CRD, and there are {}", lacks.len()) };
    Ok(serde_json::to_string_pretty(&lack.ops)? + "\n")
}

fn patched(lacks: Vec<Lack>) -> anyhow::Result<String> {
    let mut text = String::new();
    for Lack { mut crd, name, ops } in lacks {
        let ops: json_patch::Patch = serde_json::from_value(Value::Array(ops))?;
        json_patch::patch(&mut crd, &ops).with_context(|| format!("failed to patch {name}"))?;
        let _ = writeln!(text, "---\n{}", to_yaml(&crd)?.trim_end());
    }
    Ok(text)
}
