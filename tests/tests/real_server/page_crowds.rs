//! The live page before very many: children of one parent, and parents that turn faster than somebody reads.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::objects::owned_by;
use acceptance::places;
use acceptance::plain_http::get;
use acceptance::process::LoggedProcess;
use acceptance::rollcall_command::rollcall;
use anyhow::{Context, Result, anyhow, ensure};
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::page::look;

/// Makes an object of a cluster in memory.
fn put(server: &SandboxServer, object: Value) -> Result<Arc<Value>> {
    let made = server.lock_store().create_with_status(server.now(), object);
    made.map_err(|refusal| anyhow!("{}", refusal.message()))
}

/// A cluster in memory with a policy for the kind Crowd.
async fn cluster(spec: Value) -> Result<SandboxServer> {
    let server = SandboxServer::start(SandboxOptions::default()).await?;
    let crds: Vec<Value> = serde_saphyr::from_multiple(&rollcall(&["crd"])?)?;
    for crd in crds.into_iter().chain([CrdBuilder::new("Crowd").manifest("example.com")]) {
        put(&server, crd)?;
    }
    let policy = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "crowds" }, "spec": spec,
    });
    put(&server, policy)?;
    Ok(server)
}

fn parent(name: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": "default" });
    json!({ "apiVersion": "example.com/v1", "kind": "Crowd", "metadata": metadata, "spec": {} })
}

fn pod(name: &str, ready: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "it", "image": "it" }] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

/// The service over that cluster, and where it listens; its plan is made.
async fn service(server: &SandboxServer, word: &str) -> Result<(LoggedProcess, String)> {
    let folder = places::run_folder()?.join(word);
    fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": { "server": server.url() } }],
        "users": [{ "name": "it", "user": {} }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    });
    fs::write(&kubeconfig, config.to_string())?;
    let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
    let args =
        ["run".to_owned(), format!("--listen={address}"), format!("--kubeconfig={}", kubeconfig.display())];
    let running = LoggedProcess::start("rollcall", &places::rollcall()?, &args, &[], &folder.join("log"))?;
    let up = async {
        while TcpStream::connect(&address).await.is_err() || !running.output().contains("plan") {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TEST_TIMEOUT, up).await.with_context(|| running.tail(20))?;
    Ok((running, address))
}

/// So many belong to one parent.
const MANY: usize = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_thousand_children_as_many_exist_as_are_in_sight() -> Result<()> {
    let spec = json!({
        "parent": { "group": "example.com", "kind": "Crowd" }, "children": [{ "kind": { "kind": "Pod" } }],
        "settle": "100ms",
    });
    let server = cluster(spec).await?;
    let big = put(&server, parent("big"))?;
    for at in 0..MANY {
        let ready = if at % 100 == 0 { "False" } else { "True" };
        put(&server, owned_by(&big, pod(&format!("pod-{at:05}"), ready)))?;
    }
    let (_running, address) = service(&server, "crowd").await?;
    let said = look(&["large", &format!("http://{address}/"), &server.url()]).await?;
    eprintln!("{said}");
    Ok(())
}

/// So many parents look at one pod: all of them turn with it, and what streams say of that is large.
const PARENTS: usize = 400;
/// A reader who takes nothing is let go of after 20 s; in between, so often is it asked whether it was.
const AGAIN: Duration = Duration::from_millis(250);

/// Somebody who listens, in whose buffers there is no room.
async fn listener(address: &str, room: u32) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(room)?;
    let mut stream = socket.connect(address.parse()?).await?;
    stream.write_all(format!("GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    Ok(stream)
}

/// How many listen, as the service counts them.
async fn listeners(address: &str) -> Result<u32> {
    let metrics = get(address, "/metrics", "").await?.body;
    let count = metrics.lines().find_map(|line| line.strip_prefix("rollcall_page_streams "));
    Ok(count.context("no count of streams")?.parse()?)
}

/// Reads until a parent is told to stand so.
async fn hear(reader: &mut BufReader<TcpStream>, verdict: &str) -> Result<()> {
    let word = format!("\"verdict\":\"{verdict}\"");
    let heard = async {
        let mut line = String::new();
        while !line.contains(&word) {
            line.clear();
            ensure!(reader.read_line(&mut line).await? > 0, "the stream has ended");
        }
        Ok(())
    };
    timeout(TEST_TIMEOUT, heard).await.with_context(|| format!("{verdict} was not heard"))?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_takes_nothing_is_let_go_and_the_others_hear_on() -> Result<()> {
    let spec = json!({
        "parent": { "group": "example.com", "kind": "Crowd" }, "mode": "shadow", "settle": "0s",
        "children": [{ "kind": { "kind": "Pod" }, "find": { "labels": { "of": "all" } } }],
    });
    let server = cluster(spec).await?;
    for at in 0..PARENTS {
        put(&server, parent(&format!("{}-{at:03}", "crowd".repeat(40))))?;
    }
    let mut all = pod("all", "True");
    all["metadata"]["labels"] = json!({ "of": "all" });
    put(&server, all)?;
    let turn = |ready: &str| -> Result<()> {
        let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        let turned = server.lock_store().patch_status(server.now(), "v1", "Pod", "default", "all", &status);
        turned.map(drop).map_err(|refusal| anyhow!("{}", refusal.message()))
    };
    let (_running, address) = service(&server, "slow").await?;
    let mut slow = listener(&address, 4_096).await?;
    let mut quick = BufReader::new(listener(&address, 1 << 20).await?);
    let both = async {
        while listeners(&address).await? < 2 {
            sleep(AGAIN).await;
        }
        anyhow::Ok(())
    };
    timeout(TEST_TIMEOUT, both).await??;
    let mut turns = 0;
    let let_go = async {
        while listeners(&address).await? == 2 {
            for (ready, verdict) in [("False", "Progressing"), ("True", "Ready")] {
                turn(ready)?;
                hear(&mut quick, verdict).await?;
            }
            turns += 1;
            sleep(AGAIN).await;
        }
        anyhow::Ok(())
    };
    timeout(TEST_TIMEOUT, let_go).await.context("who takes nothing is still waited for")??;
    eprintln!("let go after {turns} turns there and back");
    assert_eq!(listeners(&address).await?, 1, "the one who reads");
    turn("False")?;
    hear(&mut quick, "Progressing").await?;
    // What was on its way arrives, and after it nothing: the server has closed it. That may be by a reset.
    let mut left = Vec::new();
    let end = timeout(TEST_TIMEOUT, slow.read_to_end(&mut left)).await.context("it is still open")?;
    assert!(end.is_err() || !left.is_empty(), "{end:?}");
    assert!(!String::from_utf8_lossy(&left).contains("event: end"), "there was no room for a word");
    Ok(())
}
