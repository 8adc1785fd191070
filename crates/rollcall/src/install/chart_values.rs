//! The same as values of the Helm chart.

use std::collections::{BTreeMap, BTreeSet};

use policy::rbac::{PolicyRights, policy_rights};
use serde_json::{Map, Value, json};

use super::monitoring::{MetricsAccount, RUNBOOKS, ServedMonitors};
use crate::rbac::RbacPolicies;

/// Resources that the chart lets Rollcall read without being told.
const BASE_RESOURCES: [(&str, &[&str]); 4] = [
    ("apps", &["daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("batch", &["cronjobs", "jobs"]),
    ("", &["pods"]),
    ("policy", &["poddisruptionbudgets"]),
];
/// API group of the Events that Rollcall writes; the chart grants that right.
const EVENTS_GROUP: &str = "events.k8s.io";

/// Rights as the chart is told them.
#[derive(Default)]
struct ChartRights {
    /// Resources on which conditions are written, by group and name; `true` if by the status subresource.
    written: BTreeMap<(String, String), bool>,
    /// Resources that are read.
    read: BTreeSet<(String, String)>,
    reads_namespaces: bool,
    /// ConfigMaps of scripts, by namespace and name.
    scripts: BTreeSet<(String, String)>,
}

impl ChartRights {
    fn add_rights(&mut self, rights: &PolicyRights) {
        for rule in &rights.kinds {
            for resource in &rule.resources {
                if rule.verbs.contains(&"patch") && rule.group != EVENTS_GROUP {
                    let (name, by_status) = resource
                        .strip_suffix("/status")
                        .map_or((resource.as_str(), false), |name| (name, true));
                    self.written.insert((rule.group.clone(), name.to_owned()), by_status);
                } else if (rule.group.as_str(), resource.as_str()) == ("", "namespaces") {
                    self.reads_namespaces = true;
                } else if rule.verbs.contains(&"watch") {
                    self.read.insert((rule.group.clone(), resource.clone()));
                }
            }
        }
        let scripts = rights.libraries.iter();
        self.scripts.extend(scripts.map(|(library, _)| (library.namespace.clone(), library.name.clone())));
    }

    fn parents(&self) -> Vec<Value> {
        let parent = |((group, resource), by_status): (&(String, String), &bool)| {
            let mut parent = json!({ "group": group, "resource": resource });
            if !by_status {
                parent["statusSubresource"] = json!(false);
            }
            parent
        };
        self.written.iter().map(parent).collect()
    }

    /// What is read and not written, beyond what the chart lets it read anyway.
    fn children(&self) -> Vec<Value> {
        let mut by_group: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let known = |group: &str, resource: &str| {
            BASE_RESOURCES.iter().any(|(base, resources)| *base == group && resources.contains(&resource))
        };
        for (group, resource) in self.read.iter().filter(|of| !self.written.contains_key(of)) {
            if !known(group, resource) {
                by_group.entry(group).or_default().push(resource);
            }
        }
        let child = |(group, resources)| json!({ "group": group, "resources": resources });
        by_group.into_iter().map(child).collect()
    }
}

/// What the chart is told of monitoring.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartMonitors<'a> {
    pub(super) served: ServedMonitors,
    /// Where the alerts' runbooks are.
    pub(super) runbooks: &'a str,
}

/// Values for `helm install -f -`. What is the chart's default is left out.
pub(super) fn chart_values(
    image: &str,
    readers: &[MetricsAccount],
    policies: &RbacPolicies,
    monitors: ChartMonitors<'_>,
) -> Value {
    let ChartMonitors { served, runbooks } = monitors;
    let mut rights = ChartRights::default();
    for (_, compiled) in &policies.valid {
        rights.add_rights(&policy_rights(compiled, &policies.crds));
    }
    let mut values = Map::new();
    let mut set = |name: &str, value: Value| {
        if value.as_array().is_none_or(|list| !list.is_empty()) {
            values.insert(name.to_owned(), value);
        }
    };
    set("image", image_values(image));
    set("parents", rights.parents().into());
    set("children", rights.children().into());
    let script = |(namespace, name): &(String, String)| json!({ "namespace": namespace, "name": name });
    set("scripts", rights.scripts.iter().map(script).collect());
    if rights.reads_namespaces {
        set("readNamespaces", json!(true));
    }
    let reader = |reader: &MetricsAccount| json!({ "namespace": reader.namespace, "name": reader.name });
    if !readers.is_empty() {
        set("metrics", json!({ "readers": readers.iter().map(reader).collect::<Vec<_>>() }));
    }
    set("serviceMonitor", json!({ "enabled": served.service_monitor }));
    let mut rule = json!({ "enabled": served.prometheus_rule });
    if runbooks != RUNBOOKS {
        rule["runbooks"] = json!(runbooks);
    }
    set("prometheusRule", rule);
    set("dashboards", json!({ "enabled": true }));
    values.into()
}

/// A reference to an image in the chart's parts. A colon before the last slash is that of a port.
fn image_values(image: &str) -> Value {
    if let Some((repository, digest)) = image.split_once('@') {
        return json!({ "repository": repository, "digest": digest });
    }
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => json!({ "repository": repository, "tag": tag }),
        _ => json!({ "repository": image }),
    }
}
