//! Which kinds policies ask for, where their objects are read, and which of them cannot be seen.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::Acceptance;
use policy::{
    CompiledGroup, CompiledPolicy, GROUP_KIND, IdRegistry, KindKey, PolicyInUse, RECORD_KIND, Released,
    UnreadLibraries, build_plan,
};
use watcher::{ApiKind, Discovered, discover};

use super::target::KindName;

/// A kind to be read, and its namespace.
pub(super) struct KindToRead {
    pub(super) api: ApiKind,
    /// `None` for all.
    pub(super) namespace: Option<String>,
    /// `true` if the full text is needed: the object may be a parent, or a rule or a proof of a policy reads it.
    pub(super) whole: bool,
}

/// How a kind is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct AskedKind {
    version: Option<String>,
    whole: bool,
    /// A policy finds its objects in namespaces of its own choice.
    everywhere: bool,
}

/// The kinds that policies ask for.
#[derive(Debug, Default)]
pub(super) struct AskedKinds {
    kinds: BTreeMap<KindKey, AskedKind>,
    /// Kinds of children, each with the kind of their parents.
    below: BTreeSet<(KindKey, KindKey)>,
}

impl AskedKinds {
    /// Collects what these policies ask for, and kinds that are evaluated by themselves.
    pub(super) fn collect<'p>(
        policies: impl Iterator<Item = &'p CompiledPolicy>,
        standalone: impl Iterator<Item = &'p KindName>,
    ) -> AskedKinds {
        let mut asked = AskedKinds::default();
        let policies: Vec<&CompiledPolicy> = policies.collect();
        for policy in &policies {
            asked.add_policy(policy);
        }
        asked.mark_whole(&policies);
        for kind in standalone {
            asked.entry(&kind.group, &kind.kind, None);
        }
        asked
    }

    /// Adds ReadinessGroups, of which policies are made.
    pub(super) fn add_groups(&mut self) {
        self.entry(GROUP_KIND.0, GROUP_KIND.1, None).whole = true;
    }

    fn add_policy(&mut self, policy: &CompiledPolicy) {
        let parent = &policy.parent;
        self.entry(&parent.group, &parent.kind, parent.version.as_deref());
        for group in &policy.groups {
            let kind = &group.kind;
            let asked = self.entry(&kind.group, &kind.kind, kind.version.as_deref());
            asked.everywhere |= !group.namespaces.is_empty();
            self.below.insert((parent_key(policy), group_key(group)));
        }
        if policy.remembers_outcomes() {
            // Records are in the namespace of the service, which is not known here.
            let records = self.entry(RECORD_KIND.0, RECORD_KIND.1, None);
            (records.whole, records.everywhere) = (true, true);
        }
        if policy.namespace_selector.is_some() {
            self.entry("", "Namespace", None);
        }
    }

    /// Marks the kinds whose objects are read whole: those of which the service takes in more than their metadata and status by
    /// the same policies.
    fn mark_whole(&mut self, policies: &[&CompiledPolicy]) {
        let mut registry = IdRegistry::default();
        let in_use: Vec<PolicyInUse> = policies
            .iter()
            .map(|policy| PolicyInUse {
                id: registry.new_policy_id(),
                name: String::new(),
                compiled: (*policy).clone(),
                acceptance: Acceptance::Accepted,
            })
            .collect();
        let plan = build_plan(&in_use, &Released::new(), &mut registry, &UnreadLibraries);
        for kind in plan.kinds.into_values().filter(|kind| kind.interest.reads_whole()) {
            self.kinds.entry(kind.key).or_default().whole = true;
        }
    }

    /// As in the service, the first version that is named is meant by all.
    fn entry(&mut self, group: &str, kind: &str, version: Option<&str>) -> &mut AskedKind {
        let asked = self.kinds.entry((group.to_owned(), kind.to_owned())).or_default();
        if asked.version.is_none() {
            asked.version = version.map(str::to_owned);
        }
        asked
    }
}

