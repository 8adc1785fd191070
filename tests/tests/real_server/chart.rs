//! The Helm chart: what it renders and what it refuses. Its life is in `releases`.

use std::process::{Command, Output};

use acceptance::places;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Where the release lives.
pub(super) const HOME: &str = "rollcall-home";

pub(super) fn helm(args: &[&str]) -> Result<Output> {
    let mut command = Command::new(places::program("helm")?);
    command.args(args).current_dir(places::repository().join("deploy/helm"));
    // Helm keeps its own files under the home of whoever calls it.
    command.env("HOME", places::run_folder()?.join("helm-home"));
    command.output().context("failed to run helm")
}

/// What the chart renders with these options.
pub(super) fn rendered(options: &[&str]) -> Result<Vec<Value>> {
    let output = helm(&[&["template", "r", "rollcall", "-n", HOME], options].concat())?;
    ensure!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&output.stdout))?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}

pub(super) fn of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

pub(super) fn one<'a>(objects: &'a [Value], kind: &str) -> Result<&'a Value> {
    let found = of(objects, kind);
    ensure!(found.len() == 1, "{} of kind {kind}", found.len());
    Ok(found[0])
}

/// The NetworkPolicy of the service's pods, beside that of the uninstall Job's.
pub(super) fn network_policy(objects: &[Value]) -> Result<&Value> {
    let found = of(objects, "NetworkPolicy").into_iter();
    let mut served = found.filter(|policy| !policy["spec"]["ingress"].is_null());
    served.next().context("nobody may reach the service")
}

pub(super) fn words(list: &Value) -> Vec<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

/// Group, resource and verb of each right.
pub(super) fn rights(role: &Value) -> Vec<(String, String, String)> {
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

pub(super) const EVERYTHING: &str = "
parents: [{ group: example.com, resource: databases }]
serviceMonitor: { enabled: true }
prometheusRule: { enabled: true }
dashboards: { enabled: true }
networkPolicy: { enabled: true }
crds: { keep: false }
";

pub(super) fn values(text: &str, name: &str) -> Result<String> {
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

    let [served, probed] = ["https", "probes"].map(Value::from);
    let ports = |objects: &[Value]| -> Result<Value> {
        Ok(network_policy(objects)?["spec"]["ingress"][0]["ports"][0]["port"].clone())
    };
    assert_eq!((ports(&chart)?, ports(&base)?), (served.clone(), served));
    let probe = |objects: &[Value]| -> Result<Value> {
        let container = &one(objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0];
        Ok(container["livenessProbe"]["httpGet"]["port"].clone())
    };
    assert_eq!((probe(&chart)?, probe(&base)?), (probed.clone(), probed));
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
async fn the_chart_grants_what_rbac_prints_for_the_same_policy() -> Result<()> {
    let folder = places::run_folder()?;
    let policy = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "db" },
        "spec": {
            "parent": { "group": "example.com", "kind": "Database", "namespaceSelector": { "matchLabels": { "a": "b" } } },
            "children": [
                { "kind": { "group": "apps", "kind": "StatefulSet" } },
                { "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" },
                { "kind": { "kind": "PersistentVolumeClaim" } },
            ],
        },
    });
    let file = folder.join("chart-rights.policy.json");
    std::fs::write(&file, policy.to_string())?;
    let text = "
parents: [{ group: example.com, resource: databases }]
children: [{ group: '', resources: [persistentvolumeclaims] }]
readNamespaces: true
";
    let printed =
        acceptance::rollcall_command::rollcall(&["rbac", "-n", HOME, "-f", &file.to_string_lossy()])?;
    let own = acceptance::rollcall_command::rollcall(&["rbac", "-n", HOME])?;
    let printed: Vec<Value> = serde_saphyr::from_multiple(&(own + &printed))?;
    let chart = rendered(&["-f", &values(text, "rights")?])?;
    let all = |objects: &[Value]| -> Vec<_> {
        ["ClusterRole", "Role"].iter().flat_map(|kind| of(objects, kind)).flat_map(rights).collect()
    };
    let (needed, granted) = (all(&printed), all(&chart));
    assert!(needed.len() > 20, "{needed:?}");
    for right in needed {
        assert!(granted.contains(&right), "{right:?} is printed and not granted");
    }
    Ok(())
}

