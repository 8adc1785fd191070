//! Who asks, and what may they see? Kubernetes answers both: by TokenReview and by SubjectAccessReview.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use futures::StreamExt;
use readiness::Time;
use ring::digest::{SHA256, digest};
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tracing::warn;

use super::refusal::Refusal;
use crate::clock::Clock;

/// A yes is good for so long, and so is who somebody is.
const YES: Duration = Duration::from_secs(60);
/// A no for less: somebody may be about to grant it.
const NO: Duration = Duration::from_secs(10);
/// So many answers of a sort are kept.
const KEPT: usize = 8_192;
/// So many questions are asked of the server at a time.
const AT_ONCE: usize = 8;
/// So many new questions one request may give rise to.
const PER_REQUEST: usize = 256;
/// The server may take so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Somebody, as Kubernetes knows them: `username`, `uid`, `groups`, `extra`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User(Arc<str>);

/// Who asks.
#[derive(Clone, Debug)]
pub(super) enum Viewer {
    /// Whoever can reach the loopback address of this machine.
    Local,
    /// Somebody with a token.
    User(User),
}

/// A right that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    /// `get` or `list`.
    pub(super) verb: &'static str,
    /// API group.
    pub(super) group: String,
    /// Plural name of the kind.
    pub(super) resource: String,
    /// Namespace; empty for all.
    pub(super) namespace: String,
    /// One object; empty for all.
    pub(super) name: String,
}

/// Answers, for a while.
#[derive(Debug)]
struct Kept<K, V>(Mutex<BTreeMap<K, (V, Time)>>);

impl<K: Ord, V: Clone> Kept<K, V> {
    fn get(&self, key: &K, now: Time) -> Option<V> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    fn put(&self, key: K, value: V, until: Time, now: Time) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.retain(|_, (_, until)| now < *until);
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, (value, until));
    }
}

/// Asks Kubernetes, and remembers for a moment.
pub(super) struct Gate {
    client: kube::Client,
    clock: Clock,
    /// It listens on loopback: who gets there is on this machine, or was let in by somebody who is.
    local: bool,
    users: Kept<[u8; 32], Option<User>>,
    rights: Kept<(User, Right), bool>,
    turns: Semaphore,
}

impl Gate {
    pub(super) fn new(client: kube::Client, clock: Clock, local: bool) -> Gate {
        Gate {
            client,
            clock,
            local,
            users: Kept(Mutex::default()),
            rights: Kept(Mutex::default()),
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Who asks?
    pub(super) async fn who(&self, headers: &HeaderMap) -> Result<Viewer, Refusal> {
        if self.local {
            return if is_local(headers) { Ok(Viewer::Local) } else { Err(Refusal::Misdirected) };
        }
        let token = bearer(headers).ok_or(Refusal::NoToken)?;
        // Tokens are not kept, not even for a moment.
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(known) = self.users.get(&key, self.clock.now()) {
            return known.map(Viewer::User).ok_or(Refusal::WrongToken);
        }
        let user = self.review(token).await?;
        let now = self.clock.now();
        self.users.put(key, user.clone(), now + if user.is_some() { YES } else { NO }, now);
        user.map(Viewer::User).ok_or(Refusal::WrongToken)
    }

    async fn review(&self, token: &str) -> Result<Option<User>, Refusal> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
        });
        let answer = self.ask("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        let status = &answer["status"];
        let known = status["authenticated"] == true && status["user"].is_object();
        Ok(known.then(|| User(status["user"].to_string().into())))
    }

