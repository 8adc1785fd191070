//! Unusable kubeconfigs: the error names the problem and the remedy, and the exit code is 2. Refusals that need a real
//! API server are tested in `tests/tests/real_server/credentials.rs`.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::cluster::{LiveCluster, done};

/// Returns the one-line error that every cluster command prints with this kubeconfig.
async fn told(cluster: &LiveCluster, kubeconfig: &str, more: &[&str]) -> String {
    let mut said = Vec::new();
    for args in [
        &["tree"][..],
        &["tree", "shop/books"],
        &["explain", "shop/books"],
        &["wait", "shop/books"],
        &["doctor"],
        &["history", "shop/books"],
        &["release"],
    ] {
        let mut command = cluster.bare();
        command.args(args).args(["--kubeconfig", kubeconfig]).args(more);
        let (code, out, err) = done(command).await;
        assert_eq!((code, &*out), (Some(2), ""), "{args:?}: {err}");
        // `release` logs like the service.
        assert!(args == ["release"] || err.lines().count() == 1, "{args:?}: {err}");
        said.push(err.lines().last().unwrap().to_owned());
    }
    assert!(said.iter().all(|line| *line == said[0]), "one cause, one answer: {said:#?}");
    said.swap_remove(0)
}

fn plugin(command: &str, args: &Value) -> Value {
    json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": args,
        "interactiveMode": "Never", "installHint": "get it at example.com/cloud-login" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_does_not_exist_is_named_with_those_that_do() {
    let cluster = LiveCluster::start("contexts").await;
    let file = cluster.kubeconfig("kubeconfig", &json!({}));
    let said = told(&cluster, &file, &["--context", "prod"]).await;
    assert!(said.contains("prod") && said.contains("its contexts: it") && said.contains(&file), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_missing_or_fails_is_named_and_its_output_is_not_shown() {
    let cluster = LiveCluster::start("plugins").await;
    let file = cluster.kubeconfig("missing", &plugin("cloud-login-of-nobody", &json!([])));
    let said = told(&cluster, &file, &[]).await;
    for part in
        ["cloud-login-of-nobody, which cannot be run", "get it at example.com/cloud-login", "--context"]
    {
        assert!(said.contains(part), "no {part}: {said}");
    }
    let script = json!(["-c", "echo '{\"secret\": 1}'; echo 'session expired' >&2; exit 7"]);
    let file = cluster.kubeconfig("failing", &plugin("sh", &script));
    let said = told(&cluster, &file, &[]).await;
    assert!(said.contains("from sh, which failed with exit status: 7 (session expired)"), "{said}");
    assert!(said.contains("log in again") && !said.contains("secret"), "{said}");
    let file = cluster.kubeconfig("silent", &plugin("echo", &json!(["what?"])));
    let said = told(&cluster, &file, &[]).await;
    assert!(said.contains("from echo, which provided no usable ones"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_named_by_its_address() {
    let cluster = LiveCluster::start("nowhere").await;
    // A port that was free a moment ago may be another test's by now; nobody listens on this one.
    let closed = "127.0.0.1:1";
    let file = cluster.kubeconfig("closed", &json!({ "token": "t" }));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(&cluster.server.url(), &format!("http://{closed}"))).unwrap();
    let said = told(&cluster, &file, &[]).await;
    assert!(said.contains(&format!("failed to reach the API server at http://{closed}: ")), "{said}");
    assert!(said.contains("onnection refused") && said.contains("check that the cluster is up"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_is_waited_for_no_longer_than_was_asked() {
    let cluster = LiveCluster::start("mute").await;
    // A server that accepts connections but never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let file = cluster.kubeconfig("mute", &json!({ "token": "t" }));
    let text = std::fs::read_to_string(&file).unwrap();
    let url = format!("http://{}", mute.local_addr().unwrap());
    std::fs::write(&file, text.replace(&cluster.server.url(), &url)).unwrap();
    let mut command = cluster.bare();
    command.args(["wait", "shop/books", "--timeout", "300ms", "--kubeconfig", &file]);
    let (code, out, err) = done(command).await;
    assert_eq!((code, &*out), (Some(124), "the cluster has not responded: waited too long\n"), "{err}");
}
