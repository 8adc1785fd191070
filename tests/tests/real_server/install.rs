//! `rollcall install`: the base, and what the cluster needs beyond it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane, free_ports};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::guide::{GuidedSteps, InlineCommands};
use acceptance::objects::{deployment, owned_by};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::process::LoggedProcess;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::chart;
use crate::releases::serve_monitors;

const HOME: &str = "rollcall-system";

/// The same with whole numbers as such: kustomize writes 1 for 1.0.
fn with_whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64().filter(|number| number.fract() == 0.0) {
            Some(whole) => json!(format!("{whole}").parse::<i64>().unwrap_or_default()),
            None => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(with_whole_numbers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, with_whole_numbers(field))).collect()
        }
        other => other,
    }
}

/// Objects by kind, namespace and name.
fn by_name(text: &str) -> Result<BTreeMap<[String; 3], Value>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let named = |object: Value| {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        ([word(&object["kind"]), word(&meta["namespace"]), word(&meta["name"])], with_whole_numbers(object))
    };
    Ok(objects.into_iter().filter(|object| !object.is_null()).map(named).collect())
}

fn kustomized(folder: &str) -> Result<BTreeMap<[String; 3], Value>> {
    let mut kubectl = Command::new(places::program("kubectl")?);
    let built = kubectl.arg("kustomize").arg(places::repository().join(folder)).output()?;
    by_name(&String::from_utf8_lossy(&built.stdout))
}

#[tokio::test]
async fn without_policies_the_bundle_is_the_base_the_dashboards_and_the_alerts() -> Result<()> {
    let mut bundle = by_name(&rollcall(&["install", "--offline"])?)?;
    for (name, object) in kustomized("deploy/kustomize")?.into_iter().chain(kustomized("dashboards")?) {
        assert_eq!(bundle.remove(&name), Some(object), "{name:?}");
    }
    let left: Vec<_> = bundle.keys().map(|[kind, _, name]| format!("{kind}/{name}")).collect();
    assert_eq!(left, ["ConfigMap/rollcall-alert-rules"]);

    let elsewhere = by_name(&rollcall(&[
        "install",
        "--offline",
        "--namespace=watchers",
        "--image=registry.example.com:5000/rollcall@sha256:0011",
        "--metrics-reader=monitoring/prometheus",
    ])?)?;
    let places: Vec<_> = elsewhere.keys().map(|[_, namespace, _]| namespace.as_str()).collect();
    assert!(places.iter().all(|namespace| ["", "watchers"].contains(namespace)), "{places:?}");
    let text = serde_json::to_string(&elsewhere.values().collect::<Vec<_>>())?;
    assert!(
        !text.contains("rollcall-system\"")
            && text.contains("registry.example.com:5000/rollcall@sha256:0011")
    );
    assert!(
        text.contains(
            r#""subjects":[{"kind":"ServiceAccount","name":"prometheus","namespace":"monitoring"}]"#
        )
    );
    for wrong in ["--image=a b", "--namespace=A", "--metrics-reader=prometheus", "--image="] {
        assert!(rollcall(&["install", "--offline", wrong]).is_err(), "{wrong}");
    }
    Ok(())
}

/// What the chart renders with the values that are printed.
fn rendered(values: &str, name: &str) -> Result<Vec<Value>> {
    chart::rendered(&["-f", &chart::values(values, name)?])
}

#[tokio::test]
async fn the_charts_values_grant_what_the_bundle_grants_and_scrape_alike() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane, "installvalues").await?;
    serve_monitors(&tenant).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Cache")).await?;
    let spec = json!({ "children": [tenant.child("Deployment"), tenant.child("Cache")] });
    let file = tenant.policies_file(&[tenant.policy_manifest("db", "Database", spec)])?;
    let args = ["install", "-f", &file.to_string_lossy(), "--kubeconfig"].map(str::to_owned);
    let kubeconfig = tenant.plane.kubeconfig().display().to_string();
    let args: Vec<&str> = args.iter().map(String::as_str).chain([kubeconfig.as_str()]).collect();
    let printed = rollcall(&args)?;
    let file = tenant.folder.join("bundle.yaml");
    std::fs::write(&file, &printed)?;
    tenant.plane.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])?;
    let bundle = by_name(&printed)?;
    let chart = rendered(&rollcall(&[&args[..], &["-o", "helm-values"]].concat())?, "install")?;

    for kind in ["ServiceMonitor", "PrometheusRule"] {
        let key = [kind, HOME, "rollcall"].map(str::to_owned);
        let printed = bundle.get(&key).with_context(|| format!("no {kind}"))?;
        let mut spec = chart::one(&chart, kind)?["spec"].clone();
        if kind == "ServiceMonitor" {
            spec["selector"] = printed["spec"]["selector"].clone();
        }
        assert_eq!(printed["spec"], spec, "{kind}");
    }
    let granted: Vec<_> = ["ClusterRole", "Role"]
        .iter()
        .flat_map(|kind| chart::of(&chart, kind))
        .flat_map(chart::rights)
        .collect();
    let (policy, rest): (Vec<_>, Vec<_>) = bundle
        .values()
        .filter(|object| object["kind"] == "ClusterRole")
        .partition(|role| role["metadata"]["annotations"]["rollcall.dev/policy"].is_string());
    assert!(policy.len() == 1 && rest.len() >= 3, "{policy:?}");
    let asked: Vec<_> = policy.into_iter().flat_map(chart::rights).collect();
    assert!(asked.iter().any(|(_, resource, verb)| resource == "databases/status" && verb == "patch"));
    assert!(asked.iter().any(|(_, resource, verb)| resource == "caches" && verb == "watch"));
    for right in asked {
        assert!(granted.contains(&right), "the bundle grants {right:?}, the chart does not");
    }
    Ok(())
}

