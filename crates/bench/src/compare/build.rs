//! Building of the subjects, below `.cache/bench` of the checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::catalog::{ComparedSubject, SubjectRecipe, SubjectRole};
use crate::subject::SubjectArgs;

/// A subject that can be started.
#[derive(Clone, Debug)]
pub(crate) struct BuiltSubject {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Version of what it is made with.
    pub(crate) version: String,
    pub(crate) role: SubjectRole,
    program: PathBuf,
    /// With `{kubeconfig}` and `{port}` in place of what each start has its own of.
    args: Vec<String>,
}

impl BuiltSubject {
    /// The command that starts it with this kubeconfig.
    pub(crate) fn command(&self, kubeconfig: &Path) -> Command {
        self.serving_command(kubeconfig, 0)
    }

    /// The same, listening at this port of the loopback address; 0 is any that is free.
    pub(crate) fn serving_command(&self, kubeconfig: &Path, port: u16) -> Command {
        let (port, file) = (port.to_string(), kubeconfig.to_string_lossy());
        let args = self.args.iter().map(|arg| arg.replace("{port}", &port).replace("{kubeconfig}", &file));
        let mut command = Command::new(&self.program);
        command.args(args).env("KUBECONFIG", kubeconfig);
        command
    }

    /// Where its output goes.
    pub(crate) fn log(&self) -> PathBuf {
        cache_folder().join(format!("{}.log", self.name))
    }
}

/// The folder of what is built and logged; not in the repository.
pub(crate) fn cache_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/bench")
}

fn source_folder(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("subjects").join(folder)
}

/// Builds a subject, or says why it cannot be.
pub(crate) fn build_subject(subject: &ComparedSubject, own: &SubjectArgs) -> anyhow::Result<BuiltSubject> {
    let cache = cache_folder();
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    let cache = cache.canonicalize()?;
    let (program, args, version) = match subject.recipe {
        SubjectRecipe::Rollcall => rollcall(own)?,
        SubjectRecipe::Go { folder, package, args } => {
            // Subjects that differ in their arguments alone are one file.
            let file = format!("{folder}-{}", package.replace(['.', '/'], "-"));
            let (source, program) = (source_folder(folder), cache.join(file));
            let mut go = Command::new("go");
            go.args(["build", "-mod=readonly", "-o"]).arg(&program).arg(package);
            run(go.current_dir(&source))?;
            let place = source.to_string_lossy();
            let args = args.iter().map(|arg| arg.replace("{folder}", &place)).collect();
            (program, args, pinned_version(&source.join("go.mod"), subject.library)?)
        }
        SubjectRecipe::Cargo { folder, binary } => {
            let (source, target) = (source_folder(folder), cache.join(folder));
            let mut cargo = Command::new("cargo");
            cargo.args(["build", "--quiet", "--release", "--locked", "--bin", binary]);
            run(cargo.arg("--target-dir").arg(&target).current_dir(&source))?;
            let program = target.join("release").join(binary);
            (program, Vec::new(), pinned_version(&source.join("Cargo.toml"), subject.library)?)
        }
        SubjectRecipe::Kopf { folder, script } => {
            let (source, env) = (source_folder(folder), cache.join(folder));
            if !env.join("bin/pip").exists() {
                run(Command::new("python3").args(["-m", "venv"]).arg(&env))?;
            }
            let requirements = source.join("requirements.txt");
            let mut pip = Command::new(env.join("bin/pip"));
            run(pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements))?;
            let script = source.join(script).display().to_string();
            let args = ["run", "--quiet", "--all-namespaces", "--standalone"].map(str::to_owned);
            let args = args.into_iter().chain([script]).collect();
            (env.join("bin/kopf"), args, pinned_version(&requirements, subject.library)?)
        }
    };
    let ComparedSubject { name, about, role, .. } = *subject;
    Ok(BuiltSubject { name, about, version, role, program, args })
}

fn rollcall(own: &SubjectArgs) -> anyhow::Result<(PathBuf, Vec<String>, String)> {
    let beside = std::env::current_exe()?.with_file_name("rollcall");
    let program = own.rollcall.clone().unwrap_or(beside);
    let hint = || format!("{}: build it, or name it by --rollcall", program.display());
    let output = Command::new(&program).arg("--version").output().with_context(hint)?;
    let version = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("rollcall ").to_owned();
    let args = ["run", "--listen", "127.0.0.1:{port}", "--log-format", "json"];
    Ok((program, args.map(str::to_owned).to_vec(), version))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or_default();
    ensure!(output.status.success(), "{name} failed: {last}");
    Ok(())
}

/// The version that a manifest pins, so that it is said in one place.
fn pinned_version(manifest: &Path, library: &str) -> anyhow::Result<String> {
    let text = fs::read_to_string(manifest).with_context(|| format!("reading {}", manifest.display()))?;
    find_version(&text, library).with_context(|| format!("{} pins no {library}", manifest.display()))
}

fn find_version(text: &str, library: &str) -> Option<String> {
    let after = text.lines().find_map(|line| {
        let after = line.trim().strip_prefix(library)?;
        after.starts_with([' ', '=']).then_some(after)
    })?;
    let from = after.find(|letter: char| letter.is_ascii_digit())?;
    let version = after[from..].split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_pins_them() {
        let cases = [
            (
                "require (\n\tsigs.k8s.io/controller-runtime v0.25.2\n)",
                "sigs.k8s.io/controller-runtime",
                "0.25.2",
            ),
            ("kube-core = \"1\"\nkube = { version = \"=5.0.0\", features = [] }", "kube", "5.0.0"),
            ("tool k8s.io/x/v2\n\tk8s.io/x/v2 v2.18.0 // indirect", "k8s.io/x/v2", "2.18.0"),
            ("kopf-x==1\nkopf==1.45.2\n", "kopf", "1.45.2"),
        ];
        for (text, library, version) in cases {
            assert_eq!(find_version(text, library).as_deref(), Some(version));
        }
    }
}
