//! A history that is read is left as it is, and one that is not there is said to be missing.

use std::path::Path;

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
