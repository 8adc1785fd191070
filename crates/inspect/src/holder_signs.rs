//! Signs of life of the holder of a finalizer: its Lease, its running pods, its last write.
//!
//! A finalizer is only a name, so the holder is looked for by names: that of the field manager that set the finalizer,
//! that of the component whose domain it carries, and the domain itself, which operators give their Lease.

use readiness::Time;
use serde::Serialize;
use serde_json::Value;
use watcher::status::time;

use super::client::{InspectClient, LEASES_LABEL, PODS_LABEL};

/// A Lease that was not renewed for twice its duration, and for at least as long as this, is no sign of life. 60 s.
const MIN_LEASE_AGE_MS: i64 = 60_000;
/// Largest number of pages of pods that are read, of 500 each.
const MAX_POD_PAGES: usize = 20;
const PODS_PATH: &str = "/api/v1/pods?fieldSelector=status.phase%3DRunning&limit=500";
const LEASES_PATH: &str = "/apis/coordination.k8s.io/v1/leases?limit=5000";
/// Leases of kubelets, one for each node.
const NODE_LEASES: &str = "kube-node-lease";
/// Field managers whose name tells nothing of the component: defaults of libraries, and people's tools.
const NAMELESS_MANAGERS: [&str; 12] = [
    "manager",
    "controller",
    "operator",
    "kopf",
    "python-requests",
    "OpenAPI-Generator",
    "unknown",
    "helm",
    "Go-http-client",
    "curl",
    "before-first-apply",
    "Mozilla",
];
/// Labels that name the component of a pod.
const NAME_LABELS: [&str; 6] = [
    "app",
    "k8s-app",
    "control-plane",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/component",
];

/// Whether the holder of a finalizer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum HolderState {
    /// No sign of it was found, though it was looked for by its name.
    Ownerless,
    /// Undecided: the holder is unknown, or the signs may not be read.
    Unknown,
    /// There is a sign of life.
    Alive,
}

/// What is known of the life of a finalizer's holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HolderSigns {
    /// Whether it lives.
    pub state: HolderState,
    /// What that rests on.
    pub evidence: String,
}

/// What is known of who holds a finalizer.
#[derive(Clone, Copy, Debug, Default)]
pub struct HolderNames<'h> {
    /// The finalizer.
    pub finalizer: &'h str,
    /// Field manager that alone set it.
    pub manager: Option<&'h str>,
    /// Component whose domain it carries.
    pub likely: Option<&'h str>,
    /// Time of the manager's last write to the object, as the API writes it.
    pub last_write: Option<&'h str>,
}

/// Leases and running pods of a cluster; `None` for what could not be read.
#[derive(Debug, Default)]
pub struct LifeSigns {
    leases: Option<Vec<LeaseSign>>,
    pods: Option<Vec<PodSign>>,
}

#[derive(Debug)]
struct LeaseSign {
    title: String,
    name: String,
    holder: String,
    renewed: Time,
    duration_ms: i64,
}

#[derive(Debug)]
struct PodSign {
    title: String,
    /// Its name, and the values of the labels that name its component.
    names: Vec<String>,
}

impl LifeSigns {
    /// Reads them from the cluster, of pods only the metadata.
    pub async fn read(ask: &mut InspectClient) -> LifeSigns {
        let leases = ask.get(LEASES_LABEL, LEASES_PATH).await;
        let leases = leases.map(|list| items(&list).filter_map(LeaseSign::of).collect());
        LifeSigns { leases, pods: read_pods(ask).await }
    }

