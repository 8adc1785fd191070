//! What the service is told on its command line; every flag is also an environment variable `ROLLCALL_…`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use readiness::Time;

use crate::lease::LeaseName;

/// Which cluster, as with kubectl.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Path of the kubeconfig file; left out, $KUBECONFIG, then ~/.kube/config, then the pod's service account.
    #[arg(long, env = "ROLLCALL_KUBECONFIG", global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; left out, its current one.
    #[arg(long, env = "ROLLCALL_CONTEXT", global = true, value_name = "NAME")]
    pub context: Option<String>,
}

/// `rollcall run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Address of the page, its API, /metrics, /livez, /readyz. Page and API ask for a Kubernetes token, unless this is a
    /// loopback address.
    #[arg(long, env = "ROLLCALL_LISTEN", default_value = "0.0.0.0:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// How often a parent that is not ready is read again live, with the children that hold it back; 0s: never.
    #[arg(long, env = "ROLLCALL_RESYNC", default_value = "30s", value_parser = duration, value_name = "DURATION")]
    pub resync: Duration,
    /// How often the metadata of everything is compared with what is held, and how often a parent that ten passes
    /// found unchanged is read again; 0s: never.
    #[arg(long, env = "ROLLCALL_AUDIT", default_value = "10m", value_parser = duration, value_name = "DURATION")]
    pub audit: Duration,
    /// From when on something pending or terminating is stuck, where a policy does not say.
    #[arg(long, env = "ROLLCALL_STUCK_AFTER", default_value = "10m", value_parser = duration, value_name = "DURATION")]
    pub stuck_after: Duration,
    /// Only these namespaces; needs no more than Roles in them. Repeat, or separate by commas.
    #[arg(long, env = "ROLLCALL_NAMESPACES", value_delimiter = ',', value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Where records of outcomes are kept that must outlive a restart; left out, the pod's own namespace, else
    /// rollcall-system. Read only where a policy says `afterDeletion: remember`.
    #[arg(long, env = "ROLLCALL_RECORDS_NAMESPACE", value_name = "NAMESPACE")]
    pub records_namespace: Option<String>,
    /// Only policies with such labels: `team=a,tier in (gold,silver),!legacy`.
    #[arg(long, env = "ROLLCALL_POLICY_SELECTOR", value_name = "SELECTOR")]
    pub policy_selector: Option<String>,
    /// Policies from this file instead of the cluster; `-` is standard input.
    #[arg(long, env = "ROLLCALL_POLICIES", value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// Live reads a second, at most.
    #[arg(long, env = "ROLLCALL_RESYNC_RATE", default_value_t = 20, value_name = "N")]
    pub resync_rate: u32,
    /// Parents that are not ready and get metric series of their own, at most.
    #[arg(long, env = "ROLLCALL_METRICS_PARENTS", default_value_t = 500, value_name = "N")]
    pub metrics_parents: usize,
    /// Send Kubernetes Events about parents whose answer turns; never in shadow.
    #[arg(long, env = "ROLLCALL_EVENTS", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub events: bool,
    /// Who writes.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Keep every transition in this object store: s3://bucket/prefix, gs://…, az://…, file:///folder. Credentials as its own
    /// tools find them: AWS_…, GOOGLE_…, AZURE_…, or the machine's identity.
    #[arg(long, env = "ROLLCALL_HISTORY", value_name = "URL")]
    pub history: Option<String>,
    /// How long transitions may be gathered before they are put there. After quiet it is 5 s; twelve batches may go that
    /// soon in a row, and then one each so often.
    #[arg(long, env = "ROLLCALL_HISTORY_FLUSH", default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub history_flush: Duration,
    /// Where spread and jitter come from; left out, the time of the start.
    #[arg(long, env = "ROLLCALL_SEED", value_name = "N")]
    pub seed: Option<u64>,
    /// How logs are written; left out, text on a terminal and JSON otherwise.
    #[arg(long, env = "ROLLCALL_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// What is logged: a level, or directives as in `info,controller=debug`.
    #[arg(long, env = "ROLLCALL_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
}

/// Who writes, where several replicas run.
#[derive(Args, Clone, Debug, Default)]
pub struct LeaseArgs {
    /// Only one of several replicas writes: the one that holds the lease; the others stand by. Left out: true in a pod,
    /// false with a kubeconfig.
    #[arg(
        long, env = "ROLLCALL_LEADER_ELECT", value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    pub leader_elect: Option<bool>,
    /// Namespace of the lease; left out, the pod's or the kubeconfig's.
    #[arg(long, env = "ROLLCALL_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Name of the lease: another one for each release in a namespace.
    #[arg(long, env = "ROLLCALL_LEASE_NAME", default_value = "rollcall", value_name = "NAME")]
    pub lease_name: String,
    /// Name of this replica in the lease; left out, that of the host. A number that differs at each start is added.
    #[arg(long, env = "ROLLCALL_IDENTITY", value_name = "NAME")]
    pub identity: Option<String>,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 100ms, 30s, 10m"))
}

impl ClusterArgs {
    /// The configuration of a client for that cluster.
    pub async fn config(&self) -> anyhow::Result<kube::Config> {
        Ok(self.config_and_place().await?.0)
    }

    /// The same, and whether it is a pod's own.
    pub async fn config_and_place(&self) -> anyhow::Result<(kube::Config, bool)> {
        use anyhow::Context;
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        if self.kubeconfig.is_none()
            && self.context.is_none()
            && kube::Config::from_kubeconfig(&options).await.is_err()
            && let Ok(config) = kube::Config::incluster()
        {
            return Ok((config, true));
        }
        let (read, place) = self.kubeconfig()?;
        let known = read.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>().join(", ");
        let config = kube::Config::from_custom_kubeconfig(read, &options).await;
        let config = config.with_context(|| format!("failed to use {place}; its contexts: {known}"))?;
        Ok((config, false))
    }

    /// The kubeconfig that is meant, and how it is called.
    fn kubeconfig(&self) -> anyhow::Result<(Kubeconfig, String)> {
        use anyhow::Context;
        if let Some(path) = &self.kubeconfig {
            let place = format!("kubeconfig {}", path.display());
            return Ok((
                Kubeconfig::read_from(path).with_context(|| format!("failed to read {place}"))?,
                place,
            ));
        }
        let read = Kubeconfig::read();
        let none = matches!(&read, Err(KubeconfigError::FindPath | KubeconfigError::ReadConfig(..)));
        let read = read.context(if none {
            "no cluster: neither a kubeconfig ($KUBECONFIG, ~/.kube/config, --kubeconfig) nor a pod's service account was found; `rollcall demo` needs none"
        } else {
            "failed to read the kubeconfig"
        })?;
        Ok((read, "the kubeconfig".to_owned()))
    }
}

impl LeaseArgs {
    /// The lease to stand for; `None` where nobody else writes.
    pub fn stands_for(&self, in_pod: bool, home: &str, now: Time) -> Option<LeaseName> {
        if !self.leader_elect.unwrap_or(in_pod) {
            return None;
        }
        let host = self.identity.clone().unwrap_or_else(crate::events::host_name);
        Some(LeaseName {
            namespace: self.lease_namespace.clone().unwrap_or_else(|| home.to_owned()),
            name: self.lease_name.clone(),
            // A process that starts anew is another one: it has not seen what its predecessor promised.
            identity: format!("{host}_{}_{:x}", std::process::id(), now.0),
        })
    }
}
