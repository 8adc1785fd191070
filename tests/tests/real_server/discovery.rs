//! How children are found, and how many are expected: references, copied labels, numbers that the parent gives.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// A tenant with `Database` over this one group of children, and Rollcall.
async fn over(word: &str, child: Value) -> Result<(TestTenant, acceptance::rollcall::RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let mut group = tenant.child("Deployment");
    for (key, value) in child.as_object().into_iter().flatten() {
        group[key] = value.clone();
    }
    tenant.policy("db", "Database", json!({ "children": [group], "settle": "100ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    Ok((tenant, rollcall))
}

fn reference(name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name })
}

#[tokio::test]
async fn what_a_parent_refers_to_is_its_child_and_all_of_it_is_expected() -> Result<()> {
    let (tenant, _rollcall) = over("refs", json!({ "find": { "refs": "spec.resourceRefs[*]" } })).await?;
    let mut db = tenant.custom("Database", "db");
    let other = json!({ "apiVersion": "v1", "kind": "Secret", "name": "not-meant" });
    db["spec"]["resourceRefs"] = json!([reference("web"), reference("api"), other]);
    tenant.create(db).await?;
    tenant.create(deployment("web", 1)).await?;
    tenant.create(deployment("stranger", 1)).await?;
    let missing = because("Ready", "ChildrenMissing").and(mentions("Ready", "Deployment api missing"));
    tenant.until("Database/db", says("Ready", "False").and(missing)).await?;
    tenant.create(deployment("api", 1)).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    tenant.change("Database/db", json!({ "spec": { "resourceRefs": [reference("web")] } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    // A path that leads to something else is said of this parent alone.
    let mut odd = tenant.custom("Database", "odd");
    odd["spec"]["resourceRefs"] = json!(["web"]);
    tenant.create(odd).await?;
    let named = because("Ready", "TemplateFailed").and(mentions("Ready", "spec.resourceRefs[*]"));
    tenant.until("Database/odd", says("Ready", "Unknown").and(named)).await?;
    Ok(())
}

#[tokio::test]
async fn labels_that_were_copied_to_a_siblings_children_do_not_leak() -> Result<()> {
    let find = json!({ "find": { "labels": { "team": "{parent.metadata.labels.team}" } } });
    let (tenant, _rollcall) = over("siblings", find).await?;
    let labelled = |mut object: Value| {
        object["metadata"]["labels"]["team"] = json!("blue");
        object
    };
    let one = tenant.create(labelled(tenant.custom("Database", "one"))).await?;
    let two = tenant.create(labelled(tenant.custom("Database", "two"))).await?;
    tenant.create(owned_by(&one, labelled(deployment("web-one", 1)))).await?;
    tenant.create(owned_by(&two, labelled(deployment("web-two", 1)))).await?;
    for name in ["Database/one", "Database/two"] {
        tenant.until(name, says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    }
    Ok(())
}

#[tokio::test]
async fn as_many_children_as_the_parent_asks_for_are_expected() -> Result<()> {
    let (tenant, _rollcall) = over("asked", json!({ "expect": { "cel": "6 / parent.spec.size" } })).await?;
    let mut db = tenant.custom("Database", "db");
    db["spec"]["size"] = json!(3);
    let db = tenant.create(db).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let missing = mentions("Ready", "Deployment missing (1 of at least 2 found)");
    tenant.until("Database/db", because("Ready", "ChildrenMissing").and(missing)).await?;
    tenant.create(owned_by(&db, deployment("api", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    // Nobody can say how many that would be: this parent is Unknown, and the other one is not concerned.
    let mut none = tenant.custom("Database", "none");
    none["spec"]["size"] = json!(0);
    let none = tenant.create(none).await?;
    tenant.create(owned_by(&none, deployment("lone", 1))).await?;
    let named = because("Ready", "TemplateFailed").and(mentions("Ready", "divi"));
    tenant.until("Database/none", says("Ready", "Unknown").and(named)).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_quorum_is_enough_and_never_one_of_nothing() -> Result<()> {
    let (tenant, _rollcall) = over("quorum", json!({ "quorum": "50%", "expect": { "min": 0 } })).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenMissing"))).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.create(owned_by(&db, acceptance::objects::playing("hold", deployment("slow", 1)))).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 2 ready"))).await?;
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    Ok(())
}
