//! The way to a cluster. Before anything else it is asked whether it knows who asks, so that what is wrong with a kubeconfig
//! is said as such, with the way out, and not as a list of kinds that cannot be read.

mod certificate;

use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use controller::args::ClusterArgs;
use kube::client::AuthError;
use kube::config::AuthInfo;
use readiness::Time;
use serde_json::Value;

/// What everybody can do about it.
const WAY_OUT: &str = "name others by --kubeconfig or --context";

/// A client of the cluster that is meant, and the namespace that its kubeconfig names.
pub(crate) async fn connect(cluster: &ClusterArgs) -> anyhow::Result<(kube::Client, String)> {
    let config = cluster.config().await?;
    let who = Who::of(&config.auth_info, &config.cluster_url.to_string());
    let namespace = config.default_namespace.clone();
    let client = watcher::client(config).map_err(|error| who.told(error))?;
    let question = http::Request::get("/version").body(Vec::new())?;
    match client.request_text(question).await {
        // It knows who asks, whatever it thinks of the question.
        Ok(_) => Ok((client, namespace)),
        Err(kube::Error::Api(status)) if status.code != 401 => Ok((client, namespace)),
        Err(error) => Err(who.told(error)),
    }
}

/// Whoever a kubeconfig says to be. Nothing in it is secret.
struct Who {
    url: String,
    how: How,
    /// When these credentials end, where they say so themselves.
    until: Option<Time>,
}

#[derive(Debug, PartialEq, Eq)]
enum How {
    Certificate,
    Token,
    /// A program that is run for them, and how to come by it.
    Plugin(String, Option<String>),
    /// Something older: a provider, or a password.
    Other,
    Nothing,
}

impl Who {
    fn of(auth: &AuthInfo, url: &str) -> Who {
        let (how, until) = if let Some(exec) = &auth.exec {
            (How::Plugin(exec.command.clone().unwrap_or_default(), exec.install_hint.clone()), None)
        } else if let Some(pem) = certificate_of(auth) {
            (How::Certificate, certificate::until(&pem))
        } else if let Some(token) = token_of(auth) {
            (How::Token, token_until(&token))
        } else if auth.auth_provider.is_some() || auth.username.is_some() {
            (How::Other, None)
        } else {
            (How::Nothing, None)
        };
        Who { url: url.trim_end_matches('/').to_owned(), how, until }
    }

