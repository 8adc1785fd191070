//! `rollcall crd-defaults`: the patch with which a new parent does not look ready at its first read.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use policy::to_yaml;
use serde_json::Value;

use super::schema;
use crate::eval;
use crate::text::{print_error_line, print_stdout};

/// `rollcall crd-defaults`.
#[derive(Args, Debug)]
pub(crate) struct CrdDefaultsArgs {
    /// Files with CustomResourceDefinitions; other objects in them are ignored.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = CrdDefaultsFormat::Kustomize, value_name = "FORMAT")]
    format: CrdDefaultsFormat,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum CrdDefaultsFormat {
    /// A kustomize component, for the repository that owns the CRDs.
    Kustomize,
    /// The JSON Patch of one CRD, for `kubectl patch crd NAME --type json --patch-file FILE`.
    Patch,
    /// The patched CRDs.
    Crd,
}

/// A CRD and the defaults it lacks.
struct MissingDefaults {
    crd: Value,
    name: String,
    ops: Vec<Value>,
}

pub(crate) fn print_crd_defaults(args: &CrdDefaultsArgs) -> anyhow::Result<ExitCode> {
    let mut crds = Vec::new();
    for file in &args.files {
        crds.extend(
            eval::read_objects(file)?.into_iter().filter(|o| o["kind"] == "CustomResourceDefinition"),
        );
    }
    ensure!(!crds.is_empty(), "found no CustomResourceDefinition in the given files");
    let mut refused = false;
    let lacks: Vec<MissingDefaults> = crds.into_iter().map(|crd| find_missing(crd, &mut refused)).collect();
    if lacks.iter().all(|lack| lack.ops.is_empty()) && !refused {
        print_error_line("all defaults are already present; nothing to do");
    }
    print_stdout(&match args.format {
        CrdDefaultsFormat::Kustomize => kustomize_component(&lacks),
        CrdDefaultsFormat::Patch => single_patch(&lacks)?,
        CrdDefaultsFormat::Crd => patched_crds(lacks)?,
    })?;
    Ok(ExitCode::from(u8::from(refused)))
}

/// Returns a kustomize component with the defaults that these CRDs lack; `None` if they lack none. What has no place for one is
/// reported.
pub(crate) fn crd_defaults_component(crds: Vec<Value>) -> Option<String> {
    let mut refused = false;
    let lacks: Vec<MissingDefaults> = crds.into_iter().map(|crd| find_missing(crd, &mut refused)).collect();
    lacks.iter().any(|lack| !lack.ops.is_empty()).then(|| kustomize_component(&lacks))
}

fn find_missing(crd: Value, refused: &mut bool) -> MissingDefaults {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut refuse = |version: &str, why: &str| {
        *refused = true;
        print_error_line(&format!("{name}{version}: no default: {why}"));
    };
    let mut ops = Vec::new();
    if crd["apiVersion"] != "apiextensions.k8s.io/v1" || crd["spec"]["preserveUnknownFields"] == true {
        refuse("", "it is not in the shape of apiextensions.k8s.io/v1 with a structural schema");
        return MissingDefaults { crd, name, ops };
    }
    for (at, version) in crd["spec"]["versions"].as_array().into_iter().flatten().enumerate() {
        match schema::find_missing_defaults(version, at) {
            Ok(missing) => ops.extend(missing),
            Err(all) => {
                let version = format!(" {}", version["name"].as_str().unwrap_or_default());
                for why in &all {
                    refuse(&version, why);
                }
            }
        }
    }
    MissingDefaults { crd, name, ops }
}

fn kustomize_component(lacks: &[MissingDefaults]) -> String {
    let mut text = "\
# The first read of a parent says that its children are pending. Made by `rollcall crd-defaults`; save it as
# kustomization.yaml in a folder of its own and name that folder under `components`.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
"
    .to_owned();
    let needed: Vec<&MissingDefaults> = lacks.iter().filter(|lack| !lack.ops.is_empty()).collect();
    text += if needed.is_empty() { "patches: []\n" } else { "patches:\n" };
    for MissingDefaults { name, ops, .. } in needed {
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

fn single_patch(lacks: &[MissingDefaults]) -> anyhow::Result<String> {
    let [lack] = lacks else { bail!("a JSON Patch is for one CRD, and there are {}", lacks.len()) };
    Ok(serde_json::to_string_pretty(&lack.ops)? + "\n")
}

fn patched_crds(lacks: Vec<MissingDefaults>) -> anyhow::Result<String> {
    let mut text = String::new();
    for MissingDefaults { mut crd, name, ops } in lacks {
        let ops: json_patch::Patch = serde_json::from_value(Value::Array(ops))?;
        json_patch::patch(&mut crd, &ops).with_context(|| format!("failed to patch {name}"))?;
        let _ = writeln!(text, "---\n{}", to_yaml(&crd)?.trim_end());
    }
    Ok(text)
}
