//! Everything that checks look at, read once.

use std::collections::{BTreeMap, BTreeSet};

use controller::policies::Compiled;
use controller::rbac::{Crds, needs};
use futures::{StreamExt, stream};
use readiness::Time;
use serde_json::{Value, json};
use watcher::{ApiKind, Cause, LookError, look, look_all, look_head, look_heads, resolve};

use super::logged::{self, Logged};
use super::seen::Seen;
use crate::text::say;

/// So many kinds are listed, or rights asked about, at a time.
const AT_ONCE: usize = 4;

/// So many owners are asked for by name.
const ASKED: usize = 200;

/// Kinds that are looked at whatever the policies name.
const ALWAYS: [(&str, &str); 4] =
    [("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "Job"), ("", "Pod")];

/// The same, but only their metadata: what they hold is none of its business, and may be secret.
const HEADS: [(&str, &str); 3] = [("", "Secret"), ("", "ConfigMap"), ("", "Service")];

/// What was read. Checks are functions of this and nothing else.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) now: Time,
    pub(super) policies: Vec<(String, Compiled)>,
    /// Policies that are not valid, and why.
    pub(super) broken: Vec<(String, String)>,
    /// What the service says against a policy: its name, the condition and its words.
    pub(super) told: Vec<(String, String)>,
    pub(super) crds: Vec<Value>,
    pub(super) objects: Vec<Seen>,
    /// Kinds of policies that the server does not serve: group and kind.
    pub(super) absent: BTreeSet<(String, String)>,
    /// Kinds of which every object in every namespace was seen.
    pub(super) whole: BTreeSet<(String, String)>,
    /// Rights that are lacking, as `patch databases/status.example.com`.
    pub(super) denied: Vec<String>,
    /// Whose rights were asked about.
    pub(super) subject: String,
    /// Kinds about which Kopf posts what it logs.
    pub(super) logged: Logged,
    /// What could not be read, and why.
    pub(super) unread: BTreeMap<String, String>,
}

/// Whose rights are asked about.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// Of the kubeconfig.
    Own,
    /// A service account: namespace and name.
    Account(String, String),
}

impl World {
    /// The kinds that CRDs define.
    pub(super) fn custom(&self) -> BTreeSet<(String, String)> {
        self.crds.iter().filter_map(kind_of).collect()
    }

    /// The kinds that are parents: of policies, and of the CRDs whose objects own something here.
    pub(super) fn parents(&self) -> BTreeSet<(String, String)> {
        let owner = |owner: &watcher::wire::OwnerRef| {
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            (group.to_owned(), owner.kind.to_string())
        };
        let custom = self.custom();
        let owners = self.objects.iter().flat_map(|seen| &seen.meta.owners).map(owner);
        owners.filter(|kind| custom.contains(kind)).chain(self.ruled()).collect()
    }

    /// The kinds that policies have for parents.
    pub(super) fn ruled(&self) -> BTreeSet<(String, String)> {
        self.policies
            .iter()
            .map(|(_, policy)| (policy.parent.group.clone(), policy.parent.kind.clone()))
            .collect()
    }
}

/// Group and kind that a CRD defines.
pub(super) fn kind_of(crd: &Value) -> Option<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some((text(&crd["spec"]["group"])?, text(&crd["spec"]["names"]["kind"])?))
}

/// Reads a world.
pub(super) struct Reader {
    pub(super) client: kube::Client,
    /// Only this namespace.
    pub(super) namespace: Option<String>,
    pub(super) world: World,
}

impl Reader {
    /// Everything: policies are there already.
    pub(super) async fn read(mut self, subject: &Subject) -> World {
        self.crds().await;
        let places = self.places().await;
        let (total, known) = (places.len(), places.clone());
        let (client, namespace) = (self.client.clone(), self.namespace.clone());
        let lists = places.into_iter().map(|api| {
            let (client, namespace) = (client.clone(), namespace.clone());
            async move {
                let scope = namespace.filter(|_| api.namespaced);
                let listed = list(&client, &api, scope.as_deref()).await;
                (scope.is_none(), api, listed)
            }
        });
        let mut lists = stream::iter(lists).buffered(AT_ONCE);
        let mut refused = 0;
        while let Some((everywhere, api, listed)) = lists.next().await {
            match listed {
                Ok(listed) => {
                    self.world.objects.extend(listed);
                    if everywhere {
                        self.world.whole.insert((api.group, api.kind));
                    }
                }
                Err(error) => {
                    refused += 1;
                    self.unread(api.to_string(), &error);
                }
            }
        }
        if refused == total && total > 0 {
            say("nothing could be listed");
        }
        self.owners(&known).await;
        match logged::read(&self.client, self.namespace.as_deref()).await {
            Ok(logged) => self.world.logged = logged,
            Err(why) => _ = self.world.unread.insert("Event".to_owned(), why),
        }
        self.rights(subject).await;
        self.world
    }

