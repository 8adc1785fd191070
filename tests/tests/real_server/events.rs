//! Kubernetes Events on parents.

use acceptance::TEST_TIMEOUT;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::kind::ManifestKind;
use acceptance::objects::{owned_by, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, anyhow};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A parent of this kind, with a child that says by its own condition how it stands.
async fn parent(tenant: &TestTenant, kind: &str, mode: &str) -> Result<Value> {
    tenant.crd(&CrdBuilder::new(kind)).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let mut parts = tenant.child("Part");
    parts["find"] = json!({ "allowedNamespaces": [tenant.name] });
    let spec = json!({ "children": [parts], "settle": "100ms", "mode": mode });
    tenant.policy(&kind.to_lowercase(), kind, spec).await?;
    let parent = tenant.create(tenant.custom(kind, &tenant.name)).await?;
    tenant.create(owned_by(&parent, tenant.custom("Part", "one"))).await?;
    say(tenant, "True").await?;
    Ok(parent)
}

/// The child says `Ready=<status>` from now on.
async fn say(tenant: &TestTenant, status: &str) -> Result<()> {
    let said = json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Told", "message": "told so" }] });
    tenant.change_status("Part/one", said).await?;
    Ok(())
}

fn events_kind() -> ManifestKind {
    ManifestKind::new("events.k8s.io/v1", "Event")
}

/// All Events about an object.
async fn about(tenant: &TestTenant, namespace: &str, object: &Value) -> Result<Vec<Value>> {
    let (mut events, _) = tenant.admin.list(&events_kind(), namespace, "").await?;
    events.retain(|event| event["regarding"]["uid"] == *uid(object));
    Ok(events)
}

/// Waits for an Event of this reason of which `enough` holds.
async fn event(
    tenant: &TestTenant,
    namespace: &str,
    object: &Value,
    reason: &str,
    enough: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let is_it = |event: &Value| {
        event["regarding"]["uid"] == *uid(object) && event["reason"] == *reason && enough(event)
    };
    let seen = |events: Vec<Value>| events.into_iter().find(is_it);
    tenant.until_found(&events_kind(), namespace, "", seen).await.with_context(|| format!("no {reason}"))
}

