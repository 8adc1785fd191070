//! The real kro beside Rollcall: an instance of it waits for a parent by the `readyWhen` that is printed for it, and is itself a
//! parent whose status is not for others to write.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, gone, mentions, says, there};
use acceptance::groups::TenantGroups as _;
use acceptance::kind::ObjectAddress;
use acceptance::kro::{KroController, graph};
use acceptance::objects::{condition, deployment, owned_by, uid};
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, apply_crds, policy_address};
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::peer_parent::{PeerEvidence, PeerLink, PeerParent};

/// A cluster without controllers: what becomes of a child is for the test to say.
async fn tenant_with_kro(word: &str) -> Result<(TestTenant, KroController)> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane, word).await?;
    let kro = KroController::start(&tenant).await?;
    Ok((tenant, kro))
}

/// An object of a tenant's kind in a graph, which is called like the instance and is of its size.
fn template(tenant: &TestTenant, kind: &str) -> Value {
    let mut template = tenant.custom(kind, "${schema.metadata.name}");
    template["spec"]["size"] = json!("${schema.spec.size}");
    template
}

/// The resource of a parent as its author has it from `rollcall readers` for a policy or a group: the id that is named there, and
/// what is to stand beside the template.
fn read_parent(tenant: &TestTenant, judged: &Value, template: Value) -> Result<Value> {
    let file = tenant.policies_file(std::slice::from_ref(judged))?;
    let printed = rollcall(&["readers", "--for", "kro", "-f", &file.to_string_lossy()])?;
    let mut resource: Value = serde_saphyr::from_str(&printed)?;
    let id = printed.split('`').nth(1).context("no id is named")?;
    resource["id"] = json!(id);
    resource["template"] = template;
    Ok(resource)
}

/// A ConfigMap that kro cannot make before the other resource is ready.
fn address_of(resource: &Value) -> Value {
    let id = resource["id"].as_str().unwrap_or_default();
    json!({ "id": "address", "template": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("${{{id}.metadata.name}}") },
        "data": { "of": format!("${{{id}.metadata.uid}}"), "size": "${string(schema.spec.size)}" },
    } })
}

/// An instance of this kind, with what that has by default.
fn instance(tenant: &TestTenant, kind: &str) -> Value {
    json!({ "apiVersion": format!("{}/v1", tenant.group), "kind": kind, "metadata": { "name": "shop" }, "spec": {} })
}

/// kro says that all of the instance, as it is specified now, is ready.
fn all_ready() -> StateExpectation {
    let active = StateExpectation::new("ACTIVE", |shop| shop["status"]["state"] == "ACTIVE");
    says("Ready", "True").and(current("Ready")).and(active)
}

fn waiting() -> StateExpectation {
    let in_progress = StateExpectation::new("IN_PROGRESS", |shop| shop["status"]["state"] == "IN_PROGRESS");
    says("Ready", "False").and(says("ResourcesReady", "False")).and(in_progress)
}

/// kro, having looked at the parent as it is now, waits for it.
async fn waits_on(tenant: &TestTenant, kro: &KroController, why: &str) -> Result<()> {
    kro.until_looked().await?;
    let shop = tenant.get("Shop/shop").await?;
    ensure!(waiting().holds(Some(&shop)), "{why}: {:#}", shop["status"]);
    Ok(())
}

/// What a Deployment of one pod says of its present generation.
fn rollout(generation: i64, ready: bool, progressing: &str) -> Value {
    let count = i64::from(ready);
    let reason = if progressing == "True" { "ReplicaSetUpdated" } else { "ProgressDeadlineExceeded" };
    json!({
        "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": count,
        "availableReplicas": count, "unavailableReplicas": 1 - count,
        "conditions": [{ "type": "Progressing", "status": progressing, "reason": reason }],
    })
}

