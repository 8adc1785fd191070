//! Every command of the README is run by a test; this file runs its share of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Each line of the README's shell blocks, with the test that runs it.
const RUN_BY: [(&str, &str, &str); 11] = [
    ("cargo run --release -- demo", HERE, "the_first_command_plays_the_demo"),
    ("tests/run", HERE, "the_second_command_is_the_one_that_runs_this"),
    ("rollcall check -f policy.yaml", HERE, "what_needs_no_cluster_works_as_it_is_written"),
    ("rollcall rbac -f policy.yaml", HERE, "what_needs_no_cluster_works_as_it_is_written"),
    (
        "rollcall eval -f manifests.yaml --profile kstatus",
        HERE,
        "what_needs_no_cluster_works_as_it_is_written",
    ),
    ("kubectl apply --server-side -k deploy/kustomize", SERVER, "the_readme_leads_to_a_verdict"),
    ("rollcall rbac -f policy.yaml | kubectl apply -f -", SERVER, "the_readme_leads_to_a_verdict"),
    ("kubectl apply -f policy.yaml", SERVER, "the_readme_leads_to_a_verdict"),
    ("rollcall crd | kubectl apply -f -", SERVER, "the_readme_leads_to_a_verdict"),
    ("kubectl apply -f policy.yaml", SERVER, "the_readme_leads_to_a_verdict"),
    ("rollcall run", SERVER, "the_readme_leads_to_a_verdict"),
];
const HERE: &str = "crates/rollcall/tests/readme.rs";
const SERVER: &str = "tests/tests/real_server/readme.rs";
/// The catalogue of faults.
const FAULTS: &str = "tests/README.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the code blocks of a Markdown file: language and text.
fn blocks(file: &str) -> Vec<(String, String)> {
    let text = text(file);
    let mut parts = text.split("\n```").skip(1);
    let mut blocks = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, body) = block.split_once('\n').unwrap();
        blocks.push((language.to_owned(), format!("{body}\n")));
    }
    blocks
}

fn of(language: &str) -> Vec<String> {
    blocks("README.md").into_iter().filter(|(of, _)| of == language).map(|(_, body)| body).collect()
}

fn commands() -> Vec<String> {
    of("sh").iter().flat_map(|body| body.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Returns a folder with the README's own policy in it.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.yaml"), &of("yaml")[0]).unwrap();
    folder
}

fn type_in(line: &str, folder: &Path) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_rollcall")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", line]).current_dir(folder).env("PATH", path).output().unwrap()
}

#[test]
fn every_command_is_run_by_a_test() {
    let known: Vec<_> = RUN_BY.iter().map(|(line, ..)| *line).collect();
    // Commands in sentences are tested in commands.rs.
    assert_eq!(commands(), known);
    for (line, file, test) in RUN_BY {
        assert!(text(file).contains(&format!("fn {test}()")), "{line}: no {test} in {file}");
    }
    // Commands on a server are taken from the README itself, block by block.
    let server = text(SERVER);
    for block in of("sh").iter().filter(|block| block.contains("kubectl")) {
        let first = block.lines().next().unwrap();
        assert!(server.contains(&format!("block(\"{first}\")")), "{first}");
    }
}

