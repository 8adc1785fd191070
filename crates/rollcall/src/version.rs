//! `rollcall version`: what was built.

use std::env::consts::{ARCH, OS};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use controller::build_info;
use serde::Serialize;

use crate::text::print_stdout;

/// `rollcall version`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct VersionArgs {
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: VersionFormat,
}

/// Output format of the version.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum VersionFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object: `version`, `commit`, `date`, `os`, `arch`. `commit` and `date`, which is that of the commit, are null
    /// where the build did not record them.
    Json,
}

/// What was built, by its own word.
#[derive(Clone, Copy, Debug, Serialize)]
struct BuildRecord {
    version: &'static str,
    commit: Option<&'static str>,
    date: Option<&'static str>,
    os: &'static str,
    arch: &'static str,
}

impl BuildRecord {
    const OF_THIS_PROGRAM: BuildRecord = BuildRecord {
        version: build_info::VERSION,
        commit: build_info::COMMIT,
        date: build_info::COMMIT_DATE,
        os: OS,
        arch: ARCH,
    };

    fn render(self, format: VersionFormat) -> serde_json::Result<String> {
        let BuildRecord { version, commit, date, os, arch } = self;
        if matches!(format, VersionFormat::Json) {
            return Ok(serde_json::to_string(&self)? + "\n");
        }
        let date = date.map(|date| format!(" of {date}")).unwrap_or_default();
        let commit = commit.map_or_else(|| "not recorded".to_owned(), |commit| format!("{commit}{date}"));
        Ok(format!("rollcall {version}\ncommit {commit}\nplatform {os}/{arch}\n"))
    }
}

pub(crate) fn print_version(args: VersionArgs) -> anyhow::Result<ExitCode> {
    print_stdout(&BuildRecord::OF_THIS_PROGRAM.render(args.output)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASED: BuildRecord = BuildRecord {
        version: "1.2.3",
        commit: Some("0123abc"),
        date: Some("2026-01-02T03:04:05Z"),
        os: "linux",
        arch: "aarch64",
    };

    #[test]
    fn a_release_says_its_version_its_commit_and_the_date_of_it() {
        assert_eq!(
            RELEASED.render(VersionFormat::Text).unwrap(),
            "rollcall 1.2.3\ncommit 0123abc of 2026-01-02T03:04:05Z\nplatform linux/aarch64\n"
        );
        assert_eq!(
            RELEASED.render(VersionFormat::Json).unwrap(),
            "{\"version\":\"1.2.3\",\"commit\":\"0123abc\",\"date\":\"2026-01-02T03:04:05Z\",\"os\":\"linux\",\"arch\":\"aarch64\"}\n"
        );
    }

    #[test]
    fn a_build_that_recorded_nothing_says_so() {
        let plain = BuildRecord { commit: None, date: None, ..RELEASED };
        assert!(plain.render(VersionFormat::Text).unwrap().contains("\ncommit not recorded\n"));
        assert!(plain.render(VersionFormat::Json).unwrap().contains("\"commit\":null,\"date\":null"));
    }
}
