//! What the page shows below a parent that no policy counts, read by the running service.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{LiveCluster, crd, custom, pod, policy};
use super::service::{RunningService, until};

/// Certificates, of which a policy counts Pods, and what they own by way of CertificateRequests.
pub(super) struct CertificatePage {
    pub(super) cluster: LiveCluster,
    pub(super) service: RunningService,
    pub(super) certificate: Value,
}

fn saying(kind: &str, name: &str, status: &str) -> Value {
    let mut object = custom(kind, name);
    object["status"]["conditions"] = json!([{ "type": "Ready", "status": status, "reason": "Any" }]);
    object
}

pub(super) fn body(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

impl CertificatePage {
    /// Starts the service with one Certificate; `before` adds to the cluster.
    pub(super) async fn start(name: &str, before: impl FnOnce(&LiveCluster, &Value)) -> CertificatePage {
        let cluster = LiveCluster::start(name).await;
        for kind in ["Certificate", "CertificateRequest", "Order"] {
            cluster.create(&crd(kind));
        }
        let mut counting = policy("Certificate", "", "Pod");
        counting["spec"]["children"][0]["expect"] = json!({ "min": 0 });
        let file = cluster.file("certificates.json", &counting);
        let certificate = cluster.create(&custom("Certificate", "shop"));
        let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Unknown"));
        let mut order = custom("Order", "shop-1-42");
        order["status"] = json!({ "state": "errored", "reason": "the account is not registered" });
        cluster.below(&request, order);
        before(&cluster, &certificate);
        let service = RunningService::start(&cluster, &["--policies", &file], &[]);
        until("the page has the parent", || {
            body(&service.get("/api/v1/parents"))["matching"].as_u64() >= Some(1)
        });
        CertificatePage { cluster, service, certificate }
    }

    pub(super) fn path_of(parent: &Value) -> String {
        format!("/api/v1/parents/{}/below", parent["metadata"]["uid"].as_str().unwrap())
    }

    /// Number of requests about objects of this kind.
    pub(super) fn count(&self, verb: RequestVerb, plural: &str) -> usize {
        let log = self.cluster.server.logged_requests();
        let is_about = |path: &str| path.split('/').any(|part| part == plural);
        log.iter().filter(|request| request.verb == verb && is_about(&request.path)).count()
    }

    /// Asks for what is below a parent, and does not wait for it.
    pub(super) fn begin_search(&self, parent: &Value) -> TcpStream {
        let mut viewer = TcpStream::connect(self.service.address()).unwrap();
        let (path, host) = (CertificatePage::path_of(parent), self.service.address());
        viewer.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
        viewer
    }

    pub(super) fn below(&self, parent: &Value) -> Value {
        body(&self.service.get(&Self::path_of(parent)))
    }
}

/// Depth, kind, name and verdict of what was found below each object of a tree.
fn lines(found: &Value) -> Vec<String> {
    let groups = found["below"].as_array().unwrap();
    let nodes = groups.iter().flat_map(|group| group["nodes"].as_array().unwrap());
    let line = |node: &Value| {
        assert_eq!(node["uncounted"], true, "{node}");
        let text = |field: &str| node[field].as_str().unwrap().to_owned();
        format!("{} {} {} {}", node["depth"], text("label"), text("name"), text("verdict"))
    };
    nodes.map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_below_a_parent_is_found_judged_and_marked_and_what_is_counted_is_not_found_again() {
    let page = CertificatePage::start("below", |cluster, certificate| {
        let counted = cluster.below(certificate, pod("solver", None));
        let mut part = custom("CertificateRequest", "of-the-pod");
        part["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
        cluster.below(&counted, part);
    })
    .await;
    let found = page.below(&page.certificate);
    let expected = [
        "1 CertificateRequest.example.com shop-1 Progressing",
        "2 Order.example.com shop-1-42 Failed",
        "1 CertificateRequest.example.com of-the-pod Ready",
    ];
    assert_eq!(lines(&found), expected, "{found}");
    let owners: Vec<_> = found["below"].as_array().unwrap().iter().map(|group| &group["name"]).collect();
    assert_eq!(owners, ["shop", "solver"], "{found}");
    assert_eq!(
        (&found["notRead"], &found["hidden"], &found["leftOut"]),
        (&json!([]), &json!(false), &json!(0))
    );
    let details = found.to_string();
    assert!(details.contains("the account is not registered"), "{details}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_an_apply_set_are_found_below_its_parent() {
    let page = CertificatePage::start("below-set", |_, _| {}).await;
    let labelled = |mut object: Value, key: &str| {
        object["metadata"]["labels"] = json!({ key: "applyset-a-v1" });
        page.cluster.create(&object)
    };
    let parent = labelled(custom("Certificate", "set"), "applyset.kubernetes.io/id");
    labelled(saying("CertificateRequest", "member", "True"), "applyset.kubernetes.io/part-of");
    until("the page has both parents", || {
        body(&page.service.get("/api/v1/parents"))["matching"].as_u64() >= Some(2)
    });
    let found = page.below(&parent);
    assert_eq!(lines(&found), ["1 CertificateRequest.example.com member Ready"], "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_the_service_may_not_read_are_named_and_the_rest_is_shown() {
    let page = CertificatePage::start("below-rights", |_, _| {}).await;
    for (plural, verb) in [("secrets", RequestVerb::List), ("orders", RequestVerb::Get)] {
        let group = if plural == "orders" { "example.com" } else { "" };
        let refused = InjectedFault::new(FaultAction::Forbid).on_kind(group, plural);
        page.cluster.server.faults().add(refused.on_verb(verb));
    }
    let found = page.below(&page.certificate);
    assert_eq!(lines(&found)[1], "2 Order.example.com shop-1-42 Unknown", "{found}");
    let expected = json!([
        { "kinds": ["Secret"], "why": "Rollcall may not list them" },
        { "kinds": ["Order.example.com"], "why": "their contents: Rollcall may not get them" },
    ]);
    assert_eq!(found["notRead"], expected, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_workloads_the_current_pods_are_found_and_idle_replica_sets_are_left_out() {
    let page = CertificatePage::start("below-workloads", |cluster, certificate| {
        let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": { "replicas": 1 }, "status": { "observedGeneration": 1 } });
        let deployment = cluster.below(certificate, deployment);
        for (name, replicas) in [("web-old", 0), ("web-new", 1)] {
            let set = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": name },
                "spec": { "replicas": replicas }, "status": { "observedGeneration": 1, "replicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas } });
            let set = cluster.below(&deployment, set);
            if replicas > 0 {
                cluster.below(&set, pod("web-new-1", Some(("CrashLoopBackOff", "back-off"))));
            }
        }
    })
    .await;
    let found = page.below(&page.certificate);
    let shown = lines(&found);
    let names = ["web ", "web-new ", "web-new-1 "];
    assert!(names.iter().all(|name| shown.iter().any(|line| line.contains(name))), "{found}");
    assert!(shown.contains(&"3 Pod web-new-1 Failed".to_owned()), "{found}");
    assert!(!shown.iter().any(|line| line.contains("web-old")), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_read_down_to_the_pods_that_no_policy_counts_and_once_for_all_who_see_the_same() {
    let page = CertificatePage::start("rollout-below", |cluster, certificate| {
        let set = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "web" },
            "spec": { "replicas": 1 }, "status": { "observedGeneration": 1, "replicas": 1 } });
        let set = cluster.below(certificate, set);
        cluster.below(&set, pod("web-0", Some(("ImagePullBackOff", "back-off"))));
    })
    .await;
    page.cluster.server.forget_requests();
    let path = CertificatePage::path_of(&page.certificate).replace("/below", "/rollout");
    let found = body(&page.service.get(&path));
    let reads =
        || ["certificates", "statefulsets", "pods"].map(|plural| page.count(RequestVerb::Get, plural));
    let once = reads();
    assert!(once.iter().all(|reads| *reads > 0), "{once:?} {found}");
    // The policy counts Pods, so that the parent says itself that it is ready or not; its rollout has parts either way.
    assert!(found["from"].is_i64() && found["to"].is_i64() && found["generation"] == 1, "{found}");
    assert_eq!(body(&page.service.get(&path))["parts"], found["parts"]);
    assert_eq!(reads()[1..], once[1..], "who asks next gets what was read");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_kinds_and_five_thousand_objects_all_is_found_by_one_list_a_kind_for_all_viewers() {
    let page = CertificatePage::start("below-many", |cluster, certificate| {
        for kind in 0..60 {
            cluster.create(&crd(&format!("Part{kind:02}")));
            for at in 0..83 {
                let part = saying(&format!("Part{kind:02}"), &format!("part-{at}"), "True");
                if at < 2 {
                    cluster.below(certificate, part)
                } else {
                    cluster.create(&part)
                };
            }
        }
    })
    .await;
    page.cluster.server.forget_requests();
    let begun = Instant::now();
    let found = page.below(&page.certificate);
    let took = begun.elapsed();
    println!("5,000 objects of 60 kinds: {} requests, {took:?}", page.cluster.server.logged_requests().len());
    assert_eq!(lines(&found).len(), 2 + 120, "{found}");
    let once = page.cluster.server.logged_requests().len();
    for (kind, gets) in (0..60).map(|kind| (format!("part{kind:02}s"), 2)) {
        assert_eq!(
            (page.count(RequestVerb::List, &kind), page.count(RequestVerb::Get, &kind)),
            (1, gets),
            "{kind}"
        );
    }
    let viewers: Vec<_> = thread::scope(|scope| {
        let viewers: Vec<_> = (0..50).map(|_| scope.spawn(|| page.below(&page.certificate))).collect();
        viewers.into_iter().map(|viewer| viewer.join().unwrap()).collect()
    });
    assert!(viewers.iter().all(|seen| seen["below"] == found["below"]));
    // What the service itself does meanwhile: its Lease, its watches, live reads.
    let more = page.cluster.server.logged_requests().len() - once;
    assert!(more < 50, "{more} requests for 50 viewers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_hangs_is_given_up_when_its_viewer_goes_away() {
    let page = CertificatePage::start("below-gone", |_, _| {}).await;
    let other = page.cluster.create(&custom("Certificate", "other"));
    until("the other parent is known", || page.service.get("/api/v1/parents").contains("\"other\""));
    page.cluster.server.forget_requests();
    let hangs = InjectedFault::new(FaultAction::Stall).on_verb(RequestVerb::List);
    let hangs = page.cluster.server.faults().add(hangs);
    // As many as are searched for at once.
    let viewers = [&page.certificate, &other].map(|parent| page.begin_search(parent));
    let lists = || {
        let log = page.cluster.server.logged_requests();
        log.iter().filter(|request| request.verb == RequestVerb::List).count()
    };
    until("lists hang", || lists() >= 8);
    drop(viewers);
    hangs.lift();
    page.cluster.server.forget_requests();
    assert_eq!(page.below(&page.certificate)["notRead"], json!([]));
    // Searches that went on would have listed these as well, once the first lists had been given up.
    for plural in ["certificaterequests", "orders", "secrets", "services", "shops"] {
        assert_eq!(page.count(RequestVerb::List, plural), 1, "{plural}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_parents_are_looked_at_the_api_server_is_asked_at_a_bounded_rate() {
    const PARENTS: usize = 120;
    let page = CertificatePage::start("below-rate", |_, _| {}).await;
    let parents: Vec<Value> =
        (0..PARENTS).map(|at| page.cluster.create(&custom("Certificate", &format!("many-{at}")))).collect();
    until("the page has them", || {
        body(&page.service.get("/api/v1/parents"))["matching"].as_u64() > Some(PARENTS as u64)
    });
    page.cluster.server.forget_requests();
    // Who has waited for ten seconds is refused as well, so that a busy machine changes nothing.
    let answers: Vec<String> = thread::scope(|scope| {
        let get = |parent| page.service.get(&CertificatePage::path_of(parent));
        let viewers: Vec<_> = parents.iter().map(|parent| scope.spawn(move || get(parent))).collect();
        viewers.into_iter().map(|viewer| viewer.join().unwrap()).collect()
    });
    let refused = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 429")).count();
    let log = page.cluster.server.logged_requests();
    let lists = log.iter().filter(|request| request.verb == RequestVerb::List);
    let orders = lists.filter(|request| request.path.ends_with("/orders")).count();
    println!("{PARENTS} parents: {refused} refused, {orders} lists of Orders, {} requests", log.len());
    assert!(refused > 0 && refused < PARENTS, "{refused} of {PARENTS} were refused");
    assert!((1..5).contains(&orders), "{orders} lists of one kind in one namespace");
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200") || answer.contains("try again")));
}