#[test]
fn the_first_command_plays_the_demo() {
    // `cargo run -- demo` in the workspace's root runs the only program of the only default member, which tests/demo.rs
    // runs, too.
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let members = metadata["workspace_default_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter().filter(|p| members.contains(&p["id"]));
    let targets = packages.flat_map(|p| p["targets"].as_array().unwrap());
    let programs: Vec<_> = targets.filter(|t| t["kind"] == json!(["bin"])).map(|t| &t["name"]).collect();
    assert_eq!(programs, ["rollcall"]);
    assert!(text("crates/rollcall/tests/demo.rs").contains("fn every_expectation_of_the_story_holds()"));
}

#[test]
fn the_second_command_is_the_one_that_runs_this() {
    let usage = type_in("tests/run --help", &root());
    assert!(usage.status.success());
    assert!(String::from_utf8_lossy(&usage.stdout).contains("Runs all tests of the workspace"));
}

#[test]
fn what_needs_no_cluster_works_as_it_is_written() {
    let folder = scratch("readme");
    let manifests = "apiVersion: example.com/v1\nkind: Database\nmetadata: { name: orders, generation: 1 }\n";
    std::fs::write(folder.join("manifests.yaml"), manifests).unwrap();
    let said = RUN_BY.iter().filter(|(.., test)| *test == "what_needs_no_cluster_works_as_it_is_written");
    let said: Vec<_> = said.map(|(line, ..)| type_in(line, &folder)).collect();
    let words: Vec<_> = said.iter().map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).collect();
    let codes: Vec<_> = said.iter().map(|o| o.status.code().unwrap()).collect();
    // No signal is not ready here, but current to kstatus.
    assert_eq!(codes, [0, 0, 0], "{words:?}");
    assert!(words[0].contains("databases") && words[0].contains("mode shadow"), "{words:?}");
    assert!(words[1].contains("persistentvolumeclaims") && !words[1].contains("secrets"), "{words:?}");
    assert!(words[2].contains("Unknown") && words[2].contains("Current"), "{words:?}");
}

#[test]
fn what_is_linked_exists() {
    let guides = ["deploy/guides/sync-waves.md"];
    let pages =
        ["README.md", "SECURITY.md", "crates/README.md", "deploy/README.md", "dashboards/README.md", FAULTS];
    for file in pages.iter().chain(&guides) {
        let text = text(file);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        for link in links.filter(|link| !link.starts_with("http") && !link.starts_with('#')) {
            let from = root().join(file);
            let there = from.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(there.exists(), "{file} links to {link}");
        }
    }
}

#[test]
fn the_places_that_the_code_map_names_exist() {
    let map = text("crates/README.md");
    let places: Vec<_> = map.split('`').skip(1).step_by(2).filter(|word| word.contains("/src/")).collect();
    assert!(places.len() >= 5, "{places:?}");
    for place in places {
        assert!(root().join("crates").join(place).exists(), "{place}");
    }
}

#[test]
fn both_readmes_install_alike() {
    let install = |file| blocks(file).into_iter().find(|(_, body)| body.contains("apply --server-side -k"));
    assert_eq!(install("README.md"), install("deploy/README.md"));
}

#[test]
fn what_is_said_not_to_be_built_is_refused() {
    let folder = scratch("unbuilt");
    let policy = |child: &str| {
        format!(
            "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {{ name: p }}\nspec:\n  parent: {{ group: example.com, kind: Database }}\n  children:\n    - kind: {{ kind: Pod }}\n      {child}\n"
        )
    };
    let readme = text("README.md");
    let unbuilt =
        [("`expect.cel`", "expect: { cel: '1' }"), ("`find.refs`", "find: { refs: spec.secretName }")];
    for (name, child) in unbuilt {
        std::fs::write(folder.join("p.yaml"), policy(child)).unwrap();
        let checked = type_in("rollcall check -f p.yaml", &folder);
        let words = String::from_utf8_lossy(&checked.stdout);
        let refused = checked.status.code() == Some(1) && words.contains("not supported by this version");
        let said = readme
            .lines()
            .skip_while(|l| !l.starts_with("- Not built yet"))
            .take(2)
            .any(|l| l.contains(name));
        assert_eq!(said, refused, "{name}: {words} {}", String::from_utf8_lossy(&checked.stderr));
    }
    let help = String::from_utf8_lossy(&type_in("rollcall --help", &folder).stdout).into_owned();
    for command in ["explain", "doctor", "history"] {
        let said = readme
            .lines()
            .any(|l| l.starts_with("- Not built yet at all") && l.contains(&format!("`{command}`")));
        let there = help.lines().any(|line| line.trim_start().starts_with(&format!("{command} ")));
        assert_ne!(said, there, "{command}");
    }
}

