//! Releases of the Helm chart, from their coming to their going, with real Helm on the real server.

use std::sync::Arc;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::caller::ApiCaller;
use acceptance::control_plane::{ClusterParts, ControlPlane, free_ports};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::kind::ManifestKind;
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::process::LoggedProcess;
use acceptance::recorder::StateRecorder;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::chart::{EVERYTHING, HOME, helm, values, words};
use super::memory::fleeting;

/// Helm as the administrator of the tenant's cluster.
fn operate(tenant: &TestTenant, home: &str, args: &[&str]) -> Result<String> {
    let kubeconfig = tenant.plane.kubeconfig().to_string_lossy().into_owned();
    let output = helm(&[args, &["-n", home, "--kubeconfig", &kubeconfig]].concat())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm {args:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a container of the release is told to run, run here: with the rights of its service account.
async fn as_deployed(
    tenant: &TestTenant,
    home: &str,
    args: Vec<String>,
    name: &str,
) -> Result<LoggedProcess> {
    let token = tenant.plane.token_of(home, "rollcall").await?;
    let kubeconfig = tenant.folder.join("chart.kubeconfig");
    tenant.plane.kubeconfig_for(&kubeconfig, tenant.plane.url(), &token, home)?;
    let mut args = args;
    for arg in &mut args {
        if arg.starts_with("--listen=") {
            *arg = format!("--listen=127.0.0.1:{}", free_ports(1)?[0]);
        }
        if arg.starts_with("--probe-listen=") {
            *arg = format!("--probe-listen=127.0.0.1:{}", free_ports(1)?[0]);
        }
        // Where the ConfigMap would be mounted.
        *arg = arg.replace("/etc/rollcall", &tenant.folder.to_string_lossy());
    }
    args.push(format!("--kubeconfig={}", kubeconfig.display()));
    // In a pod, its own namespace.
    let env = [("ROLLCALL_RECORDS_NAMESPACE".to_owned(), home.to_owned())];
    LoggedProcess::start(name, &places::rollcall()?, &args, &env, &tenant.folder.join(format!("{name}.log")))
}

fn container(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]["containers"][0]
}

/// Everything in the cluster that carries our label or our name, of all kinds that can be listed.
pub(super) fn ours(tenant: &TestTenant) -> Result<String> {
    let kinds = tenant.plane.kubectl(&["api-resources", "--verbs=list", "-o", "name"])?;
    // Events tell of the release, and expire.
    let kinds: Vec<_> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let kinds = kinds.join(",");
    let get = |more: &[&str]| {
        tenant.plane.kubectl(&[&["get", &kinds, "-A", "-o", "name", "--ignore-not-found"], more].concat())
    };
    let all = get(&[])?;
    let named = all.lines().filter(|name| name.contains("rollcall") && !name.ends_with(HOME));
    let labels = ["app.kubernetes.io/instance=rollcall", "app.kubernetes.io/name=rollcall"];
    let labelled = labels.iter().map(|label| get(&["-l", label])).collect::<Result<String>>()?;
    Ok(named.chain(labelled.lines()).collect::<Vec<_>>().join("\n"))
}

/// Serves the kinds of the Prometheus operator.
pub(super) async fn serve_monitors(tenant: &TestTenant) -> Result<()> {
    for plural in ["servicemonitors", "prometheusrules"] {
        let file = places::program(&format!("{plural}.yaml"))?;
        tenant.plane.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])?;
        let crd = format!("CustomResourceDefinition/{plural}.monitoring.coreos.com");
        tenant.until(&crd, says("Established", "True")).await?;
    }
    Ok(())
}

/// A cluster with the Prometheus operator's kinds, a kind of parents, and a namespace that demands the restricted profile.
async fn cluster() -> Result<TestTenant> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Everything).await?);
    let mut tenant = TestTenant::start_on(plane, "chart").await?;
    "example.com".clone_into(&mut tenant.group);
    serve_monitors(&tenant).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Cache")).await?;
    let restricted = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": HOME, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    tenant.admin.create(&restricted).await?;
    Ok(tenant)
}

