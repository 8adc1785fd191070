//! Parents that are themselves children.

use acceptance::caller::version_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::objects::{condition, deployment, owned_by, owner_reference, playing, stateful_set, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::kopf::handled;

#[tokio::test]
async fn a_leaf_two_levels_down_reaches_the_top() -> Result<()> {
    let tenant = TestTenant::start("cascade").await?;
    tenant.crd(&CrdBuilder::new("Platform")).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let (leaves, databases) = (json!([tenant.child("StatefulSet")]), json!([tenant.child("Database")]));
    tenant.policy("low", "Database", json!({ "children": leaves, "settle": "200ms" })).await?;
    tenant.policy("high", "Platform", json!({ "children": databases, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Platform", "Database", "StatefulSet"]).await?;

    let platform = tenant.create(tenant.custom("Platform", "all")).await?;
    for name in ["main", "spare"] {
        let db = tenant.create(owned_by(&platform, tenant.custom("Database", name))).await?;
        tenant.create(owned_by(&db, playing("hold", stateful_set(name, 1)))).await?;
        tenant.until_pods(name, 1).await?;
    }
    tenant.until("Platform/all", says("Ready", "False").and(mentions("Ready", "2 of 2 not ready"))).await?;
    tenant.play("spare", None).await?;
    let one = mentions("Ready", "1 of 2 not ready").and(mentions("Ready", "Database main"));
    tenant.until("Platform/all", one).await?;
    tenant.play("main", None).await?;
    tenant.until("Platform/all", says("Ready", "True")).await?;
    tenant.play("main", Some("crash")).await?;
    tenant.until("Platform/all", says("Ready", "False").and(mentions("Ready", "Database main"))).await?;
    tenant.play("main", None).await?;
    tenant.until("Platform/all", says("Ready", "True")).await?;

    let recording = recorder.stop().await?;
    recording.first_word_is_unknown(&tenant.address("Platform/all")?, "Ready")?;
    for name in ["Database/main", "Database/spare"] {
        recording.no_false_ready(&tenant.address(name)?, "Ready", &[("StatefulSet", 1)])?;
    }
    Ok(())
}

#[tokio::test]
async fn owners_in_a_circle_hold_each_other_back_and_nobody_else() -> Result<()> {
    let tenant = TestTenant::start("circle").await?;
    tenant.crd(&CrdBuilder::new("Chicken")).await?;
    tenant.crd(&CrdBuilder::new("Egg")).await?;
    let (eggs, chickens) = (json!([tenant.child("Egg")]), json!([tenant.child("Chicken")]));
    tenant.policy("chickens", "Chicken", json!({ "children": eggs, "settle": "100ms" })).await?;
    tenant.policy("eggs", "Egg", json!({ "children": chickens, "settle": "100ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let chicken = tenant.create(tenant.custom("Chicken", "first")).await?;
    let egg = tenant.create(owned_by(&chicken, tenant.custom("Egg", "first"))).await?;
    let back = json!({ "metadata": { "ownerReferences": [owner_reference(&egg)] } });
    tenant.change("Chicken/first", back).await?;
    // Its own owner is nobody's child.
    let lone = tenant.create(tenant.custom("Egg", "lone")).await?;
    let own = json!({ "metadata": { "ownerReferences": [owner_reference(&lone)] } });
    tenant.change("Egg/lone", own).await?;
    tenant.until("Egg/lone", because("Ready", "ChildrenMissing")).await?;
    rollcall.until_printed("cycle").await?;

    for place in ["Chicken/first", "Egg/first", "Egg/lone"] {
        let status = tenant.until(place, acceptance::expectation::has("Ready", true)).await?;
        let entry = acceptance::objects::condition(&status, "Ready").cloned().unwrap_or_default();
        assert_ne!(entry["status"], "True", "{place}: {entry}");
    }
    let healthy = tenant.create(tenant.custom("Chicken", "healthy")).await?;
    tenant.create(owned_by(&healthy, tenant.custom("Egg", "empty"))).await?;
    tenant.until("Chicken/healthy", mentions("Ready", "Egg empty")).await?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_scoped_parent_counts_children_of_named_namespaces_and_a_namespaced_owner_none_elsewhere()
-> Result<()> {
    let tenant = TestTenant::start("scopes").await?;
    tenant.crd(&CrdBuilder::new("ClusterStack")).await?;
    tenant.crd(&CrdBuilder::new("Stack")).await?;
    let children = json!([tenant.child("StatefulSet")]);
    let mut named = tenant.child("StatefulSet");
    named["find"] = json!({ "allowedNamespaces": [tenant.name] });
    tenant.policy("wide", "ClusterStack", json!({ "children": [named], "settle": "100ms" })).await?;
    tenant.policy("narrow", "Stack", json!({ "children": children, "settle": "100ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let wide = tenant.create(tenant.custom("ClusterStack", "wide")).await?;
    tenant.create(owned_by(&wide, stateful_set("below", 1))).await?;
    tenant.until("ClusterStack/wide", says("Ready", "True")).await?;

    // A child elsewhere that names this owner would be collected as an orphan; before that, it does not count.
    let elsewhere = TestTenant::start("elsewhere").await?;
    let narrow = tenant.create(tenant.custom("Stack", "narrow")).await?;
    elsewhere.create(owned_by(&narrow, stateful_set("stray", 1))).await?;
    tenant.until("Stack/narrow", because("Ready", "ChildrenMissing")).await?;
    // Who may write in a namespace that the policy does not name cannot reach the cluster-scoped parent.
    let alone = tenant.create(tenant.custom("ClusterStack", "alone")).await?;
    elsewhere.create(owned_by(&alone, playing("hold", stateful_set("forged", 1)))).await?;
    tenant.until("ClusterStack/alone", because("Ready", "ChildrenMissing")).await?;
    tenant.create(owned_by(&alone, stateful_set("own", 1))).await?;
    tenant.until("ClusterStack/alone", says("Ready", "True")).await?;
    Ok(())
}

fn reference(api_version: &str, kind: &str, name: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "name": name })
}

/// Since the middle has this spec, the top was True no more before the middle was handled and all of it was well. What the middle
/// says of itself may be written a moment later: the two are written at once.
fn waits_for_the_middle(
    recording: &StateRecording,
    top: &ObjectAddress,
    changed: &Value,
    expected: &[(&str, usize)],
) -> Result<()> {
    let told = recording.transcript(top, "Ready");
    let since: Vec<_> =
        recording.said(top, "Ready").into_iter().filter(|said| said.version > version_of(changed)).collect();
    let first = since.first().context("nothing was said of the new spec")?;
    ensure!(first.entry["status"] != "True", "True goes on:\n{told}");
    let trues = since.iter().filter(|said| said.entry["status"] == "True");
    let mut count = 0;
    for said in trues {
        count += 1;
        let of_then = recording.entries().iter().take_while(|entry| entry.version <= said.version);
        let middle = of_then.filter(|entry| entry.uid == uid(changed)).last();
        let middle = middle.and_then(|entry| entry.state.as_ref()).context("there was no middle")?;
        ensure!(handled(middle), "True at {} before the middle was handled:\n{told}", said.version);
        let unready = recording.unready_at(said.version, uid(changed), expected)?;
        ensure!(unready.is_none(), "True at {}: {}\n{told}", said.version, unready.unwrap_or_default());
    }
    ensure!(count > 0, "never True again:\n{told}");
    Ok(())
}

#[tokio::test]
async fn three_levels_of_composite_kopf_and_plain_objects_say_the_same() -> Result<()> {
    let tenant = TestTenant::start("levels").await?;
    tenant.crd(&CrdBuilder::new("Composite").shapeless()).await?;
    // As Crossplane has it: a composite names what it is made of, and owns none of it.
    let referred = |kind: &str| {
        let mut child = tenant.child(kind);
        child["find"] = json!({ "refs": "spec.resourceRefs[*]" });
        child
    };
    let children = json!([referred("Shop"), referred("Deployment")]);
    tenant.policy("top", "Composite", json!({ "children": children, "settle": "200ms" })).await?;
    let example = tenant.kopf_example().await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let kinds = ["Composite", "Shop", "Store", "Deployment", "StatefulSet", "Job"];
    let recorder = StateRecorder::start(&tenant, &kinds).await?;
    let mut operator =
        tenant.operator("operator", KopfVersion::Current, &example.script, &example.kubeconfig, &[])?;

    let own = format!("{}/v1", tenant.group);
    let mut top = tenant.custom("Composite", "top");
    let refs = [reference(&own, "Shop", "books"), reference("apps/v1", "Deployment", "plain")];
    top["spec"]["resourceRefs"] = json!(refs);
    tenant.create(top).await?;
    tenant.until("Composite/top", mentions("Ready", "Shop books missing")).await?;
    tenant.create(deployment("plain", 1)).await?;
    let mut shop = tenant.custom("Shop", "books");
    shop["spec"] = json!({ "replicas": 1 });
    tenant.create(shop).await?;
    tenant.until("Composite/top", says("Ready", "True")).await?;

    tenant.play("books-store", Some("crash")).await?;
    let path = mentions("Ready", "Shop books").and(mentions("Ready", "Store books-store"));
    let leaf = mentions("Ready", "StatefulSet books-store");
    tenant.until("Composite/top", says("Ready", "False").and(path).and(leaf)).await?;
    tenant.play("books-store", None).await?;
    tenant.until("Composite/top", says("Ready", "True")).await?;

    // A new spec in the middle is not handled yet: the top does not go by children of the old one, which are all well.
    operator.stop().await?;
    let changed = tenant.change("Shop/books", json!({ "spec": { "replicas": 2 } })).await?;
    let not_handled = StateExpectation::new("not True any more", |top| {
        condition(top, "Ready").is_some_and(|entry| entry["status"] != "True")
    });
    tenant.until("Composite/top", not_handled.and(mentions("Ready", "Shop books"))).await?;
    operator.again()?;
    let grown = StateExpectation::new("grown", |store| store["status"]["readyReplicas"] == 2);
    tenant.until("StatefulSet/books-store", grown).await?;
    tenant.until("Shop/books", says("Ready", "True").and(current("Ready"))).await?;
    tenant.until("Composite/top", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Composite/top")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.first_word_is_unknown(&parent, "Ready")?;
    let shops = [("Deployment", 1), ("Job", 1), ("Store", 1)];
    waits_for_the_middle(&recording, &parent, &changed, &shops)?;
    recording.no_false_ready(&tenant.address("Shop/books")?, "Ready", &shops)?;
    operator.never_stumbled()
}

#[tokio::test]
async fn composites_that_refer_to_each_other_say_that_it_is_a_cycle() -> Result<()> {
    let tenant = TestTenant::start("loop").await?;
    tenant.crd(&CrdBuilder::new("Composite").shapeless()).await?;
    let mut child = tenant.child("Composite");
    child["find"] = json!({ "refs": "spec.resourceRefs[*]" });
    tenant.policy("loop", "Composite", json!({ "children": [child], "settle": "100ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let own = format!("{}/v1", tenant.group);
    for (name, of) in [("hen", "egg"), ("egg", "hen")] {
        let mut composite = tenant.custom("Composite", name);
        composite["spec"]["resourceRefs"] = json!([reference(&own, "Composite", of)]);
        tenant.create(composite).await?;
    }
    for place in ["Composite/hen", "Composite/egg"] {
        let said = tenant.until(place, says("Ready", "False")).await?;
        eprintln!("{:#}", said["status"]["conditions"][0]);
    }
    let one = async {
        tokio::select! {
            found = tenant.until("Composite/hen", mentions("Ready", "cycle")) => found,
            found = tenant.until("Composite/egg", mentions("Ready", "cycle")) => found,
        }
    };
    one.await?;
    Ok(())
}
