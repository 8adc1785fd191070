//! The Helm chart: what it renders, what it refuses, and a whole life with real Helm on the real server.

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use acceptance::caller::Caller;
use acceptance::control_plane::{ControlPlane, Parts, free_ports};
use acceptance::crd::Crd;
use acceptance::kind::Kind;
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::places;
use acceptance::process::Process;
use acceptance::scene::Scene;
use acceptance::wish::{Wish, says};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Where the release lives.
const HOME: &str = "rollcall-home";

fn helm(args: &[&str]) -> Result<Output> {
    let mut command = Command::new(places::program("helm")?);
    command.args(args).current_dir(places::repository().join("deploy/helm"));
    // Helm keeps its own files under the home of whoever calls it.
    command.env("HOME", places::run_folder()?.join("helm-home"));
    command.output().context("failed to run helm")
}

/// What the chart renders with these options.
fn rendered(options: &[&str]) -> Result<Vec<Value>> {
    let output = helm(&[&["template", "r", "rollcall", "-n", HOME], options].concat())?;
    ensure!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&output.stdout))?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}

fn of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn one<'a>(objects: &'a [Value], kind: &str) -> Result<&'a Value> {
    let found = of(objects, kind);
    ensure!(found.len() == 1, "{} of kind {kind}", found.len());
    Ok(found[0])
}

fn words(list: &Value) -> Vec<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

/// Group, resource and verb of each right.
fn rights(role: &Value) -> Vec<(String, String, String)> {
    let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut all = Vec::new();
    for rule in rules {
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                let verbs = words(&rule["verbs"]);
                all.extend(verbs.into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    all
}

const EVERYTHING: &str = "
parents: [{ group: example.com, resource: databases }]
serviceMonitor: { enabled: true }
prometheusRule: { enabled: true }
dashboards: { enabled: true }
networkPolicy: { enabled: true }
crds: { keep: false }
";

fn values(text: &str, name: &str) -> Result<String> {
    let file = places::run_folder()?.join(format!("{name}.values.yaml"));
    std::fs::write(&file, text)?;
    Ok(file.to_string_lossy().into_owned())
}

#[tokio::test]
async fn the_chart_is_clean_and_its_default_is_the_base() -> Result<()> {
    let linted = helm(&["lint", "--strict", "rollcall", "-f", &values(EVERYTHING, "lint")?])?;
    ensure!(linted.status.success(), "{}", String::from_utf8_lossy(&linted.stdout));
    let chart = rendered(&[])?;
    let base = places::repository().join("deploy/kustomize");
    let built = Command::new(places::program("kubectl")?).arg("kustomize").arg(base).output()?;
    let base: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&built.stdout))?;

    // The same pod, but for what names the release.
    let pod = |objects: &[Value]| -> Result<Value> {
        let mut pod = one(objects, "Deployment")?["spec"]["template"]["spec"].clone();
        for place in ["/serviceAccountName", "/topologySpreadConstraints", "/containers/0/args"] {
            *pod.pointer_mut(place).with_context(|| place.to_owned())? = Value::Null;
        }
        if let Some(container) = pod["containers"][0].as_object_mut() {
            container.remove("imagePullPolicy");
        }
        Ok(pod)
    };
    assert_eq!(pod(&chart)?, pod(&base)?);
    // The same rights: those of the base, for the cluster and in its own namespace.
    let granted: Vec<_> =
        ["ClusterRole", "Role"].iter().flat_map(|kind| of(&chart, kind)).flat_map(rights).collect();
    for needed in ["ClusterRole", "Role"].iter().flat_map(|kind| of(&base, kind)).flat_map(rights) {
        assert!(granted.contains(&needed), "the base grants {needed:?}, the chart does not");
    }
    let crds = |objects: &[Value]| {
        let all = of(objects, "CustomResourceDefinition");
        all.into_iter().map(|crd| crd["spec"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(crds(&chart), crds(&base));
    Ok(())
}

#[tokio::test]
async fn what_the_chart_ships_is_what_the_repository_has() -> Result<()> {
    let objects = rendered(&["-f", &values(EVERYTHING, "ships")?])?;
    let dashboards = places::repository().join("dashboards");
    let rules: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(dashboards.join("rules/rollcall.rules.yaml"))?)?;
    assert_eq!(one(&objects, "PrometheusRule")?["spec"], rules);
    let shipped: Vec<_> = of(&objects, "ConfigMap");
    let mut boards = 0;
    for entry in std::fs::read_dir(&dashboards)? {
        let file = entry?.path();
        if file.extension().is_some_and(|ext| ext == "json") {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file)?;
            let found = shipped.iter().any(|map| map["data"][&name].as_str() == Some(&*text));
            assert!(found, "{name} is not in the chart: link it in deploy/helm/rollcall/files/dashboards");
            boards += 1;
        }
    }
    assert_eq!(shipped.len(), boards);
    assert!(shipped.iter().all(|map| map["metadata"]["labels"]["grafana_dashboard"] == "1"));
    assert_eq!(one(&objects, "ServiceMonitor")?["spec"]["endpoints"][0]["honorLabels"], true);
    Ok(())
}

#[tokio::test]
async fn in_namespaces_it_asks_for_no_right_in_the_cluster() -> Result<()> {
    let text = "
namespaces: [a, b]
parents: [{ group: example.com, resource: databases }, { group: example.com, resource: caches, write: false }]
policies: { databases: { parent: { group: example.com, kind: Database } } }
";
    let objects = rendered(&["-f", &values(text, "namespaces")?])?;
    assert!(of(&objects, "ClusterRole").is_empty() && of(&objects, "ClusterRoleBinding").is_empty());
    let roles: Vec<_> =
        of(&objects, "Role").into_iter().filter(|r| r["metadata"]["namespace"] != HOME).collect();
    assert_eq!(roles.len(), 2);
    for role in roles {
        let may = |resource: &str, verb: &str| {
            rights(role).contains(&("example.com".to_owned(), resource.to_owned(), verb.to_owned()))
        };
        assert!(may("databases/status", "patch") && may("caches", "watch"), "{role:#}");
        assert!(!may("caches/status", "patch") && !may("databases", "patch"), "{role:#}");
    }
    let own = of(&objects, "ConfigMap");
    let policies = own[0]["data"]["policies.yaml"].as_str().context("no policies")?;
    let file = places::run_folder()?.join("chart-policies.yaml");
    std::fs::write(&file, policies)?;
    acceptance::rollcall::rollcall(&["check", "-f", &file.to_string_lossy()])?;
    for kind in ["Deployment", "Job"] {
        let args = words(&one(&objects, kind)?["spec"]["template"]["spec"]["containers"][0]["args"]);
        assert!(args.contains(&"--namespaces=a,b".to_owned()), "{args:?}");
    }
    Ok(())
}

#[tokio::test]
async fn values_that_cannot_be_are_refused_by_name() -> Result<()> {
    for (set, words) in [
        ("replicas=two", "/replicas"),
        ("imagee.tag=1", "imagee"),
        ("resync=soon", "/resync"),
        ("image.digest=latest", "/image/digest"),
        ("parents[0].resource=databases", "missing property 'group'"),
        ("extraArgs={run}", "/extraArgs/0"),
        ("namespaces={a}", "give them in `policies`"),
        ("policySelector=a,policies.p.parent.group=g,policies.p.parent.kind=K", "policySelector chooses"),
        ("serviceAccount.create=false", "serviceAccount.name is needed"),
    ] {
        let output = helm(&["template", "r", "rollcall", "--set", set])?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{set}: {said}");
    }
    Ok(())
}

/// A CRD that stands for one of the Prometheus operator's.
fn stub(kind: &str, plural: &str) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version =
        json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.monitoring.coreos.com") },
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": kind, "plural": plural, "singular": plural.trim_end_matches('s') },
        },
    })
}