#[tokio::test]
async fn what_the_chart_ships_is_what_the_repository_has() -> Result<()> {
    let objects = rendered(&["-f", &values(EVERYTHING, "ships")?])?;
    let dashboards = places::repository().join("dashboards");
    let rules: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(dashboards.join("rules/rollcall.rules.yaml"))?)?;
    assert_eq!(one(&objects, "PrometheusRule")?["spec"], rules);
    let is_board = |map: &&Value| !map["metadata"]["labels"]["grafana_dashboard"].is_null();
    let shipped: Vec<_> = of(&objects, "ConfigMap").into_iter().filter(is_board).collect();
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
async fn the_runbooks_of_the_alerts_are_where_the_values_say() -> Result<()> {
    let own = "https://git.example.com/rollcall/dashboards/README.md";
    let own_values = EVERYTHING.replace(
        "prometheusRule: { enabled: true }",
        &format!("prometheusRule: {{ enabled: true, runbooks: {own} }}"),
    );
    let values = values(&own_values, "runbooks")?;
    let rules = one(&rendered(&["-f", &values])?, "PrometheusRule")?["spec"].to_string();
    assert!(
        rules.contains(&format!("{own}#rollcallabsent")) && !rules.contains("\"dashboards/README.md#"),
        "{rules}"
    );
    Ok(())
}

/// Names of what a release with this name has in the cluster when it is in this namespace.
fn wide_names(release: &str, namespace: &str) -> Result<Vec<String>> {
    let output = helm(&["template", release, "rollcall", "-n", namespace])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&output.stdout))?;
    let roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
    Ok(roles.filter_map(|role| Some(role["metadata"]["name"].as_str()?.to_owned())).collect())
}