    /// Which of these rights does `viewer` have? Also, whether some were not asked for, because they were too many.
    pub(super) async fn allowed(
        &self,
        viewer: &Viewer,
        rights: Vec<Right>,
    ) -> Result<(FxHashSet<usize>, bool), Refusal> {
        let Viewer::User(user) = viewer else { return Ok(((0..rights.len()).collect(), false)) };
        let (mut allowed, mut open) = (FxHashSet::default(), Vec::new());
        let now = self.clock.now();
        for (at, right) in rights.into_iter().enumerate() {
            let question = (user.clone(), right);
            match self.rights.get(&question, now) {
                Some(true) => _ = allowed.insert(at),
                Some(false) => {}
                None => open.push((at, question)),
            }
        }
        let cut = open.len() > PER_REQUEST;
        open.truncate(PER_REQUEST);
        let answers = futures::stream::iter(open)
            .map(|(at, question)| async move { (at, self.decide(question).await) })
            .buffer_unordered(AT_ONCE);
        let answers: Vec<_> = answers.collect().await;
        for (at, answer) in answers {
            if answer? {
                allowed.insert(at);
            }
        }
        Ok((allowed, cut))
    }

    /// Has `viewer` this right?
    pub(super) async fn may(&self, viewer: &Viewer, right: Right) -> Result<bool, Refusal> {
        Ok(!self.allowed(viewer, vec![right]).await?.0.is_empty())
    }

    async fn decide(&self, question: (User, Right)) -> Result<bool, Refusal> {
        let (user, right) = &question;
        let mut spec: Value = serde_json::from_str(&user.0).unwrap_or_default();
        // A TokenReview says `username`, a SubjectAccessReview wants `user`.
        if let Some(name) = spec.as_object_mut().and_then(|spec| spec.remove("username")) {
            spec["user"] = name;
        }
        spec["resourceAttributes"] = json!({
            "verb": right.verb, "group": right.group, "resource": right.resource,
            "namespace": right.namespace, "name": right.name,
        });
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
        });
        let answer = self.ask("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
        let yes = answer["status"]["allowed"] == true;
        let now = self.clock.now();
        self.rights.put(question, yes, now + if yes { YES } else { NO }, now);
        Ok(yes)
    }

    async fn ask(&self, path: &str, review: &Value) -> Result<Value, Refusal> {
        let request = http::Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(review.to_string().into_bytes()).map_err(|_| Refusal::Unreachable)?;
        let asked = async {
            // Never closed.
            let _turn = self.turns.acquire().await.ok()?;
            Some(self.client.request::<Value>(request).await)
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Some(Ok(answer))) => Ok(answer),
            Ok(Some(Err(kube::Error::Api(status)))) if status.code == 403 => {
                warn!(
                    path,
                    "not permitted to ask who may see the page: `rollcall rbac` prints what to grant"
                );
                Err(Refusal::MayNotAsk)
            }
            Ok(Some(Err(error))) => {
                warn!(path, %error, "failed to ask who may see the page");
                Err(Refusal::Unreachable)
            }
            _ => Err(Refusal::Unreachable),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A page of somewhere else must not get here by a name that its owner lets point at this machine.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = name.parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn names_of_this_machine_are_local_and_others_are_not() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:80", "127.8.8.8", "[::1]:8080", "LocalHost"] {
            assert!(is_local(&headers(header::HOST, host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8080", "10.0.0.1", "[2001:db8::1]:80", ""] {
            assert!(!is_local(&headers(header::HOST, host)), "{host}");
        }
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        let token = |value: &str| bearer(&headers(header::AUTHORIZATION, value)).map(str::to_owned);
        assert_eq!(token("Bearer abc.def"), Some("abc.def".to_owned()));
        assert_eq!(token("bearer  abc "), Some("abc".to_owned()));
        for value in ["Basic abc", "Bearer ", "Bearer", ""] {
            assert_eq!(token(value), None, "{value}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_ends() {
        let kept = Kept(Mutex::default());
        for key in 0..3 * KEPT {
            kept.put(key, true, Time(100), Time(0));
            assert!(kept.0.lock().unwrap().len() <= KEPT);
        }
        assert_eq!(kept.get(&(3 * KEPT - 1), Time(99)), Some(true));
        assert_eq!(kept.get(&(3 * KEPT - 1), Time(100)), None);
    }
}
