//! The cluster that a command or the service works on.

use std::path::PathBuf;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

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
        let authorities = authorities_file(&read, self.context.as_deref());
        let known = read.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>().join(", ");
        let config = kube::Config::from_custom_kubeconfig(read, &options).await;
        let config = config.with_context(|| format!("failed to use {place}; its contexts: {known}"))?;
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

/// The file of authorities that the cluster of a context names.
fn authorities_file(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<PathBuf> {
    let selected = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|of| of.name == selected)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|of| of.name == context.cluster)?.cluster.as_ref()?;
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
            .map(|context| authorities_file(&kubeconfig, context));
        assert_eq!(found, [Some("/pki/ca.crt".into()), None, None, None, None]);
    }
}
