//! Every shape of status that operators ship.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, job, owned_by, uid};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// A tenant with one shape of `Database`, a policy and Rollcall; and the way from nothing to ready.
async fn becomes_ready(word: &str, crd: CrdBuilder) -> Result<(StateRecording, ObjectAddress)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&crd).await?;
    let children = json!([tenant.child("Deployment"), tenant.child("Job")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "Job"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, job("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok((recorder.stop().await?, tenant.address("Database/db")?))
}

/// The same where each generation is one of the spec, and has its own first word.
async fn becomes_ready_by_generation(word: &str, crd: CrdBuilder) -> Result<()> {
    let (recording, parent) = becomes_ready(word, crd).await?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1), ("Job", 1)])
}

#[tokio::test]
async fn conditions_are_written_into_a_list_map() -> Result<()> {
    becomes_ready_by_generation("listmap", CrdBuilder::new("Database")).await
}

#[tokio::test]
async fn conditions_are_written_into_an_atomic_list() -> Result<()> {
    becomes_ready_by_generation("atomic", CrdBuilder::new("Database").atomic()).await
}

#[tokio::test]
async fn conditions_are_written_where_the_schema_says_nothing() -> Result<()> {
    becomes_ready_by_generation("shapeless", CrdBuilder::new("Database").shapeless()).await
}

#[tokio::test]
async fn conditions_are_written_without_a_status_subresource() -> Result<()> {
    // There every write moves the generation, ours too, so only the object as a whole has a first word.
    let crd = CrdBuilder::new("Database").without_status_subresource();
    let (recording, parent) = becomes_ready("flat", crd).await?;
    let statuses = recording.statuses(&parent, "Ready");
    assert_eq!(statuses.first().map(String::as_str), Some("Unknown"), "{statuses:?}");
    assert_eq!(statuses.last().map(String::as_str), Some("True"), "{statuses:?}");
    for said in recording.said(&parent, "Ready") {
        assert_eq!(
            said.entry["observedGeneration"],
            said.generation,
            "{}",
            recording.transcript(&parent, "Ready")
        );
    }
    Ok(())
}

/// Grants writes of a Database and of its status: which of them is needed depends on the definition.
async fn grant_both(tenant: &TestTenant) -> Result<()> {
    let (api, name) = ("rbac.authorization.k8s.io", format!("{}-both", tenant.name));
    let resources = ["databases", "databases/status"];
    let rule = json!({ "apiGroups": [tenant.group], "resources": resources, "verbs": ["patch"] });
    let account = json!({ "kind": "ServiceAccount", "name": "rollcall", "namespace": tenant.name });
    for object in [
        json!({ "kind": "ClusterRole", "rules": [rule] }),
        json!({ "kind": "ClusterRoleBinding", "subjects": [account],
            "roleRef": { "apiGroup": api, "kind": "ClusterRole", "name": name } }),
    ] {
        let mut object = object;
        object["apiVersion"] = json!(format!("{api}/v1"));
        object["metadata"] = json!({ "name": name });
        tenant.plane.admin().await?.create(&object).await?;
    }
    Ok(())
}

