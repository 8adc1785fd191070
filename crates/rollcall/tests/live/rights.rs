//! Forbidden reads are named, and everything else is shown.

use sandbox::{FaultAction, InjectedFault, RequestVerb};

use super::cluster::{LiveCluster, custom, pod};

#[tokio::test(flavor = "multi_thread")]
async fn an_explanation_goes_as_far_as_the_rights_go() {
    let cluster = LiveCluster::start("rights").await;
    let shop = cluster.create(&custom("Shop", "books"));
    let database = cluster.below(&shop, custom("Database", "db"));
    cluster.below(&database, pod("web-0", Some(("CrashLoopBackOff", "back-off 5m0s"))));
    let (code, out, _) = cluster.run(&["explain", "shop/books"]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("values    ") && out.contains("logs pod/web-0 -c main --previous"), "{out}");
    assert!(!out.contains("not read  "), "{out}");

    cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_kind("", "events"));
    let (code, out, _) = cluster.run(&["explain", "shop/books"]).await;
    assert!(code == Some(1) && out.contains("values    "), "{out}");
    assert!(out.contains("not read  Events: you may not read"), "{out}");

    // A user who may list but not get pods sees the unready pod and the reason, but not its content.
    cluster
        .server
        .faults()
        .add(InjectedFault::new(FaultAction::Forbid).on_kind("", "pods").on_verb(RequestVerb::Get));
    let (code, out, _) = cluster.run(&["explain", "shop/books"]).await;
    assert!(code == Some(1) && out.contains("1. Pod default/web-0  Failed  ContainerWaiting"), "{out}");
    assert!(out.contains("not read  Pod web-0: ") && !out.contains("values    "), "{out}");
}
