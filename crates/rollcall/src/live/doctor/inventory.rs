//! The inventory that the checks run on, read once.

use std::collections::{BTreeMap, BTreeSet};

use controller::access_review::{ReviewSubject, review_access};
use futures::{StreamExt, stream};
use policy::CompiledPolicy;
use policy::rbac::{AccessNeed, CrdNames, access_needs, policy_rights};
use readiness::Time;
use serde_json::Value;
use watcher::{
    ApiFailureCause, ApiKind, LiveReadError, get_live, get_live_head, list_live, list_live_heads,
    resolve_kind,
};

use super::checked_object::CheckedObject;
use super::kopf_events::{self, LoggedKinds};
use super::refusal_text::refusal_text;
use crate::text::print_error_line;

/// Maximum number of concurrent lists or access reviews.
const MAX_CONCURRENT_READS: usize = 4;

/// Maximum number of owners read by name.
const MAX_OWNERS_READ: usize = 200;

/// Kinds that are listed whether or not a policy names them.
const ALWAYS_LISTED: [(&str, &str); 4] =
    [("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "Job"), ("", "Pod")];

/// Kinds of which only the metadata is listed: their content is not needed and may be secret.
const METADATA_ONLY: [(&str, &str); 3] = [("", "Secret"), ("", "ConfigMap"), ("", "Service")];

/// Labels of a namespace: key and value.
pub(super) type NamespaceLabels = Vec<(Box<str>, Box<str>)>;

/// Everything that was read. Checks are pure functions of it.
#[derive(Debug, Default)]
pub(super) struct DoctorInventory {
    pub(super) now: Time,
    pub(super) policies: Vec<(String, CompiledPolicy)>,
    /// Invalid policies, with the error.
    pub(super) invalid_policies: Vec<(String, String)>,
    /// Problems that the service reports about a policy: policy name, condition type and message.
    pub(super) service_conditions: Vec<(String, String)>,
    pub(super) crds: Vec<Value>,
    pub(super) objects: Vec<CheckedObject>,
    /// Labels of namespaces by name; `None` if a policy chooses by them and they could not be read.
    pub(super) namespace_labels: Option<BTreeMap<Box<str>, NamespaceLabels>>,
    /// Kinds of policies that the server does not serve: group and kind.
    pub(super) unserved_kinds: BTreeSet<(String, String)>,
    /// Kinds listed completely, in all namespaces.
    pub(super) fully_listed: BTreeSet<(String, String)>,
    /// Missing rights, as `patch databases/status.example.com`.
    pub(super) denied: Vec<String>,
    /// The user or service account whose rights were checked.
    pub(super) subject: String,
    /// Kinds about which Kopf posts its log as Events.
    pub(super) logged: LoggedKinds,
    /// Anything that could not be read, with the error.
    pub(super) unread: BTreeMap<String, String>,
}

impl DoctorInventory {
    /// Whether a policy has this object as a parent; `None` if that rests on the labels of its namespace, which could not be read.
    pub(super) fn is_parent(&self, policy: &CompiledPolicy, seen: &CheckedObject) -> Option<bool> {
        let is_selected = seen.is_kind(&policy.parent.group, &policy.parent.kind)
            && policy.selector.matches(&seen.meta.labels);
        let namespace = &seen.meta.namespace;
        match &policy.namespace_selector {
            Some(_) if !is_selected || namespace.is_empty() => Some(false),
            Some(selector) => {
                let labels = self.namespace_labels.as_ref()?.get(namespace);
                Some(labels.is_some_and(|labels| selector.matches(labels)))
            }
            None => Some(is_selected),
        }
    }

    /// Returns the kinds that CRDs define.
    pub(super) fn custom_kinds(&self) -> BTreeSet<(String, String)> {
        self.crds.iter().filter_map(crd_kind).collect()
    }

    /// Returns the parent kinds: those of policies, and those of CRDs whose objects own something here.
    pub(super) fn parent_kinds(&self) -> BTreeSet<(String, String)> {
        let owner = |owner: &watcher::wire::OwnerRef| {
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            (group.to_owned(), owner.kind.to_string())
        };
        let custom = self.custom_kinds();
        let owners = self.objects.iter().flat_map(|seen| &seen.meta.owners).map(owner);
        owners.filter(|kind| custom.contains(kind)).chain(self.policy_parent_kinds()).collect()
    }

    /// Returns the parent kinds of the policies.
    pub(super) fn policy_parent_kinds(&self) -> BTreeSet<(String, String)> {
        self.policies
            .iter()
            .map(|(_, policy)| (policy.parent.group.clone(), policy.parent.kind.clone()))
            .collect()
    }
}

/// Returns the group and kind that a CRD defines.
pub(super) fn crd_kind(crd: &Value) -> Option<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some((text(&crd["spec"]["group"])?, text(&crd["spec"]["names"]["kind"])?))
}

/// Reads an inventory.
pub(super) struct InventoryReader {
    pub(super) client: kube::Client,
    /// Only this namespace.
    pub(super) namespace: Option<String>,
    pub(super) inventory: DoctorInventory,
}

impl InventoryReader {
    /// Reads the inventory; its policies have been read before.
    pub(super) async fn read_inventory(
        mut self,
        subject: &ReviewSubject,
        records_namespace: Option<&str>,
    ) -> DoctorInventory {
        self.read_crds().await;
        let places = self.resolve_kinds().await;
        let (total, known) = (places.len(), places.clone());
        let (client, namespace) = (self.client.clone(), self.namespace.clone());
        let lists = places.into_iter().map(|api| {
            let (client, namespace) = (client.clone(), namespace.clone());
            async move {
                let scope = namespace.filter(|_| api.namespaced);
                let listed = list_objects(&client, &api, scope.as_deref()).await;
                (scope.is_none(), api, listed)
            }
        });
        let mut lists = stream::iter(lists).buffered(MAX_CONCURRENT_READS);
        let mut refused = 0;
        while let Some((everywhere, api, listed)) = lists.next().await {
            match listed {
                Ok(listed) => {
                    self.inventory.objects.extend(listed);
                    if everywhere {
                        self.inventory.fully_listed.insert((api.group, api.kind));
                    }
                }
                Err(error) => {
                    refused += 1;
                    self.note_unread(api.to_string(), &error);
                }
            }
        }
        if refused == total && total > 0 {
            print_error_line("nothing could be listed");
        }
        self.read_missing_owners(&known).await;
        self.read_namespace_labels().await;
        match kopf_events::read_logged_kinds(&self.client, self.namespace.as_deref()).await {
            Ok(logged) => self.inventory.logged = logged,
            Err(why) => _ = self.inventory.unread.insert("Event".to_owned(), why),
        }
        self.review_rights(subject, records_namespace).await;
        self.inventory
    }

    /// Reads owners by name that were not listed: kinds are listed one after the other, so an owner may have been
    /// created since.
    async fn read_missing_owners(&mut self, known: &[ApiKind]) {
        let seen: BTreeSet<_> = self.inventory.objects.iter().map(|seen| seen.meta.uid.clone()).collect();
        let mut unseen = BTreeSet::new();
        for object in &self.inventory.objects {
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
        for (group, kind, namespace, name) in unseen.into_iter().take(MAX_OWNERS_READ) {
            let Some(api) = known.iter().find(|api| api.group == group && *api.kind == *kind) else {
                continue;
            };
            let namespace = Some(&*namespace).filter(|_| api.namespaced);
            if let Ok(Some(owner)) = get_object(&self.client, api, namespace, &name).await
                && !seen.contains(&owner.meta.uid)
            {
                self.inventory.objects.push(owner);
            }
        }
    }

    /// Reads the labels of namespaces if a policy chooses its parents by them.
    async fn read_namespace_labels(&mut self) {
        if self.inventory.policies.iter().all(|(_, policy)| policy.namespace_selector.is_none()) {
            return;
        }
        match self.read_namespaces().await {
            Ok(found) => {
                let labels = found.into_iter().map(|seen| (seen.meta.name, seen.meta.labels));
                self.inventory.namespace_labels = Some(labels.collect());
            }
            Err(error) => self.note_unread("Namespace".to_owned(), &error),
        }
    }

    async fn read_namespaces(&self) -> Result<Vec<CheckedObject>, LiveReadError> {
        let Some(api) = resolve_kind(&self.client, "", None, "Namespace").await? else {
            return Ok(Vec::new());
        };
        match &self.namespace {
            Some(name) => Ok(get_live_head(&self.client, &api, None, name).await?.into_iter().collect()),
            None => list_live_heads(&self.client, &api, None).await,
        }
    }

    fn note_unread(&mut self, what: String, error: &LiveReadError) {
        let why = match error.cause {
            ApiFailureCause::Forbidden => "you may not list it".to_owned(),
            _ => error.to_string(),
        };
        self.inventory.unread.insert(what, why);
    }

    async fn read_crds(&mut self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
        match self.client.request::<Value>(request).await {
            Ok(mut list) => {
                if let Value::Array(items) = list["items"].take() {
                    self.inventory.crds = items;
                }
            }
            Err(error) => {
                let what = "CustomResourceDefinition.apiextensions.k8s.io".to_owned();
                self.inventory.unread.insert(what, refusal_text(error));
            }
        }
    }

    /// Returns every kind that is to be listed.
    async fn resolve_kinds(&mut self) -> Vec<ApiKind> {
        let mut kinds: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
        for (_, policy) in &self.inventory.policies {
            let groups = policy.groups.iter().map(|group| &group.kind);
            for kind in groups.chain([&policy.parent]) {
                kinds.insert((kind.group.clone(), kind.kind.clone()), kind.version.clone());
            }
        }
        let named: BTreeSet<_> = kinds.keys().cloned().collect();
        for kind in self.inventory.crds.iter().filter_map(crd_kind) {
            kinds.entry(kind).or_default();
        }
        for (group, kind) in ALWAYS_LISTED.into_iter().chain(METADATA_ONLY) {
            kinds.entry((group.to_owned(), kind.to_owned())).or_default();
        }
        let mut places = Vec::new();
        for ((group, kind), version) in kinds {
            match self.resolve_kind(&group, version.as_deref(), &kind).await {
                Ok(Some(api)) => places.push(api),
                Ok(None) if named.contains(&(group.clone(), kind.clone())) => {
                    self.inventory.unserved_kinds.insert((group, kind));
                }
                Ok(None) => {}
                Err(error) => {
                    let what = if group.is_empty() { kind } else { format!("{kind}.{group}") };
                    self.note_unread(what, &error);
                }
            }
        }
        places
    }

    /// Resolves a kind, from its CRD if there is one, otherwise by API discovery.
    async fn resolve_kind(
        &self,
        group: &str,
        version: Option<&str>,
        kind: &str,
    ) -> Result<Option<ApiKind>, LiveReadError> {
        let crd = self
            .inventory
            .crds
            .iter()
            .find(|crd| crd["spec"]["group"] == group && crd["spec"]["names"]["kind"] == kind);
        match crd {
            Some(crd) => Ok(kind_from_crd(crd, version)),
            None => resolve_kind(&self.client, group, version, kind).await,
        }
    }

    /// Finds the rights that the policies need and the subject lacks.
    async fn review_rights(&mut self, subject: &ReviewSubject, records_namespace: Option<&str>) {
        self.inventory.subject = subject.to_string();
        let crds = CrdNames::from_crds(&self.inventory.crds);
        let namespaces: Vec<String> = self.namespace.iter().cloned().collect();
        let mut asked: Vec<AccessNeed> = Vec::new();
        for (_, policy) in &self.inventory.policies {
            let mut rights = policy_rights(policy, &crds);
            let kept_in = match subject {
                ReviewSubject::ServiceAccount(home, _) => records_namespace.unwrap_or(home),
                ReviewSubject::Own => {
                    // What the service keeps is nothing that a user needs.
                    rights.records.clear();
                    ""
                }
            };
            for need in access_needs(&rights, &namespaces, kept_in) {
                if !asked.iter().any(|known| known.to_string() == need.to_string()) {
                    asked.push(need);
                }
            }
        }
        let client = self.client.clone();
        let answers = asked.into_iter().map(|need| {
            let client = client.clone();
            async move {
                let allowed = review_access(&client, subject, &need).await;
                (need, allowed)
            }
        });
        let mut answers = stream::iter(answers).buffered(MAX_CONCURRENT_READS);
        while let Some((need, allowed)) = answers.next().await {
            match allowed {
                Ok(true) => {}
                Ok(false) => self.inventory.denied.push(need.to_string()),
                Err(why) => {
                    self.inventory.unread.insert("rights".to_owned(), why);
                    return;
                }
            }
        }
    }
}

fn is_metadata_only(api: &ApiKind) -> bool {
    METADATA_ONLY.iter().any(|(group, kind)| api.group == *group && api.kind == *kind)
}

async fn list_objects(
    client: &kube::Client,
    api: &ApiKind,
    namespace: Option<&str>,
) -> Result<Vec<CheckedObject>, LiveReadError> {
    if is_metadata_only(api) {
        let heads = list_live_heads::<CheckedObject>(client, api, namespace).await?;
        return Ok(heads.into_iter().map(|seen| seen.with_kind(api).metadata_only()).collect());
    }
    let all = list_live::<CheckedObject>(client, api, namespace, None).await?;
    Ok(all.into_iter().map(|seen| seen.with_kind(api)).collect())
}

async fn get_object(
    client: &kube::Client,
    api: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<CheckedObject>, LiveReadError> {
    if is_metadata_only(api) {
        let head = get_live_head::<CheckedObject>(client, api, namespace, name).await?;
        return Ok(head.map(|seen| seen.with_kind(api).metadata_only()));
    }
    Ok(get_live::<CheckedObject>(client, api, namespace, name).await?.map(|seen| seen.with_kind(api)))
}

fn kind_from_crd(crd: &Value, version: Option<&str>) -> Option<ApiKind> {
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
