//! The front of a deployment: who may connect to it and read what, on the real server, and what the manifests make of it.

use std::process::Command;

use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::guide::InlineCommands;
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::chart::{EVERYTHING, network_policy, of, one, rendered, values, words};

/// A service account of the tenant's namespace; `reads` grants it what the base's ClusterRole for readers of metrics has.
pub(super) async fn reader(tenant: &TestTenant, name: &str, reads: bool) -> Result<()> {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } });
    tenant.create(account).await?;
    if !reads {
        return Ok(());
    }
    let base = base()?;
    let role = of(&base, "ClusterRole")
        .into_iter()
        .find(|role| role["metadata"]["name"] == "rollcall-metrics-reader");
    let mut role = role.context("the base has no role for readers of metrics")?.clone();
    // Roles of all tenants of a control plane stand beside each other.
    let own = format!("{}-{name}", tenant.name);
    role["metadata"] = json!({ "name": own });
    tenant.admin.create(&role).await?;
    let command = "kubectl create clusterrolebinding rollcall-metrics --clusterrole rollcall-metrics-reader --serviceaccount NAMESPACE:NAME";
    let (binding, granted) = (format!("clusterrolebinding {own}"), format!("--clusterrole {own}"));
    let account = format!("{}:{name}", tenant.name);
    let values = [
        ("clusterrolebinding rollcall-metrics", &*binding),
        ("--clusterrole rollcall-metrics-reader", &*granted),
        ("NAMESPACE:NAME", &*account),
    ];
    InlineCommands::of("deploy/README.md")?.type_in(tenant, command, &values)?;
    Ok(())
}

/// The service with a policy, for everybody, with these options.
async fn serving(word: &str, options: &[&str]) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({ "children": [tenant.child("Deployment")] })).await?;
    let listen = format!("--listen=0.0.0.0:{}", free_ports(1)?[0]);
    let running = tenant.rollcall(&[&[&*listen], options].concat()).await?;
    Ok((tenant, running))
}

#[tokio::test]
async fn metrics_are_read_by_those_whom_the_base_has_a_role_for() -> Result<()> {
    let (tenant, running) = serving("scraped", &[]).await?;
    reader(&tenant, "prometheus", true).await?;
    reader(&tenant, "somebody", false).await?;
    let prometheus = tenant.plane.token_of(&tenant.name, "prometheus").await?;
    let somebody = tenant.plane.token_of(&tenant.name, "somebody").await?;
    for (token, code) in [("", 401), ("nobody's", 401), (&*somebody, 403), (&*prometheus, 200)] {
        let answer = running.http_as("/metrics", token).await?;
        assert_eq!(answer.code, code, "{}", answer.body);
    }
    let metrics = running.http_as("/metrics", &prometheus).await?.body;
    assert!(metrics.contains("rollcall_token_reviews_total{outcome=\"authenticated\"} 2"), "{metrics}");
    assert!(metrics.contains("rollcall_token_reviews_total{outcome=\"rejected\"} 1"), "{metrics}");
    Ok(())
}

#[tokio::test]
async fn with_an_audience_only_tokens_made_for_it_are_taken() -> Result<()> {
    let (tenant, running) = serving("audience", &["--token-audience=rollcall"]).await?;
    reader(&tenant, "prometheus", true).await?;
    let command = "kubectl create token NAME --audience rollcall";
    let name = format!("prometheus -n {}", tenant.name);
    let made = InlineCommands::of("deploy/README.md")?.type_in(&tenant, command, &[("NAME", &name)])?;
    assert_eq!(running.http_as("/metrics", made.trim()).await?.code, 200);
    let servers = tenant.plane.token_of(&tenant.name, "prometheus").await?;
    assert_eq!(running.http_as("/metrics", &servers).await?.code, 401);
    Ok(())
}

/// What the base consists of.
fn base() -> Result<Vec<Value>> {
    let base = places::repository().join("deploy/kustomize");
    let built = Command::new(places::program("kubectl")?).arg("kustomize").arg(base).output()?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(serde_saphyr::from_multiple(&String::from_utf8_lossy(&built.stdout))?)
}

/// The pods of these objects.
fn pods(objects: &[Value]) -> Vec<&Value> {
    ["Deployment", "Job"]
        .iter()
        .flat_map(|kind| of(objects, kind))
        .map(|of| &of["spec"]["template"]["spec"])
        .collect()
}