fn parent_key(policy: &CompiledPolicy) -> KindKey {
    (policy.parent.group.clone(), policy.parent.kind.clone())
}

fn group_key(group: &CompiledGroup) -> KindKey {
    (group.kind.group.clone(), group.kind.kind.clone())
}

fn api_key(api: &ApiKind) -> KindKey {
    (api.group.clone(), api.kind.clone())
}

/// Where kinds are served and read, as far as is known.
#[derive(Debug, Default)]
pub(super) struct KindPlaces {
    /// Only this namespace, and cluster-scoped objects.
    namespace: Option<String>,
    /// The user's own namespace, in which records are looked for where they may not be listed in all.
    own_namespace: Option<String>,
    served: BTreeMap<KindKey, ApiKind>,
    /// Why it is not known where a kind is served.
    doubts: BTreeMap<KindKey, String>,
    /// Kinds that were not installed when they were last looked for with certainty; `true` once that is doubtful.
    absent: BTreeMap<KindKey, bool>,
    /// Kinds that are not visible.
    pub(super) hidden: BTreeSet<KindKey>,
    /// Kinds that may be listed in the namespace, and not in all of them.
    narrowed: BTreeSet<KindKey>,
}

impl KindPlaces {
    /// Nothing is known yet. Only this namespace is read, and cluster-scoped objects; `None` for all namespaces.
    pub(super) fn new(namespace: Option<String>) -> KindPlaces {
        KindPlaces { own_namespace: namespace.clone(), namespace, ..KindPlaces::default() }
    }

    /// Sets the user's own namespace, where all are read.
    pub(super) fn set_own_namespace(&mut self, namespace: String) {
        self.own_namespace = Some(namespace);
    }

    /// The namespace whose objects are read; `None` for all.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Looks for the kinds that were not found yet. Returns those about which nothing certain is known, with the reason, each
    /// reason once.
    pub(super) async fn find_kinds(
        &mut self,
        client: &kube::Client,
        asked: &AskedKinds,
    ) -> Vec<(String, String)> {
        let mut unread = Vec::new();
        for (key, AskedKind { version, .. }) in &asked.kinds {
            if self.served.contains_key(key) {
                continue;
            }
            let (group, kind) = key;
            let doubt = match discover(client, group, version.as_deref(), kind).await {
                Ok(Discovered::Served(api)) => {
                    self.served.insert(key.clone(), api);
                    self.doubts.remove(key);
                    self.absent.remove(key);
                    continue;
                }
                // Not installed: it has no objects.
                Ok(Discovered::Absent) => {
                    self.doubts.remove(key);
                    self.hidden.remove(key);
                    self.absent.insert(key.clone(), false);
                    continue;
                }
                // A kind that is just being installed is not served yet: it is looked for once more.
                Ok(Discovered::Unserved { .. }) if self.absent.get(key) == Some(&false) => {
                    self.absent.insert(key.clone(), true);
                    continue;
                }
                // Nor is one that was not there a moment ago to be doubted because of one request.
                Err(_) if self.absent.contains_key(key) => continue,
                Ok(Discovered::Unserved { why, .. }) => why,
                Err(error) => error.to_string(),
            };
            self.hidden.insert(key.clone());
            if self.doubts.insert(key.clone(), doubt.clone()).is_none_or(|before| before != doubt) {
                unread.push((kind_label(key), doubt));
            }
        }
        unread
    }

    /// Returns `true` if one of these kinds is not served, as far as is known.
    pub(super) fn lacks_any(&self, asked: &AskedKinds) -> bool {
        asked.kinds.keys().any(|key| !self.served.contains_key(key))
    }