/// Helm as the administrator of the scene's cluster.
fn operate(scene: &Scene, args: &[&str]) -> Result<String> {
    let kubeconfig = scene.plane.kubeconfig().to_string_lossy().into_owned();
    let output = helm(&[args, &["-n", HOME, "--kubeconfig", &kubeconfig]].concat())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm {args:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a container of the release is told to run, run here: with the rights of its service account.
async fn as_deployed(scene: &Scene, args: Vec<String>, name: &str) -> Result<Process> {
    let token = scene.plane.token_of(HOME, "rollcall").await?;
    let kubeconfig = scene.folder.join("chart.kubeconfig");
    scene.plane.kubeconfig_for(&kubeconfig, scene.plane.url(), &token, HOME)?;
    let mut args = args;
    for arg in &mut args {
        if arg.starts_with("--listen=") {
            *arg = format!("--listen=127.0.0.1:{}", free_ports(1)?[0]);
        }
    }
    args.push(format!("--kubeconfig={}", kubeconfig.display()));
    Process::start(name, &places::rollcall()?, &args, &[], &scene.folder.join(format!("{name}.log")))
}

fn container(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]["containers"][0]
}

/// Everything in the cluster that carries the release's label, of all kinds that can be listed.
fn ours(scene: &Scene) -> Result<String> {
    let kinds = scene.plane.kubectl(&["api-resources", "--verbs=list", "-o", "name"])?;
    // Events tell of the release, and expire.
    let kinds: Vec<_> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let label = "app.kubernetes.io/instance=rollcall";
    scene.plane.kubectl(&["get", &kinds.join(","), "-A", "-l", label, "-o", "name", "--ignore-not-found"])
}

/// A cluster with the Prometheus operator's kinds, a kind of parents, and a namespace that demands the restricted profile.
async fn cluster() -> Result<Scene> {
    let plane = Arc::new(ControlPlane::start(Parts::Everything).await?);
    let mut scene = Scene::set_on(plane, "chart").await?;
    "example.com".clone_into(&mut scene.group);
    for (kind, plural) in [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")] {
        let crd = scene.admin.create(&stub(kind, plural)).await?;
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        scene.until(&format!("CustomResourceDefinition/{name}"), says("Established", "True")).await?;
    }
    scene.crd(&Crd::new("Database")).await?;
    let restricted = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": HOME, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    scene.admin.create(&restricted).await?;
    Ok(scene)
}

/// Installs, and runs what the release's Deployment says until a parent is told that it is ready.
async fn comes(scene: &Scene, options: &[&str]) -> Result<Process> {
    let notes = operate(scene, &[&["install", "rollcall", "rollcall"], options].concat())?;
    ensure!(notes.contains("kubectl apply -f policy.yaml"), "{notes}");
    let deployed = scene.plane.kubectl(&["get", "deployment", "rollcall", "-n", HOME, "-o", "json"])?;
    let deployed: Value = serde_json::from_str(&deployed)?;
    assert_eq!(deployed["status"]["availableReplicas"], 2, "both replicas are admitted and run");
    let service = as_deployed(scene, words(&container(&deployed)["args"]), "deployed").await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.admin.create(&scene.policy_manifest("db", "Database", spec)).await?;
    scene.until("Database/db", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    let own = Caller::from_kubeconfig(&scene.folder.join("chart.kubeconfig")).await?;
    ensure!(own.list(&scene.kind("Secret"), "", "").await.is_err(), "it may read secrets");
    Ok(service)
}

/// An upgrade leaves the lease, and who holds it, alone.
fn changes(scene: &Scene, options: &[&str]) -> Result<()> {
    let holder = "jsonpath={.spec.holderIdentity}";
    let lease = || scene.plane.kubectl(&["get", "lease", "rollcall", "-n", HOME, "-o", holder]);
    let before = lease()?;
    ensure!(!before.is_empty(), "nobody leads");
    let upgrade = ["upgrade", "rollcall", "rollcall", "--set", "replicas=3,resync=20s"];
    operate(scene, &[&upgrade, options].concat())?;
    assert_eq!(lease()?, before);
    Ok(())
}

/// No kubelet runs what the hook says, so it is run here; afterwards Helm believes that it ran there.
async fn goes(scene: &Scene) -> Result<()> {
    let hook: Value = serde_saphyr::from_str(&operate(scene, &["get", "hooks", "rollcall"])?)?;
    assert_eq!(hook["metadata"]["annotations"]["helm.sh/hook"], "pre-delete");
    let mut release = as_deployed(scene, words(&container(&hook)["args"]), "release").await?;
    let ended = release.end(Duration::from_secs(60)).await?;
    ensure!(ended.success(), "{}", release.tail(40));
    let bare = Wish::new("without our entries", |db| condition(db, "Ready").is_none());
    scene.until("Database/db", bare).await?;
    // The service runs on, and sees a change that it would have to write.
    scene.play("web", Some("crash")).await?;
    scene.until("Deployment/web", says("Available", "False")).await?;
    operate(scene, &["uninstall", "rollcall", "--wait", "--timeout", "100s"])?;
    Ok(())
}

#[tokio::test]
async fn a_release_comes_works_changes_and_goes_without_a_trace() -> Result<()> {
    let scene = cluster().await?;
    let everything = values(EVERYTHING, "life")?;
    let options = ["--wait", "--timeout", "100s", "-f", &everything];
    let mut service = comes(&scene, &options).await?;
    changes(&scene, &options)?;
    goes(&scene).await.with_context(|| service.tail(40))?;
    ensure!(condition(&scene.get("Database/db").await?, "Ready").is_none(), "it was written again");
    service.terminate()?;
    ensure!(service.end(Duration::from_secs(20)).await?.success(), "{}", service.tail(40));

    assert_eq!(ours(&scene)?, "");
    let policies = Kind::new("rollcall.dev/v1alpha1", "ReadinessPolicy");
    ensure!(scene.admin.list(&policies, "", "").await.is_err(), "the CRD is still there");
    ensure!(condition(&scene.get("Database/db").await?, "Ready").is_none(), "it was written at the end");
    Ok(())
}
