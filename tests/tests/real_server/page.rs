//! The live page, looked at in a real Chromium, and who may see what of it, decided by a real API server.

use std::process::{Command, Stdio};
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::objects::{config_map, deployment, owned_by, playing, uid};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Looks at the page: what a scenario of `tests/page/check.mjs` says. It gives up by itself.
pub(crate) async fn look(args: &[&str]) -> Result<String> {
    let folder = super::grafana::installed("page")?;
    let mut node = Command::new("node");
    node.arg("check.mjs").args(args).current_dir(&folder).stdin(Stdio::null());
    let looked = tokio::task::spawn_blocking(move || node.output()).await?;
    let looked = looked.context("node (package nodejs) is missing")?;
    let said = String::from_utf8_lossy(&looked.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&looked.stderr);
    ensure!(looked.status.success(), "{args:?} ended with {}: {said}{complaint}", looked.status);
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

#[tokio::test]
async fn groups_come_before_other_parents_and_what_is_not_ready_before_what_is() -> Result<()> {
    look_at_the_demo("groups").await.map(drop)
}

#[tokio::test]
async fn a_link_to_a_parent_outlives_it_and_leads_to_the_one_that_bears_its_name() -> Result<()> {
    look_at_the_demo("links").await.map(drop)
}

#[tokio::test]
async fn the_command_that_shows_an_object_is_copied_or_can_be() -> Result<()> {
    look_at_the_demo("copy").await.map(drop)
}

#[tokio::test]
async fn what_has_changed_in_the_last_hour_is_a_mark_each_and_leads_there() -> Result<()> {
    look_at_the_demo("hour").await.map(drop)
}

#[tokio::test]
async fn a_wall_shows_the_worst_that_fit_and_when_it_knows_nothing_any_more() -> Result<()> {
    look_at_the_demo("wall").await.map(drop)
}

#[tokio::test]
async fn what_a_rollout_waited_for_is_told_part_by_part() -> Result<()> {
    look_at_the_demo("rollout").await.map(drop)
}

/// A service account of the tenant, with a role that grants these resources to be listed and got, and its token.
pub(crate) async fn somebody(tenant: &TestTenant, name: &str, resources: &[&str]) -> Result<String> {
    tenant
        .create(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } }))
        .await?;
    if !resources.is_empty() {
        bind(tenant, name, &tenant.name, resources).await?;
    }
    tenant.plane.token_of(&tenant.name, name).await
}

/// Grants a service account of the tenant to list and get these resources in a namespace.
pub(crate) async fn bind(tenant: &TestTenant, name: &str, namespace: &str, resources: &[&str]) -> Result<()> {
    let rbac = "rbac.authorization.k8s.io";
    let metadata = json!({ "name": name, "namespace": namespace });
    let groups = [&*tenant.group, "apps", ""];
    let rules = json!([{ "apiGroups": groups, "resources": resources, "verbs": ["get", "list"] }]);
    let role =
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": rules });
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": { "apiGroup": rbac, "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": tenant.name }],
    });
    for object in [role, binding] {
        tenant.admin.create(&object).await?;
    }
    Ok(())
}

/// One GET of the API.
pub(crate) async fn ask(running: &RollcallProcess, path: &str, token: &str) -> Result<(u16, Value)> {
    let answer = running.http_as(path, token).await?;
    Ok((answer.code, serde_json::from_str(&answer.body).unwrap_or_default()))
}

pub(crate) const PARENTS: &str = "/api/v1/parents";

/// One parent that is ready, one that failed, and another's in a namespace of their own: the first and the last.
async fn sites(tenant: &TestTenant, elsewhere: &str) -> Result<(Value, Value)> {
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    // Its name is the last, and it is the first to be seen.
    let zoo = tenant.create(tenant.custom("Site", "zoo")).await?;
    let mut cage = playing("hold", deployment("cage", 1));
    cage["spec"]["progressDeadlineSeconds"] = json!(1);
    tenant.create(owned_by(&zoo, cage)).await?;
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": elsewhere } });
    tenant.admin.create(&space).await?;
    let mut other = tenant.custom("Site", "secret");
    other["metadata"]["namespace"] = json!(elsewhere);
    let other = tenant.admin.create(&other).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    tenant
        .until("Site/zoo", StateExpectation::new("failed", |zoo| zoo.to_string().contains("ChildrenFailed")))
        .await?;
    Ok((site, other))
}

#[tokio::test]
async fn what_overtakes_what_and_what_fails_leaves_no_old_answer_on_the_page() -> Result<()> {
    look_at_the_demo("order").await.map(drop)
}

