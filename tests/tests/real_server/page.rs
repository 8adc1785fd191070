//! The live page, looked at in a real Chromium, and who may see what of it, decided by a real API server.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use acceptance::control_plane::free_ports;
use acceptance::crd::Crd;
use acceptance::objects::{config_map, deployment, owned_by, uid};
use acceptance::places;
use acceptance::process::Process;
use acceptance::rollcall::{Rollcall, rollcall};
use acceptance::scene::{PATIENCE, Scene};
use acceptance::wish::{Wish, says};
use anyhow::{Context, Result, ensure};
use sandbox::{Options, Server};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Looks at the page: what a scenario of `tests/page/check.mjs` says. It gives up by itself.
async fn look(args: &[&str]) -> Result<String> {
    let folder = super::grafana::installed("page")?;
    let mut node = Command::new("node");
    node.arg("check.mjs").args(args).current_dir(&folder).stdin(Stdio::null());
    let looked = tokio::task::spawn_blocking(move || node.output()).await?;
    let looked = looked.context("node (package nodejs) is missing")?;
    let said = String::from_utf8_lossy(&looked.stdout).into_owned();
    ensure!(looked.status.success(), "{said}{}", String::from_utf8_lossy(&looked.stderr));
    ensure!(said.contains(" held, 0 not"), "{said}");
    Ok(said)
}

async fn look_at_the_demo(scenario: &str) -> Result<String> {
    look(&[scenario, &places::rollcall()?.to_string_lossy()]).await
}

#[tokio::test]
async fn the_story_of_the_demo_is_seen_through_the_page() -> Result<()> {
    look_at_the_demo("story").await.map(drop)
}

#[tokio::test]
async fn the_page_obeys_keys_and_addresses_in_the_dark_and_on_a_phone() -> Result<()> {
    look_at_the_demo("hands").await.map(drop)
}

#[tokio::test]
async fn each_state_of_the_page_says_what_it_is_and_the_worst_is_on_top() -> Result<()> {
    look_at_the_demo("states").await.map(drop)
}

#[tokio::test]
async fn what_would_like_to_be_more_than_text_is_text() -> Result<()> {
    look_at_the_demo("hostile").await.map(drop)
}

/// So many belong to one parent.
const MANY: usize = 20_000;

/// A cluster in memory with one parent of very many.
async fn crowd() -> Result<Server> {
    let server = Server::start(Options::default()).await?;
    let mut crds: Vec<Value> = serde_saphyr::from_multiple(&rollcall(&["crd"])?)?;
    crds.push(Crd::new("Crowd").manifest("example.com"));
    for crd in crds {
        server
            .store()
            .create(server.now(), crd)
            .map_err(|refusal| anyhow::anyhow!("{}", refusal.message()))?;
    }
    let objects = [
        json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "crowds" },
            "spec": {
                "parent": { "group": "example.com", "kind": "Crowd" }, "children": [{ "kind": { "kind": "Pod" } }],
                "settle": "100ms",
            },
        }),
        json!({
            "apiVersion": "example.com/v1", "kind": "Crowd", "metadata": { "name": "big", "namespace": "default" },
            "spec": {},
        }),
    ];
    let mut parent = None;
    for object in objects {
        parent = Some(
            server.store().create(server.now(), object).map_err(|r| anyhow::anyhow!("{}", r.message()))?,
        );
    }
    let parent = parent.context("a parent")?;
    for at in 0..MANY {
        let ready = if at % 100 == 0 { "False" } else { "True" };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": format!("pod-{at:05}"), "namespace": "default" },
            "spec": { "containers": [{ "name": "it", "image": "it" }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] },
        });
        let pod = owned_by(&parent, pod);
        server
            .store()
            .create_with_status(server.now(), pod)
            .map_err(|r| anyhow::anyhow!("{}", r.message()))?;
    }
    Ok(server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_thousand_children_as_many_exist_as_are_in_sight() -> Result<()> {
    let server = crowd().await?;
    let folder = places::run_folder()?.join("crowd");
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
    let running = Process::start("rollcall", &places::rollcall()?, &args, &[], &folder.join("log"))?;
    let up = async {
        while tokio::net::TcpStream::connect(&address).await.is_err() || !running.output().contains("plan") {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, up).await.with_context(|| running.tail(20))?;
    let said = look(&["large", &format!("http://{address}/")]).await?;
    eprintln!("{said}");
    Ok(())
}

/// A service account of the scene, with a role that grants these resources to be listed and got, and its token.
async fn somebody(scene: &Scene, name: &str, resources: &[&str]) -> Result<String> {
    scene
        .create(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } }))
        .await?;
    let rbac = "rbac.authorization.k8s.io";
    let rules =
        json!([{ "apiGroups": [scene.group, "apps", ""], "resources": resources, "verbs": ["get", "list"] }]);
    if !resources.is_empty() {
        let metadata = json!({ "name": name });
        let role = json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": rules });
        scene.create(role).await?;
        let binding = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": rbac, "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": scene.name }],
        });
        scene.create(binding).await?;
    }
    scene.plane.token_of(&scene.name, name).await
}

