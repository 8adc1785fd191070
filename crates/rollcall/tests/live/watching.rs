//! `tree --watch` and `wait` in a terminal, and without one.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{LiveCluster, crd, custom, pod};
use super::terminal::LiveTerminal;

/// Returns a Shop with a database one of whose pods crash-loops.
async fn shop(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    let shop = cluster.create(&custom("Shop", "books"));
    let database = cluster.below(&shop, custom("Database", "db"));
    cluster.below(&database, pod("web-0", None));
    cluster.below(
        &database,
        pod("web-1", Some(("CrashLoopBackOff", "back-off 5m0s restarting failed container"))),
    );
    cluster
}

/// Replaces the pod's status by that of another.
fn turn(cluster: &LiveCluster, into: &Value) {
    let now = cluster.server.now();
    let name = into["metadata"]["name"].as_str().unwrap();
    let status = json!({ "status": into["status"] });
    cluster.server.lock_store().patch_status(now, "v1", "Pod", "default", name, &status).unwrap();
}

fn heal(cluster: &LiveCluster) {
    turn(cluster, &pod("web-1", None));
}

fn has(rows: &[String], parts: &[&str]) -> bool {
    rows.iter().any(|row| parts.iter().all(|part| row.contains(part)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_tree_is_drawn_anew_in_its_place_and_to_the_size_of_the_terminal() {
    let cluster = shop("redrawn").await;
    let mut terminal = LiveTerminal::start(&cluster.rollcall(&["tree", "shop/books", "--watch"]), 40, &[]);
    let narrow = terminal.until("the crash loop", |rows| has(rows, &["waiting: CrashLoopBackOff"])).await;
    assert!(has(&narrow, &["Shop default/books", "Failed"]), "{narrow:#?}");
    assert!(!has(&narrow, &["Pod", "waiting:"]), "the reason is below: {narrow:#?}");
    assert!(terminal.is_unbroken(), "{narrow:#?}");
    // Nothing changes in the cluster: the resize alone causes a redraw.
    terminal.resize(100);
    let wide = terminal.until("the reason beside", |rows| has(rows, &["Pod", "waiting: CrashLoop"])).await;
    assert_eq!(wide.len(), 4, "{wide:#?}");
    assert!(terminal.is_unbroken(), "{wide:#?}");
    heal(&cluster);
    let all_of_it = |rows: &[String]| rows.len() == 4 && has(rows, &["Shop", "Ready"]);
    let well = terminal.until("all well", all_of_it).await;
    assert!(!has(&well, &["CrashLoop"]), "nothing is left of before: {well:#?}");
    assert!(terminal.sent().contains("\u{1b}[32m"), "in colour");
    terminal.types("\u{3}");
    assert_eq!(terminal.end().await.code(), Some(0), "of the last state");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_tree_that_is_higher_than_the_terminal_shows_its_top() {
    let cluster = shop("high").await;
    let database = cluster.server.lock_store().get("example.com/v1", "Database", "default", "db").unwrap();
    for n in 10..60 {
        cluster.below(&database, pod(&format!("web-{n}"), None));
    }
    let terminal = LiveTerminal::start(&cluster.rollcall(&["tree", "shop/books", "--watch"]), 80, &[]);
    let rows = terminal.until("the last line", |rows| has(rows, &["more lines"])).await;
    assert!(rows[0].starts_with("Shop default/books"), "{rows:#?}");
    assert!(rows[2].contains("web-1") && rows[2].contains("CrashLoop"), "the worst: {rows:#?}");
    assert_eq!(rows.last().unwrap(), "… 32 more lines: use --limit, --depth or a taller terminal");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_color_and_a_dumb_terminal_get_what_they_ask_for() {
    let cluster = shop("plain").await;
    let watch = cluster.rollcall(&["tree", "shop/books", "--watch"]);
    for (env, clears) in [(("NO_COLOR", "1"), true), (("TERM", "dumb"), false)] {
        let terminal = LiveTerminal::start(&watch, 80, &[env]);
        terminal.until("the tree", |rows| has(rows, &["Shop", "Failed"])).await;
        let sent = terminal.sent();
        let colours = sent.split('\u{1b}').skip(1).filter(|rest| {
            rest.trim_start_matches(['[', ';'])
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .starts_with('m')
        });
        assert_eq!(colours.count(), 0, "{env:?}: {sent:?}");
        assert_eq!(sent.contains("\u{1b}[2J"), clears, "{env:?}: {sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_shows_the_root_cause_on_one_line_that_leaves_nothing_behind() {
    let cluster = shop("progress").await;
    let mut terminal =
        LiveTerminal::start(&cluster.rollcall(&["wait", "shop/books", "--timeout", "2m"]), 40, &[]);
    let rows = terminal.until("the cause", |rows| has(rows, &["Shop books failed: 1 of 1 not ready"])).await;
    assert!(rows.len() == 1 && rows[0].ends_with('…') && terminal.is_unbroken(), "{rows:#?}");
    turn(&cluster, &pod("web-1", Some(("ImagePullBackOff", "no such image"))));
    terminal.resize(120);
    let rows = terminal.until("the next cause", |rows| has(rows, &["waiting: ImagePullBackOff"])).await;
    assert!(rows.len() == 1, "over the line before: {rows:#?}");
    heal(&cluster);
    assert_eq!(terminal.end().await.code(), Some(0));
    let rows = terminal.until("the end", |rows| has(rows, &["Shop books: ready"])).await;
    assert_eq!(rows, ["Shop books: ready"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_messages_are_text_on_every_terminal() {
    let cluster = LiveCluster::start("hostile").await;
    let shop = cluster.create(&custom("Shop", "books"));
    let mut database = custom("Database", "db");
    let message = "<b>gone</b>\u{1b}[2J\u{1b}]0;title\u{7}\r\u{202e}evil";
    database["status"]["conditions"] = json!([
        { "type": "Ready", "status": "False", "reason": message, "message": message },
    ]);
    cluster.below(&shop, database);
    // Without a policy for Databases, their own conditions count.
    let policies = cluster.file("shops.yaml", &super::cluster::policy("Shop", "example.com", "Database"));
    for args in [&["tree", "shop/books", "--watch"][..], &["wait", "shop/books", "--timeout", "1m"]] {
        let mut command = cluster.bare();
        command.args(args).args(["-f", &policies]);
        let terminal = LiveTerminal::start(&command, 200, &[]);
        terminal.until("the text", |rows| has(rows, &["<b>gone</b> [2J ]0;title evil"])).await;
        let sent = terminal.sent();
        assert!(!sent.contains("\u{1b}]") && !sent.contains(['\u{7}', '\u{202e}']), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_seen_enough_ends_it_without_a_word() {
    let cluster = shop("enough").await;
    let mut watching = cluster.rollcall(&["tree", "shop/books", "--watch"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(watching.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("OBJECT"), "{first}");
    // The reader has closed the pipe; the next change shows that.
    heal(&cluster);
    let ended = tokio::task::spawn_blocking(move || watching.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));

    turn(&cluster, &pod("web-1", Some(("CrashLoopBackOff", ""))));
    let mut waiting = cluster.rollcall(&["wait", "shop/books", "--timeout", "2m"]).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("CrashLoopBackOff"), "{said}");
    // Standard error has been closed; the command still waits for the end.
    turn(&cluster, &pod("web-1", Some(("ImagePullBackOff", ""))));
    heal(&cluster);
    let ended = tokio::task::spawn_blocking(move || waiting.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(
        (ended.status.code(), &*String::from_utf8_lossy(&ended.stdout)),
        (Some(0), "Shop books: ready\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_there_is_no_escape_and_a_line_for_each_change() {
    let cluster = shop("file").await;
    let mut command = cluster.rollcall(&["wait", "shop/books", "--timeout", "10s"]);
    command.env("TERM", "xterm").stdin(Stdio::null());
    let (code, out, err) = super::cluster::done(command).await;
    assert_eq!(code, Some(124), "{out}{err}");
    assert!(!(out.clone() + &err).contains('\u{1b}'), "{out:?} {err:?}");
    assert_eq!(err.lines().count(), 1, "one cause, one line: {err}");
    assert!(out.ends_with(": waited too long\n"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_goes_away_is_named_and_comes_back() {
    let cluster = shop("away").await;
    let tree = LiveTerminal::start(&cluster.rollcall(&["tree", "shop/books", "--watch"]), 100, &[]);
    let mut wait =
        LiveTerminal::start(&cluster.rollcall(&["wait", "shop/books", "--timeout", "2m"]), 100, &[]);
    tree.until("the tree", |rows| has(rows, &["Shop", "Failed"])).await;
    wait.until("the cause", |rows| has(rows, &["Shop books failed"])).await;
    cluster.server.faults().add(InjectedFault::new(FaultAction::Answer(401, None)));
    cluster.server.end_watches();
    let words = "the cluster no longer accepts these credentials (401)";
    let rows = tree.until("the trouble", |rows| has(rows, &[words])).await;
    assert!(
        rows[0].starts_with(words) && has(&rows, &["Shop", "Failed"]),
        "what was known is still there: {rows:#?}"
    );
    wait.until("the trouble", |rows| has(rows, &[words])).await;
    cluster.server.faults().clear();
    heal(&cluster);
    assert_eq!(wait.end().await.code(), Some(0));
    // Each kind reconnects in its own time, and the last one clears the error.
    tree.until("all well", |rows| has(rows, &["Shop", "Ready"]) && !has(rows, &["401"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_are_waited_for_at_once_and_one_that_has_failed_for_good_ends_it() {
    let cluster = shop("many").await;
    let args = ["wait", "shop/books", "shop/toys", "--for", "ready", "--timeout", "2m"];
    let mut terminal = LiveTerminal::start(&cluster.rollcall(&args), 100, &[]);
    terminal.until("both", |rows| has(rows, &["0 of 2 ready; Shop books failed"])).await;
    // An object that does not exist yet is waited for.
    let toys = cluster.create(&custom("Shop", "toys"));
    let database = cluster.below(&toys, custom("Database", "toys-db"));
    cluster.below(&database, pod("toys-0", None));
    terminal.until("one", |rows| has(rows, &["1 of 2 ready; Shop books failed"])).await;
    heal(&cluster);
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.rows(), ["Shop books, Shop toys: ready"]);

    let mut failed = pod("toys-1", None);
    failed["status"] =
        json!({ "phase": "Failed", "reason": "Evicted", "message": "the node was low on memory" });
    cluster.below(&database, failed);
    let (code, out, err) = cluster.run(&args).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("Shop toys failed") && out.ends_with(": failed\n"), "{out}{err}");
}

/// A Certificate whose CertificateRequest no policy counts, and says this of itself.
async fn certificate(name: &str) -> (LiveCluster, Value) {
    let cluster = LiveCluster::start(name).await;
    for kind in ["Certificate", "CertificateRequest"] {
        cluster.create(&crd(kind));
    }
    let certificate = cluster.create(&custom("Certificate", "shop"));
    let mut request = custom("CertificateRequest", "shop-1");
    request["status"]["conditions"] = json!([{ "type": "Ready", "status": "False", "reason": "Pending" }]);
    cluster.below(&certificate, request);
    (cluster, certificate)
}

fn watch_certificate(cluster: &LiveCluster) -> LiveTerminal {
    let mut command = cluster.bare();
    command.args(["tree", "certificate/shop", "--watch"]);
    LiveTerminal::start(&command, 120, &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_tree_shows_what_no_policy_counts_and_what_becomes_of_it() {
    let (cluster, certificate) = certificate("watched-below").await;
    let refused = InjectedFault::new(FaultAction::Forbid).on_kind("", "secrets");
    cluster.server.faults().add(refused);
    let mut terminal = watch_certificate(&cluster);
    let uncounted = |rows: &[String], name: &str, verdict: &str| has(rows, &[name, "(not counted)", verdict]);
    let rows = terminal.until("what is below", |rows| uncounted(rows, "shop-1", "Progressing")).await;
    assert!(has(&rows, &["not read: what is owned of Secret: you may not list them"]), "{rows:#?}");
    // Nothing of what is followed changes.
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let now = cluster.server.now();
    let of = ("example.com/v1", "CertificateRequest");
    cluster.server.lock_store().patch_status(now, of.0, of.1, "default", "shop-1", &ready).unwrap();
    cluster.below(&certificate, custom("CertificateRequest", "shop-2"));
    let both = |rows: &[String]| uncounted(rows, "shop-1", "Ready") && uncounted(rows, "shop-2", "");
    terminal.until("what has become of it", both).await;
    terminal.types("\u{3}");
    terminal.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_hangs_delays_neither_the_watched_tree_nor_its_end() {
    let (cluster, _) = certificate("watched-hang").await;
    let hangs = InjectedFault::new(FaultAction::Stall).on_kind("example.com", "certificaterequests");
    cluster.server.faults().add(hangs);
    let mut terminal = watch_certificate(&cluster);
    terminal.until("the tree", |rows| has(rows, &["Certificate default/shop"])).await;
    let began = Instant::now();
    let ready =
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Broken" }] } });
    let now = cluster.server.now();
    let of = ("example.com/v1", "Certificate");
    cluster.server.lock_store().patch_status(now, of.0, of.1, "default", "shop", &ready).unwrap();
    terminal
        .until("the change", |rows| has(rows, &["Certificate default/shop", "its status says Ready=False"]))
        .await;
    terminal.types("\u{3}");
    terminal.end().await;
    // A list gives up after 10 s.
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}