    /// Kinds are listed one after the other: an owner that was not seen may have come since. It is asked for by its name.
    async fn owners(&mut self, known: &[ApiKind]) {
        let seen: BTreeSet<_> = self.world.objects.iter().map(|seen| seen.meta.uid.clone()).collect();
        let mut unseen = BTreeSet::new();
        for object in &self.world.objects {
            for owner in object.meta.owners.iter().filter(|owner| !seen.contains(&owner.uid)) {
                let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
                unseen.insert((
                    group.to_owned(),
                    owner.kind.clone(),
                    object.meta.namespace.clone(),
                    owner.name.clone(),
                ));
            }
        }
        for (group, kind, namespace, name) in unseen.into_iter().take(ASKED) {
            let Some(api) = known.iter().find(|api| api.group == group && *api.kind == *kind) else {
                continue;
            };
            let namespace = Some(&*namespace).filter(|_| api.namespaced);
            if let Ok(Some(owner)) = get(&self.client, api, namespace, &name).await
                && !seen.contains(&owner.meta.uid)
            {
                self.world.objects.push(owner);
            }
        }
    }

    fn unread(&mut self, what: String, error: &LookError) {
        let why = match error.cause {
            Cause::Forbidden => "you may not list it".to_owned(),
            _ => error.to_string(),
        };
        self.world.unread.insert(what, why);
    }

    async fn crds(&mut self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
        match self.client.request::<Value>(request).await {
            Ok(mut list) => {
                if let Value::Array(items) = list["items"].take() {
                    self.world.crds = items;
                }
            }
            Err(error) => {
                let what = "CustomResourceDefinition.apiextensions.k8s.io".to_owned();
                self.world.unread.insert(what, why(error));
            }
        }
    }

    /// Every kind that is to be listed.
    async fn places(&mut self) -> Vec<ApiKind> {
        let mut kinds: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
        for (_, policy) in &self.world.policies {
            let groups = policy.groups.iter().map(|group| &group.kind);
            for kind in groups.chain([&policy.parent]) {
                kinds.insert((kind.group.clone(), kind.kind.clone()), kind.version.clone());
            }
        }
        let named: BTreeSet<_> = kinds.keys().cloned().collect();
        for kind in self.world.crds.iter().filter_map(kind_of) {
            kinds.entry(kind).or_default();
        }
        for (group, kind) in ALWAYS.into_iter().chain(HEADS) {
            kinds.entry((group.to_owned(), kind.to_owned())).or_default();
        }
        let mut places = Vec::new();
        for ((group, kind), version) in kinds {
            match self.served(&group, version.as_deref(), &kind).await {
                Ok(Some(api)) => places.push(api),
                Ok(None) if named.contains(&(group.clone(), kind.clone())) => {
                    self.world.absent.insert((group, kind));
                }
                Ok(None) => {}
                Err(error) => {
                    let what = if group.is_empty() { kind } else { format!("{kind}.{group}") };
                    self.unread(what, &error);
                }
            }
        }
        places
    }

    /// What a CRD says need not be asked for.
    async fn served(
        &self,
        group: &str,
        version: Option<&str>,
        kind: &str,
    ) -> Result<Option<ApiKind>, LookError> {
        let crd = self
            .world
            .crds
            .iter()
            .find(|crd| crd["spec"]["group"] == group && crd["spec"]["names"]["kind"] == kind);
        match crd {
            Some(crd) => Ok(by_crd(crd, version)),
            None => resolve(&self.client, group, version, kind).await,
        }
    }

