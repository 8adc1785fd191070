//! Paths of the built programs, of their sources, and of the folder of this run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Path of the repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// Folder with the modules that the control plane is built from.
pub fn control_plane_source() -> PathBuf {
    repository().join("tests/control-plane")
}

/// Path of a program of the control plane, as built by `tests/run`.
pub fn program(name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("ROLLCALL_CONTROL_PLANE")
        .map_or_else(|| repository().join(".cache/control-plane/current"), PathBuf::from);
    // The names that these have in their modules.
    let alias = match name {
        "etcd" => "server",
        "kro" => "controller",
        _ => name,
    };
    for file in [folder.join(name), folder.join(alias)] {
        if file.is_file() {
            return Ok(file);
        }
    }
    bail!("no {name} in {}: `tests/run` builds the control plane", folder.display())
}

/// Path of the built `rollcall`: `ROLLCALL_BIN`, or the binary beside this test's own.
pub fn rollcall() -> Result<PathBuf> {
    if let Some(file) = std::env::var_os("ROLLCALL_BIN") {
        return Ok(PathBuf::from(file));
    }
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent).context("a test binary outside a target folder")?;
    let file = target.join("rollcall");
    if !file.is_file() {
        bail!("no {}: `cargo build -p rollcall` builds it", file.display());
    }
    Ok(file)
}

/// Path of `rollcall` as it was before: `ROLLCALL_OLDER_BIN`, which `tests/run --older` builds, or the binary of this
/// version.
pub fn older_rollcall() -> Result<PathBuf> {
    std::env::var_os("ROLLCALL_OLDER_BIN").map_or_else(rollcall, |file| Ok(PathBuf::from(file)))
}

/// Returns this process's folder for data and logs. Folders of earlier, ended processes are removed here and not at
/// their end, so that the logs of a failed run can be read until the next one.
pub fn run_folder() -> Result<PathBuf> {
    let runs = repository().join(".cache/runs");
    fs::create_dir_all(&runs)?;
    for entry in fs::read_dir(&runs)? {
        let entry = entry?;
        let alive = Path::new("/proc").join(entry.file_name()).exists();
        if !alive {
            fs::remove_dir_all(entry.path())?;
        }
    }
    let own = runs.join(std::process::id().to_string());
    fs::create_dir_all(&own)?;
    Ok(own)
}