/// Paths below which a viewer may see something, or nothing.
struct SeenPaths {
    one: String,
    hidden: String,
    by_name: String,
    hidden_name: String,
    branch: String,
    around: String,
    rollout: String,
}

impl SeenPaths {
    /// Who has no token, or too few rights, is told so, or that there is nothing.
    async fn refused_without_rights(
        &self,
        running: &RollcallProcess,
        [reader, half, stranger]: [&str; 3],
    ) -> Result<()> {
        for path in [
            PARENTS,
            &*self.one,
            &*self.by_name,
            &*self.branch,
            &*self.around,
            &*self.rollout,
            "/api/v1/transitions",
            "/api/v1/stream",
        ] {
            assert_eq!(ask(running, path, "").await?.0, 401, "{path} without a token");
            assert_eq!(ask(running, path, "nobody's").await?.0, 401, "{path} with a wrong token");
        }
        for path in [PARENTS, "/api/v1/transitions", "/api/v1/stream"] {
            assert_eq!(ask(running, path, stranger).await?.0, 403, "{path} without rights");
        }
        for (path, token) in [
            (&self.one, stranger),
            (&self.by_name, stranger),
            (&self.rollout, stranger),
            (&self.branch, stranger),
            (&self.hidden, reader),
            (&self.hidden_name, reader),
            (&self.branch, half),
            (&self.around, half),
        ] {
            assert_eq!(ask(running, path, token).await?.0, 404, "{path}");
        }
        Ok(())
    }
}

/// What has moved lately, and what a rollout waited for, without what one may not list.
async fn what_moved_is_seen_in_part(
    running: &RollcallProcess,
    rollout: &str,
    [reader, half]: [&str; 2],
) -> Result<()> {
    let (_, lately) = ask(running, "/api/v1/transitions", reader).await?;
    assert!(lately.to_string().contains("zoo") && !lately.to_string().contains("secret"), "{lately}");
    let (code, whole) = ask(running, rollout, reader).await?;
    assert_eq!((code, &whole["isOver"], &whole["notRead"]), (200, &json!(true), &json!([])), "{whole}");
    let (code, part) = ask(running, rollout, half).await?;
    assert_eq!(code, 200, "{part}");
    assert!(!part.to_string().contains("Deployment"), "who may not list a kind hears nothing of it: {part}");
    Ok(())
}

