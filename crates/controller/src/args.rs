//! Command line of the service. Every flag can also be set by an environment variable `ROLLCALL_…`.

mod cluster;
mod proxy;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use readiness::Time;
use watcher::plan::NamespaceGrants;

use crate::lease::LeaseName;
use crate::listener::{CertificateSource, ConnectionLimits};

pub use cluster::{ClusterArgs, SelectedCluster};
pub use proxy::proxy_address;

/// Listen address of the probes in a pod.
const DEFAULT_PROBE_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8081);

/// Arguments of `rollcall run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Listen address of the page, its API, /metrics, /livez and /readyz. All but the last two require a Kubernetes
    /// token unless this is a loopback address.
    #[arg(long, env = "ROLLCALL_LISTEN", default_value = "0.0.0.0:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Listeners.
    #[command(flatten)]
    pub listener: ListenerArgs,
    /// Interval at which a parent that is not ready, and the children that hold it back, are read again live: one by one, or
    /// where many of a kind are not ready by one list of its metadata, and then those that have changed. 0s disables it.
    #[arg(long, env = "ROLLCALL_RESYNC", default_value = "30s", value_parser = duration, value_name = "DURATION")]
    pub resync: Duration,
    /// Interval at which the metadata of all objects is compared with the cache, and at which a parent that ten resyncs
    /// found unchanged is read again, unless that comparison covers it. 0s disables it.
    #[arg(long, env = "ROLLCALL_AUDIT", default_value = "10m", value_parser = duration, value_name = "DURATION")]
    pub audit: Duration,
    /// Time after which an object that is pending, makes no progress or is terminating is reported as stuck, unless the
    /// policy sets its own limit.
    #[arg(long, env = "ROLLCALL_STUCK_AFTER", default_value = "10m", value_parser = duration, value_name = "DURATION")]
    pub stuck_after: Duration,
    /// Kinds, besides Secret, whose content no rule of a policy may read: a policy with such a rule is refused. Written
    /// `Kind` or `Kind.group`. Repeat the flag, or separate by commas.
    #[arg(long, env = "ROLLCALL_PROTECTED_KINDS", value_delimiter = ',', value_name = "KIND")]
    pub protected_kinds: Vec<policy::ProtectedKind>,
    /// Namespaces in which ReadinessGroups of other namespaces may have members: `platform=*;team-a=team-a-*,shared` opens every
    /// namespace to groups of `platform`, and to those of `team-a` the namespaces that begin with `team-a-`, and `shared`. Without
    /// it members are in the namespace of their group. Who may read a group sees the names and reasons of its members.
    #[arg(
        long,
        env = "ROLLCALL_GROUP_NAMESPACES",
        default_value = "",
        hide_default_value = true,
        value_name = "OPENED"
    )]
    pub group_namespaces: NamespaceGrants,
    /// Members of ReadinessGroups may have readiness rules (`members[].ready`). Whoever may create groups reads by these what Rollcall
    /// may list in their namespace; with false such a group is Unknown and says why.
    #[arg(long, env = "ROLLCALL_GROUP_RULES", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub group_rules: bool,
    /// ClusterRoles that Rollcall may bind to its own service account while accepted policies need them; it binds the
    /// narrowest that grant what lacks, and deletes the binding when none needs it any more. Without this flag it grants
    /// nothing. It needs the rights that `rollcall rbac --grant-roles` prints; the API server refuses every other role.
    /// At most 16. Repeat the flag, or separate by commas.
    #[arg(
        long, env = "ROLLCALL_GRANT_ROLES", value_delimiter = ',', value_name = "ROLE",
        value_parser = policy::rbac::check_grant_role, conflicts_with_all = ["policies", "namespaces"]
    )]
    pub grant_roles: Vec<String>,
    /// ClusterRole into which the roles of policies are aggregated, as `rollcall rbac --aggregate-to` has it: the commands that
    /// grant missing rights name it.
    #[arg(long, env = "ROLLCALL_AGGREGATE_TO", default_value = policy::rbac::DEFAULT_NAME, value_name = "NAME")]
    pub aggregate_to: String,
    /// Restricts Rollcall to these namespaces; Roles in them are then sufficient. Repeat the flag, or separate by
    /// commas.
    #[arg(long, env = "ROLLCALL_NAMESPACES", value_delimiter = ',', value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Namespace of the ReadinessRecords, which hold outcomes that must survive a restart. Defaults to the pod's own
    /// namespace, else rollcall-system. The ConfigMap of what policies wrote is there, too. The rights to keep both are printed
    /// by `rollcall rbac` with the same flag.
    #[arg(long, env = "ROLLCALL_RECORDS_NAMESPACE", value_name = "NAMESPACE")]
    pub records_namespace: Option<String>,
    /// Restricts Rollcall to policies and ReadinessGroups with matching labels: `team=a,tier in (gold,silver),!legacy`.
    #[arg(long, env = "ROLLCALL_POLICY_SELECTOR", value_name = "SELECTOR")]
    pub policy_selector: Option<String>,
    /// Reads policies from this file instead of the cluster; `-` is standard input.
    #[arg(long, env = "ROLLCALL_POLICIES", value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// Maximum number of live reads per second: 1 to 1000. Down to a tenth of it while status writes fail, so that a server
    /// in trouble is asked at most 20 times a second in all with the default.
    #[arg(
        long, env = "ROLLCALL_RESYNC_RATE", default_value_t = 15, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    pub resync_rate: u32,
    /// Maximum number of parents that are not ready and get metric series of their own.
    #[arg(long, env = "ROLLCALL_METRICS_PARENTS", default_value_t = 500, value_name = "N")]
    pub metrics_parents: usize,
    /// Creates Kubernetes Events when a parent's answer changes; never in shadow mode.
    #[arg(long, env = "ROLLCALL_EVENTS", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub events: bool,
    /// Leader election.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Object store that keeps every transition: s3://bucket/prefix, gs://…, az://…, file:///folder. Credentials are
    /// found as the store's own tools find them: AWS_…, GOOGLE_…, AZURE_…, or the machine's identity.
    #[arg(long, env = "ROLLCALL_HISTORY", value_name = "URL")]
    pub history: Option<String>,
    /// Maximum time transitions are batched before they are uploaded. After an idle period it is 5 s: up to twelve
    /// batches in a row are uploaded that soon, later ones at this interval.
    #[arg(long, env = "ROLLCALL_HISTORY_FLUSH", default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub history_flush: Duration,
    /// What rollouts waited for.
    #[command(flatten)]
    pub rollouts: RolloutArgs,
    /// Seed of spread and jitter. Defaults to the start time.
    #[arg(long, env = "ROLLCALL_SEED", value_name = "N")]
    pub seed: Option<u64>,
    /// Log format. Defaults to text on a terminal and to JSON otherwise.
    #[arg(long, env = "ROLLCALL_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Log level, or directives such as `info,controller=debug`.
    #[arg(long, env = "ROLLCALL_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
}

