//! Parses object names given by a user: `database/orders`, `Database.example.com/orders`, `databases orders`.

use std::fmt;

use anyhow::bail;
use inspect::api_group;
use inspect::discover::{discover_apis, served_kinds};
use kube::discovery::Scope;
use rollcall_core::TreeNode;
use watcher::ParentObject;

/// A kind as API discovery returned it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindName {
    pub(super) group: String,
    pub(super) kind: String,
}

/// One object of a kind, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectTarget {
    pub(super) kind: KindName,
    /// `true` if the kind is namespaced.
    pub(super) namespaced: bool,
    /// Its namespace; `None` for any, and for cluster-scoped objects.
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
}

impl ObjectTarget {
    /// Returns `true` if this node is the target.
    pub(super) fn matches_node(&self, node: &TreeNode) -> bool {
        self.matches_name([&node.group, &node.kind, &node.namespace, &node.name])
    }

    /// Returns `true` if this object is the target.
    pub(super) fn matches_object(&self, object: &ParentObject) -> bool {
        let meta = &object.child.meta;
        self.matches_name([api_group(object), &meta.kind, &meta.namespace, &meta.name])
    }

    /// Returns `true` if the target stands anywhere in this tree.
    pub(super) fn stands_in(&self, tree: &TreeNode) -> bool {
        self.matches_node(tree) || tree.children.iter().any(|child| self.stands_in(child))
    }

    fn matches_name(&self, [of_group, of_kind, of_namespace, of_name]: [&str; 4]) -> bool {
        self.kind.kind == of_kind
            && self.kind.group == of_group
            && self.namespace.as_ref().is_none_or(|namespace| namespace == of_namespace)
            && self.name.as_ref().is_none_or(|name| name == of_name)
    }
}

impl fmt::Display for ObjectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} {name}", self.kind.kind),
            None => f.write_str(&self.kind.kind),
        }
    }
}

/// Splits `KIND/NAME…` or `KIND NAME…` into kinds and names, as kubectl does.
pub(super) fn split_words(words: &[String]) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let split = split_pairs(words)?;
    for name in split.iter().filter_map(|(_, name)| name.as_ref()) {
        // They are parts of a path: another one would be asked for.
        if matches!(name.as_str(), "" | "." | "..") || name.contains(['/', '%']) {
            bail!("no object can have the name {name:?}");
        }
    }
    Ok(split)
}

fn split_pairs(words: &[String]) -> anyhow::Result<Vec<(String, Option<String>)>> {
    if words.iter().any(|word| word.contains('/')) {
        let pair = |word: &String| match word.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok((kind.to_owned(), Some(name.to_owned())))
            }
            _ => bail!("{word:?} is not KIND/NAME"),
        };
        return words.iter().map(pair).collect();
    }
    Ok(match words {
        [] => Vec::new(),
        [kind, ..] if kind.is_empty() => bail!("name a kind"),
        [kind] => vec![(kind.clone(), None)],
        [kind, names @ ..] => names.iter().map(|name| (kind.clone(), Some(name.clone()))).collect(),
    })
}

/// Resolves kinds by kind or plural name, in any case, with the group behind a dot if ambiguous.
pub(super) async fn find_targets(
    client: &kube::Client,
    words: &[String],
) -> anyhow::Result<Vec<ObjectTarget>> {
    let split = split_words(words)?;
    if split.is_empty() {
        return Ok(Vec::new());
    }
    let discovery = discover_apis(client).await?;
    let mut known = Vec::new();
    for (resource, capabilities) in served_kinds(&discovery) {
        let kind = KindName { group: resource.group, kind: resource.kind };
        let namespaced = capabilities.scope == Scope::Namespaced;
        known.push(DiscoveredKind { plural: resource.plural, kind, namespaced });
    }
    let target = |(word, name): (String, Option<String>)| {
        let DiscoveredKind { kind, namespaced, .. } = choose_kind(&word, &known)?.clone();
        Ok(ObjectTarget { kind, namespaced, namespace: None, name })
    };
    split.into_iter().map(target).collect()
}

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DiscoveredKind {
    plural: String,
    kind: KindName,
    namespaced: bool,
}

/// kubectl's short names of built-in kinds, each with its group behind a dot; the core group has no name.
const KIND_SHORT_NAMES: [(&str, &str); 18] = [
    ("cj", "cronjobs.batch"),
    ("cm", "configmaps."),
    ("crd", "customresourcedefinitions.apiextensions.k8s.io"),
    ("deploy", "deployments.apps"),
    ("ds", "daemonsets.apps"),
    ("hpa", "horizontalpodautoscalers.autoscaling"),
    ("ing", "ingresses.networking.k8s.io"),
    ("no", "nodes."),
    ("ns", "namespaces."),
    ("pdb", "poddisruptionbudgets.policy"),
    ("po", "pods."),
    ("pv", "persistentvolumes."),
    ("pvc", "persistentvolumeclaims."),
    ("rc", "replicationcontrollers."),
    ("rs", "replicasets.apps"),
    ("sa", "serviceaccounts."),
    ("sts", "statefulsets.apps"),
    ("svc", "services."),
];

