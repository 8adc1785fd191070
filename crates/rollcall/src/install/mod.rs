//! `rollcall install`: everything that a cluster needs to run Rollcall, as one stream of manifests, or as values of the chart.

mod base_manifests;
mod chart_values;
mod monitoring;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use controller::args::ClusterArgs;
use policy::rbac::{DEFAULT_NAMESPACE, RoleOptions, manifests_yaml, policy_manifests, policy_rights};
use policy::to_yaml;
use serde_json::Value;

use crate::live::{connect_cluster, suggested_policies};
use crate::rbac::{RbacPolicies, object_name};
use crate::text::{print_error_line, write_stdout};
use base_manifests::BaseOptions;
use chart_values::ChartMonitors;
use monitoring::{MetricsAccount, ServedMonitors};

/// `rollcall install`.
#[derive(Args, Debug)]
#[command(
    after_help = "It prints and changes nothing. The bundle is what `kubectl apply -k deploy/kustomize` installs, the rights of the \
                  policies, the dashboards as ConfigMaps with the label that Grafana's sidecar looks for, and the alerts: as a \
                  PrometheusRule, with a ServiceMonitor, where the cluster serves these kinds, and in a ConfigMap otherwise. The \
                  policies themselves are applied after it, when their definition is there.\n\n\
                  To take it away while the service runs, let it write nothing again, remove its conditions, and delete the rest:\n  \
                  rollcall release --lease rollcall-system/rollcall --records rollcall-system\n  \
                  rollcall install -f policies.yaml | kubectl delete --ignore-not-found -f -\n\
                  The second deletes the definitions with every policy and every group, and the namespace with everything in it. With \
                  -n NAMESPACE, put its name for rollcall-system and give both flags to install again: a namespace that was there \
                  before is then neither changed nor deleted. Roles and bindings of the base that are in no namespace end in .NAMESPACE \
                  then, so that one installation takes no right from another.\n\n\
                  From nothing to the first parent that is told:\n  \
                  rollcall suggest --mode write > policies.yaml\n  \
                  rollcall install -f policies.yaml | kubectl apply --server-side -f -\n  \
                  kubectl apply -f policies.yaml\n\n\
                  Exit codes: 0 printed; 1 a policy of the cluster is not valid, its rights are left out; 2 the cluster or a file could not be read."
)]
pub(crate) struct InstallArgs {
    /// Files with the policies whose rights are granted. CRDs in them are read as `rollcall rbac` reads them. Default: the
    /// policies in the cluster, and those that `rollcall suggest` suggests for it.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Do not ask the cluster: grant the rights of the policies in the files only, and print no PrometheusRule or
    /// ServiceMonitor.
    #[arg(long)]
    offline: bool,
    /// Namespace that Rollcall lives in. One with another name than rollcall-system has to be there: it may be others' too.
    #[arg(short, long, default_value = "rollcall-system", value_name = "NAMESPACE", value_parser = object_name)]
    namespace: String,
    /// Also print the namespace where it is not rollcall-system: one for Rollcall alone. Applied, it holds all pods in it to
    /// the restricted Pod Security Standard; deleted, it takes along all that is in it.
    #[arg(long)]
    create_namespace: bool,
    /// Image of the service.
    #[arg(long, default_value = concat!("rollcall:", env!("CARGO_PKG_VERSION")), value_name = "IMAGE", value_parser = image_name)]
    image: String,
    /// Service account that may read the metrics, such as that of Prometheus. Repeat the flag, or separate by commas.
    #[arg(long = "metrics-reader", value_delimiter = ',', value_name = "NAMESPACE/NAME")]
    metrics_readers: Vec<MetricsAccount>,
    /// Where the alerts' runbooks are: the address of the page that dashboards/README.md of the repository is for your people.
    #[arg(long, default_value = monitoring::RUNBOOKS, value_name = "URL", value_parser = monitoring::runbooks_address)]
    runbooks: String,
    /// Output format: `manifests` for `kubectl apply -f -`; `helm-values` for `helm install -f -` with the chart.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: InstallFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InstallFormat {
    #[default]
    Manifests,
    HelmValues,
}