    /// Returns the kinds that are served, with the namespace to read each in.
    pub(super) fn list_places(&self, asked: &AskedKinds) -> Vec<KindToRead> {
        let everywhere = self.kinds_everywhere(asked);
        let place = |(key, AskedKind { whole, .. }): (&KindKey, &AskedKind)| {
            let api = self.served.get(key)?.clone();
            let narrowest = if is_record(&api) { &self.own_namespace } else { &self.namespace };
            let namespace = narrowest.clone().filter(|_| api.namespaced && !everywhere.contains(key));
            Some(KindToRead { api, namespace, whole: *whole })
        };
        asked.kinds.iter().filter_map(place).collect()
    }

    /// Kinds whose objects are read in all namespaces: policies find them anywhere, or they are below objects that may be
    /// anywhere themselves.
    fn kinds_everywhere(&self, asked: &AskedKinds) -> BTreeSet<KindKey> {
        let chosen = asked.kinds.iter().filter(|(_, kind)| kind.everywhere).map(|(key, _)| key);
        let mut everywhere: BTreeSet<_> =
            chosen.filter(|key| !self.narrowed.contains(*key)).cloned().collect();
        loop {
            let known = everywhere.len();
            for (parent, child) in &asked.below {
                if self.are_everywhere(parent, &everywhere) && !self.narrowed.contains(child) {
                    everywhere.insert(child.clone());
                }
            }
            if everywhere.len() == known {
                return everywhere;
            }
        }
    }

    fn are_everywhere(&self, parent: &KindKey, everywhere: &BTreeSet<KindKey>) -> bool {
        everywhere.contains(parent) || self.served.get(parent).is_some_and(|api| !api.namespaced)
    }

    /// The kind may not be listed in all namespaces: returns where it is read then, if not all of it is meant anyway. Records are
    /// not visible before one is found there: all are in one namespace, that of the service.
    pub(super) fn narrow_kind(&mut self, place: &KindToRead) -> Option<KindToRead> {
        let KindToRead { api, namespace: None, whole } = place else { return None };
        let narrowest = if is_record(api) { &self.own_namespace } else { &self.namespace };
        let namespace = narrowest.clone().filter(|_| api.namespaced)?;
        self.narrowed.insert(api_key(api));
        if is_record(api) {
            self.hidden.insert(api_key(api));
        }
        Some(KindToRead { api: api.clone(), namespace: Some(namespace), whole: *whole })
    }

    /// Returns `true` for records that may be listed in a namespace only, of which none was found there.
    pub(super) fn lacks_records(&self, api: &ApiKind) -> bool {
        is_record(api) && self.narrowed.contains(&api_key(api)) && self.hidden.contains(&api_key(api))
    }

    /// Marks a kind as not visible.
    pub(super) fn hide_kind(&mut self, api: &ApiKind) {
        self.hidden.insert(api_key(api));
    }

    /// Marks a kind as visible again.
    pub(super) fn show_kind(&mut self, api: &ApiKind) {
        self.hidden.remove(&api_key(api));
    }

    /// Policies that find children where these may not be listed, each with what cannot be seen.
    pub(super) fn blind_policies<'p>(
        &self,
        asked: &AskedKinds,
        policies: impl Iterator<Item = (&'p str, &'p CompiledPolicy)>,
    ) -> Vec<(&'p str, String)> {
        if self.narrowed.is_empty() {
            return Vec::new();
        }
        let everywhere = self.kinds_everywhere(asked);
        let mut blind = Vec::new();
        for (name, policy) in policies {
            let is_anywhere = self.are_everywhere(&parent_key(policy), &everywhere);
            let lacks = |group: &&CompiledGroup| {
                (is_anywhere || !group.namespaces.is_empty()) && self.narrowed.contains(&group_key(group))
            };
            let lacking = policy.groups.iter().filter(lacks);
            blind.extend(lacking.map(|group| (name, format!("{} in all namespaces", group.kind.kind))));
        }
        blind
    }
}

/// Returns `true` for the kind of records.
fn is_record(api: &ApiKind) -> bool {
    (&*api.group, &*api.kind) == RECORD_KIND
}

