//! A history that is read is left as it is, and one that is not there is said to be missing.

use std::path::Path;

use sandbox::{FaultAction, InjectedFault};

use super::cluster::{LiveCluster, custom, done, policy};

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