/// Why OpenShift's SecurityContextConstraints `restricted-v2` would not admit a pod. They assign what is not set: a user and
/// a group of the namespace's range, SELinux labels, and the seccomp profile.
fn violations(pod: &Value) -> Vec<String> {
    const VOLUMES: [&str; 8] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        check(pod[field] != true, field.to_owned());
    }
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let containers: Vec<_> =
        ["containers", "initContainers"].iter().flat_map(|key| list(&pod[*key])).collect();
    let contexts = containers.iter().map(|container| &container["securityContext"]);
    for context in contexts.clone().chain([&pod["securityContext"]]) {
        // Any fixed number lies outside of the range that a namespace is given.
        for field in ["runAsUser", "runAsGroup", "fsGroup", "seLinuxOptions", "supplementalGroups", "sysctls"]
        {
            check(context[field].is_null(), format!("{field}: {}", context[field]));
        }
        let seccomp = &context["seccompProfile"];
        check(seccomp.is_null() || seccomp["type"] == "RuntimeDefault", format!("seccompProfile: {seccomp}"));
    }
    for context in contexts {
        check(context["privileged"] != true, "privileged".to_owned());
        check(context["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation".to_owned());
        check(context["capabilities"]["drop"] == json!(["ALL"]), "capabilities.drop".to_owned());
        let added = words(&context["capabilities"]["add"]);
        check(added.iter().all(|name| name == "NET_BIND_SERVICE"), format!("capabilities.add: {added:?}"));
    }
    for container in &containers {
        check(list(&container["ports"]).iter().all(|port| port["hostPort"].is_null()), "hostPort".to_owned());
    }
    for volume in list(&pod["volumes"]) {
        let kinds: Vec<_> = volume.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
        let known = |kind: &String| kind == "name" || VOLUMES.contains(&&**kind);
        check(kinds.iter().all(known), format!("volume of {kinds:?}"));
    }
    found
}

#[test]
fn openshift_admits_every_pod_under_restricted_v2() -> Result<()> {
    let more =
        "policies: { db: { parent: { group: example.com, kind: Database } } }\ntls: { secretName: own }\n";
    let all =
        [rendered(&[])?, rendered(&["-f", &values(&[EVERYTHING, more].concat(), "openshift")?])?, base()?];
    let pods: Vec<_> = all.iter().flat_map(|objects| pods(objects)).collect();
    assert_eq!(pods.len(), 5, "a Deployment and a Job twice, and the base");
    for pod in &pods {
        assert_eq!(violations(pod), [""; 0], "{pod:#}");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    }
    for (place, value) in [
        ("/securityContext/runAsUser", json!(65532)),
        ("/containers/0/securityContext/capabilities/drop", json!([])),
        ("/containers/0/securityContext/allowPrivilegeEscalation", Value::Null),
        ("/hostNetwork", json!(true)),
        ("/volumes", json!([{ "name": "host", "hostPath": { "path": "/" } }])),
    ] {
        let mut odd = pods[0].clone();
        let (parent, field) = place.rsplit_once('/').context("no field")?;
        odd.pointer_mut(parent).context("nothing there")?[field] = value;
        assert!(!violations(&odd).is_empty(), "{place} is not looked at");
    }
    Ok(())
}

/// The names of the ports of a pod.
fn port_names(pod: &Value) -> Vec<&str> {
    pod["containers"][0]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| port["name"].as_str())
        .collect()
}

