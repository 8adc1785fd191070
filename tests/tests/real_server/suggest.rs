//! `suggest` on what a real operator leaves behind: it writes the policies that people wrote for it.

use std::collections::BTreeSet;
use std::fs;

use acceptance::expectation::says;
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::policies::TenantPolicies as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::live::run;

/// What of a policy decides: the kinds of its children, and its evidence.
fn essence(spec: &Value) -> (BTreeSet<String>, Value) {
    let children = spec["children"].as_array().into_iter().flatten();
    let kinds = children.map(|child| format!("{}/{}", child["kind"]["group"], child["kind"]["kind"]));
    (kinds.collect(), spec["evidence"].clone())
}

#[tokio::test]
async fn the_policies_of_the_kopf_example_are_suggested_from_what_its_operator_leaves() -> Result<()> {
    let tenant = TestTenant::start("suggest").await?;
    let example = tenant.kopf_example().await?;
    let written = tenant.policies().await?;
    assert_eq!(written.len(), 2);
    for policy in &written {
        let name = policy["metadata"]["name"].as_str().context("a name")?;
        tenant.delete(&format!("ReadinessPolicy/{name}")).await?;
    }
    let _operator =
        tenant.operator("operator", KopfVersion::Current, &example.script, &example.kubeconfig, &[])?;
    let shop = json!({
        "apiVersion": format!("{}/v1", tenant.group), "kind": "Shop", "metadata": { "name": "books" },
        "spec": { "replicas": 1 },
    });
    tenant.create(shop).await?;
    tenant.until("Job/books-setup", says("Complete", "True")).await?;
    tenant.until("Deployment/books-web", says("Available", "True")).await?;
    tenant.until_pods("books-store", 1).await?;
    let marked = acceptance::expectation::StateExpectation::new("handled", |object| {
        object["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"].is_string()
    });
    tenant.until("Store/books-store", marked).await?;
    let (code, out, err) = run(&tenant, &["suggest", "-o", "json"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    let suggested: Vec<Value> = serde_json::from_str(&out)?;
    for policy in &written {
        let kind = &policy["spec"]["parent"]["kind"];
        let found = suggested.iter().find(|one| one["kind"] == *kind && one["group"] == tenant.group);
        let found = found.with_context(|| format!("nothing for {kind}: {out}"))?;
        assert_eq!(essence(&found["policy"]["spec"]), essence(&policy["spec"]), "{found:#}");
    }
    // And as a file it is one that everything else takes.
    let (code, out, err) = run(&tenant, &["suggest"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    let file = tenant.folder.join("suggested.yaml");
    fs::write(&file, &out)?;
    let file = file.to_string_lossy();
    tenant.plane.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", &file])?;
    let (code, tree, err) =
        run(&tenant, &["tree", &format!("shop.{}/books", tenant.group), "-f", &file]).await?;
    assert!(code == 0 && tree.contains("books-store"), "{tree}{err}\n{out}");
    Ok(())
}