fn kind_label((group, kind): &KindKey) -> String {
    if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::STUCK_AFTER;

    fn policy(parent: &str, child: &str, find: &Value) -> CompiledPolicy {
        let spec = json!({ "parent": { "group": "example.com", "kind": parent },
            "children": [{ "kind": { "group": "example.com", "kind": child }, "find": find }] });
        policy::compile(&serde_json::from_value(spec).unwrap(), STUCK_AFTER).unwrap()
    }

    fn key(kind: &str) -> KindKey {
        ("example.com".to_owned(), kind.to_owned())
    }

    /// Kinds that are all served, the Tenant for the whole cluster, and are read in the namespace `shop`.
    fn places(asked: &AskedKinds) -> KindPlaces {
        let api = |(group, kind): &KindKey| ApiKind {
            group: group.clone(),
            version: "v1".to_owned(),
            kind: kind.clone(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: kind != "Tenant",
            has_status: true,
        };
        let served = asked.kinds.keys().map(|key| (key.clone(), api(key))).collect();
        KindPlaces { namespace: Some("shop".to_owned()), served, ..KindPlaces::default() }
    }

    fn everywhere(places: &KindPlaces, asked: &AskedKinds) -> Vec<String> {
        let places = places.list_places(asked).into_iter();
        places.filter(|place| place.namespace.is_none()).map(|place| place.api.kind).collect()
    }

    #[test]
    fn what_parents_rules_and_proofs_read_is_read_whole() {
        let compiled =
            |spec: Value| policy::compile(&serde_json::from_value(spec).unwrap(), STUCK_AFTER).unwrap();
        let child = |kind: &str| json!({ "kind": { "group": "example.com", "kind": kind } });
        let policy = |parent: &str, proof: Option<&str>, child: Value| {
            let parent = json!({ "group": "example.com", "kind": parent });
            compiled(json!({ "parent": parent, "children": [child], "proof": proof }))
        };
        let mut judged = child("Volume");
        judged["ready"] = json!({ "cel": { "current": "self.spec.ok" } });
        let policies = [
            policy("Shop", Some("children.all(c, c.spec.ok == true)"), child("Database")),
            policy("Queue", Some("parent.spec.ok == true"), child("Topic")),
            policy("Pool", None, judged),
            policy("Tenant", None, child("Disk")),
        ];
        let asked = AskedKinds::collect(policies.iter(), [].iter());
        let lean = asked.kinds.iter().filter(|(_, kind)| !kind.whole).map(|((_, kind), _)| kind.as_str());
        assert_eq!(lean.collect::<Vec<_>>(), ["Disk"]);
    }

    #[test]
    fn what_is_below_an_object_that_may_be_anywhere_is_read_everywhere_to_the_last_level() {
        let elsewhere = json!({ "labels": { "app": "web" }, "namespaces": ["vault"] });
        let policies = [
            policy("Shop", "Database", &elsewhere),
            policy("Volume", "Disk", &json!({})),
            policy("Database", "Volume", &json!({})),
            policy("Queue", "Topic", &json!({})),
            policy("Tenant", "Project", &json!({})),
        ];
        let asked = AskedKinds::collect(policies.iter(), [].iter());
        let mut places = places(&asked);
        assert_eq!(everywhere(&places, &asked), ["Database", "Disk", "Project", "Tenant", "Volume"]);
        // What may be listed in the namespace only leads nowhere else.
        places.narrowed.insert(key("Database"));
        assert_eq!(everywhere(&places, &asked), ["Project", "Tenant"]);
        let named = || ["shops", "volumes", "databases", "queues", "tenants"].into_iter().zip(&policies);
        let blind = places.blind_policies(&asked, named());
        assert_eq!(blind, [("shops", "Database in all namespaces".to_owned())]);
        places.narrowed = [key("Volume")].into();
        let blind = places.blind_policies(&asked, named());
        assert_eq!(blind, [("databases", "Volume in all namespaces".to_owned())]);
    }
}
