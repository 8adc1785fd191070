//! The cluster that a command or the service works on.

use std::path::PathBuf;

use clap::Args;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::proxy::{ProxyVariables, parse_proxy};

/// File of the authorities that a pod's service account is to trust, which the cluster replaces when they change.
const POD_AUTHORITIES: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// Selects the cluster, as kubectl does.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Path of the kubeconfig file. Defaults to $KUBECONFIG, then ~/.kube/config, then the pod's service account.
    #[arg(long, env = "ROLLCALL_KUBECONFIG", global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Defaults to its current context.
    #[arg(long, env = "ROLLCALL_CONTEXT", global = true, value_name = "NAME")]
    pub context: Option<String>,
}

/// The cluster that was selected.
pub struct SelectedCluster {
    /// Configuration of its clients.
    pub config: kube::Config,
    /// It is the one in which this process runs, and nothing selected another.
    pub in_pod: bool,
    /// File of the authorities that `config` trusts; `None` where the kubeconfig holds them itself, or there are none.
    pub authorities: Option<PathBuf>,
}

impl ClusterArgs {
    /// Client configuration for the selected cluster.
    pub async fn client_config(&self) -> anyhow::Result<kube::Config> {
        Ok(self.select_cluster().await?.config)
    }

    /// The selected cluster, and how it was selected.
    pub async fn select_cluster(&self) -> anyhow::Result<SelectedCluster> {
        use anyhow::Context;
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        if self.kubeconfig.is_none()
            && self.context.is_none()
            && kube::Config::from_kubeconfig(&options).await.is_err()
            && let Ok(config) = kube::Config::incluster()
        {
            return Ok(SelectedCluster { config, in_pod: true, authorities: Some(POD_AUTHORITIES.into()) });
        }
        let (read, place) = self.read_kubeconfig()?;
        let cluster = selected_cluster(&read, self.context.as_deref());
        let authorities = cluster.and_then(authorities_file);
        let named_proxy = cluster.and_then(|cluster| cluster.proxy_url.clone()).filter(|url| !url.is_empty());
        let known = read.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>().join(", ");
        let config = kube::Config::from_custom_kubeconfig(read, &options).await;
        let mut config = config.with_context(|| format!("failed to use {place}; its contexts: {known}"))?;
        // kube itself asks `NO_PROXY` about the proxy, and not about the server.
        config.proxy_url = match named_proxy {
            Some(url) => {
                // It may hold credentials.
                Some(parse_proxy(&url).with_context(|| format!("proxy-url of {place} is no URL"))?)
            }
            None => ProxyVariables::from_environment().proxy_to(&config.cluster_url),
        };
        Ok(SelectedCluster { config, in_pod: false, authorities })
    }

    /// Reads the selected kubeconfig. Also returns a description of its origin for error messages.
    fn read_kubeconfig(&self) -> anyhow::Result<(Kubeconfig, String)> {
        use anyhow::Context;
        if let Some(path) = &self.kubeconfig {
            let place = format!("kubeconfig {}", path.display());
            let read = Kubeconfig::read_from(path).map_err(|error| match error {
                KubeconfigError::ReadConfig(source, _) => anyhow::Error::from(source),
                other => other.into(),
            });
            return Ok((read.with_context(|| format!("failed to read {place}"))?, place));
        }
        let read = Kubeconfig::read();
        let none = matches!(&read, Err(KubeconfigError::FindPath | KubeconfigError::ReadConfig(..)));
        let read = read.map_err(|error| match error {
            // Its source is in its text, too.
            KubeconfigError::ReadConfig(source, path) => anyhow::anyhow!("{}: {source}", path.display()),
            other => other.into(),
        });
        let read = read.context(if none {
            "no cluster configured: found neither a kubeconfig ($KUBECONFIG, ~/.kube/config, --kubeconfig) \
             nor a pod's service account; `rollcall demo` runs without a cluster"
        } else {
            "failed to read the kubeconfig"
        })?;
        Ok((read, "the kubeconfig".to_owned()))
    }
}

/// The cluster of a context, or of the current one.
fn selected_cluster<'k>(kubeconfig: &'k Kubeconfig, context: Option<&str>) -> Option<&'k Cluster> {
    let selected = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|of| of.name == selected)?.context.as_ref()?;
    kubeconfig.clusters.iter().find(|of| of.name == context.cluster)?.cluster.as_ref()
}

/// The file of authorities that a cluster names.
fn authorities_file(cluster: &Cluster) -> Option<PathBuf> {
    // What is in the kubeconfig itself comes first.
    let named =
        cluster.certificate_authority.as_ref().filter(|_| cluster.certificate_authority_data.is_none());
    named.map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_authorities_are_read_again_only_where_a_file_of_the_selected_cluster_holds_them() {
        let context = |name: &str| json!({ "name": name, "context": { "cluster": name, "user": "u" } });
        let contexts: Vec<_> = ["file", "inline", "both", "gone"].into_iter().map(context).collect();
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "current-context": "file",
            "contexts": contexts,
            "clusters": [
                { "name": "file", "cluster": { "certificate-authority": "/pki/ca.crt" } },
                { "name": "inline", "cluster": { "certificate-authority-data": "eA==" } },
                { "name": "both", "cluster": {
                    "certificate-authority": "/pki/ca.crt", "certificate-authority-data": "eA==" } },
            ],
        }))
        .unwrap();
        let found = [None, Some("inline"), Some("both"), Some("gone"), Some("unknown")]
            .map(|context| selected_cluster(&kubeconfig, context).and_then(authorities_file));
        assert_eq!(found, [Some("/pki/ca.crt".into()), None, None, None, None]);
    }
}
