//! What Prometheus makes of it: the metrics as they are exposed, and the rules that are shipped for them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, owned_by, playing};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::dashboards::IN_A_FIGHT;

/// Series that begin with the first rollout, where a flag asks for them: see `rollout_traces.rs`.
const WITH_A_FLAG: &str = "rollcall_rollout_wait_seconds";

const DASHBOARDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboards");

pub(crate) fn promtool(args: &[&str], input: &str) -> Result<Output> {
    let mut command = Command::new("promtool");
    command.current_dir(DASHBOARDS).args(args);
    let mut running = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("promtool (package prometheus) is missing")?;
    running.stdin.take().context("no stdin")?.write_all(input.as_bytes())?;
    let output = running.wait_with_output()?;
    let said = [&*output.stdout, &*output.stderr].concat();
    ensure!(output.status.success(), "promtool {args:?}: {}", String::from_utf8_lossy(&said));
    Ok(output)
}

/// Every name of ours in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let part_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !part_of_a_name(c)).filter(|word| word.starts_with("rollcall_")).collect()
}

fn file(name: &str) -> Result<String> {
    fs::read_to_string(format!("{DASHBOARDS}/{name}")).with_context(|| format!("no {name}"))
}

#[test]
fn alerts_fire_when_they_should_and_not_otherwise() -> Result<()> {
    promtool(&["check", "rules", "rules/rollcall.rules.yaml"], "")?;
    promtool(&["test", "rules", "rules/rollcall.test.yaml"], "")?;
    Ok(())
}

/// What each alert is about, by the labels that its description has to name; nothing where that is Rollcall itself.
const ABOUT: [(&str, &[&str]); 25] = [
    ("RollcallParentNotReady", PARENT),
    ("RollcallParentFlapping", PARENT),
    ("RollcallParentsNotExported", &["job"]),
    ("RollcallOperatorSilent", PARENT),
    ("RollcallChildStuck", PARENT),
    ("RollcallDeletionStuck", PARENT),
    ("RollcallStuckChildren", &["policy", "kind"]),
    ("RollcallConditionFight", PARENT),
    ("RollcallFinalizerFlapping", PARENT),
    ("RollcallConditionOwned", &["policy"]),
    ("RollcallPolicyRefused", &["policy"]),
    ("RollcallShadowDisagreement", &["policy"]),
    ("RollcallRuleSuspended", &["policy"]),
    ("RollcallWatchStale", &["kind"]),
    ("RollcallNotListed", &["kind"]),
    ("RollcallClockOff", &["instance"]),
    ("RollcallDriftFound", &["kind", "found_by"]),
    ("RollcallWritesFailing", &["policy"]),
    ("RollcallHistoryNotArriving", &["instance"]),
    ("RollcallHistoryDropped", &["instance"]),
    ("RollcallRecordsNotSaved", &["instance"]),
    ("RollcallBehind", &["instance"]),
    ("RollcallWritesSlow", &["instance"]),
    ("RollcallNoLeader", &["job"]),
    ("RollcallAbsent", &[]),
];
const PARENT: &[&str] = &["policy", "namespace", "name"];