/// Fails if kro ever said that the instance is ready, or made what comes behind the parent, where no state of the parent since
/// kro's last word says that it is ready, for its own generation. Returns how many times the instance became ready.
fn kro_is_never_early(tenant: &TestTenant, recording: &StateRecording) -> Result<usize> {
    let shop = tenant.address("Shop/shop")?;
    let words: Vec<u64> = recording.said(&shop, "Ready").iter().map(|said| said.version).collect();
    // Whether the parent is ready now, and whether it was since kro's last word.
    let (mut is_ready, mut was_ready) = (false, false);
    // What kro says now, and how many times it came to say True.
    let (mut says_true, mut times) = (false, 0);
    for entry in recording.entries() {
        let Some(state) = &entry.state else { continue };
        let ready = condition(state, "Ready").cloned().unwrap_or_default();
        match state["kind"].as_str() {
            Some("Database") => {
                is_ready = ready["status"] == "True"
                    && ready["reason"] == "AllChildrenReady"
                    && ready["observedGeneration"] == state["metadata"]["generation"];
                was_ready |= is_ready;
            }
            Some("Shop") if words.contains(&entry.version) => {
                let said_true = std::mem::replace(&mut says_true, ready["status"] == "True");
                // Of the two it is this that comes first.
                let is_active = state["status"]["state"] == "ACTIVE";
                ensure!(was_ready || !(is_active || says_true), "kro is early: {state:#}");
                times += usize::from(says_true && !said_true);
                was_ready = is_ready;
            }
            Some("ConfigMap") if state["metadata"]["name"] == "shop" => {
                ensure!(times > 0 || was_ready, "kro is early with {state:#}");
            }
            _ => {}
        }
    }
    Ok(times)
}

#[tokio::test]
async fn kro_holds_an_instance_back_until_its_parent_is_true_of_its_generation_by_the_ready_when_that_is_printed()
-> Result<()> {
    let (tenant, kro) = tenant_with_kro("kro").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    // For as long as the first answer is to stand.
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "10m" });
    let policy = tenant.policy("db", "Database", spec).await?;
    let parent = read_parent(&tenant, &policy, template(&tenant, "Database"))?;
    let address = address_of(&parent);
    kro.define(&tenant, &graph(&tenant, "Shop", &[parent, address])).await?;
    let recorder = StateRecorder::start(&tenant, &["Shop", "Database", "ConfigMap"]).await?;

    tenant.create(instance(&tenant, "Shop")).await?;
    let db = tenant.until("Database/shop", there()).await?;
    waits_on(&tenant, &kro, "nothing is told, and there is no status").await?;
    ensure!(tenant.get("Database/shop").await?["status"].is_null(), "somebody told something");

    let running = tenant.rollcall(&[]).await?;
    tenant.until("Database/shop", says("Ready", "Unknown")).await?;
    waits_on(&tenant, &kro, "it is Unknown").await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.admin.merge(&policy, "", &json!({ "spec": { "settle": "100ms" } })).await?;
    tenant.until("Database/shop", because("Ready", "ChildrenMissing")).await?;
    waits_on(&tenant, &kro, "its child is missing").await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.change_status("Deployment/web", rollout(1, false, "True")).await?;
    tenant.until("Database/shop", because("Ready", "ChildrenProgressing")).await?;
    waits_on(&tenant, &kro, "its child is not ready").await?;
    ensure!(tenant.get("ConfigMap/shop").await.is_err(), "it is there");

    tenant.change_status("Deployment/web", rollout(1, true, "True")).await?;
    tenant.until("Database/shop", says("Ready", "True")).await?;
    tenant.until("Shop/shop", all_ready()).await?;
    tenant.until("ConfigMap/shop", there()).await?;

    tenant.change_status("Deployment/web", rollout(1, false, "False")).await?;
    tenant.until("Database/shop", because("Ready", "ChildrenFailed")).await?;
    tenant.until("Shop/shop", waiting()).await?;
    tenant.change_status("Deployment/web", rollout(1, true, "True")).await?;
    tenant.until("Shop/shop", all_ready()).await?;

    // What stands is about the generation before, and says True.
    running.pause()?;
    tenant.change("Shop/shop", json!({ "spec": { "size": 2 } })).await?;
    let second = StateExpectation::new("of a new generation", |db| db["metadata"]["generation"] == 2);
    let db = tenant.until("Database/shop", second.and(says("Ready", "True"))).await?;
    ensure!(!current("Ready").holds(Some(&db)), "Rollcall was suspended: {db:#}");
    waits_on(&tenant, &kro, "what is said is about the generation before").await?;
    // It is what is to be made that is held back, and not what is to be changed.
    let changed = StateExpectation::new("changed", |address| address["data"]["size"] == "2");
    tenant.until("ConfigMap/shop", changed).await?;
    running.resume()?;
    tenant.until("Database/shop", says("Ready", "True").and(current("Ready"))).await?;
    tenant.until("Shop/shop", all_ready()).await?;
    let times = kro_is_never_early(&tenant, &recorder.stop().await?)?;
    ensure!(times == 3, "it became ready {times} times");
    Ok(())
}

