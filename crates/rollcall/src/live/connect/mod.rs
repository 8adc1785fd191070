//! Connects to a cluster. The first request asks the server to authenticate the client, so that a bad kubeconfig is
//! reported as such, with advice, and not as a list of kinds that cannot be read.

mod certificate;

use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use controller::args::ClusterArgs;
use kube::client::AuthError;
use kube::config::AuthInfo;
use readiness::Time;
use serde_json::Value;

/// Advice that applies to every failure.
const OTHER_CREDENTIALS_HINT: &str = "choose others with --kubeconfig or --context";

/// Returns a client for the selected cluster and the default namespace of its kubeconfig.
pub(crate) async fn connect_cluster(cluster: &ClusterArgs) -> anyhow::Result<(kube::Client, String)> {
    let config = cluster.client_config().await?;
    let who = KubeconfigIdentity::from_auth_info(&config.auth_info, &config.cluster_url.to_string())
        .through_proxy(config.proxy_url.as_ref());
    let namespace = config.default_namespace.clone();
    let client = watcher::client_without_retries(config).map_err(|error| who.explain_error(error))?;
    let question = http::Request::get("/version").body(Vec::new())?;
    match client.request_text(question).await {
        // The server has authenticated the client; its answer does not matter.
        Ok(_) => Ok((client, namespace)),
        Err(kube::Error::Api(status)) if status.code != 401 => Ok((client, namespace)),
        Err(error) => Err(who.explain_error(error)),
    }
}

/// The identity that a kubeconfig claims. Contains nothing secret.
struct KubeconfigIdentity {
    url: String,
    /// Address of the proxy that leads there, without its credentials.
    proxy: Option<String>,
    credentials: CredentialKind,
    /// Expiry of the credentials, if they state one.
    expires_at: Option<Time>,
}

#[derive(Debug, PartialEq, Eq)]
enum CredentialKind {
    Certificate,
    Token,
    /// A credential plugin: the program that is run, and the hint how to install it.
    Plugin(String, Option<String>),
    /// An older method: an auth provider or a password.
    Other,
    Nothing,
}

impl KubeconfigIdentity {
    fn from_auth_info(auth: &AuthInfo, url: &str) -> KubeconfigIdentity {
        let (how, until) = if let Some(exec) = &auth.exec {
            (
                CredentialKind::Plugin(exec.command.clone().unwrap_or_default(), exec.install_hint.clone()),
                None,
            )
        } else if let Some(pem) = certificate_of(auth) {
            (CredentialKind::Certificate, certificate::certificate_expiry(&pem))
        } else if let Some(token) = token_of(auth) {
            (CredentialKind::Token, token_expiry(&token))
        } else if auth.auth_provider.is_some() || auth.username.is_some() {
            (CredentialKind::Other, None)
        } else {
            (CredentialKind::Nothing, None)
        };
        let url = url.trim_end_matches('/').to_owned();
        KubeconfigIdentity { url, proxy: None, credentials: how, expires_at: until }
    }

    /// The same, through this proxy.
    fn through_proxy(mut self, proxy: Option<&http::Uri>) -> KubeconfigIdentity {
        self.proxy = proxy.map(controller::args::proxy_address);
        self
    }