/// One GET of the API.
async fn ask(running: &Rollcall, path: &str, token: &str) -> Result<(u16, Value)> {
    let answer = running.http_as(path, token).await?;
    Ok((answer.code, serde_json::from_str(&answer.body).unwrap_or_default()))
}

const PARENTS: &str = "/api/v1/parents";

#[tokio::test]
async fn each_sees_what_they_may_list_and_nothing_of_the_rest() -> Result<()> {
    let scene = Scene::set("seen").await?;
    scene.crd(&Crd::new("Site")).await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    scene.policy("site", "Site", spec).await?;
    let port = free_ports(1)?[0];
    let running = scene.rollcall(&[&format!("--listen=0.0.0.0:{port}")]).await?;
    let site = scene.create(scene.custom("Site", "one")).await?;
    scene.create(owned_by(&site, deployment("web", 1))).await?;
    // Another's, in a namespace of their own.
    let elsewhere = format!("{}-else", scene.name);
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": elsewhere } });
    scene.admin.create(&space).await?;
    let mut other = scene.custom("Site", "secret");
    other["metadata"]["namespace"] = json!(elsewhere);
    let other = scene.admin.create(&other).await?;
    scene.until("Site/one", says("Ready", "True")).await?;

    let reader = somebody(&scene, "reader", &["sites", "deployments"]).await?;
    let half = somebody(&scene, "half", &["sites"]).await?;
    let stranger = somebody(&scene, "stranger", &[]).await?;
    let around_it = ["sites", "deployments", "pods", "events", "replicasets", "persistentvolumeclaims"];
    let insider = somebody(&scene, "insider", &around_it).await?;
    let one = format!("{PARENTS}/{}", uid(&site));
    let hidden = format!("{PARENTS}/{}", uid(&other));
    let branch = format!("{one}/branch?label=Deployment.apps&namespace={}&name=web", scene.name);

    let around = branch.replace("/branch?", "/around?");

    for path in [PARENTS, &*one, &*branch, &*around, "/api/v1/stream"] {
        assert_eq!(ask(&running, path, "").await?.0, 401, "{path} without a token");
        assert_eq!(ask(&running, path, "nobody's").await?.0, 401, "{path} with a wrong token");
    }
    for path in [PARENTS, "/api/v1/stream"] {
        assert_eq!(ask(&running, path, &stranger).await?.0, 403, "{path} without rights");
    }
    for (path, token) in
        [(&one, &stranger), (&branch, &stranger), (&hidden, &reader), (&branch, &half), (&around, &half)]
    {
        assert_eq!(ask(&running, path, token).await?.0, 404, "{path}");
    }
    assert_eq!(ask(&running, "/", "").await?.0, 200, "the page itself is no secret");

    let (code, list) = ask(&running, PARENTS, &reader).await?;
    assert_eq!((code, &list["matching"], &list["counts"]["Ready"]), (200, &json!(1), &json!(1)), "{list}");
    assert_eq!(list["namespaces"], json!([scene.name]));
    assert!(!list.to_string().contains("secret") && !list.to_string().contains(&elsewhere), "{list}");

    let (_, tree) = ask(&running, &one, &reader).await?;
    let names = |tree: &Value| tree["nodes"].as_array().map_or(0, Vec::len);
    assert_eq!((names(&tree), &tree["hidden"]), (2, &json!(false)), "{tree}");
    let (_, tree) = ask(&running, &one, &half).await?;
    assert_eq!((names(&tree), &tree["hidden"]), (1, &json!(true)), "{tree}");
    let (code, found) = ask(&running, &branch, &reader).await?;
    assert_eq!((code, &found["verdict"]), (200, &json!("Ready")), "{found}");

    // What stands around an object is read with Rollcall's rights, and shown to those who have them too.
    let not_read = async |token: &str| -> Result<Vec<String>> {
        let (code, found) = ask(&running, &around, token).await?;
        ensure!(code == 200, "{code} {found}");
        Ok(serde_json::from_value(found["notRead"].clone())?)
    };
    let barred = |what: &str| format!("{what}: you may not read them here");
    let for_reader = not_read(&reader).await?;
    assert!(for_reader.contains(&barred("Pods")) && for_reader.contains(&barred("Events")), "{for_reader:?}");
    let for_insider = not_read(&insider).await?;
    assert!(!for_insider.iter().any(|said| said.contains("you may not")), "{for_insider:?}");

    look(&["token", &format!("http://127.0.0.1:{port}/"), &reader, &stranger, &scene.name]).await?;
    Ok(())
}

