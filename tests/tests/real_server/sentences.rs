//! What deploy/README.md says to type, in its blocks and in its sentences, and the runbooks of the dashboards.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::{ClusterParts, free_ports};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{gone, says, there};
use acceptance::guide::{Asked, GuidedSteps, InlineCommands};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::plain_http::get;
use acceptance::policies::TenantPolicies as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::guides::installed_at;
use super::releases::ours;
use super::stories::reader;

#[tokio::test]
async fn what_the_readme_of_deploy_says_to_type_works() -> Result<()> {
    let tenant = reader(ClusterParts::Everything, "deploy-guide", "example.com").await?;
    tenant.until("ServiceAccount/default", there()).await?;
    let crd = CrdBuilder::new("Database");
    tenant.crd(&crd).await?;
    let policy = tenant.policy_manifest("db", "Database", json!({ "settle": "100ms" }));
    std::fs::write(tenant.folder.join("policy.yaml"), policy.to_string())?;
    std::fs::write(tenant.folder.join("crd.yaml"), crd.manifest("example.com").to_string())?;
    let mut guide = GuidedSteps::open("deploy/README.md")?;
    guide.follow(&tenant, "kubectl apply --server-side -k")?;
    // As in its pods, it listens to everybody. No kubelet runs these: kwok plays them, and whoever asks one is led here.
    let service = installed_at(&tenant, &format!("0.0.0.0:{}", tenant.plane.forwarded()?)).await?;
    let db = tenant.create(tenant.custom("Database", "orders")).await?;
    tenant.create(owned_by(&db, deployment("orders", 1))).await?;
    tenant.until("Database/orders", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    the_page_is_brought_here(&tenant).await.with_context(|| service.tail(40))?;
    what_can_be_asked_is_answered(&tenant)?;
    the_runbooks_are_followed(&tenant)?;
    events_are_shown(&tenant).await?;
    drop(service);
    it_runs_without_a_deployment(&tenant).await?;
    let sentences = InlineCommands::of("deploy/README.md")?;
    let name = tenant.policy_name("db");
    let own = [("POLICY", name.as_str())];
    sentences.type_in(&tenant, "kubectl delete clusterrole rollcall-policy-POLICY", &own)?;
    guide.follow(&tenant, "rollcall release")?;
    ensure!(condition(&tenant.get("Database/orders").await?, "Ready").is_none(), "it was not released");
    std::fs::write(
        tenant.folder.join("values.yaml"),
        "parents: [{ group: example.com, resource: databases }]\n",
    )?;
    tenant.until("Namespace/rollcall-system", gone()).await?;
    ensure!(ours(&tenant)?.is_empty(), "left behind: {}", ours(&tenant)?);
    guide.follow(&tenant, "helm install")?;
    guide.is_done()?;
    // Its hook is played by kwok, too.
    let uninstall = [("uninstall", "uninstall rollcall -n rollcall-system --wait")];
    sentences.type_in(&tenant, "helm uninstall", &uninstall).map(drop)
}

/// Commands of sentences of deploy/README.md, each with a reader's own words and some of the answer.
fn what_can_be_asked_is_answered(tenant: &TestTenant) -> Result<()> {
    let sentences = InlineCommands::of("deploy/README.md")?;
    let name = tenant.policy_name("db");
    let asked: [Asked; 18] = [
        ("rollcall crd", &[], "name: readinesspolicies.rollcall.dev"),
        ("rollcall health-lua -f examples/database.yaml", &[("-f ", "-f deploy/")], "example.com_Database"),
        ("rollcall rbac -f POLICY…", &[("POLICY…", "policy.yaml")], "databases/status"),
        ("rollcall rbac -f policy.yaml -f crd.yaml", &[], "databases/status"),
        ("rollcall rbac -f policy.yaml --service-account rollcall", &[], "name: rollcall"),
        ("rollcall rbac POLICY", &[("POLICY", &name)], "databases/status"),
        ("rollcall rbac --all", &[], "databases/status"),
        ("rollcall rbac --aggregate-to NAME", &[("NAME", "mine")], "rollcall.dev/aggregate-to: mine"),
        // With what the page has said to apply so far, nothing lacks.
        ("rollcall rbac --check", &[], ""),
        ("rollcall rbac --namespaces a,b -f FILE", &[("FILE", "policy.yaml")], "namespace: b"),
        ("rollcall readers -f policy.yaml", &[], "healthCheckExprs"),
        // It is applied as it is.
        ("rollcall plan -f policy.yaml", &[], "0 conditions turn"),
        ("rollcall tree -o json", &[("tree", "tree database/orders")], "\"sinceFrom\""),
        ("rollcall doctor", &[], ""),
        ("rollcall doctor --finalizers", &[], ""),
        // This policy remembers nothing.
        ("kubectl get readinessrecords -n rollcall-system", &[], ""),
        ("kubectl get rrec -A", &[], ""),
        ("kubectl get rpol", &[], "Database"),
    ];
    sentences.ask(tenant, &asked)
}

/// What deploy/README.md says of Events, which nobody waits for: they may be on their way. A parent that was ready when it was found
/// has not turned, and what does not last is not told.
async fn events_are_shown(tenant: &TestTenant) -> Result<()> {
    tenant.play("orders", Some("crash")).await?;
    tenant.until("Database/orders", says("Ready", "False")).await?;
    until_answered(tenant, &[("kubectl get events", &[], "Children")]).await?;
    tenant.play("orders", None).await?;
    let described = [("describe", "describe database orders")];
    let asked: [Asked; 2] = [
        ("kubectl describe", &described, "AllChildrenReady"),
        ("kubectl get events", &[], "AllChildrenReady"),
    ];
    until_answered(tenant, &asked).await
}

/// Asks until all of this is answered.
async fn until_answered(tenant: &TestTenant, asked: &[Asked<'_>]) -> Result<()> {
    let sentences = InlineCommands::of("deploy/README.md")?;
    let shown = async {
        while sentences.ask(tenant, asked).is_err() {
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(TEST_TIMEOUT, shown).await.context("no Event is shown")
}

/// What dashboards/README.md says to type, while a service leads and there is a parent.
fn the_runbooks_are_followed(tenant: &TestTenant) -> Result<()> {
    let mut guide = GuidedSteps::open("dashboards/README.md")?;
    guide.follow(tenant, "kubectl get database orders")?;
    guide.follow(tenant, "rollcall explain database/orders -n default")?;
    guide.follow(tenant, "kubectl get pods -A --chunk-size=500 -o name")?;
    guide.is_done()?;
    let sentences = InlineCommands::of("dashboards/README.md")?;
    let lease = sentences.type_in(tenant, "kubectl get lease rollcall -n rollcall-system -o yaml", &[])?;
    ensure!(lease.contains("holderIdentity"), "nobody holds it: {lease}");
    let explained =
        sentences.type_in(tenant, "rollcall explain KIND/NAME", &[("KIND/NAME", "database/orders")])?;
    ensure!(explained.contains("orders"), "{explained}");
    Ok(())
}

/// What deploy/README.md says of `rollcall run` on one's own machine; on ports of our own, for 8080 may be another's.
async fn it_runs_without_a_deployment(tenant: &TestTenant) -> Result<()> {
    let sentences = InlineCommands::of("deploy/README.md")?;
    let ports = free_ports(2)?;
    let roles = "rollcall run --namespaces a,b --policies FILE";
    let own = [
        ("run", &*format!("run --listen 127.0.0.1:{}", ports[0])),
        ("a,b", "default"),
        ("FILE", "policy.yaml"),
    ];
    let running = sentences.start(tenant, roles, &own)?;
    let ready = until_it_says(&format!("127.0.0.1:{}", ports[0]), "/readyz", "", "").await;
    ready.with_context(|| running.tail(40))?;
    drop(running);

    let here = format!("127.0.0.1:{}", ports[1]);
    let store = format!("file://{}", tenant.folder.join("history").display());
    let own = [("127.0.0.1:8080", &*format!("{here} --history {store}"))];
    let mut running = sentences.start(tenant, "rollcall run --listen 127.0.0.1:8080", &own)?;
    // On loopback it asks for no token.
    until_it_says(&here, "/api/v1/parents", "", "\"orders\"").await.with_context(|| running.tail(40))?;
    tenant.delete("Deployment/orders").await?;
    tenant.until("Database/orders", says("Ready", "False")).await.with_context(|| running.tail(40))?;
    running.terminate()?;
    ensure!(running.end(Duration::from_secs(20)).await?.success(), "{}", running.tail(40));
    let own = [("KIND/NAME", "database/orders"), ("URL", &*store)];
    let told = sentences.type_in(tenant, "rollcall history KIND/NAME --from URL", &own)?;
    ensure!(told.contains("ChildrenMissing"), "{told}");
    Ok(())
}

/// What deploy/README.md says of the page of a service in a cluster.
async fn the_page_is_brought_here(tenant: &TestTenant) -> Result<()> {
    let sentences = InlineCommands::of("deploy/README.md")?;
    let command = "kubectl -n rollcall-system port-forward service/rollcall 8080";
    // To a port of kubectl's own choice: another on this machine may have 8080.
    let forward = sentences.start(tenant, command, &[("rollcall 8080", "rollcall :8080")])?;
    let local = async {
        loop {
            let output = forward.output();
            let here = output.lines().find_map(|line| line.strip_prefix("Forwarding from 127.0.0.1:"));
            if let Some((port, "8080")) = here.and_then(|here| here.split_once(" -> ")) {
                return format!("127.0.0.1:{port}");
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let local = timeout(TEST_TIMEOUT, local).await.with_context(|| forward.tail(40))?;
    until_it_says(&local, "/readyz", "", "").await?;
    until_it_says(&local, "/", "", "<title>").await?;
    // It is the listener's address that counts: who comes by a port-forward comes from loopback, and is asked all the same.
    assert_eq!(get(&local, "/api/v1/parents", "").await?.code, 401);
    tenant.plane.kubectl(&["create", "serviceaccount", "looker"])?;
    let role = ["create", "clusterrolebinding", "looker", "--clusterrole=cluster-admin"];
    tenant.plane.kubectl(&[&role[..], &["--serviceaccount=default:looker"]].concat())?;
    let token = sentences.type_in(tenant, "kubectl create token NAME", &[("NAME", "looker")])?;
    until_it_says(&local, "/api/v1/parents", token.trim(), "\"orders\"").await
}

/// Asks until the answer is 200 with these words: what has just begun may not be there yet.
async fn until_it_says(address: &str, path: &str, token: &str, words: &str) -> Result<()> {
    let mut last = String::new();
    let said = async {
        loop {
            match get(address, path, token).await {
                Ok(answer) if answer.code == 200 && answer.body.contains(words) => return,
                Ok(answer) => last = format!("{}: {}", answer.code, answer.body),
                Err(error) => last = error.to_string(),
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = timeout(TEST_TIMEOUT, said).await;
    ended.with_context(|| format!("{path} does not say {words:?}: {last}"))
}