/// Who may connect, and how.
#[derive(Args, Clone, Debug)]
pub struct ListenerArgs {
    /// Listen address of another listener with /livez and /readyz alone, over plain HTTP, which clients of the page
    /// cannot fill. Defaults to 0.0.0.0:8081 in a pod, and to none with a kubeconfig.
    #[arg(long, env = "ROLLCALL_PROBE_LISTEN", value_name = "ADDR")]
    pub probe_listen: Option<SocketAddr>,
    /// Maximum number of connections to --listen. A new one then takes the place of one that waits for a request.
    #[arg(long, env = "ROLLCALL_MAX_CONNECTIONS", default_value_t = 1_024, value_name = "N", value_parser = positive)]
    pub max_connections: usize,
    /// Maximum number of connections to --listen from one address (for IPv6: from one /64). Not applied on a loopback
    /// address.
    #[arg(
        long, env = "ROLLCALL_MAX_CONNECTIONS_PER_ADDRESS", default_value_t = 256, value_name = "N",
        value_parser = positive
    )]
    pub max_connections_per_address: usize,
    /// Requires a Kubernetes token for /metrics, whose user may `get` the nonResourceURL /metrics; never on a loopback
    /// address.
    #[arg(
        long, env = "ROLLCALL_METRICS_AUTH", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL"
    )]
    pub metrics_auth: bool,
    /// Audience that a token must be meant for. Defaults to the API server's own. Repeat the flag, or separate by
    /// commas, to accept any of several.
    #[arg(long, env = "ROLLCALL_TOKEN_AUDIENCE", value_delimiter = ',', value_name = "AUDIENCE")]
    pub token_audience: Vec<String>,
    /// Serves --listen over TLS with this certificate chain (PEM). Read again when it changes.
    #[arg(long, env = "ROLLCALL_TLS_CERT_FILE", value_name = "FILE", requires = "tls_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of --tls-cert-file (PEM). Read again when it changes.
    #[arg(long, env = "ROLLCALL_TLS_KEY_FILE", value_name = "FILE", requires = "tls_cert_file")]
    pub tls_key_file: Option<PathBuf>,
    /// Serves --listen over TLS with a certificate made at the start, unless --tls-cert-file is given.
    #[arg(long, env = "ROLLCALL_TLS_SELF_SIGNED")]
    pub tls_self_signed: bool,
}

