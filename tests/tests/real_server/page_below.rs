//! What no policy counts below a parent, on the page, as far as Rollcall and the viewer may read it.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::objects::{config_map, owned_by, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::page::{PARENTS, ask, bind, look, somebody};

/// A Certificate that is ready by its policy, which counts its ConfigMap, with a CertificateRequest, its failed Order, and a
/// Challenge of it.
async fn certificate(tenant: &TestTenant) -> Result<Value> {
    let certificate = tenant.create(tenant.custom("Certificate", "shop")).await?;
    tenant.create(owned_by(&certificate, config_map("bundle"))).await?;
    let request =
        tenant.create(owned_by(&certificate, tenant.custom("CertificateRequest", "shop-1"))).await?;
    let order = tenant.create(owned_by(&request, tenant.custom("Order", "shop-1-42"))).await?;
    tenant.create(owned_by(&order, tenant.custom("Challenge", "shop-1-42-7"))).await?;
    let waits = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Pending" }] });
    tenant.change_status("CertificateRequest/shop-1", waits).await?;
    let message = "the account is not registered";
    let errored = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Failed", "message": message }] });
    tenant.change_status("Order/shop-1-42", errored).await?;
    tenant.until("Certificate/shop", says("Ready", "True")).await?;
    Ok(certificate)
}

/// What the page answers once it has read every kind in time: on a busy machine the first look may be too short.
async fn ask_in_time(running: &RollcallProcess, path: &str, token: &str) -> Result<(u16, Value)> {
    let answered = async {
        loop {
            let (code, found) = ask(running, path, token).await?;
            if code == 200 && !found["notRead"].to_string().contains("no answer within") {
                return anyhow::Ok((code, found));
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(TEST_TIMEOUT, answered).await.context("the kinds are never read in time")?
}

/// Depth, kind and verdict of each node.
fn lines(found: &Value) -> Vec<String> {
    let groups = found["below"].as_array().into_iter().flatten();
    let nodes = groups.flat_map(|group| group["nodes"].as_array().into_iter().flatten());
    let text = |node: &Value, field: &str| node[field].as_str().unwrap_or_default().to_owned();
    let line = |node: &Value| {
        let mark = if node["uncounted"] == true { "not counted" } else { "counted" };
        format!("{} {} {} {mark}", node["depth"], text(node, "kind"), text(node, "verdict"))
    };
    nodes.map(line).collect()
}

/// Reason for which a kind was not read.
fn unread_reason(found: &Value, kind: &str) -> Option<String> {
    let mut unread = found["notRead"].as_array().into_iter().flatten();
    let named = unread.find(|of| of["kinds"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind))))?;
    Some(named["why"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn the_page_shows_a_chain_of_custom_kinds_to_those_who_may_list_them_and_names_what_it_may_not_read()
-> Result<()> {
    let tenant = TestTenant::start("orders-page").await?;
    for kind in ["Certificate", "CertificateRequest", "Order", "Challenge"] {
        tenant.crd(&CrdBuilder::new(kind)).await?;
    }
    let counted = json!({ "children": [tenant.child("ConfigMap")], "settle": "100ms" });
    tenant.policy("certificate", "Certificate", counted).await?;
    let port = free_ports(1)?[0];
    let running = tenant.rollcall(&[&format!("--listen=0.0.0.0:{port}")]).await?;
    // The service gets no right by itself: this role is somebody's who wants to see these kinds.
    bind(&tenant, "rollcall", &tenant.name, &["certificaterequests", "orders"]).await?;
    let certificate = certificate(&tenant).await?;
    let all = ["certificates", "certificaterequests", "orders", "challenges", "configmaps"];
    let insider = somebody(&tenant, "insider", &all).await?;
    let half = somebody(&tenant, "half", &["certificates", "certificaterequests"]).await?;
    let only = somebody(&tenant, "only", &["certificates"]).await?;
    let stranger = somebody(&tenant, "stranger", &[]).await?;

    let below = format!("{PARENTS}/{}/below", uid(&certificate));
    assert_eq!(ask(&running, &below, "").await?.0, 401);
    assert_eq!(ask(&running, &below, &stranger).await?.0, 404);
    let (code, found) = ask_in_time(&running, &below, &insider).await?;
    let chain = ["1 CertificateRequest Progressing not counted", "2 Order Failed not counted"];
    assert_eq!((code, lines(&found)), (200, chain.map(str::to_owned).to_vec()), "{found}");
    let challenge = format!("Challenge.{}", tenant.group);
    assert_eq!(unread_reason(&found, &challenge).as_deref(), Some("Rollcall may not list them"), "{found}");
    assert_eq!(unread_reason(&found, "Secret").as_deref(), Some("Rollcall may not list them"), "{found}");
    assert_eq!(unread_reason(&found, &format!("Order.{}", tenant.group)), None, "{found}");
    assert_eq!(found["hidden"], false, "{found}");
    for (viewer, seen) in [(&half, 1), (&only, 0)] {
        let (code, found) = ask_in_time(&running, &below, viewer).await?;
        assert_eq!(
            (code, lines(&found)),
            (200, chain[..seen].iter().map(|line| (*line).to_owned()).collect())
        );
        assert!(found["hidden"] == true && !found.to_string().contains("shop-1-42"), "{found}");
    }
    look(&["below", &format!("http://127.0.0.1:{port}/"), &insider]).await?;
    Ok(())
}