    /// Returns an error that says what is wrong and what to do about it.
    fn explain_error(&self, error: kube::Error) -> anyhow::Error {
        let causes: Vec<&(dyn std::error::Error + 'static)> =
            anyhow::Chain::new(&error as &(dyn std::error::Error + 'static)).collect();
        if let Some(auth) = causes.iter().find_map(|cause| cause.downcast_ref::<AuthError>()) {
            return self.plugin_error(auth);
        }
        if matches!(&error, kube::Error::Api(status) if status.code == 401) {
            return anyhow!(
                "{} does not accept these credentials (401): {}",
                self.url,
                self.refused_advice()
            );
        }
        let root = causes.last().map(ToString::to_string).unwrap_or_default();
        if root.contains("certificate") || root.contains("alert") {
            let expired = self.expiry_text().map_or(String::new(), |expired| format!("; {expired}"));
            return anyhow!(
                "no safe connection to {}: {root}{expired}; check certificate-authority and the client certificate of the kubeconfig, or {OTHER_CREDENTIALS_HINT}",
                self.url
            );
        }
        if matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_)) {
            let through = self.proxy.as_ref().map_or(String::new(), |proxy| {
                format!(" through the proxy {proxy}, which proxy-url of the kubeconfig or HTTPS_PROXY names")
            });
            return anyhow!(
                "failed to reach the API server at {}{through}: {root}; check that the cluster is up and that this is its address, or choose another with --kubeconfig or --context",
                self.url
            );
        }
        anyhow::Error::new(error).context(format!("failed to query the cluster at {}", self.url))
    }

    /// Returns the advice for a 401.
    fn refused_advice(&self) -> String {
        let advice = match &self.credentials {
            CredentialKind::Certificate => "ask for a new client certificate".to_owned(),
            CredentialKind::Plugin(command, _) => format!("log in again with {command}, which provided them"),
            CredentialKind::Nothing => {
                return format!("the kubeconfig has none for this context; {OTHER_CREDENTIALS_HINT}");
            }
            CredentialKind::Token | CredentialKind::Other => "log in again".to_owned(),
        };
        match self.expiry_text() {
            Some(expired) => format!("{expired}; {advice}, or {OTHER_CREDENTIALS_HINT}"),
            None => format!("they are wrong or have expired; {advice}, or {OTHER_CREDENTIALS_HINT}"),
        }
    }

    fn expiry_text(&self) -> Option<String> {
        let until = self.expires_at.filter(|until| *until < crate::eval::current_time())?;
        let what =
            if self.credentials == CredentialKind::Certificate { "client certificate" } else { "token" };
        Some(format!("the {what} of the kubeconfig expired at {until}"))
    }

    /// Explains the failure of a credential plugin. Its output is omitted, as it may be secret.
    fn plugin_error(&self, error: &AuthError) -> anyhow::Error {
        let CredentialKind::Plugin(command, hint) = &self.credentials else {
            return anyhow!(
                "failed to use the credentials of the kubeconfig: {error}; {OTHER_CREDENTIALS_HINT}"
            );
        };
        match error {
            AuthError::AuthExecStart(why) => {
                let hint = hint.as_ref().map_or("install it".to_owned(), |hint| hint.trim().to_owned());
                anyhow!(
                    "the kubeconfig gets its credentials from {command}, which cannot be run: {why}; {hint}, or {OTHER_CREDENTIALS_HINT}"
                )
            }
            AuthError::AuthExecRun { out, .. } => {
                let stderr = String::from_utf8_lossy(&out.stderr);
                let stderr = stderr.lines().rev().find(|line| !line.trim().is_empty());
                let stderr = stderr.map_or(String::new(), |stderr| format!(" ({})", stderr.trim()));
                anyhow!(
                    "the kubeconfig gets its credentials from {command}, which failed with {}{stderr}; log in again with it, or {OTHER_CREDENTIALS_HINT}",
                    out.status
                )
            }
            _ => anyhow!(
                "the kubeconfig gets its credentials from {command}, which provided no usable ones; run it by hand to see why, or {OTHER_CREDENTIALS_HINT}"
            ),
        }
    }
}

fn certificate_of(auth: &AuthInfo) -> Option<Vec<u8>> {
    match (&auth.client_certificate_data, &auth.client_certificate) {
        (Some(data), _) => STANDARD.decode(data.trim()).ok(),
        (None, Some(file)) => std::fs::read(file).ok(),
        (None, None) => None,
    }
}

fn token_of(auth: &AuthInfo) -> Option<String> {
    let file = || std::fs::read_to_string(auth.token_file.as_ref()?).ok();
    // The secret type reveals its content only when serialized.
    let written = serde_json::to_value(auth).ok()?["token"].as_str().map(str::to_owned);
    written.or_else(file)
}

/// Returns the expiry of a token that states one (a JWT). Its signature is left to the server to verify.
fn token_expiry(token: &str) -> Option<Time> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(Time(claims["exp"].as_i64()?.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn who(user: &Value) -> KubeconfigIdentity {
        KubeconfigIdentity::from_auth_info(
            &serde_json::from_value(user.clone()).unwrap(),
            "https://cluster:6443/",
        )
    }

    fn unauthorized() -> kube::Error {
        let status =
            json!({ "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401 });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn a_token_that_says_when_it_ends_is_taken_by_its_word() {
        let claims = URL_SAFE_NO_PAD
            .encode(json!({ "exp": 1_767_225_600, "sub": "system:serviceaccount:a:b" }).to_string());
        let told =
            who(&json!({ "token": format!("e30.{claims}.c2ln") })).explain_error(unauthorized()).to_string();
        assert_eq!(
            told,
            "https://cluster:6443 does not accept these credentials (401): the token of the kubeconfig expired at 2026-01-01T00:00:00Z; log in again, or choose others with --kubeconfig or --context"
        );
        for token in ["opaque", "a.b.c", "e30.e30.e30", "", "..", "é.é.é"] {
            let told = who(&json!({ "token": token })).explain_error(unauthorized()).to_string();
            assert!(told.contains("they are wrong or have expired; log in again"), "{told}");
        }
    }

    #[test]
    fn each_kind_of_credentials_has_its_own_way_out() {
        let told = |user: &Value| who(user).explain_error(unauthorized()).to_string();
        assert!(told(&json!({})).contains("the kubeconfig has none for this context"));
        assert!(told(&json!({ "username": "a", "password": "b" })).contains("log in again"));
        let exec =
            json!({ "exec": { "command": "cloud-login", "apiVersion": "client.authentication.k8s.io/v1" } });
        assert!(told(&exec).contains("log in again with cloud-login, which provided them"));
        let odd = json!({ "client-certificate-data": STANDARD.encode("no certificate") });
        assert!(told(&odd).contains("ask for a new client certificate"));
    }

    #[test]
    fn a_proxy_on_the_way_is_named_without_its_credentials() {
        let proxy = "http://me:secret@proxy:3128".parse().unwrap();
        let failed = kube::Error::Service("unsuccessful tunnel".into());
        let told = who(&json!({})).through_proxy(Some(&proxy)).explain_error(failed).to_string();
        assert!(told.starts_with(
            "failed to reach the API server at https://cluster:6443 through the proxy proxy:3128, "
        ));
        assert!(!told.contains("secret"), "{told}");
    }

    #[test]
    fn what_a_plugin_has_printed_is_never_shown() {
        let exec = who(&json!({ "exec": { "command": "cloud-login" } }));
        let out = std::process::Command::new("sh")
            .args(["-c", "echo secret; echo ' no session ' >&2; exit 3"])
            .output();
        let failed = AuthError::AuthExecRun { cmd: "sh".to_owned(), out: Box::new(out.unwrap()) };
        let told = exec.explain_error(kube::Error::Auth(failed)).to_string();
        assert!(
            told.contains("from cloud-login, which failed with exit status: 3 (no session); log in again"),
            "{told}"
        );
        assert!(!told.contains("secret"), "{told}");
    }
}
