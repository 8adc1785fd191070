//! The pictures of the documentation: there, small, and of what they show as it is now. That of the demo's terminal is held
//! against the demo itself in `live/picture.rs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the check reads, by its path in the repository.
const READ: [&str; 8] = [
    "deploy/pictures/currency.py",
    "deploy/pictures/page.png",
    "dashboards/fleet.json",
    "dashboards/parent.json",
    "dashboards/rollcall.json",
    "dashboards/pictures/fleet.svg",
    "dashboards/pictures/parent.svg",
    "dashboards/pictures/rollcall.svg",
];
const ASSETS: &str = "crates/controller/src/page/assets";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the check that `deploy/pictures/run --check` runs, in a tree.
fn check(tree: &Path) -> (bool, String) {
    let mut python = Command::new("python3");
    let said = python.arg("-B").arg(tree.join(READ[0])).output().unwrap();
    (said.status.success(), String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
}

#[test]
fn every_picture_shows_what_is_there_now() {
    let said = Command::new(root().join("deploy/pictures/run")).arg("--check").output().unwrap();
    let words = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.status.success() && words.contains("all pictures are current"), "{words}");
}

#[test]
fn a_picture_that_is_older_than_what_it_shows_is_noticed() {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::remove_dir_all(&tree).ok();
    let assets = std::fs::read_dir(root().join(ASSETS)).unwrap().map(|entry| entry.unwrap().file_name());
    let assets = assets.map(|name| format!("{ASSETS}/{}", name.display()));
    for file in READ.into_iter().map(str::to_owned).chain(assets) {
        std::fs::create_dir_all(tree.join(&file).parent().unwrap()).unwrap();
        std::fs::copy(root().join(&file), tree.join(&file)).unwrap();
    }
    assert!(check(&tree).0, "{}", check(&tree).1);
    let edit = |file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(tree.join(file)).unwrap();
        assert!(text.contains(from), "{file}");
        std::fs::write(tree.join(file), text.replace(from, to)).unwrap();
    };
    edit(&format!("{ASSETS}/style.css"), "{", " {");
    edit("dashboards/fleet.json", "\"Not ready\"", "\"Not yet ready\"");
    let (is_current, words) = check(&tree);
    assert!(!is_current);
    for fault in [
        "page.png shows an older page",
        "fleet.svg shows an older dashboard",
        "fleet.svg lacks the panel 'Not yet ready'",
    ] {
        assert!(words.contains(fault), "{fault} is not in {words}");
    }
    assert!(!words.contains("parent.svg"), "{words}");
}

#[test]
fn the_readme_opens_with_a_scene_of_the_demo_and_the_page() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    // Between the title and the first sentence.
    let opening = readme.split("\nRollcall continuously").next().unwrap();
    for picture in ["deploy/pictures/demo.svg", "deploy/pictures/page.png"] {
        assert!(opening.contains(&format!("]({picture})")), "{picture}");
    }
    let boards = std::fs::read_to_string(root().join("dashboards/README.md")).unwrap();
    for board in ["fleet", "parent", "rollcall"] {
        assert!(boards.contains(&format!("](pictures/{board}.svg)")), "{board}");
    }
}