#[tokio::test]
async fn each_sees_what_they_may_list_and_nothing_of_the_rest() -> Result<()> {
    let tenant = TestTenant::start("seen").await?;
    let elsewhere = format!("{}-else", tenant.name);
    let port = free_ports(1)?[0];
    tenant.crd(&CrdBuilder::new("Site")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("site", "Site", spec).await?;
    let running = tenant.rollcall(&[&format!("--listen=0.0.0.0:{port}")]).await?;
    let (site, other) = sites(&tenant, &elsewhere).await?;

    let reader = somebody(&tenant, "reader", &["sites", "deployments"]).await?;
    let half = somebody(&tenant, "half", &["sites"]).await?;
    let stranger = somebody(&tenant, "stranger", &[]).await?;
    let around_it = ["sites", "deployments", "pods", "events", "replicasets", "persistentvolumeclaims"];
    let insider = somebody(&tenant, "insider", &around_it).await?;
    // Who may list both namespaces chooses among them.
    bind(&tenant, "insider", &elsewhere, &["sites"]).await?;
    let one = format!("{PARENTS}/{}", uid(&site));
    let hidden = format!("{PARENTS}/{}", uid(&other));
    let branch = format!("{one}/branch?label=Deployment.apps&namespace={}&name=web", tenant.name);

    let around = branch.replace("/branch?", "/around?");

    let rollout = format!("{one}/rollout");
    let named = |namespace: &str, name: &str| {
        let label = format!("Site.{}", tenant.group);
        format!("{PARENTS}/by-name?label={label}&namespace={namespace}&name={name}")
    };
    let (by_name, hidden_name) = (named(&tenant.name, "one"), named(&elsewhere, "secret"));

    let paths = SeenPaths { one, hidden, by_name, hidden_name, branch, around, rollout };
    paths.refused_without_rights(&running, [&reader, &half, &stranger]).await?;
    let SeenPaths { one, by_name, branch, around, rollout, .. } = &paths;
    assert_eq!(ask(&running, "/", "").await?.0, 200, "the page itself is no secret");

    let (code, list) = ask(&running, PARENTS, &reader).await?;
    let counted = [&list["matching"], &list["counts"]["Failed"], &list["counts"]["Ready"]];
    assert_eq!((code, counted.map(Value::as_u64)), (200, [2, 1, 1].map(Some)), "{list}");
    let order = [&list["parents"][0]["name"], &list["parents"][1]["name"]];
    assert_eq!(order, ["zoo", "one"], "the worst first: {list}");
    assert_eq!(list["namespaces"], json!([tenant.name]));
    assert!(!list.to_string().contains("secret") && !list.to_string().contains(&elsewhere), "{list}");

    let (_, tree) = ask(&running, one, &reader).await?;
    let names = |tree: &Value| tree["nodes"].as_array().map_or(0, Vec::len);
    assert_eq!((names(&tree), &tree["hidden"]), (2, &json!(false)), "{tree}");
    let (_, tree) = ask(&running, one, &half).await?;
    assert_eq!((names(&tree), &tree["hidden"]), (1, &json!(true)), "{tree}");
    let (code, found) = ask(&running, branch, &reader).await?;
    assert_eq!((code, &found["verdict"]), (200, &json!("Ready")), "{found}");

    let (code, found) = ask(&running, by_name, &reader).await?;
    assert_eq!((code, found["uid"].as_str()), (200, Some(uid(&site))), "{found}");
    what_moved_is_seen_in_part(&running, rollout, [&reader, &half]).await?;

    // What stands around an object is read with Rollcall's rights, and shown to those who have them too.
    let not_read = async |token: &str| -> Result<Vec<String>> {
        let (code, found) = ask(&running, around, token).await?;
        ensure!(code == 200, "{code} {found}");
        Ok(serde_json::from_value(found["notRead"].clone())?)
    };
    let barred = |what: &str| format!("{what}: you may not read them here");
    let for_reader = not_read(&reader).await?;
    assert!(for_reader.contains(&barred("Pods")) && for_reader.contains(&barred("Events")), "{for_reader:?}");
    let for_insider = not_read(&insider).await?;
    assert!(!for_insider.iter().any(|said| said.contains("you may not")), "{for_insider:?}");

    let page = format!("http://127.0.0.1:{port}/");
    look(&["token", &page, &reader, &stranger, &tenant.name]).await?;
    look(&["filters", &page, &insider, &tenant.name, &elsewhere]).await?;
    Ok(())
}

#[tokio::test]
async fn an_object_tells_who_holds_it_what_it_owns_and_since_when() -> Result<()> {
    let tenant = TestTenant::start("around").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    // Who remembers Jobs may list Events.
    let jobs = json!({ "kind": { "group": "batch", "kind": "Job" }, "expect": { "min": 0 }, "afterDeletion": "remember" });
    let children = json!([tenant.child("Deployment"), tenant.child("ConfigMap"), jobs]);
    tenant.policy("site", "Site", json!({ "children": children, "settle": "100ms" })).await?;
    let running = tenant.rollcall(&[]).await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    tenant.create(owned_by(&site, held)).await?;
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    tenant.create(owned_by(&site, web)).await?;
    tenant.until_pods("web", 1).await?;
    tenant.delete("ConfigMap/held").await?;
    tenant
        .until("Site/one", StateExpectation::new("held", |site| site.to_string().contains("hook-finalizer")))
        .await?;

    let one = format!("{PARENTS}/{}", uid(&site));
    let about = |what: &str, label: &str, name: &str| {
        format!("{one}/{what}?label={label}&namespace={}&name={name}", tenant.name)
    };
    let (_, tree) = ask(&running, &one, "").await?;
    let node = |name: &str| {
        let mut nodes = tree["nodes"].as_array().into_iter().flatten();
        nodes.find(|node| node["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(node("held")["sinceFrom"], "metadata.deletionTimestamp", "{tree}");
    assert!(node("held")["since"].is_i64() && node("web")["since"].is_i64(), "{tree}");
    // Where its first sight took long, nobody can tell whether it was ever ready before, but it may say so itself by then.
    let from = node("web")["sinceFrom"].clone();
    let says = ["metadata.creationTimestamp", "firstSeen", "conditions[Available].lastTransitionTime"];
    assert!(says.iter().any(|field| from == **field), "it has never been ready: {tree}");

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
    let around = timeout(TEST_TIMEOUT, told).await??;
    assert_eq!(
        around["notRead"],
        json!(["ReplicaSets: Rollcall may not read it"]),
        "what it may not is named"
    );
    Ok(())
}
