//! A history that is read is left as it is, one that is not there is said to be missing, and one that is there is played.

use std::path::Path;

use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, OWN_NAMESPACE, condition, custom, done, pod, policy};
use super::service::{RunningService, until};

#[tokio::test]
async fn a_history_that_is_not_there_is_named_and_not_made() {
    let cluster = LiveCluster::start("past-missing").await;
    cluster.create(&custom("Shop", "books"));
    let here = cluster.text_file("plan.json", &policy("Shop", "example.com", "Database").to_string());
    let folder = Path::new(&here).parent().unwrap().to_owned();
    let missing = folder.join("histroy").display().to_string();
    std::fs::remove_dir_all(&missing).ok();
    for from in [missing.clone(), format!("file://{missing}"), "histroy".to_owned()] {
        for args in
            [vec!["history", "shop/books", "--from", &from], vec!["plan", "-f", &here, "--replay", &from]]
        {
            let mut command = cluster.bare();
            command.args(&args).current_dir(&folder);
            let (code, out, err) = done(command).await;
            assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
            assert!(
                err.contains(&format!("failed to read the history at {from}: there is no folder")),
                "{err}"
            );
            assert!(!Path::new(&missing).exists(), "{args:?} made it");
        }
    }
}

#[tokio::test]
async fn events_that_may_not_be_listed_are_refused_in_the_words_of_the_server() {
    let cluster = LiveCluster::start("past-forbidden").await;
    cluster.create(&custom("Shop", "books"));
    cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_kind("", "events"));
    let mut command = cluster.bare();
    command.args(["history", "shop/books"]);
    let (code, out, err) = done(command).await;
    assert!(code == Some(2) && out.is_empty(), "{out}{err}");
    assert!(err.contains("failed to list Events in default; --from reads an object store: "), "{err}");
    assert!(err.contains("forbidden") && !err.contains("Status {"), "{err}");
}

/// A pod is ready, or waits for what it needs to start.
fn set_ready(cluster: &LiveCluster, is_ready: bool) {
    let waits = (!is_ready).then_some(("ContainerCreating", ""));
    let (now, patch) = (cluster.server.now(), json!({ "status": pod("orders-0", waits)["status"] }));
    cluster.server.lock_store().patch_status(now, "v1", "Pod", "default", "orders-0", &patch).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_past_is_played_against_policies_that_damp_more() {
    const FALLS: usize = 3;
    let cluster = LiveCluster::start("past-replayed").await;
    cluster.install();
    let databases = policy("Database", "", "Pod");
    cluster.create(&databases);
    let database = cluster.create(&custom("Database", "orders"));
    cluster.below(&database, pod("orders-0", None));
    let mut damped = databases.clone();
    damped["spec"]["grace"] = json!("10m");
    let file = cluster.file("damped.json", &damped);
    let folder = Path::new(&file).parent().unwrap().join("history");
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let history = format!("file://{}", folder.display());
    let args = ["--records-namespace", OWN_NAMESPACE, "--history", &history, "--history-flush", "1s"];
    let service = RunningService::start(&cluster, &args, &[]);
    let says = || condition(&cluster.parent("Database", "orders"), "Ready")["status"].clone();
    until("it is ready", || says() == "True");
    for _ in 0..FALLS {
        set_ready(&cluster, false);
        until("it is not ready", || says() == "False");
        set_ready(&cluster, true);
        until("it is ready again", || says() == "True");
    }
    // A service that is told to stop uploads what it has.
    service.stop();

    let args = ["plan", "-f", &*file, "--replay", &*history];
    let run = async |more: &[&str]| {
        let mut command = cluster.bare();
        command.args(args).args(more);
        done(command).await
    };
    let (_, out, err) = run(&["-o", "json"]).await;
    let plan: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    let replayed = &plan["replayed"][0];
    assert_eq!(
        (&replayed["policy"], &replayed["parents"], &replayed["flaps"], &replayed["wouldFlap"]),
        (&json!("database"), &json!(1), &json!(FALLS), &json!(0)),
        "{plan}"
    );
    let (_, out, _) = run(&[]).await;
    assert!(out.contains("policy database: of 1 parent, 3 flaps would have been 0"), "{out}");
}
