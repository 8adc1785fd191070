//! Dashboards, alerts, and who may read the metrics.

use std::str::FromStr;

use policy::is_object_name;
use serde_json::{Value, json};
use watcher::resolve_kind;

/// Dashboards by name.
const DASHBOARDS: [(&str, &str); 3] = [
    ("fleet", include_str!("../../../../dashboards/fleet.json")),
    ("parent", include_str!("../../../../dashboards/parent.json")),
    ("rollcall", include_str!("../../../../dashboards/rollcall.json")),
];
/// Alerts and recording rules.
const RULES: &str = include_str!("../../../../dashboards/rules/rollcall.rules.yaml");
/// Where the runbooks are, as the rules have it: a file of the repository.
pub(super) const RUNBOOKS: &str = "dashboards/README.md";
/// Longest address of the runbooks, in bytes.
const MAX_RUNBOOKS: usize = 512;
/// API group of the Prometheus operator.
const OPERATOR_GROUP: &str = "monitoring.coreos.com";

/// Kinds of the Prometheus operator that the cluster serves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServedMonitors {
    pub(super) service_monitor: bool,
    pub(super) prometheus_rule: bool,
}

impl ServedMonitors {
    pub(super) async fn ask(client: &kube::Client) -> anyhow::Result<ServedMonitors> {
        let served = async |kind| {
            Ok::<_, anyhow::Error>(resolve_kind(client, OPERATOR_GROUP, Some("v1"), kind).await?.is_some())
        };
        Ok(ServedMonitors {
            service_monitor: served("ServiceMonitor").await?,
            prometheus_rule: served("PrometheusRule").await?,
        })
    }
}

/// A service account that reads the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetricsAccount {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl FromStr for MetricsAccount {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAccount, String> {
        match text.split_once('/') {
            Some((namespace, name)) if is_object_name(namespace) && is_object_name(name) => {
                Ok(MetricsAccount { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("must be NAMESPACE/NAME of a service account, such as monitoring/prometheus".to_owned()),
        }
    }
}

fn object(api_version: &str, kind: &str, name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": namespace, "labels": { "app.kubernetes.io/name": "rollcall" } },
    })
}

/// The dashboards as ConfigMaps, as `dashboards/kustomization.yaml` makes them.
pub(super) fn dashboards(namespace: &str) -> Vec<Value> {
    let dashboard = |(name, text): (&str, &str)| {
        let mut manifest = object("v1", "ConfigMap", &format!("rollcall-dashboard-{name}"), namespace);
        manifest["metadata"]["labels"]["grafana_dashboard"] = json!("1");
        manifest["data"] = json!({ (format!("{name}.json")): text });
        manifest
    };
    DASHBOARDS.into_iter().map(dashboard).collect()
}

/// Accepts the bytes of an address without a fragment, which the name of the alert is. The chart accepts the same.
pub(super) fn runbooks_address(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:/?&=%@+,-".contains(&byte);
    let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins_well && text.len() <= MAX_RUNBOOKS && text.bytes().all(legal) {
        Ok(text.to_owned())
    } else {
        Err("must be an address without #, such as https://git.example.com/rollcall/dashboards/README.md"
            .to_owned())
    }
}

/// The rules, whose runbooks are at this address.
fn rules(runbooks: &str) -> String {
    RULES.replace(&format!("runbook_url: {RUNBOOKS}#"), &format!("runbook_url: {runbooks}#"))
}

/// The alerts, whose runbooks are at this address, and the scrape where an operator makes one.
pub(super) fn alerts(namespace: &str, runbooks: &str, served: ServedMonitors) -> anyhow::Result<Vec<Value>> {
    let rules_text = rules(runbooks);
    let operator_version = format!("{OPERATOR_GROUP}/v1");
    let mut manifests = Vec::new();
    if served.prometheus_rule {
        let mut rule = object(&operator_version, "PrometheusRule", "rollcall", namespace);
        rule["spec"] = serde_saphyr::from_str(&rules_text)?;
        manifests.push(rule);
    } else {
        let mut rules = object("v1", "ConfigMap", "rollcall-alert-rules", namespace);
        rules["data"] = json!({ "rollcall.rules.yaml": rules_text });
        manifests.push(rules);
    }
    if served.service_monitor {
        let mut monitor = object(&operator_version, "ServiceMonitor", "rollcall", namespace);
        monitor["spec"] = json!({
            "selector": { "matchLabels": { "app.kubernetes.io/name": "rollcall" } },
            "endpoints": [{
                "port": "https", "interval": "30s", "scheme": "https",
                // The certificate is self-signed; the token is what Rollcall asks for.
                "tlsConfig": { "insecureSkipVerify": true },
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                // A parent's namespace stays the parent's.
                "honorLabels": true,
            }],
        });
        manifests.push(monitor);
    }
    Ok(manifests)
}

/// Binds the right to read the metrics.
pub(super) fn metrics_readers(readers: &[MetricsAccount]) -> Option<Value> {
    let subject = |reader: &MetricsAccount| json!({ "kind": "ServiceAccount", "name": reader.name, "namespace": reader.namespace });
    let subjects: Vec<Value> = readers.iter().map(subject).collect();
    let name = "rollcall-metrics-reader";
    (!subjects.is_empty()).then(|| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name, "labels": { "app.kubernetes.io/name": "rollcall" } },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": subjects,
        })
    })
}