    /// Looks for signs of life of the holder at `now`.
    pub fn find_signs(&self, of: &HolderNames<'_>, now: Time) -> HolderSigns {
        if of.likely == Some("Kubernetes API server") {
            let evidence = "the API server answers".to_owned();
            return HolderSigns { state: HolderState::Alive, evidence };
        }
        let words = search_words(of);
        let domain = of.finalizer.split('/').next().filter(|domain| domain.contains('.'));
        let its = |lease: &&LeaseSign| lease.belongs_to(&words, domain);
        let mut evidence = Vec::new();
        let mut leases: Vec<_> = self.leases.iter().flatten().filter(its).collect();
        leases.sort_by_key(|lease| std::cmp::Reverse(lease.renewed));
        if let Some(lease) = leases.first() {
            let renewed = time::format_seconds(lease.renewed);
            if lease.is_fresh(now) {
                let evidence = format!("Lease {} was renewed at {renewed}", lease.title);
                return HolderSigns { state: HolderState::Alive, evidence };
            }
            evidence.push(format!("Lease {} has not been renewed since {renewed}", lease.title));
        }
        let pods: Vec<_> = self.pods.iter().flatten().filter(|pod| pod.belongs_to(&words)).collect();
        if let Some(pod) = pods.first() {
            let one = if pods.len() == 1 { "pod" } else { "pods" };
            evidence.push(format!("{} running {one}, such as {}", pods.len(), pod.title));
            return HolderSigns { state: HolderState::Alive, evidence: evidence.join("; ") };
        }
        if let (Some(manager), Some(at)) = (of.manager, of.last_write) {
            evidence.push(format!("field manager {manager} last wrote this object at {at}"));
        }
        let named = words.join(" or ");
        let state = match (&self.leases, &self.pods) {
            _ if words.is_empty() && leases.is_empty() => {
                evidence
                    .insert(0, "neither its name nor managedFields tell which component holds it".to_owned());
                HolderState::Unknown
            }
            (Some(_), Some(_)) => {
                let what = if leases.is_empty() { "no Lease and no running pod" } else { "no running pod" };
                let by = if words.is_empty() { String::new() } else { format!(" with the name {named}") };
                evidence.insert(
                    0,
                    format!("there is {what}{by}, and a holder outside of the cluster is not seen"),
                );
                HolderState::Ownerless
            }
            (leases, _) => {
                let lacking = if leases.is_none() { LEASES_LABEL } else { PODS_LABEL };
                evidence.insert(0, format!("{lacking} of all namespaces could not be read"));
                HolderState::Unknown
            }
        };
        HolderSigns { state, evidence: evidence.join("; ") }
    }
}

/// Names by which the holder is looked for.
fn search_words(of: &HolderNames<'_>) -> Vec<String> {
    let specific = |name: &&str| !NAMELESS_MANAGERS.contains(name) && !name.starts_with("kubectl");
    let likely = of.likely.map(|who| {
        if who.starts_with("Kubernetes") {
            return "kube-controller-manager".to_owned();
        }
        who.trim_start_matches("the ").to_lowercase().replace("argo cd", "argocd").replace(' ', "-")
    });
    let likely = likely.filter(|who| !who.starts_with("a-"));
    // The client that deletes an object sets the finalizers of the garbage collector.
    let manager = of.manager.filter(|_| !of.likely.is_some_and(|who| who.starts_with("Kubernetes")));
    let mut words: Vec<String> =
        manager.filter(specific).map(str::to_owned).into_iter().chain(likely).collect();
    words.dedup();
    words
}

/// Does a name contain the word, in whole parts between `-`, `.` and `_`?
fn contains_word(name: &str, word: &str) -> bool {
    let parts = |text: &str| format!("-{}-", text.to_lowercase().replace(['.', '_', ':', '/'], "-"));
    parts(name).contains(&parts(word))
}

impl LeaseSign {
    fn of(lease: &Value) -> Option<LeaseSign> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (meta, spec) = (&lease["metadata"], &lease["spec"]);
        let namespace = text(&meta["namespace"]);
        if namespace == NODE_LEASES {
            return None;
        }
        let name = text(&meta["name"]);
        Some(LeaseSign {
            title: format!("{namespace}/{name}"),
            name,
            holder: text(&spec["holderIdentity"]),
            renewed: time::parse_rfc3339(spec["renewTime"].as_str()?)?,
            duration_ms: spec["leaseDurationSeconds"].as_i64().unwrap_or(0).saturating_mul(1_000),
        })
    }

    fn belongs_to(&self, words: &[String], domain: Option<&str>) -> bool {
        let named = |word: &String| contains_word(&self.name, word) || contains_word(&self.holder, word);
        words.iter().any(named) || domain.is_some_and(|domain| contains_word(&self.name, domain))
    }

    fn is_fresh(&self, now: Time) -> bool {
        let longest = self.duration_ms.saturating_mul(2).max(MIN_LEASE_AGE_MS);
        !self.holder.is_empty() && now.0 - self.renewed.0 <= longest
    }
}

impl PodSign {
    fn of(pod: &Value) -> PodSign {
        let meta = &pod["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels =
            NAME_LABELS.iter().filter_map(|label| meta["labels"][*label].as_str().map(str::to_owned));
        let names = std::iter::once(text(&meta["name"])).chain(labels).collect();
        PodSign { title: format!("{}/{}", text(&meta["namespace"]), text(&meta["name"])), names }
    }

    fn belongs_to(&self, words: &[String]) -> bool {
        words.iter().any(|word| self.names.iter().any(|name| contains_word(name, word)))
    }
}

async fn read_pods(ask: &mut InspectClient) -> Option<Vec<PodSign>> {
    let mut pods = Vec::new();
    let mut path = PODS_PATH.to_owned();
    for _ in 0..MAX_POD_PAGES {
        let page = ask.get_metadata(PODS_LABEL, &path).await?;
        pods.extend(items(&page).map(PodSign::of));
        match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
            Some(next) => path = format!("{PODS_PATH}&continue={}", watcher::percent_encode(next)),
            None => return Some(pods),
        }
    }
    // There are so many that some were not read: what was not found may be among them.
    ask.refused.insert(format!("{PODS_LABEL}: more than {} run; the rest was not read", pods.len()));
    None
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 2026-01-01T00:10:00Z
    const NOW: Time = Time(1_767_226_200_000);