/// Installs, and runs what the release's Deployment says until a parent is told that it is ready.
async fn comes(tenant: &TestTenant, chart: &str, options: &[&str]) -> Result<LoggedProcess> {
    let notes = operate(tenant, HOME, &[&["install", "rollcall", chart], options].concat())?;
    ensure!(notes.contains("kubectl apply -f policy.yaml"), "{notes}");
    let deployed = deployed(tenant)?;
    assert_eq!(deployed["status"]["availableReplicas"], 2, "both replicas are admitted and run");
    let service = as_deployed(tenant, HOME, words(&container(&deployed)["args"]), "deployed").await?;
    let jobs = json!({ "kind": { "group": "batch", "kind": "Job" }, "expect": { "min": 0 }, "afterDeletion": "remember" });
    let spec = json!({ "children": [tenant.child("Deployment"), jobs], "settle": "100ms" });
    tenant.admin.create(&tenant.policy_manifest("db", "Database", spec)).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, fleeting("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    let remembered = async {
        while remembered(tenant).await? == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(TEST_TIMEOUT, remembered).await.context("nothing is remembered")??;
    let own = ApiCaller::from_kubeconfig(&tenant.folder.join("chart.kubeconfig")).await?;
    ensure!(own.list(&tenant.kind("Secret"), "", "").await.is_err(), "it may read secrets");
    Ok(service)
}

/// So many records are in the release's namespace.
async fn remembered(tenant: &TestTenant) -> Result<usize> {
    let records = ManifestKind::new("rollcall.dev/v1alpha1", "ReadinessRecord");
    Ok(tenant.admin.list(&records, HOME, "").await?.0.len())
}

fn deployed(tenant: &TestTenant) -> Result<Value> {
    let text = tenant.plane.kubectl(&["get", "deployment", "rollcall", "-n", HOME, "-o", "json"])?;
    Ok(serde_json::from_str(&text)?)
}

/// What the Prometheus operator is told, it understands: each field is one of its own definitions, as it ships them.
fn is_understood(tenant: &TestTenant) -> Result<()> {
    let manifest = operate(tenant, HOME, &["get", "manifest", "rollcall"])?;
    let all: Vec<Value> = serde_saphyr::from_multiple(&manifest)?;
    let theirs = all.iter().filter(|object| object["apiVersion"] == "monitoring.coreos.com/v1");
    let taken = |object: &Value| -> Result<String> {
        let file = tenant.folder.join("monitoring.json");
        std::fs::write(&file, object.to_string())?;
        let file = file.to_string_lossy().into_owned();
        tenant.plane.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", &file])
    };
    let mut kinds = Vec::new();
    for object in theirs {
        taken(object)?;
        let mut odd = object.clone();
        let list =
            if odd["kind"] == "ServiceMonitor" { "/spec/endpoints/0" } else { "/spec/groups/0/rules/0" };
        odd.pointer_mut(list).context("an empty list")?["honourLabels"] = json!(true);
        let refused = taken(&odd).err().context("a field that nobody knows is taken")?.to_string();
        ensure!(refused.contains("honourLabels"), "{refused}");
        kinds.push(object["kind"].as_str().unwrap_or_default());
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["PrometheusRule", "ServiceMonitor"]);
    Ok(())
}

/// The chart as it might have been before: its CRDs have another short name.
fn older(tenant: &TestTenant) -> Result<String> {
    let chart = tenant.folder.join("older");
    let copied = std::process::Command::new("cp")
        .arg("-rL")
        .arg(places::repository().join("deploy/helm/rollcall"))
        .arg(&chart)
        .status()?;
    ensure!(copied.success(), "failed to copy the chart");
    let crds = chart.join("files/crds.yaml");
    let text = std::fs::read_to_string(&crds)?.replace("- rpol", "- older");
    std::fs::write(&crds, text)?;
    Ok(chart.to_string_lossy().into_owned())
}

async fn short_names(tenant: &TestTenant) -> Result<Value> {
    let crd = tenant.get("CustomResourceDefinition/readinesspolicies.rollcall.dev").await?;
    Ok(crd["spec"]["names"]["shortNames"].clone())
}

/// An upgrade that changes rights, arguments and a CRD: the one that runs leads on, its successor takes over, and the parent
/// is told the same throughout. What is new works afterwards.
async fn changes(tenant: &TestTenant, mut old: LoggedProcess) -> Result<LoggedProcess> {
    let holder = "jsonpath={.spec.holderIdentity}";
    let lease = || tenant.plane.kubectl(&["get", "lease", "rollcall", "-n", HOME, "-o", holder]);
    let account = format!("system:serviceaccount:{HOME}:rollcall");
    let may = || {
        let question = ["auth", "can-i", "patch", "caches.example.com", "--subresource=status", "-A", "--as"];
        // Its exit code says the same as its answer.
        let output = tenant.plane.kubectl_command()?.args(question).arg(&account).output()?;
        anyhow::Ok(String::from_utf8_lossy(&output.stdout).trim() == "yes")
    };
    let before = lease()?;
    ensure!(!before.is_empty(), "nobody leads");
    ensure!(!may()?, "it may do already what the upgrade allows");
    assert_eq!(short_names(tenant).await?, json!(["older"]));
    let told = condition(&tenant.get("Database/db").await?, "Ready").cloned();
    let recorder = StateRecorder::start(tenant, &["Database"]).await?;

    let more = "databases }, { group: example.com, resource: caches }]\nreplicas: 3\nresync: 20s";
    let file = values(&EVERYTHING.replace("databases }]", more), "upgraded")?;
    operate(tenant, HOME, &["upgrade", "rollcall", "rollcall", "--wait", "--timeout", "100s", "-f", &file])?;
    assert_eq!(lease()?, before, "an upgrade leaves the lease, and who holds it, alone");
    assert_eq!(short_names(tenant).await?, json!(["rpol"]));
    let args = words(&container(&deployed(tenant)?)["args"]);
    ensure!(args.contains(&"--resync=20s".to_owned()), "{args:?}");
    let new = as_deployed(tenant, HOME, args, "upgraded").await?;
    old.terminate()?;
    ensure!(old.end(Duration::from_secs(20)).await?.success(), "{}", old.tail(40));

    // What only the new rights allow, and only a leader does.
    ensure!(may()?, "the new right is not granted");
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.admin.create(&tenant.policy_manifest("cache", "Cache", spec)).await?;
    let cache = tenant.create(tenant.custom("Cache", "cache")).await?;
    tenant.create(owned_by(&cache, deployment("cached", 1))).await?;
    tenant.until("Cache/cache", says("Ready", "True")).await.with_context(|| new.tail(40))?;
    ensure!(lease()? != before, "the one that ended leads");
    let (recording, db) = (recorder.stop().await?, tenant.address("Database/db")?);
    assert_eq!(recording.statuses(&db, "Ready"), ["True"], "{}", recording.transcript(&db, "Ready"));
    let now = condition(&tenant.get("Database/db").await?, "Ready").cloned();
    let since = |entry: &Option<Value>| entry.as_ref().map(|entry| entry["lastTransitionTime"].clone());
    assert_eq!(since(&now), since(&told));
    Ok(new)
}

/// No kubelet runs what the hook says, so it is run here; afterwards Helm believes that it ran there.
async fn goes(tenant: &TestTenant) -> Result<()> {
    let hook: Value = serde_saphyr::from_str(&operate(tenant, HOME, &["get", "hooks", "rollcall"])?)?;
    assert_eq!(hook["metadata"]["annotations"]["helm.sh/hook"], "pre-delete");
    let mut release = as_deployed(tenant, HOME, words(&container(&hook)["args"]), "release").await?;
    let ended = release.end(Duration::from_secs(60)).await?;
    ensure!(ended.success(), "{}", release.tail(40));
    let bare = StateExpectation::new("without our entries", |db| db["status"]["conditions"].is_null());
    tenant.until("Database/db", bare).await?;
    assert_eq!(remembered(tenant).await?, 0, "what was remembered is still there: {}", release.tail(20));
    // The service runs on, and sees a change that it would have to write.
    tenant.play("web", Some("crash")).await?;
    tenant.until("Deployment/web", says("Available", "False")).await?;
    assert_eq!(remembered(tenant).await?, 0, "it was remembered again");
    operate(tenant, HOME, &["uninstall", "rollcall", "--wait", "--timeout", "100s"])?;
    Ok(())
}

#[tokio::test]
async fn a_release_comes_works_changes_and_goes_without_a_trace() -> Result<()> {
    let tenant = cluster().await?;
    let everything = values(EVERYTHING, "life")?;
    let options = ["--wait", "--timeout", "100s", "-f", &everything];
    let service = comes(&tenant, &older(&tenant)?, &options).await?;
    ensure!(
        ours(&tenant)?.contains("clusterrole"),
        "what is looked for at the end is here: {}",
        ours(&tenant)?
    );
    is_understood(&tenant)?;
    let mut service = changes(&tenant, service).await?;
    goes(&tenant).await.with_context(|| service.tail(40))?;
    ensure!(condition(&tenant.get("Database/db").await?, "Ready").is_none(), "it was written again");
    service.terminate()?;
    ensure!(service.end(Duration::from_secs(20)).await?.success(), "{}", service.tail(40));

    assert_eq!(ours(&tenant)?, "");
    let policies = ManifestKind::new("rollcall.dev/v1alpha1", "ReadinessPolicy");
    ensure!(tenant.admin.list(&policies, "", "").await.is_err(), "the CRD is still there");
    ensure!(condition(&tenant.get("Database/db").await?, "Ready").is_none(), "it was written at the end");
    Ok(())
}

#[tokio::test]
async fn in_one_namespace_roles_are_enough() -> Result<()> {
    let tenant = TestTenant::start("chart-roles").await?;
    let home = tenant.name.as_str();
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let policy = tenant.policy_manifest("db", "Database", json!({ "settle": "100ms" }));
    let wanted = json!({
        "namespaces": [home], "policies": { "databases": policy["spec"] },
        "parents": [{ "group": tenant.group, "resource": "databases" }],
        // Others share this control plane.
        "crds": { "install": false },
    });
    let file = values(&wanted.to_string(), home)?;
    operate(&tenant, home, &["install", "rollcall", "rollcall", "-f", &file])?;
    let policies = tenant.get("ConfigMap/rollcall-policies").await?;
    let policies = policies["data"]["policies.yaml"].as_str().context("no policies")?;
    std::fs::write(tenant.folder.join("policies.yaml"), policies)?;
    let deployed = tenant.get("Deployment/rollcall").await?;
    let mut service = as_deployed(&tenant, home, words(&container(&deployed)["args"]), "deployed").await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    let own = ApiCaller::from_kubeconfig(&tenant.folder.join("chart.kubeconfig")).await?;
    for kind in ["Database", "Deployment", "ReadinessPolicy"] {
        ensure!(
            own.list(&tenant.kind(kind), "", "").await.is_err(),
            "it may read {kind} in the whole cluster"
        );
    }
    let hook: Value = serde_saphyr::from_str(&operate(&tenant, home, &["get", "hooks", "rollcall"])?)?;
    let mut release = as_deployed(&tenant, home, words(&container(&hook)["args"]), "release").await?;
    ensure!(release.end(Duration::from_secs(60)).await?.success(), "{}", release.tail(40));
    let bare = StateExpectation::new("without our entries", |db| db["status"]["conditions"].is_null());
    tenant.until("Database/db", bare).await?;
    service.terminate()?;
    ensure!(service.end(Duration::from_secs(20)).await?.success(), "{}", service.tail(40));
    operate(&tenant, home, &["uninstall", "rollcall", "--wait", "--timeout", "100s"])?;
    ensure!(tenant.get(&format!("Role/{home}-rollcall")).await.is_err(), "a Role is left");
    Ok(())
}