#[test]
fn argo_cd_reads_what_rollcall_writes() {
    let folder = scratch("argocd");
    let rules = root().join("deploy/argocd");
    let entry = |kind: &str, status: &str, reason: &str, generation: i64| json!({ "type": kind, "status": status, "reason": reason, "observedGeneration": generation });
    let ready = |status: &str, reason: &str| entry("Ready", status, reason, 2);
    let cases = [
        (json!([]), "Progressing"),
        (json!([ready("Unknown", "ChildrenPending")]), "Progressing"),
        (json!([ready("False", "ChildrenProgressing")]), "Progressing"),
        (json!([ready("False", "ChildrenFailed")]), "Progressing"),
        (json!([ready("False", "ChildrenStuck"), entry("Stalled", "True", "ChildrenStuck", 2)]), "Degraded"),
        (json!([ready("False", "ChildrenSuspended")]), "Suspended"),
        (json!([ready("True", "AllChildrenReady")]), "Healthy"),
        (json!([entry("Ready", "True", "AllChildrenReady", 1)]), "Progressing"),
        (json!([ready("True", "SomebodyElse")]), "Progressing"),
    ];
    for (conditions, healthy) in cases {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Database", "metadata": { "name": "orders", "generation": 2 },
            "status": { "conditions": conditions },
        });
        std::fs::write(folder.join("object.json"), object.to_string()).unwrap();
        let line =
            format!("rollcall eval -f object.json -o json --profile argocd --rules {}", rules.display());
        let judged: Value = serde_json::from_slice(&type_in(&line, &folder).stdout).unwrap();
        assert_eq!(judged[0]["profile"]["status"], healthy, "{object} {judged}");
    }
}

/// Returns the links from a name to a file in a part of the code map.
fn named_items(text: &str) -> Vec<(String, String)> {
    let links = text.split("[`").skip(1).filter_map(|rest| rest.split_once("`]("));
    links.map(|(name, rest)| (name.to_owned(), rest.split(')').next().unwrap().to_owned())).collect()
}

#[test]
fn every_test_that_the_code_map_and_the_page_on_security_name_exists() {
    let map = text("crates/README.md");
    let invariants = map.split("## What must always be true").nth(1).unwrap();
    assert_are_tests("crates/", &named_items(invariants), 14);
    assert_are_tests("", &named_items(&text("SECURITY.md")), 9);
}

#[test]
fn every_fault_of_the_catalogue_names_tests_that_exist_or_says_that_there_is_none() {
    let page = text(FAULTS);
    assert_are_tests("tests/", &named_items(&page), 200);
    let header = ["Fault", "What must happen", "Shown by", "Recovery"];
    let (mut faults, mut is_fault) = (0, false);
    for line in page.lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') || cells == header {
            is_fault = cells == header;
            continue;
        }
        if !is_fault || line.starts_with("|---") {
            continue;
        }
        let [_, _, shown_by, recovery] = cells[..] else { panic!("{line}") };
        let names_a_test = shown_by.contains("[`") || shown_by.contains("](#the-simulator)");
        assert!(names_a_test || shown_by.starts_with("none"), "{line}");
        assert!(!recovery.is_empty(), "{line}");
        faults += 1;
    }
    assert!(faults >= 100, "{faults}");
}

#[test]
fn the_variables_by_which_the_catalogue_plays_seeds_are_those_of_the_simulators_test() {
    let (page, seeds) = (text(FAULTS), text("crates/sim/tests/seeds.rs"));
    let tests = seeds.clone() + &text("crates/sim/tests/perturbations.rs");
    let variables: Vec<_> = page.split('`').filter(|word| word.starts_with("ROLLCALL_SIM_")).collect();
    assert!(variables.len() >= 4, "{variables:?}");
    for variable in variables {
        let name = variable.split('=').next().unwrap();
        assert!(tests.contains(&format!("\"{name}\"")), "{variable}");
    }
    assert!(page.contains(": 300 seeds from") && seeds.contains("const SEEDS: u64 = 300;"));
}