#[test]
fn strangers_reach_the_listener_and_never_the_probes() -> Result<()> {
    let plain = values("tls: { enabled: false }", "plain")?;
    for (objects, port) in
        [(rendered(&[])?, "https"), (base()?, "https"), (rendered(&["-f", &plain])?, "http")]
    {
        let pod = &one(&objects, "Deployment")?["spec"]["template"]["spec"];
        assert_eq!(port_names(pod), [port, "probes"]);
        for probe in ["livenessProbe", "readinessProbe"] {
            let asked = &pod["containers"][0][probe]["httpGet"];
            assert_eq!((&asked["port"], &asked["scheme"]), (&json!("probes"), &Value::Null));
        }
        let args = words(&pod["containers"][0]["args"]);
        assert!(args.contains(&"--probe-listen=0.0.0.0:8081".to_owned()), "{args:?}");
        assert_eq!(args.contains(&"--tls-self-signed".to_owned()), port == "https", "{args:?}");
        let policy = &network_policy(&objects)?["spec"];
        assert_eq!(policy["policyTypes"], json!(["Ingress"]));
        assert_eq!(policy["ingress"], json!([{ "ports": [{ "port": port, "protocol": "TCP" }] }]));
        let selected = &policy["podSelector"]["matchLabels"];
        let labels = &one(&objects, "Deployment")?["spec"]["template"]["metadata"]["labels"];
        for (name, value) in selected.as_object().context("it selects nothing")? {
            assert_eq!(&labels[name], value, "it does not select the pods");
        }
        let service = &one(&objects, "Service")?["spec"]["ports"];
        assert_eq!((&service[0]["targetPort"], service.as_array().map(Vec::len)), (&json!(port), Some(1)));
    }
    let closed =
        values("networkPolicy: { egress: true, extraEgress: [{ ports: [{ port: 9000 }] }] }", "closed")?;
    let closed = rendered(&["-f", &closed])?;
    let policy = &network_policy(&closed)?["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["egress"].as_array().map(Vec::len), Some(3), "DNS, the API server, and one more");
    assert!(of(&rendered(&["--set", "networkPolicy.enabled=false"])?, "NetworkPolicy").is_empty());
    Ok(())
}

#[test]
fn nobody_reaches_the_pod_of_the_uninstall_job() -> Result<()> {
    let closed = values("networkPolicy: { egress: true }", "closed-release")?;
    for (objects, types) in
        [(rendered(&[])?, json!(["Ingress"])), (rendered(&["-f", &closed])?, json!(["Ingress", "Egress"]))]
    {
        let labels = &one(&objects, "Job")?["spec"]["template"]["metadata"]["labels"];
        let policies = of(&objects, "NetworkPolicy");
        let of_job = policies.iter().find(|policy| policy["spec"]["podSelector"]["matchLabels"] == *labels);
        let policy = &of_job.context("no NetworkPolicy selects it")?["spec"];
        assert_eq!((&policy["policyTypes"], &policy["ingress"]), (&types, &Value::Null));
        let egress = policy["egress"].as_array().map(Vec::len);
        assert_eq!(
            egress,
            (types.as_array().map(Vec::len) == Some(2)).then_some(2),
            "DNS and the API server"
        );
    }
    let without = rendered(&["--set", "release.onUninstall=false"])?;
    assert_eq!(of(&without, "NetworkPolicy").len(), 1);
    Ok(())
}

#[test]
fn metrics_are_scraped_over_tls_with_a_token_that_may() -> Result<()> {
    let text = "serviceMonitor: { enabled: true }\nmetrics: { readers: [{ namespace: monitoring, name: prometheus }] }\n";
    let objects = rendered(&["-f", &values(text, "scraped")?])?;
    let endpoint = &one(&objects, "ServiceMonitor")?["spec"]["endpoints"][0];
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let found = ["port", "scheme", "bearerTokenFile", "tlsConfig"].map(|field| endpoint[field].clone());
    assert_eq!(found, [json!("https"), json!("https"), json!(token), json!({ "insecureSkipVerify": true })]);
    let named = |kind: &str| -> Result<Value> {
        let all = of(&objects, kind);
        let found = all
            .into_iter()
            .find(|one| one["metadata"]["name"].as_str().is_some_and(|n| n.ends_with("-metrics-reader")));
        Ok(found.context("no role for readers of metrics")?.clone())
    };
    let role = named("ClusterRole")?;
    assert_eq!(role["rules"], json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]));
    let binding = named("ClusterRoleBinding")?;
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let account = json!({ "kind": "ServiceAccount", "namespace": "monitoring", "name": "prometheus" });
    assert_eq!(binding["subjects"], json!([account]));

    // What cannot be asked is not demanded: a Role grants no right to review tokens.
    let roles = "namespaces: [a]\npolicies: { db: { parent: { group: example.com, kind: Database } } }\n";
    let text = [text, roles].concat();
    let objects = rendered(&["-f", &values(&text, "scraped-roles")?])?;
    let args = words(&one(&objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0]["args"]);
    assert!(args.contains(&"--metrics-auth=false".to_owned()), "{args:?}");
    assert!(one(&objects, "ServiceMonitor")?["spec"]["endpoints"][0]["bearerTokenFile"].is_null());

    let own =
        "serviceMonitor: { enabled: true, tlsConfig: { serverName: rollcall } }\ntls: { secretName: own }\n";
    let objects = rendered(&["-f", &values(own, "scraped-own")?])?;
    let pod = &one(&objects, "Deployment")?["spec"]["template"]["spec"];
    let args = words(&pod["containers"][0]["args"]);
    let mount = &pod["containers"][0]["volumeMounts"][0];
    let folder = mount["mountPath"].as_str().context("the Secret is not mounted")?;
    for arg in [format!("--tls-cert-file={folder}/tls.crt"), format!("--tls-key-file={folder}/tls.key")] {
        assert!(args.contains(&arg), "{args:?}");
    }
    assert_eq!(pod["volumes"][0], json!({ "name": mount["name"], "secret": { "secretName": "own" } }));
    let endpoint = &one(&objects, "ServiceMonitor")?["spec"]["endpoints"][0];
    assert_eq!(endpoint["tlsConfig"], json!({ "serverName": "rollcall" }));
    Ok(())
}