#[tokio::test]
async fn an_object_tells_who_holds_it_what_it_owns_and_since_when() -> Result<()> {
    let scene = Scene::set("around").await?;
    scene.crd(&Crd::new("Site")).await?;
    // Who remembers Jobs may list Events.
    let jobs = json!({ "kind": { "group": "batch", "kind": "Job" }, "expect": { "min": 0 }, "afterDeletion": "remember" });
    let children = json!([scene.child("Deployment"), scene.child("ConfigMap"), jobs]);
    scene.policy("site", "Site", json!({ "children": children, "settle": "100ms" })).await?;
    let running = scene.rollcall(&[]).await?;
    let site = scene.create(scene.custom("Site", "one")).await?;
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    scene.create(owned_by(&site, held)).await?;
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    scene.create(owned_by(&site, web)).await?;
    scene.until_pods("web", 1).await?;
    scene.delete("ConfigMap/held").await?;
    scene.until("Site/one", Wish::new("held", |site| site.to_string().contains("hook-finalizer"))).await?;

    let one = format!("{PARENTS}/{}", uid(&site));
    let about = |what: &str, label: &str, name: &str| {
        format!("{one}/{what}?label={label}&namespace={}&name={name}", scene.name)
    };
    let (_, tree) = ask(&running, &one, "").await?;
    let node = |name: &str| {
        let mut nodes = tree["nodes"].as_array().into_iter().flatten();
        nodes.find(|node| node["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(node("held")["sinceFrom"], "metadata.deletionTimestamp", "{tree}");
    assert!(node("held")["since"].is_i64() && node("web")["since"].is_i64(), "{tree}");
    // Where its first sight took long, nobody can tell whether it was ever ready before.
    let from = node("web")["sinceFrom"].clone();
    assert!(from == "metadata.creationTimestamp" || from == "firstSeen", "it has never been ready: {tree}");

    let (_, branch) = ask(&running, &about("branch", "ConfigMap", "held"), "").await?;
    assert_eq!(branch["holders"][0]["likely"], "Argo CD", "{branch}");
    let told = async {
        loop {
            let (_, around) = ask(&running, &about("around", "Deployment.apps", "web"), "").await?;
            let says = |list: &str, word: &str| around[list].to_string().contains(word);
            if says("owns", "not scheduled") && says("events", "FailedScheduling") {
                return anyhow::Ok(around);
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    let around = timeout(PATIENCE, told).await??;
    assert_eq!(
        around["notRead"],
        json!(["ReplicaSets: Rollcall may not read it"]),
        "what it may not is named"
    );
    Ok(())
}