#[test]
fn no_two_releases_have_one_name_in_the_cluster() -> Result<()> {
    let long = "n".repeat(63);
    let releases = [
        ("a-rollcall", "team"),
        ("rollcall", "team-a"),
        ("rollcall", "team"),
        ("rollcall", &long),
        ("rollcall-b", &long),
    ];
    let mut names = Vec::new();
    for (release, namespace) in releases {
        let of_release = wide_names(release, namespace)?;
        let first = of_release.first().context("no role")?;
        ensure!(first.len() <= 63, "{first}");
        names.extend(of_release);
    }
    ensure!(names.contains(&"team-rollcall".to_owned()), "{names:?}");
    let all = names.len();
    names.sort();
    names.dedup();
    ensure!(names.len() == all, "{names:?}");
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
    acceptance::rollcall_command::rollcall(&["check", "-f", &file.to_string_lossy()])?;
    for kind in ["Deployment", "Job"] {
        let args = words(&one(&objects, kind)?["spec"]["template"]["spec"]["containers"][0]["args"]);
        assert!(args.contains(&"--namespaces=a,b".to_owned()), "{args:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_roles_that_it_may_bind_are_those_of_rbac_and_none_by_default() -> Result<()> {
    let grants = |objects: &[Value]| -> Vec<Value> {
        let rules =
            of(objects, "ClusterRole").into_iter().filter_map(|role| role["rules"].as_array()).flatten();
        rules.filter(|rule| rule["apiGroups"][0] == "rbac.authorization.k8s.io").cloned().collect()
    };
    assert_eq!(grants(&rendered(&[])?), [Value::Null; 0]);
    let chart = rendered(&["--set", "grant.roles={view,database-parents}"])?;
    let args =
        ["rbac", "-n", HOME, "--service-account", "r-rollcall", "--grant-roles", "view,database-parents"];
    let printed = acceptance::rollcall_command::rollcall(&args)?;
    let printed: Vec<Value> = serde_saphyr::from_multiple(&printed)?;
    assert_eq!(grants(&chart), grants(&printed));
    assert_eq!(grants(&chart).len(), 3);
    let args = words(&one(&chart, "Deployment")?["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert!(args.contains(&"--grant-roles=view,database-parents".to_owned()), "{args:?}");
    Ok(())
}

#[tokio::test]
async fn the_service_is_told_which_role_aggregates_and_its_own_rights_are_those_of_rbac() -> Result<()> {
    let args = |objects: &[Value]| -> Result<Vec<String>> {
        Ok(words(&one(objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0]["args"]))
    };
    let plain = args(&rendered(&[])?)?;
    assert!(plain.iter().all(|arg| !arg.contains("aggregate-to")), "{plain:?}");
    let chart = rendered(&["--set", "rbac.aggregateTo=team-a"])?;
    assert!(args(&chart)?.contains(&"--aggregate-to=team-a".to_owned()), "{:?}", args(&chart)?);
    // The lease and the inventory have the name of the release.
    let at_home = |objects: &[Value]| -> Vec<Value> {
        let home = of(objects, "Role").into_iter().filter(|role| role["metadata"]["namespace"] == HOME);
        home.filter_map(|role| role["rules"].as_array()).flatten().cloned().collect()
    };
    let printed = ["rbac", "-n", HOME, "--lease-name", "r-rollcall"];
    let printed: Vec<Value> =
        serde_saphyr::from_multiple(&acceptance::rollcall_command::rollcall(&printed)?)?;
    let (granted, printed) = (at_home(&chart), at_home(&printed));
    assert_eq!(printed.len(), 4);
    for rule in printed {
        assert!(granted.contains(&rule), "the chart does not grant {rule}");
    }
    Ok(())
}

/// What a release keeps, and the rights on it, in a namespace of its own.
#[tokio::test]
async fn records_are_kept_and_granted_where_the_values_say() -> Result<()> {
    let chart = rendered(&["--set", "recordsNamespace=memory,release.records=true"])?;
    let args = words(&one(&chart, "Deployment")?["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert!(args.contains(&"--records-namespace=memory".to_owned()), "{args:?}");
    let release = words(&one(&chart, "Job")?["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert!(release.contains(&"--records=memory".to_owned()), "{release:?}");
    let inventory =
        of(&chart, "ConfigMap").into_iter().filter(|map| map["metadata"]["name"] == "r-rollcall-inventory");
    assert_eq!(inventory.map(|map| &map["metadata"]["namespace"]).collect::<Vec<_>>(), ["memory"]);
    let granted = |objects: &[Value], namespace: &str| -> Vec<Value> {
        let roles = of(objects, "Role").into_iter().filter(|role| role["metadata"]["namespace"] == namespace);
        roles.filter_map(|role| role["rules"].as_array()).flatten().cloned().collect()
    };
    let printed = ["rbac", "-n", HOME, "--lease-name", "r-rollcall", "--records-namespace", "memory"];
    let printed: Vec<Value> =
        serde_saphyr::from_multiple(&acceptance::rollcall_command::rollcall(&printed)?)?;
    for namespace in [HOME, "memory"] {
        let (has, needs) = (granted(&chart, namespace), granted(&printed, namespace));
        assert!(
            !needs.is_empty() && needs.iter().all(|rule| has.contains(rule)),
            "{namespace}: {has:?} {needs:?}"
        );
    }
    let subjects = of(&chart, "RoleBinding").into_iter().filter(|of| of["metadata"]["namespace"] == "memory");
    let subjects: Vec<_> = subjects.map(|binding| &binding["subjects"][0]["namespace"]).collect();
    assert_eq!(subjects, [HOME]);
    assert!(granted(&rendered(&[])?, "memory").is_empty());
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
        (
            "grant.roles={view},policies.p.parent.group=g,policies.p.parent.kind=K",
            "grant.roles is for policies",
        ),
        ("grant.roles={*}", "/grant/roles/0"),
    ] {
        let output = helm(&["template", "r", "rollcall", "--set", set])?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{set}: {said}");
    }
    Ok(())
}