/// Chooses the kind that a word names, among the known plurals and kinds.
fn choose_kind<'k>(word: &str, known: &'k [DiscoveredKind]) -> anyhow::Result<&'k DiscoveredKind> {
    let long =
        KIND_SHORT_NAMES.iter().find(|(short, _)| word.eq_ignore_ascii_case(short)).map(|(_, long)| *long);
    let word = long.unwrap_or(word);
    let (name, group) = word.split_once('.').map_or((word, None), |(name, group)| (name, Some(group)));
    let means = |DiscoveredKind { plural, kind, .. }: &&DiscoveredKind| {
        let named = name.eq_ignore_ascii_case(plural) || name.eq_ignore_ascii_case(&kind.kind);
        named && group.is_none_or(|group| group == kind.group)
    };
    let mut found: Vec<&DiscoveredKind> = known.iter().filter(means).collect();
    found.dedup_by(|a, b| a.kind == b.kind);
    // As in kubectl, the core group comes first, whatever other groups serve under the same name.
    if found.iter().any(|known| known.kind.group.is_empty()) {
        found.retain(|known| known.kind.group.is_empty());
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => bail!("the cluster serves no kind {word:?}; `kubectl api-resources` lists what it serves"),
        many => {
            let names: Vec<String> =
                many.iter().map(|known| format!("{}.{}", known.kind.kind, known.kind.group)).collect();
            bail!("{word:?} is ambiguous: choose one of {}", names.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<DiscoveredKind> {
        let kind = |plural: &str, group: &str, kind: &str| DiscoveredKind {
            plural: plural.to_owned(),
            kind: KindName { group: group.to_owned(), kind: kind.to_owned() },
            namespaced: true,
        };
        vec![
            kind("databases", "example.com", "Database"),
            kind("deployments", "apps", "Deployment"),
            kind("clusters", "a.io", "Cluster"),
            kind("clusters", "b.io", "Cluster"),
            kind("pods", "metrics.k8s.io", "PodMetrics"),
            kind("pods", "", "Pod"),
            kind("services", "", "Service"),
            kind("services", "serving.knative.dev", "Service"),
        ]
    }

    #[test]
    fn what_kubernetes_itself_serves_comes_first_and_the_others_by_their_group() {
        let known = known();
        for (word, group, named) in [
            ("pods", "", "Pod"),
            ("po", "", "Pod"),
            ("pod", "", "Pod"),
            ("pods.metrics.k8s.io", "metrics.k8s.io", "PodMetrics"),
            ("podmetrics", "metrics.k8s.io", "PodMetrics"),
            ("svc", "", "Service"),
            ("service", "", "Service"),
            ("services.", "", "Service"),
            ("Service.serving.knative.dev", "serving.knative.dev", "Service"),
        ] {
            let found = choose_kind(word, &known).map(|known| &known.kind).unwrap();
            assert_eq!((&*found.group, &*found.kind), (group, named), "{word}");
        }
    }

    #[test]
    fn a_kind_is_known_by_its_kind_or_its_plural_in_any_case() {
        for word in ["Database", "databases", "DATABASE", "database.example.com"] {
            assert_eq!(
                choose_kind(word, &known()).map(|known| known.kind.group.clone()).ok().as_deref(),
                Some("example.com"),
                "{word}"
            );
        }
    }

    #[test]
    fn kinds_of_kubernetes_have_the_short_names_that_kubectl_has() {
        let known = known();
        assert_eq!(choose_kind("deploy", &known).map(|known| &*known.kind.kind).ok(), Some("Deployment"));
    }

    #[test]
    fn what_could_be_two_is_asked_back_with_both() {
        let error = choose_kind("cluster", &known()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("Cluster.a.io or Cluster.b.io"), "{error}");
        let chosen = known();
        assert_eq!(choose_kind("clusters.b.io", &chosen).map(|known| &*known.kind.group).ok(), Some("b.io"));
        assert!(choose_kind("nothing", &known()).is_err());
    }

    #[test]
    fn names_come_behind_a_slash_or_a_space() {
        let split = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            split_words(&words).map(|all| {
                all.into_iter().map(|(k, n)| format!("{k}:{}", n.unwrap_or_default())).collect::<Vec<_>>()
            })
        };
        assert_eq!(split(&["db/one", "db/two"]).unwrap(), ["db:one", "db:two"]);
        assert_eq!(split(&["db", "one", "two"]).unwrap(), ["db:one", "db:two"]);
        assert_eq!(split(&["db"]).unwrap(), ["db:"]);
        assert!(split(&["db/one", "two"]).is_err());
        for nothing in ["db/one/status", "db/..", "db/.", "db/a%2fb", ""] {
            assert!(split(&[nothing]).is_err(), "{nothing}");
        }
        assert_eq!(split(&["db", ".."]).unwrap_err().to_string(), "no object can have the name \"..\"");
    }
}