#[test]
fn every_alert_names_its_object_and_has_a_runbook() -> Result<()> {
    let (rules, runbooks): (Value, String) =
        (serde_saphyr::from_str(&file("rules/rollcall.rules.yaml")?)?, file("README.md")?);
    let groups = rules["groups"].as_array().context("no groups")?;
    let alerts: Vec<&Value> = groups
        .iter()
        .filter_map(|g| g["rules"].as_array())
        .flatten()
        .filter(|r| !r["alert"].is_null())
        .collect();
    assert!(alerts.len() >= 8, "{}", alerts.len());
    for alert in alerts {
        let name = alert["alert"].as_str().context("a name")?;
        let notes = &alert["annotations"];
        for key in ["summary", "description", "runbook_url"] {
            assert!(notes[key].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {key}");
        }
        let (_, about) =
            ABOUT.iter().find(|(alert, _)| *alert == name).context(format!("what is {name} about?"))?;
        let said: BTreeSet<&str> = labels(notes["description"].as_str().unwrap_or_default()).collect();
        assert_eq!(said, about.iter().copied().collect(), "{name} does not name its object");
        // What does not differ by replica is the same alert after the lease went to another.
        let by_replica = about.contains(&"instance") || about == &["kind"] || about.is_empty();
        let expr = alert["expr"].as_str().unwrap_or_default();
        let by = format!(" by ({})", about.join(", "));
        assert!(by_replica || expr.contains(&by), "{name} is another one on each replica: {expr}");
        assert!(
            runbooks.contains(&format!("\n## {name}\n")),
            "{name} has no section in dashboards/README.md"
        );
        let anchor = format!("#{}", name.to_lowercase());
        assert!(notes["runbook_url"].as_str().is_some_and(|url| url.ends_with(&anchor)), "{name}");
    }
    Ok(())
}

/// The labels that a template names.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let rest = text.split("$labels.").skip(1);
    rest.filter_map(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next())
}

#[test]
fn the_scrape_configuration_is_one_that_prometheus_takes() -> Result<()> {
    let readme = file("README.md")?;
    let block = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.context("no scrape configuration")?;
    let place = places::run_folder()?.join("scrape.yaml");
    let checked = |text: &str| {
        fs::write(&place, text)?;
        // Its files, such as the token, are in Prometheus' pod.
        promtool(&["check", "config", "--syntax-only", &place.display().to_string()], "")
    };
    // As it stands; builds of Prometheus without Kubernetes in them (Debian's) refuse that key, and take the rest.
    if let Err(error) = checked(block) {
        let refused = format!("{error:#}");
        ensure!(refused.contains("field kubernetes_sd_configs not found"), "{refused}");
        ensure!(refused.matches("\n  line ").count() == 1, "{refused}");
        let fixed = "static_configs:\n      - { targets: [\"rollcall:8080\"] }";
        let rest = block.split_once("kubernetes_sd_configs:").and_then(|(before, rest)| {
            let (_, after) = rest.trim_start_matches('\n').split_once('\n')?;
            Some(format!("{before}{fixed}\n{after}"))
        });
        checked(&rest.context("it finds nothing in a cluster")?)?;
        let config: Value = serde_saphyr::from_str(block)?;
        let found = json!([{ "role": "endpoints", "namespaces": { "names": ["rollcall-system"] } }]);
        assert_eq!(config["scrape_configs"][0]["kubernetes_sd_configs"], found);
    }
    let refused = checked(&block.replace("honor_labels", "honour_labels"));
    assert!(refused.is_err_and(|error| format!("{error:#}").contains("honour_labels")), "anything passes");
    Ok(())
}

/// What people are told of, whatever else they are.
const NAMED: [(&str, &str); 11] = [
    ("a parent not ready for long", "RollcallParentNotReady"),
    ("flapping", "RollcallParentFlapping"),
    ("a stuck child", "RollcallChildStuck"),
    ("a stuck deletion", "RollcallDeletionStuck"),
    ("a silent operator", "RollcallOperatorSilent"),
    ("a fight over finalizers", "RollcallFinalizerFlapping"),
    ("a fight over a condition", "RollcallConditionFight"),
    ("a stale watch", "RollcallWatchStale"),
    ("drift", "RollcallDriftFound"),
    ("no leader", "RollcallNoLeader"),
    ("failing writes", "RollcallWritesFailing"),
];