/// Accepts the bytes that occur in references to images; whether there is such an image is the kubelet's to say.
fn image_name(text: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:@".contains(&byte);
    if !text.is_empty() && text.len() <= 512 && text.bytes().all(legal) {
        Ok(text.to_owned())
    } else {
        Err("must be a reference to an image, such as registry.example.com/rollcall:0.1.0".to_owned())
    }
}

pub(crate) async fn print_installation(
    cluster: &ClusterArgs,
    args: &InstallArgs,
) -> anyhow::Result<ExitCode> {
    let (policies, served) = read_cluster(cluster, args).await?;
    let invalid = policies.report_invalid();
    let text = match args.output {
        InstallFormat::Manifests => manifests_yaml(&bundle(args, &policies, served)?)?,
        InstallFormat::HelmValues => {
            let monitors = ChartMonitors { served, runbooks: &args.runbooks };
            to_yaml(&chart_values::chart_values(&args.image, &args.metrics_readers, &policies, monitors))?
        }
    };
    write_stdout(&text)?;
    Ok(ExitCode::from(u8::from(invalid)))
}

/// The policies whose rights are granted, and which kinds of monitors the cluster serves.
async fn read_cluster(
    cluster: &ClusterArgs,
    args: &InstallArgs,
) -> anyhow::Result<(RbacPolicies, ServedMonitors)> {
    let mut policies = RbacPolicies::from_files(&args.files)?;
    if args.offline {
        policies.leave_out_open();
        policies.report_invalid();
        return Ok((policies, ServedMonitors::default()));
    }
    let (client, _) = connect_cluster(cluster).await.map_err(|error| {
        error.context("what the cluster has decides what is printed; --offline does without")
    })?;
    policies.fill_in_kinds(&client).await?;
    if args.files.is_empty() {
        if has_policies(&client).await? {
            policies.add_policies_of_cluster(&client, &[]).await?;
            policies.report_invalid();
        }
        policies.valid.extend(suggested_policies(&client).await?);
        let names: Vec<_> = policies.valid.iter().map(|(name, _)| name.as_str()).collect();
        print_error_line(&match names.as_slice() {
            [] => "no policies: no rights beyond the base are granted".to_owned(),
            names => format!("rights are granted for {}", names.join(", ")),
        });
    }
    policies.resolve_kinds(&client).await?;
    Ok((policies, ServedMonitors::ask(&client).await?))
}

/// A cluster that never had Rollcall does not serve its policies.
async fn has_policies(client: &kube::Client) -> anyhow::Result<bool> {
    Ok(watcher::resolve_kind(client, "rollcall.dev", None, "ReadinessPolicy").await?.is_some())
}

/// Everything, in an order in which it can be applied.
fn bundle(args: &InstallArgs, policies: &RbacPolicies, served: ServedMonitors) -> anyhow::Result<Vec<Value>> {
    let base = BaseOptions {
        namespace: &args.namespace,
        creates_namespace: args.create_namespace || args.namespace == DEFAULT_NAMESPACE,
        image: &args.image,
    };
    let roles = RoleOptions::in_namespace(&args.namespace);
    let mut manifests = base_manifests::definitions(&base)?;
    for (name, compiled) in &policies.valid {
        manifests.extend(policy_manifests(name, &policy_rights(compiled, &policies.crds), &roles));
    }
    manifests.extend(base_manifests::workload(&base)?);
    manifests.extend(monitoring::dashboards(&args.namespace));
    manifests.extend(monitoring::alerts(&args.namespace, &args.runbooks, served)?);
    manifests.extend(monitoring::metrics_readers(&args.metrics_readers));
    for manifest in &mut manifests {
        base_manifests::name_apart(manifest, &args.namespace);
    }
    Ok(manifests)
}