/// Fails unless all that Rollcall ever said on the instance is a first Unknown, taken back before kro's own first word.
fn only_kro_speaks(recording: &StateRecording, of: &str) -> Result<()> {
    let states = recording.entries().iter().filter(|entry| entry.uid == of);
    for state in states.filter_map(|entry| entry.state.as_ref()) {
        let ready = condition(state, "Ready").cloned().unwrap_or_default();
        if state["status"]["state"].is_null() {
            ensure!(ready.is_null() || ready["status"] == "Unknown", "before kro: {state:#}");
            continue;
        }
        let entries = state["status"]["conditions"].as_array().context("no conditions")?;
        let types: Vec<&str> = entries.iter().filter_map(|entry| entry["type"].as_str()).collect();
        let own = ["InstanceManaged", "GraphResolved", "ResourcesReady", "Ready"];
        ensure!(types.iter().all(|of| own.contains(of)), "{types:?}");
        ensure!(["Ready", "NotReady"].iter().any(|reason| ready["reason"] == *reason), "{ready}");
    }
    Ok(())
}

#[tokio::test]
async fn an_instance_of_the_real_kro_is_evaluated_and_its_status_left_to_kro() -> Result<()> {
    let (tenant, kro) = tenant_with_kro("kro-instance").await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let part = json!({ "id": "part", "template": template(&tenant, "Part") });
    kro.define(&tenant, &graph(&tenant, "Shop", &[part])).await?;
    let shop = PeerParent {
        link: PeerLink::Label,
        evidence: PeerEvidence::Finalizer(
            "by kro (finalizer kro.run/finalizer), which replaces the whole status",
        ),
        ..PeerParent::new("shop", (&tenant.group, "v1", "Shop"), "kro")
    };
    apply_crds(&tenant, &places::rollcall()?).await?;
    tenant.admin.create(&shop.policy(&tenant)).await?;
    tenant.create(instance(&tenant, "Shop")).await?;
    // Without `readyWhen` it is ready for kro as soon as all is made.
    tenant.until("Shop/shop", all_ready()).await?;
    let running = tenant.rollcall(&[]).await?;
    shop.turn_child(&tenant, "False").await?;
    shop.until_judged(&tenant, &running, false).await?;
    shop.until_policy_says_why(&tenant).await?;
    shop.turn_child(&tenant, "True").await?;
    shop.until_judged(&tenant, &running, true).await?;
    tenant.change("Shop/shop", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Shop/shop", all_ready()).await?;
    shop.turn_child(&tenant, "False").await?;
    shop.until_judged(&tenant, &running, false).await?;
    let now = tenant.get("Shop/shop").await?;
    let writers = now["metadata"]["managedFields"].as_array().context("nobody wrote it")?;
    ensure!(writers.iter().all(|writer| writer["manager"] != "rollcall"), "it was written: {now:#}");
    let policy = format!("policy=\"{}\"", tenant.policy_name("shop"));
    ensure!(running.metric("rollcall_writes_total", &[&policy]).await? < 0.5, "it was written");
    // Nothing of it hinders kro in taking all away.
    tenant.delete("Shop/shop").await?;
    tenant.until("Shop/shop", gone()).await?;
    tenant.until("Part/shop", gone()).await?;

    // One that comes now has no finalizer for a moment, and may be taken for a parent like any other.
    let recorder = StateRecorder::start(&tenant, &["Shop"]).await?;
    let second = tenant.create(instance(&tenant, "Shop")).await?;
    tenant.until("Shop/shop", all_ready()).await?;
    shop.turn_child(&tenant, "False").await?;
    shop.until_judged(&tenant, &running, false).await?;
    shop.turn_child(&tenant, "True").await?;
    shop.until_judged(&tenant, &running, true).await?;
    only_kro_speaks(&recorder.stop().await?, uid(&second))
}

#[tokio::test]
async fn kro_takes_the_ready_when_of_every_kind_whose_conditions_have_a_generation() -> Result<()> {
    let (tenant, kro) = tenant_with_kro("kro-kinds").await?;
    for crd in [
        // `instance` is a word of kro's own.
        CrdBuilder::new("Instance"),
        CrdBuilder::new("Store").atomic(),
        CrdBuilder::new("Vague").shapeless().with_schema("/type", json!("object")),
        CrdBuilder::new("Bare").without_fields_of_conditions(&["observedGeneration"]),
        CrdBuilder::new("Nameless").shapeless(),
    ] {
        tenant.crd(&crd).await?;
    }
    let graph_over = |kind: &str, judged: &Value, template: Value| -> Result<Value> {
        let parent = read_parent(&tenant, judged, template)?;
        let address = address_of(&parent);
        Ok(graph(&tenant, &format!("{kind}Shop"), &[parent, address]))
    };
    let graph_over_kind = |kind: &str| {
        let policy = tenant.policy_manifest(&kind.to_lowercase(), kind, json!({}));
        graph_over(kind, &policy, template(&tenant, kind))
    };
    for kind in ["Instance", "Store", "Vague"] {
        kro.define(&tenant, &graph_over_kind(kind)?).await?;
    }
    apply_crds(&tenant, &places::rollcall()?).await?;
    let members = json!({ "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "shop" } }] });
    let [group, object] =
        ["group", "${schema.metadata.name}"].map(|name| tenant.group_manifest(name, members.clone()));
    kro.define(&tenant, &graph_over("Group", &group, object)?).await?;
    for (kind, field) in [("Bare", "observedGeneration"), ("Nameless", "status")] {
        let graph = tenant.admin.create(&graph_over_kind(kind)?).await?;
        let why = mentions("Ready", &format!("undefined field '{field}'"));
        tenant.until_at(&ObjectAddress::of(&graph)?, &says("Ready", "False").and(why)).await?;
    }

    // As some operators leave it: kro takes the null for a mistake of the expression, and looks again all the same.
    tenant.create(instance(&tenant, "VagueShop")).await?;
    let vague = ObjectAddress::of(&tenant.until("Vague/shop", there()).await?)?;
    let none = json!([{ "op": "add", "path": "/status", "value": { "conditions": null } }]);
    tenant.admin.json_patch(&vague, "/status", &none).await?;
    let mistaken = StateExpectation::new("ERROR", |shop| shop["status"]["state"] == "ERROR");
    tenant.until("VagueShop/shop", mistaken.and(says("Ready", "False"))).await?;
    let well =
        json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "observedGeneration": 1 });
    tenant.change_status("Vague/shop", json!({ "conditions": [well] })).await?;
    tenant.until("VagueShop/shop", all_ready()).await?;
    Ok(())
}