    /// What is wrong, and what can be done about it.
    fn told(&self, error: kube::Error) -> anyhow::Error {
        let causes: Vec<&(dyn std::error::Error + 'static)> =
            anyhow::Chain::new(&error as &(dyn std::error::Error + 'static)).collect();
        if let Some(auth) = causes.iter().find_map(|cause| cause.downcast_ref::<AuthError>()) {
            return self.plugin(auth);
        }
        if matches!(&error, kube::Error::Api(status) if status.code == 401) {
            return anyhow!("{} does not accept these credentials (401): {}", self.url, self.refused());
        }
        let root = causes.last().map(ToString::to_string).unwrap_or_default();
        if root.contains("certificate") || root.contains("alert") {
            let expired = self.expired().map_or(String::new(), |expired| format!("; {expired}"));
            return anyhow!(
                "no safe connection to {}: {root}{expired}; check certificate-authority and the client certificate of the kubeconfig, or {WAY_OUT}",
                self.url
            );
        }
        if matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_)) {
            return anyhow!(
                "failed to reach the API server at {}: {root}; is the cluster up, and is this its address? Another one: --kubeconfig, --context",
                self.url
            );
        }
        anyhow::Error::new(error).context(format!("failed to ask the cluster at {}", self.url))
    }

    /// What to do about a 401.
    fn refused(&self) -> String {
        let anew = match &self.how {
            How::Certificate => "ask for a new client certificate".to_owned(),
            How::Plugin(command, _) => format!("log in anew with {command}, which gave them"),
            How::Nothing => return format!("the kubeconfig has none for this context; {WAY_OUT}"),
            How::Token | How::Other => "log in anew".to_owned(),
        };
        match self.expired() {
            Some(expired) => format!("{expired}; {anew}, or {WAY_OUT}"),
            None => format!("they are wrong or have expired; {anew}, or {WAY_OUT}"),
        }
    }

    fn expired(&self) -> Option<String> {
        let until = self.until.filter(|until| *until < crate::eval::now())?;
        let what = if self.how == How::Certificate { "client certificate" } else { "token" };
        Some(format!("the {what} of the kubeconfig expired at {until}"))
    }

    /// What became of the program that was to give credentials. What it has printed may be secret.
    fn plugin(&self, error: &AuthError) -> anyhow::Error {
        let How::Plugin(command, hint) = &self.how else {
            return anyhow!("failed to use the credentials of the kubeconfig: {error}; {WAY_OUT}");
        };
        match error {
            AuthError::AuthExecStart(why) => {
                let hint = hint.as_ref().map_or("install it".to_owned(), |hint| hint.trim().to_owned());
                anyhow!(
                    "the kubeconfig gets its credentials from {command}, which cannot be run: {why}; {hint}, or {WAY_OUT}"
                )
            }
            AuthError::AuthExecRun { out, .. } => {
                let said = String::from_utf8_lossy(&out.stderr);
                let said = said.lines().rev().find(|line| !line.trim().is_empty());
                let said = said.map_or(String::new(), |said| format!(" ({})", said.trim()));
                anyhow!(
                    "the kubeconfig gets its credentials from {command}, which failed with {}{said}; log in anew with it, or {WAY_OUT}",
                    out.status
                )
            }
            _ => anyhow!(
                "the kubeconfig gets its credentials from {command}, which gave none that can be used; run it by hand to see, or {WAY_OUT}"
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
    // The type does not show it but in writing.
    let written = serde_json::to_value(auth).ok()?["token"].as_str().map(str::to_owned);
    written.or_else(file)
}

/// When a token ends, where it is one that says so (a JWT). Whether it is genuine is for the server to say.
fn token_until(token: &str) -> Option<Time> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(Time(claims["exp"].as_i64()?.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn who(user: &Value) -> Who {
        Who::of(&serde_json::from_value(user.clone()).unwrap(), "https://cluster:6443/")
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
        let told = who(&json!({ "token": format!("e30.{claims}.c2ln") })).told(unauthorized()).to_string();
        assert_eq!(
            told,
            "https://cluster:6443 does not accept these credentials (401): the token of the kubeconfig expired at 2026-01-01T00:00:00Z; log in anew, or name others by --kubeconfig or --context"
        );
        for token in ["opaque", "a.b.c", "e30.e30.e30", "", "..", "é.é.é"] {
            let told = who(&json!({ "token": token })).told(unauthorized()).to_string();
            assert!(told.contains("they are wrong or have expired; log in anew"), "{told}");
        }
    }

    #[test]
    fn each_kind_of_credentials_has_its_own_way_out() {
        let told = |user: &Value| who(user).told(unauthorized()).to_string();
        assert!(told(&json!({})).contains("the kubeconfig has none for this context"));
        assert!(told(&json!({ "username": "a", "password": "b" })).contains("log in anew"));
        let exec =
            json!({ "exec": { "command": "cloud-login", "apiVersion": "client.authentication.k8s.io/v1" } });
        assert!(told(&exec).contains("log in anew with cloud-login, which gave them"));
        let odd = json!({ "client-certificate-data": STANDARD.encode("no certificate") });
        assert!(told(&odd).contains("ask for a new client certificate"));
    }

    #[test]
    fn what_a_plugin_has_printed_is_never_shown() {
        let exec = who(&json!({ "exec": { "command": "cloud-login" } }));
        let out = std::process::Command::new("sh")
            .args(["-c", "echo secret; echo ' no session ' >&2; exit 3"])
            .output();
        let failed = AuthError::AuthExecRun { cmd: "sh".to_owned(), out: Box::new(out.unwrap()) };
        let told = exec.told(kube::Error::Auth(failed)).to_string();
        assert!(
            told.contains("from cloud-login, which failed with exit status: 3 (no session); log in anew"),
            "{told}"
        );
        assert!(!told.contains("secret"), "{told}");
    }
}
