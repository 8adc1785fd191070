//! What is below an object that no policy counts, on the commands that look at a live cluster.

use acceptance::crd::CrdBuilder;
use acceptance::objects::owned_by;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::live::run;

#[tokio::test]
async fn an_errored_order_below_a_certificate_is_found_without_any_policy() -> Result<()> {
    let tenant = TestTenant::start("orders").await?;
    for kind in ["Certificate", "CertificateRequest", "Order"] {
        tenant.crd(&CrdBuilder::new(kind)).await?;
    }
    let certificate = tenant.create(tenant.custom("Certificate", "shop")).await?;
    let request =
        tenant.create(owned_by(&certificate, tenant.custom("CertificateRequest", "shop-1"))).await?;
    tenant.create(owned_by(&request, tenant.custom("Order", "shop-1-42"))).await?;
    let waits = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Pending" }] });
    tenant.change_status("Certificate/shop", waits.clone()).await?;
    tenant.change_status("CertificateRequest/shop-1", waits).await?;
    let errored = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Failed" }] });
    tenant.change_status("Order/shop-1-42", errored).await?;

    let target = format!("certificate.{}/shop", tenant.group);
    let (code, out, err) = run(&tenant, &["tree", &target, "-o", "json"]).await?;
    let trees: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    assert_eq!(code, 1, "{err}");
    let order = &trees[0]["children"][0]["children"][0];
    assert_eq!((&order["kind"], &order["role"]), (&json!("Order"), &json!("uncounted")), "{trees}");
    assert_eq!(order["verdict"], "Failed", "{trees}");
    let (code, explained, _) = run(&tenant, &["explain", &target]).await?;
    assert_eq!(code, 1);
    let first = explained.lines().find(|line| line.contains("1. ")).context("no cause")?;
    assert!(first.contains("Order") && explained.contains("no policy counts it"), "{explained}");
    Ok(())
}