    /// Which of the rights that the policies need are lacking.
    async fn rights(&mut self, subject: &Subject) {
        self.world.subject = match subject {
            Subject::Own => "the identity of this kubeconfig".to_owned(),
            Subject::Account(namespace, name) => format!("ServiceAccount {namespace}/{name}"),
        };
        let compiled: Vec<Compiled> = self.world.policies.iter().map(|(_, policy)| policy.clone()).collect();
        let mut asked = Vec::new();
        for need in needs(&compiled, &Crds::read(&self.world.crds)) {
            for resource in &need.resources {
                for verb in need.verbs {
                    asked.push((need.group.clone(), resource.clone(), *verb));
                }
            }
        }
        let (client, namespace) = (self.client.clone(), self.namespace.clone());
        let answers = asked.into_iter().map(|(group, resource, verb)| {
            let review = review(subject, &group, &resource, verb, namespace.as_deref());
            let client = client.clone();
            async move { (group, resource, verb, allowed(&client, review).await) }
        });
        let mut answers = stream::iter(answers).buffered(AT_ONCE);
        while let Some((group, resource, verb, allowed)) = answers.next().await {
            let dot = if group.is_empty() { "" } else { "." };
            match allowed {
                Ok(true) => {}
                Ok(false) => self.world.denied.push(format!("{verb} {resource}{dot}{group}")),
                Err(why) => {
                    self.world.unread.insert("rights".to_owned(), why);
                    return;
                }
            }
        }
    }
}

/// Why a list was not given.
pub(super) fn why(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => "you may not list it".to_owned(),
        error => error.to_string(),
    }
}

fn head_only(api: &ApiKind) -> bool {
    HEADS.iter().any(|(group, kind)| api.group == *group && api.kind == *kind)
}

async fn list(client: &kube::Client, api: &ApiKind, namespace: Option<&str>) -> Result<Vec<Seen>, LookError> {
    if head_only(api) {
        let heads = look_heads::<Seen>(client, api, namespace).await?;
        return Ok(heads.into_iter().map(|seen| seen.of(api).head()).collect());
    }
    let all = look_all::<Seen>(client, api, namespace, None).await?;
    Ok(all.into_iter().map(|seen| seen.of(api)).collect())
}

async fn get(
    client: &kube::Client,
    api: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Seen>, LookError> {
    if head_only(api) {
        let head = look_head::<Seen>(client, api, namespace, name).await?;
        return Ok(head.map(|seen| seen.of(api).head()));
    }
    Ok(look::<Seen>(client, api, namespace, name).await?.map(|seen| seen.of(api)))
}

fn by_crd(crd: &Value, version: Option<&str>) -> Option<ApiKind> {
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut served = spec["versions"].as_array()?.iter().filter(|v| v["served"] == true);
    let found = match version {
        Some(version) => served.find(|v| v["name"] == version)?,
        None => served.clone().find(|v| v["storage"] == true).or_else(|| served.next())?,
    };
    Some(ApiKind {
        group: text(&spec["group"])?,
        version: text(&found["name"])?,
        kind: text(&spec["names"]["kind"])?,
        plural: text(&spec["names"]["plural"])?,
        namespaced: spec["scope"] == "Namespaced",
        has_status: !found["subresources"]["status"].is_null(),
    })
}

/// The path and body of a question about one right.
fn review(
    subject: &Subject,
    group: &str,
    resource: &str,
    verb: &str,
    namespace: Option<&str>,
) -> (&'static str, Value) {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let mut attributes = json!({ "group": group, "resource": resource, "verb": verb });
    if !subresource.is_empty() {
        attributes["subresource"] = json!(subresource);
    }
    if let Some(namespace) = namespace {
        attributes["namespace"] = json!(namespace);
    }
    let mut spec = json!({ "resourceAttributes": attributes });
    let (kind, path) = match subject {
        Subject::Own => ("SelfSubjectAccessReview", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        Subject::Account(home, name) => {
            spec["user"] = json!(format!("system:serviceaccount:{home}:{name}"));
            spec["groups"] = json!([
                "system:serviceaccounts",
                format!("system:serviceaccounts:{home}"),
                "system:authenticated",
            ]);
            ("SubjectAccessReview", "/apis/authorization.k8s.io/v1/subjectaccessreviews")
        }
    };
    (path, json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec }))
}

async fn allowed(client: &kube::Client, (path, review): (&str, Value)) -> Result<bool, String> {
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
    let request = request.body(review.to_string().into_bytes()).map_err(|error| error.to_string())?;
    match client.request::<Value>(request).await {
        Ok(answer) => Ok(answer["status"]["allowed"] == true),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Err("you may not ask about the rights of others".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