/// What is told of rollouts that ended.
#[derive(Args, Clone, Debug, Default)]
pub struct RolloutArgs {
    /// Reads what each rollout waited for once its parent is ready, for the metric `rollcall_rollout_wait_seconds`: as
    /// `rollcall explain --slow` does, at most one rollout every 10 s. The page shows those of earlier generations too, and
    /// --history stores them.
    #[arg(long, env = "ROLLCALL_ROLLOUT_CAUSES")]
    pub rollout_causes: bool,
    /// OpenTelemetry collector that gets a trace of each rollout that is read, over OTLP/HTTP in JSON: http://HOST:4318.
    /// Rollouts are then read as with --rollout-causes.
    #[arg(long, env = "ROLLCALL_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Headers of requests to --otlp-endpoint, such as a token: name=value. Repeat the flag, or separate by commas.
    #[arg(
        long,
        env = "ROLLCALL_OTLP_HEADERS",
        value_delimiter = ',',
        value_name = "HEADER",
        hide_env_values = true,
        requires = "otlp_endpoint"
    )]
    pub otlp_headers: Vec<String>,
}

/// Leader election between several replicas.
#[derive(Args, Clone, Debug, Default)]
pub struct LeaseArgs {
    /// Enables leader election: only the replica that holds the lease writes, the others stand by. Defaults to true in
    /// a pod and to false with a kubeconfig.
    #[arg(
        long, env = "ROLLCALL_LEADER_ELECT", value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    pub leader_elect: Option<bool>,
    /// Namespace of the lease. Defaults to the namespace of the pod or of the kubeconfig's context.
    #[arg(long, env = "ROLLCALL_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Name of the lease. Several releases in one namespace need different names.
    #[arg(long, env = "ROLLCALL_LEASE_NAME", default_value = "rollcall", value_name = "NAME")]
    pub lease_name: String,
    /// Name of this replica in the lease. Defaults to the host name. A number that differs at each start is appended.
    #[arg(long, env = "ROLLCALL_IDENTITY", value_name = "NAME")]
    pub identity: Option<String>,
}

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 100ms, 30s, 10m"))
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "it must be a number greater than 0".to_owned())
}

impl ListenerArgs {
    /// Listen address of the probes, if they have a listener of their own.
    pub(crate) fn probe_address(&self, in_pod: bool) -> Option<SocketAddr> {
        self.probe_listen.or_else(|| in_pod.then_some(DEFAULT_PROBE_ADDRESS))
    }

    /// Limits of a listener at this address.
    pub(crate) fn connection_limits(&self, listen: SocketAddr) -> ConnectionLimits {
        let total = self.max_connections;
        // All clients of a loopback address have the same one.
        let per_address = if listen.ip().is_loopback() { total } else { self.max_connections_per_address };
        ConnectionLimits { total, per_address }
    }

    /// Certificate of --listen; `None` without TLS.
    pub(crate) fn certificate_source(&self, names: Vec<String>) -> Option<CertificateSource> {
        if let (Some(certificate), Some(key)) = (self.tls_cert_file.clone(), self.tls_key_file.clone()) {
            return Some(CertificateSource::Files { certificate, key });
        }
        self.tls_self_signed.then_some(CertificateSource::SelfSigned(names))
    }
}

impl RolloutArgs {
    /// Whether rollouts are read.
    pub(crate) fn reads_rollouts(&self) -> bool {
        self.rollout_causes || self.otlp_endpoint.is_some()
    }
}

impl LeaseArgs {
    /// Lease that this process has to hold before it writes; `None` without leader election.
    pub fn lease_to_hold(&self, in_pod: bool, home: &str, now: Time) -> Option<LeaseName> {
        if !self.leader_elect.unwrap_or(in_pod) {
            return None;
        }
        let host = self.identity.clone().unwrap_or_else(crate::event_recorder::host_name);
        Some(LeaseName {
            namespace: self.lease_namespace.clone().unwrap_or_else(|| home.to_owned()),
            name: self.lease_name.clone(),
            // A restarted process is another candidate: it does not know when its predecessor last renewed.
            identity: format!("{host}_{}_{:x}", std::process::id(), now.0),
        })
    }
}
