//! Where things lie: the built programs, the sources they come from, and the folder of this run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// The folder with the modules that the control plane is built from.
pub fn control_plane_source() -> PathBuf {
    repository().join("tests/control-plane")
}

/// A program of the control plane, as `tests/run` built it.
pub fn program(name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("ROLLCALL_CONTROL_PLANE")
        .map_or_else(|| repository().join(".cache/control-plane/current"), PathBuf::from);
    // The module's own name for etcd.
    let alias = if name == "etcd" { "server" } else { name };
    for file in [folder.join(name), folder.join(alias)] {
        if file.is_file() {
            return Ok(file);
        }
    }
    bail!("no {name} in {}: `tests/run` builds the control plane", folder.display())
}

/// The built `rollcall`: `ROLLCALL_BIN`, or what lies beside this test's own binary.
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

/// This process's folder for data and logs. What earlier, ended processes left is removed here and not at the end,
/// so that the logs of a failed run can be read until the next one.
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