fn assert_are_tests(folder: &str, items: &[(String, String)], least: usize) {
    let tests: Vec<_> = items.iter().filter(|(name, _)| name.contains('_')).collect();
    assert!(tests.len() >= least, "{tests:?}");
    for (name, file) in tests {
        let words = text(&format!("{folder}{file}"));
        let there = words.contains(&format!("fn {name}("));
        // `#[test]`, `#[tokio::test]`, and that with a clock that is paused.
        let tests = words.contains("test]") || words.contains("test(");
        assert!(there && tests, "no test {name} in {file}");
    }
}

#[test]
fn each_finding_of_a_scan_that_is_left_is_one_of_the_base_and_stands_there_with_its_reason() {
    let base: Value = serde_saphyr::from_str(&text("deploy/kustomize/deployment.yaml")).unwrap();
    let pod = &base["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let image = text("deploy/Dockerfile");
    let left = [
        ("CKV_K8S_11", container["resources"]["limits"]["cpu"].is_null()),
        ("CKV_K8S_15", container["imagePullPolicy"].is_null()),
        ("CKV_K8S_38", pod["automountServiceAccountToken"].is_null()),
        ("CKV_K8S_40", pod["securityContext"]["runAsUser"].is_null()),
        ("CKV_K8S_43", !container["image"].as_str().unwrap().contains('@')),
        ("CKV_DOCKER_2", !image.contains("HEALTHCHECK")),
    ];
    let page = text("SECURITY.md");
    let section =
        page.split("## What a scan of the manifests finds").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<_> = section.lines().filter_map(|line| line.strip_prefix("| CKV")).collect();
    assert_eq!(rows.len(), left.len(), "{rows:?}");
    for ((finding, is_so), row) in left.into_iter().zip(rows) {
        let (name, reason) =
            row.split_once(": ").and_then(|(id, rest)| Some((id, rest.split_once(" | ")?.1))).unwrap();
        assert_eq!(format!("CKV{name}"), finding);
        assert!(is_so && reason.len() > 20, "{finding}");
    }
    // What its reasons rest on.
    assert!(image.contains("FROM scratch") && image.contains("USER 65532"));
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert!(!container["resources"]["requests"]["cpu"].is_null());
    assert!(!container["livenessProbe"].is_null() && !container["readinessProbe"].is_null());
}

#[test]
fn every_item_that_a_walk_through_the_code_names_stands_where_it_says() {
    let map = text("crates/README.md");
    let walks = map.split("## What must always be true").next().unwrap();
    let items = named_items(walks);
    assert!(items.len() >= 20, "{items:?}");
    for (name, file) in items {
        let item = name.rsplit("::").next().unwrap();
        let words = text(&format!("crates/{file}"));
        let defines = |keyword: &str| {
            let word = format!("{keyword} {item}");
            words.match_indices(&word).any(|(at, _)| {
                !words[at + word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        };
        let is_module = Path::new(&file).file_stem().is_some_and(|stem| stem == item);
        assert!(
            is_module || ["fn", "struct", "enum", "trait"].iter().any(|k| defines(k)),
            "no {name} in {file}"
        );
    }
}

#[test]
fn each_invariant_names_a_test() {
    let text = text("crates/README.md");
    let section = text.split("## What must always be true").nth(1).unwrap().split("\n## ").next().unwrap();
    let entries: Vec<_> = (1..=15).map(|n| section.split(&format!("\n{n}. **")).nth(1).unwrap()).collect();
    for (at, entry) in entries.iter().enumerate() {
        let own = entry.lines().take_while(|line| at == 14 || !line.starts_with(&format!("{}. ", at + 2)));
        assert!(own.collect::<String>().contains("[`"), "{}", at + 1);
    }
}
