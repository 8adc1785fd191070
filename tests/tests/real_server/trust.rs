//! What those can cause who may write only a part of what Rollcall rests on: the status of policies, records of outcomes,
//! labels of namespaces and of children, groups, the status of a parent.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, gone, has, mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, job, owned_by, playing};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::memory::{fleeting, record, records, remembering};
use super::users::TestUser;

/// A policy's status says that it was accepted with this spec.
fn accepts(spec: &Value) -> StateExpectation {
    let spec = spec.clone();
    StateExpectation::new(&format!("accepted with {spec}"), move |policy| {
        policy["status"]["accepted"] == spec
    })
}

#[tokio::test]
async fn what_somebody_writes_into_the_status_of_a_policy_is_set_right_and_changes_nothing() -> Result<()> {
    let tenant = TestTenant::start("forged").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let policy = policy_address(&tenant, "db")?;
    let right = tenant.until_at(&policy, &says("Ready", "True")).await?["status"]["accepted"].clone();

    let mut other = tenant.policy_manifest("db", "Database", json!({}))["spec"].clone();
    other["condition"] = json!({ "type": "Forged" });
    let forged = json!({ "generation": right["generation"], "spec": other.to_string() });
    let status = json!({ "status": { "accepted": forged, "parents": 7 } });
    tenant.admin.merge(&policy, "/status", &status).await?;
    tenant.until_at(&policy, &accepts(&right)).await?;

    // Written while nothing runs, it is not believed either: the spec is accepted.
    rollcall.kill()?;
    tenant.admin.merge(&policy, "/status", &status).await?;
    rollcall.again().await?;
    tenant.until_at(&policy, &accepts(&right)).await?;
    let broken = json!({ "spec": { "children": [{ "kind": { "group": "apps", "kind": "Deployment" },
        "ready": { "cel": { "current": "nonsense(" } } }] } });
    tenant.admin.merge(&policy, "", &broken).await?;
    tenant.until_at(&policy, &says("Accepted", "False").and(accepts(&right))).await?;
    tenant.delete("Deployment/web").await?;
    let told = tenant.until("Database/db", because("Ready", "ChildrenMissing")).await?;
    assert!(condition(&told, "Forged").is_none(), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_forged_record_reaches_the_parent_whose_uid_it_has_and_no_job_that_is_there() -> Result<()> {
    let tenant = remembering("forger", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for name in ["held", "gone", "other"] {
        parents.push(tenant.create(tenant.custom("Database", name)).await?);
    }
    tenant.create(owned_by(&parents[0], playing("fail", job("stays")))).await?;
    tenant.until("Database/held", because("Ready", "ChildrenFailed")).await?;
    tenant.create(owned_by(&parents[1], playing("fail", fleeting("goes")))).await?;
    tenant.until("Job/goes", gone()).await?;
    tenant.until("Database/gone", because("Ready", "ChildrenFailed")).await?;
    tenant.until("Database/other", because("Ready", "ChildrenMissing")).await?;
    let (of_held, of_gone) = (record(&tenant, &parents[0])?, record(&tenant, &parents[1])?);
    tenant.until_at(&of_held, &records("stays", "Failed")).await?;
    tenant.until_at(&of_gone, &records("goes", "Failed")).await?;

    rollcall.kill()?;
    for place in [&of_held, &of_gone] {
        let found = tenant.admin.get(place).await?.context("no record")?;
        let mut forged = found["spec"]["outcomes"].clone();
        forged[0]["outcome"] = json!("Complete");
        tenant.admin.merge(place, "", &json!({ "spec": { "outcomes": forged } })).await?;
    }
    rollcall.again().await?;
    // That is what it can cause: how a Job ended that is gone stands nowhere else.
    tenant.until("Database/gone", says("Ready", "True")).await?;
    tenant.until_at(&of_held, &records("stays", "Failed")).await?;
    let told = tenant.get("Database/held").await?;
    assert_eq!(condition(&told, "Ready").context("no Ready")?["reason"], "ChildrenFailed");
    tenant.until("Database/other", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

#[tokio::test]
async fn who_labels_a_namespace_decides_for_its_parents_and_for_no_others() -> Result<()> {
    let tenant = TestTenant::start("labelled").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let chosen = json!({ "matchLabels": { "rollcall-trust": tenant.name } });
    let spec = json!({ "parent": { "namespaceSelector": chosen }, "children": [tenant.child("Deployment")],
        "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let elsewhere = format!("{}-else", tenant.name);
    let labels = json!({ "rollcall-trust": tenant.name });
    let space = json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": elsewhere, "labels": labels } });
    tenant.admin.create(&space).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(tenant.custom("Database", "here")).await?;
    let mut there = tenant.custom("Database", "there");
    there["metadata"]["namespace"] = json!(elsewhere);
    let mut address = tenant.address("Database/there")?;
    address.namespace.clone_from(&elsewhere);
    tenant.admin.create(&there).await?;
    let missing = || because("Ready", "ChildrenMissing");
    let told = tenant.until_at(&address, &missing()).await?;
    assert!(condition(&tenant.get("Database/here").await?, "Ready").is_none());

    let own = format!("Namespace/{}", tenant.name);
    for round in 0..2 {
        tenant.change(&own, json!({ "metadata": { "labels": labels } })).await?;
        tenant.until("Database/here", missing()).await.with_context(|| format!("round {round}"))?;
        tenant.change(&own, json!({ "metadata": { "labels": { "rollcall-trust": null } } })).await?;
        tenant.until("Database/here", has("Ready", false)).await?;
    }
    let after = tenant.admin.get(&address).await?.context("it is gone")?;
    assert_eq!(after["status"], told["status"], "what is in another namespace was left alone");
    Ok(())
}

#[tokio::test]
async fn a_group_shows_names_and_reasons_of_its_namespace_to_those_who_may_read_the_group() -> Result<()> {
    let tenant = TestTenant::start("shown").await?;
    let kinds = json!([{ "group": "apps", "kind": "Deployment" }]);
    let spec = json!({ "settle": "100ms", "members": [{ "kinds": kinds, "labels": { "part-of": "shop" } }] });
    let _rollcall = tenant.rollcall_for_groups(&[tenant.group_manifest("g", spec.clone())]).await?;
    let part = |name: &str, namespace: &str| {
        let mut part = playing("hold", deployment(name, 1));
        part["metadata"]["labels"] = json!({ "part-of": "shop" });
        part["metadata"]["namespace"] = json!(namespace);
        part
    };
    let elsewhere = format!("{}-else", tenant.name);
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": elsewhere } });
    tenant.admin.create(&space).await?;
    tenant.admin.create(&part("vault", &elsewhere)).await?;
    tenant.create(part("web", &tenant.name)).await?;
    tenant.readiness_group("shop", spec).await?;
    let told = tenant.until("ReadinessGroup/shop", mentions("Ready", "Deployment web")).await?;

    let read = ["get", "readinessgroup", "shop", "-n", &tenant.name, "-o", "json"];
    let rule = json!({ "apiGroups": ["rollcall.dev"], "resources": ["readinessgroups"], "verbs": ["get"] });
    let reader = TestUser::create(&tenant, "reader", &[rule]).await?;
    let seen: Value = serde_json::from_str(&reader.until_done(&read).await?)?;
    let said = condition(&seen, "Ready").context("no Ready")?["message"].clone();
    assert_eq!(said, condition(&told, "Ready").context("no Ready")?["message"]);
    let said = said.as_str().unwrap_or_default();
    assert!(said.contains("1 of 1 not ready: Deployment web progressing ("), "name and reason: {said}");
    assert!(!seen.to_string().contains("vault"), "{seen}");
    // Of the object itself they see nothing, and who may not read the group sees nothing of either.
    let refused = reader.kubectl(&["get", "deployment", "web", "-n", &tenant.name])?;
    assert!(refused.as_ref().is_err_and(|complaint| complaint.contains("Forbidden")), "{refused:?}");
    let stranger = TestUser::create(&tenant, "stranger", &[]).await?;
    let refused = stranger.kubectl(&read)?;
    assert!(refused.as_ref().is_err_and(|complaint| complaint.contains("Forbidden")), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn who_sets_the_labels_by_which_a_policy_finds_children_adds_one_in_the_parents_namespace_alone()
-> Result<()> {
    let tenant = TestTenant::start("labeller").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut child = tenant.child("Deployment");
    child["find"] = json!({ "labels": { "db": "{parent.metadata.name}" } });
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    let elsewhere = format!("{}-else", tenant.name);
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": elsewhere } });
    tenant.admin.create(&space).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(tenant.custom("Database", "db")).await?;
    let mut web = deployment("web", 1);
    web["metadata"]["labels"] = json!({ "db": "db" });
    tenant.create(web).await?;
    tenant.create(playing("hold", deployment("stray", 1))).await?;
    let mut outsider = playing("hold", deployment("outsider", 1));
    outsider["metadata"]["namespace"] = json!(elsewhere);
    tenant.admin.create(&outsider).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;

    let rule = json!({ "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "patch"] });
    let labeller = TestUser::create(&tenant, "labeller", &[rule]).await?;
    let label = async |namespace: &str, name: &str, label: &str| {
        labeller.until_done(&["label", "deployment", name, "-n", namespace, label]).await
    };
    label(&elsewhere, "outsider", "db=db").await?;
    label(&tenant.name, "stray", "db=db").await?;
    let added = mentions("Ready", "1 of 2 not ready").and(mentions("Ready", "Deployment stray"));
    let told = tenant.until("Database/db", says("Ready", "False").and(added)).await?;
    assert!(!told["status"].to_string().contains("outsider"), "{told}");
    label(&tenant.name, "stray", "db-").await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    Ok(())
}

/// A Database with a ready Deployment in a namespace, told to be ready.
async fn ready_in(tenant: &TestTenant, namespace: &str) -> Result<ObjectAddress> {
    let (mut db, mut web) = (tenant.custom("Database", "db"), deployment("web", 1));
    for object in [&mut db, &mut web] {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let db = tenant.admin.create(&db).await?;
    tenant.admin.create(&owned_by(&db, web)).await?;
    let mut address = tenant.address("Database/db")?;
    namespace.clone_into(&mut address.namespace);
    tenant.until_at(&address, &says("Ready", "True")).await?;
    Ok(address)
}

#[tokio::test]
async fn who_writes_the_status_of_one_parent_can_let_others_of_its_kind_wait_and_makes_none_of_them_ready()
-> Result<()> {
    let tenant = TestTenant::start("speaks").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let elsewhere = format!("{}-else", tenant.name);
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": elsewhere } });
    tenant.admin.create(&space).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let (own, other) = (ready_in(&tenant, &tenant.name).await?, ready_in(&tenant, &elsewhere).await?);
    let before = tenant.admin.get(&other).await?;

    // Somebody who may write the status of Databases in one namespace says which generation was handled.
    let rule = json!({ "apiGroups": [tenant.group], "resources": ["databases", "databases/status"],
        "verbs": ["get", "patch"] });
    let forger = TestUser::create(&tenant, "forger", &[rule]).await?;
    let forge = async |status: Value| {
        let patch = json!({ "status": status }).to_string();
        let resource = format!("databases.{}", tenant.group);
        let args = [
            "patch",
            &resource,
            "db",
            "-n",
            &tenant.name,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        forger.until_done(&args).await
    };
    forge(json!({ "observedGeneration": 7 })).await?;
    let respec = json!({ "spec": { "size": 2 } });
    tenant.admin.merge(&own, "", &respec).await?;
    // In their own namespace it counts as the operator's word.
    tenant.until_at(&own, &says("Ready", "True").and(current("Ready"))).await?;
    assert_eq!(tenant.admin.get(&other).await?, before, "what was told elsewhere stands");
    // Elsewhere a generation waits for the operator to say the same, also when the forged word is gone.
    tenant.admin.merge(&other, "", &respec).await?;
    let waits = because("Ready", "ChildrenPending").and(current("Ready"));
    tenant.until_at(&other, &waits).await?;
    forge(json!({ "observedGeneration": null })).await?;
    let touched = json!({ "metadata": { "labels": { "touched": "yes" } } });
    tenant.admin.merge(&other, "", &touched).await?;
    tenant.until_at(&other, &waits).await?;
    // A failure that they report is that of their own parent.
    forge(json!({ "phase": "Failed" })).await?;
    tenant.until_at(&own, &because("Ready", "OperatorFailed")).await?;
    tenant.until_at(&other, &waits).await?;
    // A policy that concludes nothing from one parent to another is the way out.
    let policy = policy_address(&tenant, "db")?;
    tenant.admin.merge(&policy, "", &json!({ "spec": { "evidence": "own" } })).await?;
    tenant.until_at(&other, &says("Ready", "True").and(current("Ready"))).await?;
    Ok(())
}