#[test]
fn every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> Result<()> {
    let (rules, cases): (Value, Value) = (
        serde_saphyr::from_str(&file("rules/rollcall.rules.yaml")?)?,
        serde_saphyr::from_str(&file("rules/rollcall.test.yaml")?)?,
    );
    let all = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    let rules: Vec<Value> = all(&rules, "groups").iter().flat_map(|group| all(group, "rules")).collect();
    let alerts: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["alert"].as_str()).collect();
    for (what, alert) in NAMED {
        assert!(alerts.contains(alert), "nobody is told of {what}");
    }
    let cases: Vec<Value> =
        all(&cases, "tests").iter().flat_map(|test| all(test, "alert_rule_test")).collect();
    for alert in alerts {
        let fires = |wanted: bool| {
            let asked = |case: &&Value| case["alertname"] == *alert;
            cases.iter().filter(asked).any(|case| all(case, "exp_alerts").is_empty() != wanted)
        };
        assert!(fires(true), "{alert} is never shown to fire");
        assert!(fires(false), "{alert} is never shown to be silent");
    }
    Ok(())
}

#[tokio::test]
async fn metrics_are_named_as_prometheus_wants_and_rules_use_no_others() -> Result<()> {
    let tenant = TestTenant::start("observed").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut job = tenant.child("Job");
    job["role"] = json!("optional");
    let spec = json!({ "children": [tenant.child("Deployment"), job] });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let first = running.http("/metrics").await?.body;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let one = ["name=\"db\""];
    running.until_metric("rollcall_parent_not_ready_since_timestamp_seconds", &one, |at| at > 1e9).await?;
    let mut leaving = tenant.custom("Database", "leaving");
    leaving["metadata"]["finalizers"] = json!(["example.com/held"]);
    let leaving = ObjectAddress::of(&tenant.create(leaving).await?)?;
    tenant.admin.delete(&leaving).await?;
    let one = ["name=\"leaving\""];
    running.until_metric("rollcall_parent_terminating_since_timestamp_seconds", &one, |at| at > 1e9).await?;
    let exposed = running.http("/metrics").await?.body;
    tenant.admin.merge(&leaving, "", &json!({ "metadata": { "finalizers": null } })).await?;
    promtool(&["check", "metrics"], &exposed)?;
    let exposed = names(&exposed);
    for shipped in ["rules/rollcall.rules.yaml", "README.md"] {
        let text = file(shipped)?;
        let named = names(&text);
        for name in named.difference(&IN_A_FIGHT.into()).filter(|name| **name != WITH_A_FLAG) {
            assert!(exposed.contains(name), "{shipped} names {name}, which is not exposed: {exposed:?}");
        }
    }
    let readme = file("README.md")?;
    let (named, parts) = (names(&readme), ["_bucket", "_count", "_sum"]);
    let single = ["rollcall_parent_not_ready_", "rollcall_parent_terminating_"];
    for name in exposed.iter().filter(|name| !single.iter().any(|of| name.starts_with(of))) {
        assert!(names(&first).contains(name), "{name} was not there from the start");
    }
    for name in &exposed {
        let whole = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        assert!(named.contains(whole), "{whole} is exposed, but not described in README.md");
    }
    Ok(())
}

#[tokio::test]
async fn a_new_generation_does_not_make_a_parent_look_freshly_broken() -> Result<()> {
    let tenant = TestTenant::start("since").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    let told = async |reason| {
        let expectation = StateExpectation::new(reason, move |db| {
            let conditions = db["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["reason"] == reason))
        });
        tenant.until("Database/db", expectation).await
    };
    told("ChildrenProgressing").await?;
    let since = "rollcall_parent_not_ready_since_timestamp_seconds";
    let first = running.until_metric(since, &["name=\"db\""], |at| at > 1e9).await?;
    // An operator that leaves marks and has not handled the new generation: Unknown until it does.
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let pending = ["name=\"db\"", "reason=\"ChildrenPending\""];
    running.until_metric("rollcall_parent_not_ready_info", &pending, |one| one > 0.0).await?;
    let after = running.metric(since, &["name=\"db\""]).await?;
    assert!((after - first).abs() < 1e-3, "not ready since {first}, and then since {after}");
    Ok(())
}
