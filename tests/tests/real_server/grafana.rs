//! The dashboards as files: the habits that they keep, and the types that Grafana publishes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use acceptance::places;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub(crate) const DASHBOARDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboards");
pub(crate) const BOARDS: [&str; 3] = ["fleet", "parent", "rollcall"];
/// What `@grafana/schema` 13.2 gives a new dashboard.
const SCHEMA: u64 = 42;

pub(crate) fn board(name: &str) -> Result<Value> {
    let text = fs::read_to_string(format!("{DASHBOARDS}/{name}.json"))?;
    serde_json::from_str(&text).with_context(|| format!("{name}.json"))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The panels that show something: not the rows between them.
pub(crate) fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    list(&board["panels"]).iter().filter(|panel| panel["type"] != "row")
}

/// Variables that a query names, Grafana's own left out.
pub(crate) fn variables(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches('{');
        rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default()
    });
    names.filter(|name| !name.starts_with("__"))
}

#[test]
fn dashboards_keep_the_habits_of_grafanas_mixins() -> Result<()> {
    let (mut uids, mut titles) = (BTreeSet::new(), BTreeSet::new());
    for name in BOARDS {
        let board = board(name)?;
        assert_eq!(board["schemaVersion"], SCHEMA, "{name}");
        assert_eq!(board["refresh"], "30s", "{name}");
        assert_eq!(board["tags"], json!(["rollcall"]), "{name}");
        assert_eq!(board["links"][0]["tags"], json!(["rollcall"]), "{name} leads to the others");
        assert!(board["id"].is_null(), "{name} has the id of a database");
        assert!(uids.insert(board["uid"].to_string()) && titles.insert(board["title"].to_string()), "{name}");
        let known: BTreeSet<&str> =
            list(&board["templating"]["list"]).iter().map(|variable| word(&variable["name"])).collect();
        assert!(known.contains("datasource"), "{name}");
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for panel in list(&board["panels"]) {
            assert!(ids.insert(panel["id"].as_u64().context("an id")?), "{name}: {}", panel["id"]);
        }
        for panel in panels(&board) {
            let title = word(&panel["title"]);
            assert!(names.insert(title) && !title.is_empty(), "{name}: {title:?} twice, or no title");
            assert!(!word(&panel["description"]).is_empty(), "{name}/{title} has no description");
            if panel["type"] == "text" {
                continue;
            }
            let field = &panel["fieldConfig"];
            let unit = field.to_string().contains("\"unit\"");
            let mapped = !list(&field["defaults"]["mappings"]).is_empty();
            assert!(unit || mapped || panel["options"]["yAxis"]["unit"] == "s", "{name}/{title} has no unit");
            assert!(!list(&field["defaults"]["thresholds"]["steps"]).is_empty(), "{name}/{title}");
            for target in list(&panel["targets"]) {
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{name}/{title}");
                for variable in variables(word(&target["expr"])) {
                    assert!(known.contains(variable), "{name}/{title} asks for ${variable}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn panels_do_not_lie_upon_each_other() -> Result<()> {
    for name in BOARDS {
        let board = board(name)?;
        let mut taken = BTreeSet::new();
        for panel in list(&board["panels"]) {
            let at = |key: &str| panel["gridPos"][key].as_u64().context("a place");
            let (x, y, w, h) = (at("x")?, at("y")?, at("w")?, at("h")?);
            assert!(x + w <= 24, "{name}/{} is too wide", panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{name}/{} lies upon another", panel["title"]);
            }
        }
    }
    Ok(())
}

#[test]
fn config_maps_carry_the_label_that_grafanas_sidecar_looks_for() -> Result<()> {
    let built = Command::new(places::program("kubectl")?).args(["kustomize", DASHBOARDS]).output()?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let maps: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&built.stdout))?;
    assert_eq!(maps.len(), BOARDS.len());
    for (map, name) in maps.iter().zip(BOARDS) {
        assert_eq!(map["kind"], "ConfigMap");
        assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
        let carried: Value = serde_json::from_str(word(&map["data"][format!("{name}.json")]))?;
        assert_eq!(carried, board(name)?);
    }
    Ok(())
}

/// A folder of `tests` with a check and what it needs from npm, installed once.
pub(crate) fn installed(name: &str) -> Result<PathBuf> {
    let (tests, cache) = (places::repository().join("tests"), places::repository().join(".cache"));
    let (source, folder) = (tests.join(name), cache.join(name));
    fs::create_dir_all(&folder)?;
    // Several tests use one folder: the first installs, the others wait.
    let turn = fs::File::create(folder.join("lock"))?;
    turn.lock()?;
    let lock = fs::read(source.join("package-lock.json"))?;
    let fresh = fs::read(folder.join("installed.json")).is_ok_and(|installed| installed == lock);
    for file in fs::read_dir(&source)? {
        let file = file?.path();
        let is_script = file.extension().is_some_and(|ending| ending == "mjs");
        let name = file.file_name().context("a file without a name")?;
        if is_script || name == "package.json" || name == "package-lock.json" {
            fs::copy(&file, folder.join(name))?;
        }
    }
    if !fresh {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder);
        let done = npm.output().context("npm (package npm) is missing")?;
        ensure!(done.status.success(), "npm ci: {}", String::from_utf8_lossy(&done.stderr));
        fs::write(folder.join("installed.json"), lock)?;
    }
    Ok(folder)
}

fn check(folder: &Path, files: &[PathBuf]) -> Result<Output> {
    let mut node = Command::new("node");
    node.arg("check.mjs").args(files).current_dir(folder);
    node.output().context("node (package nodejs) is missing")
}

#[test]
fn dashboards_are_of_the_types_that_grafana_publishes() -> Result<()> {
    let folder = installed("grafana")?;
    let files = BOARDS.map(|name| Path::new(DASHBOARDS).join(format!("{name}.json")));
    let checked = check(&folder, &files)?;
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(said.contains("3 dashboards, 0 faults"), "{said}");

    let mut broken: Value = serde_json::from_slice(&fs::read(&files[0])?)?;
    broken["panels"][1]["options"]["colourMode"] = "value".into();
    let file = folder.join("broken.json");
    fs::write(&file, broken.to_string())?;
    let checked = check(&folder, &[file])?;
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success() && said.contains("colourMode"), "an unknown option passed: {said}");
    Ok(())
}
