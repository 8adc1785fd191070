//! What those cannot cause or see who let the page search below parents.

use std::io::ErrorKind;
use std::thread;

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{condition, custom, pod};
use super::page_below::{CertificatePage, body};
use super::service::until;

/// Kinds whose lists hang: more than are listed at once, so that a search takes all the time that it has.
const HANGING: [(&str, &str); 8] = [
    ("", "configmaps"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("example.com", "certificaterequests"),
    ("example.com", "certificates"),
    ("example.com", "databases"),
    ("example.com", "orders"),
];

/// Changes whether a Pod is ready, and waits until its Certificate says so.
fn turn(page: &CertificatePage, status: &str) {
    let patch = json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
    let now = page.cluster.server.now();
    let mut store = page.cluster.server.lock_store();
    store.patch_status(now, "v1", "Pod", "default", "web", &patch).unwrap();
    drop(store);
    until(&format!("the Certificate says {status}"), || {
        condition(&page.cluster.parent("Certificate", "shop"), "Ready")["status"] == status
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_makes_it_search_lets_others_wait_for_their_searches_and_for_nothing_else() {
    let page = CertificatePage::start("bounds-waiting", |cluster, certificate| {
        cluster.below(certificate, pod("web", None));
    })
    .await;
    let (other, third) = (custom("Certificate", "other"), custom("Certificate", "third"));
    let (other, third) = (page.cluster.create(&other), page.cluster.create(&third));
    until("it is ready", || page.service.get("/readyz").starts_with("HTTP/1.1 200"));
    until("all parents are known", || {
        body(&page.service.get("/api/v1/parents"))["matching"].as_u64() == Some(3)
    });
    let hangs = HANGING.map(|(group, plural)| {
        let fault = InjectedFault::new(FaultAction::Stall).on_kind(group, plural);
        page.cluster.server.faults().add(fault.on_verb(RequestVerb::List))
    });
    let hanging = || hangs.iter().map(sandbox::FaultHandle::fired_count).sum::<u32>();
    // As many as are searched for at once, each with as many lists as are asked for at once.
    let viewers = [&page.certificate, &other].map(|parent| page.begin_search(parent));
    until("both hang", || hanging() == 8);
    let address = page.service.address();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| page.below(&third));
        let shop = format!("/api/v1/parents/{}", page.certificate["metadata"]["uid"].as_str().unwrap());
        let of_pod = "label=Pod&namespace=default&name=web";
        for path in [
            "/api/v1/parents",
            &shop,
            &format!("{shop}/branch?{of_pod}"),
            &format!("{shop}/around?{of_pod}"),
            "/readyz",
            "/livez",
            "/metrics",
        ] {
            let answer = page.service.get(path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path} of {address}: {answer}");
        }
        for status in ["False", "True"] {
            turn(&page, status);
        }
        let is_open = viewers.iter().all(|viewer| {
            viewer.set_nonblocking(true).unwrap();
            viewer.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        });
        assert!(is_open && !waiting.is_finished(), "the searches were waited for");
        for fault in &hangs {
            fault.lift();
        }
        drop(viewers);
        // Its turn comes when theirs is over.
        assert_eq!(waiting.join().unwrap()["notRead"], json!([]));
    });
}

/// A Secret or ConfigMap with something to be kept from others.
fn secretive(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name },
        "data": { "token": "aHVudGVyMg==" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn of_secrets_and_config_maps_nothing_but_the_metadata_is_asked_for() {
    // Few objects of a kind are read one by one, and many by a list.
    for (word, count) in [("few", 1), ("many", 6)] {
        let page = CertificatePage::start(&format!("bounds-{word}"), |cluster, certificate| {
            for kind in ["Secret", "ConfigMap"] {
                for at in 0..count {
                    cluster.below(certificate, secretive(kind, &format!("kept-{at}")));
                }
            }
        })
        .await;
        page.cluster.server.forget_requests();
        let found = page.below(&page.certificate);
        for kind in ["Secret", "ConfigMap"] {
            let shown = found.to_string().matches(&format!("\"label\":\"{kind}\"")).count();
            assert_eq!(shown, count, "{kind}: {found}");
        }
        assert!(!found.to_string().contains("aHVudGVyMg=="), "{found}");
        let rollout = CertificatePage::path_of(&page.certificate).replace("/below", "/rollout");
        let told = body(&page.service.get(&rollout));
        assert!(told["parts"].is_array() && !told.to_string().contains("aHVudGVyMg=="), "{told}");
        let (mut lists, mut gets) = ([0; 2], [0; 2]);
        for request in page.cluster.server.logged_requests() {
            let kind = ["secrets", "configmaps"].iter().position(|plural| request.path.contains(plural));
            let Some(kind) = kind else { continue };
            // Every form that is accepted: a server that has none of them sends an error.
            let mut forms = request.accept.split(',');
            assert!(forms.all(|form| form.contains("as=PartialObjectMetadata")), "{request:?}");
            match request.verb {
                RequestVerb::List => lists[kind] += 1,
                _ => gets[kind] += 1,
            }
        }
        let by_search = usize::from(word == "few");
        assert_eq!((lists, gets), ([1, 2 - by_search], [0, by_search + count]), "{word}");
    }
}