    fn lease(name: &str, holder: &str, renewed: &str) -> Value {
        json!({ "metadata": { "namespace": "ops", "name": name },
            "spec": { "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 } })
    }

    fn pod(name: &str, app: &str) -> Value {
        json!({ "metadata": { "namespace": "ops", "name": name, "labels": { "app.kubernetes.io/name": app } } })
    }

    fn signs(leases: &[Value], pods: &[Value]) -> LifeSigns {
        LifeSigns {
            leases: Some(leases.iter().filter_map(LeaseSign::of).collect()),
            pods: Some(pods.iter().map(PodSign::of).collect()),
        }
    }

    fn guard() -> HolderNames<'static> {
        HolderNames {
            finalizer: "shop.example.com/guard",
            manager: Some("shop-operator"),
            last_write: Some("2026-01-01T00:00:00Z"),
            likely: None,
        }
    }

    #[test]
    fn a_holder_lives_that_renews_its_lease_or_whose_pods_run() {
        for (leases, pods, evidence) in [
            (
                vec![lease("a1.shop.example.com", "x_1", "2026-01-01T00:09:30.123456Z")],
                vec![],
                "renewed at 2026-01-01T00:09:30Z",
            ),
            (vec![lease("lock", "shop-operator-7f_1", "2026-01-01T00:09:30Z")], vec![], "Lease ops/lock"),
            (vec![], vec![pod("shop-operator-7f-x", "")], "1 running pod, such as ops/shop-operator-7f-x"),
            (vec![], vec![pod("a", "shop-operator"), pod("b", "shop-operator")], "2 running pods"),
        ] {
            let found = signs(&leases, &pods).find_signs(&guard(), NOW);
            assert_eq!(found.state, HolderState::Alive, "{found:?}");
            assert!(found.evidence.contains(evidence), "{found:?}");
        }
    }

    #[test]
    fn a_holder_without_a_sign_is_gone_and_that_is_said_with_what_was_looked_for() {
        let found = signs(&[], &[pod("shop-operators-0", "workshop-operator")]).find_signs(&guard(), NOW);
        assert_eq!(found.state, HolderState::Ownerless, "another name: {found:?}");
        for part in [
            "no Lease and no running pod with the name shop-operator",
            "last wrote this object at 2026-01-01T00:00:00Z",
        ] {
            assert!(found.evidence.contains(part), "{found:?}");
        }
        let old = lease("shop.example.com", "shop-operator-1", "2026-01-01T00:01:00Z");
        let found = signs(&[old], &[]).find_signs(&guard(), NOW);
        assert_eq!(found.state, HolderState::Ownerless);
        assert!(found.evidence.contains("has not been renewed since 2026-01-01T00:01:00Z"), "{found:?}");
    }

    #[test]
    fn what_cannot_be_told_is_not_called_gone() {
        let nobody = HolderNames {
            finalizer: "example.org/x",
            manager: Some("kubectl-edit"),
            ..HolderNames::default()
        };
        assert_eq!(signs(&[], &[]).find_signs(&nobody, NOW).state, HolderState::Unknown);
        let blind = LifeSigns { leases: Some(Vec::new()), pods: None };
        let found = blind.find_signs(&guard(), NOW);
        assert!(
            found.state == HolderState::Unknown && found.evidence.contains("Pods of all namespaces"),
            "{found:?}"
        );
    }

    #[test]
    fn the_garbage_collector_lives_with_its_controller_manager_whoever_asked_for_the_deletion() {
        let of = HolderNames {
            finalizer: "foregroundDeletion",
            manager: Some("shop-operator"),
            likely: Some("Kubernetes garbage collector"),
            last_write: None,
        };
        let manager = lease("kube-controller-manager", "node-1_x", "2026-01-01T00:09:58Z");
        assert_eq!(signs(&[manager], &[]).find_signs(&of, NOW).state, HolderState::Alive);
        let operator = pod("shop-operator-0", "");
        assert_eq!(signs(&[], &[operator]).find_signs(&of, NOW).state, HolderState::Ownerless);
    }
}