#[tokio::test]
async fn a_turn_of_a_parent_is_an_event_and_the_same_again_is_a_series() -> Result<()> {
    let tenant = TestTenant::start("events").await?;
    let site = parent(&tenant, "Site", "write").await?;
    // Of a parent that is found ready nothing has turned.
    say(&tenant, "False").await?;
    let running = tenant.rollcall(&[]).await?;
    let place = format!("Site/{}", tenant.name);
    tenant.until(&place, says("Ready", "False")).await?;
    say(&tenant, "True").await?;
    let well = event(&tenant, &tenant.name, &site, "AllChildrenReady", |_| true).await?;
    assert_eq!(well["type"], "Normal");
    say(&tenant, "False").await?;
    let turned = event(&tenant, &tenant.name, &site, "ChildrenProgressing", |_| true).await?;
    let note = turned["note"].as_str().unwrap_or_default();
    assert!(note.contains("Part one"), "{note}");
    say(&tenant, "True").await?;
    let repeated =
        event(&tenant, &tenant.name, &site, "AllChildrenReady", |e| e["series"]["count"] == 2).await?;
    assert_eq!(repeated["regarding"]["apiVersion"], format!("{}/v1", tenant.group));
    assert_eq!(repeated["regarding"]["kind"], "Site");
    assert_eq!(repeated["reportingController"], "rollcall.dev/controller");
    let all = about(&tenant, &tenant.name, &site).await?;
    let mut reasons: Vec<_> = all.iter().filter_map(|e| e["reason"].as_str()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    assert_eq!(reasons.len(), all.len(), "one Event a reason: {all:#?}");
    let described = tenant.plane.kubectl(&[
        "-n",
        &tenant.name,
        "describe",
        &format!("sites.{}/{}", tenant.group, tenant.name),
    ])?;
    assert!(
        described.contains("ChildrenProgressing") && described.contains("rollcall.dev/controller"),
        "{described}"
    );
    running.until_metric("rollcall_events_total", &["outcome=\"repeated\""], |n| n >= 1.0).await?;
    for outcome in ["failed", "forbidden", "limited", "gone"] {
        let label = format!("outcome=\"{outcome}\"");
        assert_eq!(running.metric("rollcall_events_total", &[&label]).await?.to_string(), "0", "{outcome}");
    }
    Ok(())
}

/// More than may wait for their turn.
const CROWD: u32 = 1_200;

/// Waits until every Site of the tenant says this.
async fn all_say(tenant: &TestTenant, reason: &str) -> Result<()> {
    let kind = tenant.kind("Site");
    let told = async {
        loop {
            let (sites, _) = tenant.admin.list(&kind, &tenant.name, "").await?;
            let told = sites.iter().filter(|site| site["status"].to_string().contains(reason));
            if told.count() == CROWD as usize {
                return anyhow::Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    timeout(2 * TEST_TIMEOUT, told).await.map_err(|_| anyhow!("not all are told\n{}", tenant.log_tails()))?
}

#[tokio::test]
async fn of_more_events_than_may_be_sent_some_are_left_out_and_counted_and_nothing_waits_for_them()
-> Result<()> {
    let tenant = TestTenant::start("manyevents").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    // One part of all of them: when it turns, all turn at the same moment.
    let mut child = tenant.child("Part");
    child["find"] = json!({ "labels": { "of": "all" } });
    tenant.policy("site", "Site", json!({ "children": [child], "settle": "100ms" })).await?;
    let mut part = tenant.custom("Part", "one");
    part["metadata"]["labels"] = json!({ "of": "all" });
    tenant.create(part).await?;
    say(&tenant, "True").await?;
    let make = |at: u32| tenant.create(tenant.custom("Site", &format!("site-{at}")));
    futures::stream::iter(0..CROWD).map(make).buffer_unordered(16).try_collect::<Vec<_>>().await?;
    let running = tenant.rollcall(&[]).await?;
    all_say(&tenant, "AllChildrenReady").await?;
    say(&tenant, "False").await?;
    running.until_metric("rollcall_events_total", &["outcome=\"limited\""], |n| n >= 1.0).await?;
    all_say(&tenant, "ChildrenProgressing").await?;
    // So many may go at once.
    running.until_metric("rollcall_events_total", &["outcome=\"created\""], |n| n >= 50.0).await?;
    let [created, limited] = ["created", "limited"].map(|outcome| format!("outcome=\"{outcome}\""));
    let created = running.metric("rollcall_events_total", &[&created]).await?;
    let limited = running.metric("rollcall_events_total", &[&limited]).await?;
    eprintln!("{created} Events created, {limited} left out");
    // Each parent has had two things to say, and the policy that it is accepted.
    assert!(created + limited <= 2.0 * f64::from(CROWD) + 1.0, "{created}, {limited}");
    Ok(())
}

#[tokio::test]
async fn a_stuck_or_failed_child_is_a_warning_and_a_cluster_scoped_parent_has_its_events_in_default()
-> Result<()> {
    let tenant = TestTenant::start("clusterevents").await?;
    let site = parent(&tenant, "ClusterSite", "write").await?;
    let _running = tenant.rollcall(&[]).await?;
    let place = format!("ClusterSite/{}", tenant.name);
    tenant.until(&place, says("Ready", "True")).await?;
    let said = json!({ "conditions": [{ "type": "Stalled", "status": "True", "reason": "Broken", "message": "gave up" }] });
    tenant.change_status("Part/one", said).await?;
    let failed = event(&tenant, "default", &site, "ChildrenFailed", |_| true).await?;
    assert_eq!(failed["type"], "Warning");
    assert!(failed["regarding"]["namespace"].is_null(), "{failed:#}");
    assert!(failed["note"].as_str().is_some_and(|note| note.contains("Stalled: Broken")), "{failed:#}");
    Ok(())
}

#[tokio::test]
async fn without_the_right_it_is_said_once_and_all_else_goes_on() -> Result<()> {
    let tenant = TestTenant::start("noevents").await?;
    let site = parent(&tenant, "Site", "write").await?;
    tenant.grant().await?;
    super::permissions::revoke(&tenant, "events").await?;
    let running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let refused: [fn(f64) -> bool; 2] = [|n| n >= 1.0, |n| n >= 2.0];
    for (status, is_refused) in ["True", "False"].into_iter().zip(refused) {
        say(&tenant, status).await?;
        running.until_metric("rollcall_events_total", &["outcome=\"forbidden\""], is_refused).await?;
    }
    assert_eq!(running.output().matches("not permitted to create Events").count(), 1);
    assert!(about(&tenant, &tenant.name, &site).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn in_shadow_and_where_nobody_wants_them_there_are_none() -> Result<()> {
    for (word, mode, option) in
        [("shadowevents", "shadow", "--events=true"), ("unwanted", "write", "--events=false")]
    {
        let tenant = TestTenant::start(word).await?;
        let site = parent(&tenant, "Site", mode).await?;
        let running = tenant.rollcall(&[option]).await?;
        let policy = format!("policy=\"{}\"", tenant.policy_name("site"));
        for (status, verdict) in [("True", "Ready"), ("False", "Progressing"), ("True", "Ready")] {
            say(&tenant, status).await?;
            let verdict = format!("verdict=\"{verdict}\"");
            running.until_metric("rollcall_parents", &[&policy, &verdict], |n| n >= 1.0).await?;
        }
        assert!(about(&tenant, &tenant.name, &site).await?.is_empty(), "{word}");
        assert_eq!(running.metric("rollcall_events_total", &[]).await?.to_string(), "0", "{word}");
    }
    Ok(())
}