/// Waits until discovery has the subresource of the status, or has it no more.
async fn until_status_is_served(tenant: &TestTenant, is_served: bool) -> Result<()> {
    let client = tenant.plane.admin().await?.client();
    loop {
        let found = client.list_api_group_resources(&format!("{}/v1", tenant.group)).await?;
        if found.resources.iter().any(|resource| resource.name == "databases/status") == is_served {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_definition_that_gains_or_loses_its_status_subresource_is_written_as_it_is_served() -> Result<()> {
    let kinds = [
        ("gains-status", CrdBuilder::new("Database").without_status_subresource()),
        ("loses-status", CrdBuilder::new("Database")),
    ];
    for (word, crd) in kinds {
        let tenant = TestTenant::start(word).await?;
        tenant.crd(&crd).await?;
        tenant.crd(&CrdBuilder::new("Shard")).await?;
        let children = json!([tenant.child("Shard")]);
        tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
        let _running = tenant.rollcall(&[]).await?;
        let db = tenant.create(tenant.custom("Database", "db")).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", "shard"))).await?;
        let set_ready = async |status: &str| {
            let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
            tenant.change_status("Shard/shard", json!({ "conditions": [entry] })).await
        };
        set_ready("True").await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
        let manifest = crd.manifest(&tenant.group);
        let name =
            format!("CustomResourceDefinition/{}", manifest["metadata"]["name"].as_str().unwrap_or_default());
        let path = "/spec/versions/0/subresources";
        let is_gain = manifest["spec"]["versions"][0]["subresources"].is_null();
        let change = if is_gain {
            json!([{ "op": "add", "path": path, "value": { "status": {} } }])
        } else {
            json!([{ "op": "remove", "path": path }])
        };
        grant_both(&tenant).await?;
        tenant.plane.admin().await?.json_patch(&tenant.address(&name)?, "", &change).await?;
        until_status_is_served(&tenant, is_gain).await?;
        for status in ["False", "True"] {
            set_ready(status).await?;
            tenant.until("Database/db", says("Ready", status)).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn another_writer_of_a_status_without_subresource_is_no_reason_to_write() -> Result<()> {
    let tenant = TestTenant::start("noloop").await?;
    tenant.crd(&CrdBuilder::new("Database").without_status_subresource()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    // Each of these moves the generation, none of them the spec.
    for round in 0..50 {
        tenant.change("Database/db", json!({ "status": { "phase": format!("round {round}") } })).await?;
    }
    // This one does; once it is answered, so is everything before it.
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending")).await?;
    let recording = recorder.stop().await?;
    let trues = recording.said(&tenant.address("Database/db")?, "Ready");
    let trues = trues.iter().filter(|said| said.entry["status"] == "True").count();
    assert_eq!(trues, 1, "{}", recording.transcript(&tenant.address("Database/db")?, "Ready"));
    Ok(())
}

#[tokio::test]
async fn a_schema_that_prunes_conditions_is_reported_and_not_tried_again() -> Result<()> {
    let tenant = TestTenant::start("pruned").await?;
    tenant.crd(&CrdBuilder::new("Database").pruning()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let pruned = ["outcome=\"pruned\""];
    rollcall.until_metric("rollcall_writes_total", &pruned, |count| count >= 1.0).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    let tried = rollcall.metric("rollcall_writes_total", &pruned).await?;
    assert!(tried <= 4.0, "one try for each thing to say, not {tried}");
    let told = tenant.get("Database/db").await?;
    assert!(told["status"].is_null() || told["status"] == json!({}), "{}", told["status"]);
    let policy = policy_address(&tenant, "db")?;
    let reported = StateExpectation::new("reported in the policy", |policy: &Value| {
        let text = policy["status"]["conditions"].to_string();
        text.contains("prune") || text.contains("Pruned")
    });
    tenant.until_at(&policy, &reported).await?;
    Ok(())
}

#[tokio::test]
async fn a_schema_by_which_conditions_are_no_list_is_named_in_the_policy_until_it_is_mended() -> Result<()> {
    let tenant = TestTenant::start("mapped").await?;
    let object = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    tenant.crd(&CrdBuilder::new("Database").with_schema("/properties/conditions", object)).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let named = because("Ready", "ConditionRefused").and(mentions("Ready", "1 parents cannot be told"));
    tenant.until_at(&policy_address(&tenant, "db")?, &named).await?;
    rollcall.until_metric("rollcall_parents_refused", &[], |count| count >= 1.0).await?;
    let mended = CrdBuilder::new("Database").manifest(&tenant.group);
    let mends = json!({ "spec": mended["spec"] });
    tenant.admin.merge(&ObjectAddress::of(&mended)?, "", &mends).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.until_at(&policy_address(&tenant, "db")?, &because("Ready", "Synced")).await?;
    Ok(())
}

#[tokio::test]
async fn odd_statuses_are_left_alone_and_others_go_on() -> Result<()> {
    let tenant = TestTenant::start("odd").await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let odd = [json!(true), json!("up"), json!({ "conditions": "none" }), json!({ "conditions": [1, null] })];
    for (at, status) in odd.iter().enumerate() {
        let mut parent = tenant.custom("Database", &format!("odd-{at}"));
        parent["status"] = status.clone();
        tenant.create(parent).await?;
        tenant.change_status(&format!("Database/odd-{at}"), status.clone()).await?;
    }
    let db = tenant.create(tenant.custom("Database", "plain")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/plain", says("Ready", "True")).await?;
    assert!(rollcall.runs()?, "{}", rollcall.output());
    for at in 0..odd.len() {
        let now = tenant.get(&format!("Database/odd-{at}")).await?;
        assert!(!uid(&now).is_empty());
        let ours = condition(&now, "Ready").is_none_or(|entry| entry["status"] != "True");
        assert!(ours, "{}", now["status"]);
    }
    Ok(())
}

/// Conditions of many operators are older than their `observedGeneration`, and some have less: what the server drops there is
/// remembered, so that nothing is written twice. (It is forgotten at a restart; `crd-defaults` gives the CRD the fields.)
#[tokio::test]
async fn conditions_that_lack_fields_of_their_own_are_written_once_for_each_thing_to_say() -> Result<()> {
    let tenant = TestTenant::start("older").await?;
    let shapes: [(&str, &[&str]); 4] = [
        ("Mute", &["message"]),
        ("Bare", &["observedGeneration", "lastTransitionTime", "message"]),
        ("Undated", &["lastTransitionTime"]),
        ("Older", &["observedGeneration"]),
    ];
    for (kind, lacks) in shapes {
        tenant.crd(&CrdBuilder::new(kind).without_fields_of_conditions(lacks)).await?;
        let children = json!([tenant.child("Deployment")]);
        tenant.policy(&kind.to_lowercase(), kind, json!({ "children": children, "settle": "200ms" })).await?;
    }
    let rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &shapes.map(|(kind, _)| kind)).await?;
    for (kind, _) in shapes {
        let parent = tenant.create(tenant.custom(kind, "db")).await?;
        tenant.create(owned_by(&parent, deployment(&format!("{}-web", kind.to_lowercase()), 1))).await?;
        let name = format!("{kind}/db");
        tenant.until(&name, says("Ready", "True")).await?;
        tenant.change(&name, json!({ "spec": { "size": 2 } })).await?;
        tenant.until(&name, says("Ready", "Unknown")).await?;
        tenant.until(&name, says("Ready", "True")).await?;
    }
    // What would be said again and again has had the time of all that come after it.
    let writes = rollcall.metric("rollcall_writes_total", &[]).await?;
    let recording = recorder.stop().await?;
    let (mut said, mut told) = (0, String::new());
    for (kind, _) in shapes {
        let parent = tenant.address(&format!("{kind}/db"))?;
        assert_eq!(
            recording.statuses(&parent, "Ready").first().map(String::as_str),
            Some("Unknown"),
            "{kind}"
        );
        said += recording.said(&parent, "Ready").len();
        told += &recording.transcript(&parent, "Ready");
    }
    assert!(writes <= f64::from(u32::try_from(said)?) + 4.0, "{writes} writes\n{told}");
    Ok(())
}

/// By its reason alone a condition is known again, to Rollcall and to the next process.
#[tokio::test]
async fn a_schema_without_reasons_is_one_that_prunes() -> Result<()> {
    let tenant = TestTenant::start("unreasoned").await?;
    tenant.crd(&CrdBuilder::new("Database").without_fields_of_conditions(&["reason"])).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    rollcall.until_metric("rollcall_writes_total", &["outcome=\"pruned\""], |count| count >= 1.0).await?;
    let policy = policy_address(&tenant, "db")?;
    let reported = StateExpectation::new("reported in the policy", |policy: &Value| {
        policy["status"]["conditions"].to_string().contains("ConditionPruned")
    });
    tenant.until_at(&policy, &reported).await?;
    let told = tenant.get("Database/db").await?;
    assert_ne!(condition(&told, "Ready").map(|entry| &entry["status"]), Some(&json!("True")), "{told}");
    Ok(())
}

#[tokio::test]
async fn what_a_schema_without_reasons_lets_stand_is_rollcalls_still_and_follows_once_it_has_them()
-> Result<()> {
    let tenant = TestTenant::start("unreasoned").await?;
    let without = CrdBuilder::new("Database").atomic().without_fields_of_conditions(&["reason", "message"]);
    tenant.crd(&without).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let turn = async |status: &str| {
        let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
        tenant.change_status("Shard/shard", json!({ "conditions": [entry] })).await
    };
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "shard"))).await?;
    turn("True").await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.until_at(&policy, &because("Ready", "ConditionPruned")).await?;
    turn("False").await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let mended = CrdBuilder::new("Database").atomic().manifest(&tenant.group);
    let mends = json!({ "spec": mended["spec"] });
    tenant.admin.merge(&ObjectAddress::of(&mended)?, "", &mends).await?;
    for status in ["True", "False", "True"] {
        turn(status).await?;
        tenant.until("Database/db", says("Ready", status)).await?;
    }
    tenant.until("Database/db", because("Ready", "AllChildrenReady")).await?;
    tenant.until_at(&policy, &because("Ready", "Synced")).await?;
    Ok(())
}