#[tokio::test]
async fn a_newcomer_sees_the_first_parent_told_after_three_commands() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let mut tenant = TestTenant::start_on(plane, "newcomer").await?;
    "example.com".clone_into(&mut tenant.group);
    "default".clone_into(&mut tenant.name);
    // What was there before: an operator's objects, one of them with a child that is not ready.
    tenant.crd(&CrdBuilder::new("Database")).await?;
    for name in ["orders", "users"] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, deployment(name, 1))).await?;
    }
    let began = Instant::now();
    let mut guide = GuidedSteps::open("deploy/guides/five-minutes.md")?;
    guide.follow(&tenant, "rollcall install -f policies.yaml")?;
    let service = deployed(&tenant).await?;
    let told = tenant.until("Database/orders", says("Ready", "False")).await;
    told.with_context(|| service.tail(40))?;
    println!("three commands, and {:.1} s until the first parent is told", began.elapsed().as_secs_f64());
    let available = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        ],
    });
    for name in ["orders", "users"] {
        tenant.change_status(&format!("Deployment/{name}"), available.clone()).await?;
        let ready = tenant.until(&format!("Database/{name}"), says("Ready", "True")).await;
        ready.with_context(|| service.tail(40))?;
    }
    guide.follow(&tenant, "kubectl get readinesspolicies")?;
    let sentences = InlineCommands::of("deploy/guides/five-minutes.md")?;
    sentences.ask(
        &tenant,
        &[
            (
                "rollcall install --image IMAGE",
                &[("IMAGE", "registry.example.com/rollcall:1")],
                "example.com/rollcall:1",
            ),
            ("rollcall health-lua -f policies.yaml", &[], "AllChildrenReady"),
            (
                "rollcall install -f policies.yaml --output helm-values",
                &[("helm-values", "helm-values > values.yaml")],
                "",
            ),
        ],
    )?;
    std::fs::write(
        tenant.folder.join("crd.yaml"),
        CrdBuilder::new("Database").manifest("example.com").to_string(),
    )?;
    sentences.ask(&tenant, &[("rollcall crd-defaults -f CRD", &[("CRD", "crd.yaml")], "ChildrenPending")])?;
    std::os::unix::fs::symlink(places::repository().join("deploy"), tenant.folder.join("deploy"))?;
    let command =
        "helm install rollcall deploy/helm/rollcall --create-namespace -n rollcall-system -f values.yaml";
    sentences.ask(&tenant, &[(command, &[("install", "template")], "kind: Deployment")])?;
    // A second time: the policies of the cluster are those that are granted for, and nothing is new.
    let again =
        by_name(&rollcall(&["install", "--kubeconfig", &tenant.plane.kubeconfig().to_string_lossy()])?)?;
    let role = ["ClusterRole", "", "rollcall-policy-databases.example.com"].map(str::to_owned);
    assert!(again.contains_key(&role), "{:?}", again.keys());
    guide.is_done()
}

/// The service as it was installed: with the rights of its account, and the arguments of its container.
async fn deployed(tenant: &TestTenant) -> Result<LoggedProcess> {
    let token = tenant.plane.token_of(HOME, "rollcall").await?;
    let kubeconfig = tenant.folder.join("deployed.kubeconfig");
    tenant.plane.kubeconfig_for(&kubeconfig, tenant.plane.url(), &token, HOME)?;
    let text = tenant.plane.kubectl(&["get", "deployment", "rollcall", "-n", HOME, "-o", "json"])?;
    let found: Value = serde_json::from_str(&text)?;
    let args =
        found["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("no arguments")?;
    let args = args.iter().filter_map(Value::as_str).filter(|arg| !arg.contains("listen="));
    let mut args: Vec<String> = args.map(str::to_owned).collect();
    args.push(format!("--kubeconfig={}", kubeconfig.display()));
    for (flag, port) in ["listen", "probe-listen"].into_iter().zip(free_ports(2)?) {
        args.push(format!("--{flag}=127.0.0.1:{port}"));
    }
    let log = tenant.folder.join("rollcall.log");
    LoggedProcess::start("rollcall", Path::new(&places::rollcall()?), &args, &[], &log)
}
