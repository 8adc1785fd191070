//! Policies come, change and go while Rollcall runs.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, gone, has, mentions, says};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

async fn database_tenant(word: &str) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    Ok(tenant)
}

fn over_deployments(tenant: &TestTenant) -> Value {
    json!({ "children": [tenant.child("Deployment")], "settle": "100ms" })
}

#[tokio::test]
async fn a_policy_that_goes_takes_its_entries_along_and_comes_back() -> Result<()> {
    let tenant = database_tenant("readded").await?;
    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let neighbour = json!([
        { "op": "add", "path": "/status/conditions/0", "value": { "type": "Neighbour", "status": "True" } },
    ]);
    tenant.admin.json_patch(&tenant.address("Database/db")?, "/status", &neighbour).await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.admin.delete(&policy).await?;
    tenant.until_at(&policy, &gone()).await?;
    let left = tenant.until("Database/db", has("Ready", false)).await?;
    assert_eq!(left["status"]["conditions"], json!([{ "type": "Neighbour", "status": "True" }]));
    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    tenant.until("Database/db", says("Ready", "True").and(says("Neighbour", "True"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_that_changes_is_followed() -> Result<()> {
    let tenant = database_tenant("changed").await?;
    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let policy = policy_address(&tenant, "db")?;
    let mut two = tenant.child("Deployment");
    two["expect"] = json!({ "min": 2 });
    tenant.admin.merge(&policy, "", &json!({ "spec": { "children": [two] } })).await?;
    tenant.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenMissing"))).await?;
    let renamed = json!({ "spec": { "condition": { "type": "ChildrenReady" } } });
    tenant.admin.merge(&policy, "", &renamed).await?;
    tenant.until("Database/db", says("ChildrenReady", "False").and(has("Ready", false))).await?;
    tenant.admin.merge(&policy, "", &json!({ "spec": { "mode": "shadow" } })).await?;
    tenant.create(owned_by(&db, deployment("more", 1))).await?;
    tenant.until("Deployment/more", says("Available", "True")).await?;
    tenant.until("Database/db", has("ChildrenReady", false)).await?;
    Ok(())
}

#[tokio::test]
async fn a_second_policy_for_the_same_condition_is_refused() -> Result<()> {
    let tenant = database_tenant("second").await?;
    tenant.policy("first", "Database", over_deployments(&tenant)).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let first = policy_address(&tenant, "first")?;
    tenant.until_at(&first, &says("Accepted", "True")).await?;
    tenant.policy("second", "Database", over_deployments(&tenant)).await?;
    let second = policy_address(&tenant, "second")?;
    let named = says("Accepted", "False").and(mentions("Accepted", &tenant.policy_name("first")));
    tenant.until_at(&second, &named).await?;
    tenant.until_at(&first, &says("Accepted", "True")).await?;
    tenant.admin.delete(&first).await?;
    tenant.until_at(&second, &says("Accepted", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn policies_with_other_selectors_share_a_kind_and_where_two_meet_the_older_rules() -> Result<()> {
    let tenant = database_tenant("shared").await?;
    let of_team = |team: &str, kind: &str| {
        json!({
            "parent": { "selector": { "matchLabels": { "team": team } } },
            "children": [tenant.child(kind)], "settle": "100ms",
        })
    };
    tenant.policy("first", "Database", of_team("x", "Deployment")).await?;
    let everyone = json!({ "children": [tenant.child("StatefulSet")], "settle": "100ms" });
    tenant.policy("second", "Database", everyone).await?;
    let second = policy_address(&tenant, "second")?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let labelled = |name: &str, team: &str| {
        let mut db = tenant.custom("Database", name);
        db["metadata"]["labels"] = json!({ "team": team });
        db
    };
    let ours = tenant.create(labelled("ours", "x")).await?;
    tenant.create(owned_by(&ours, deployment("web", 1))).await?;
    tenant.until("Database/ours", says("Ready", "True")).await?;
    tenant.create(labelled("theirs", "y")).await?;
    tenant.until("Database/theirs", mentions("Ready", "StatefulSet")).await?;
    let named = says("Accepted", "True").and(mentions("Conflicted", &format!("{}/ours (by ", tenant.name)));
    // Its numbers are counted a while after its words.
    let one_left =
        StateExpectation::new("one parent is its own", |policy| policy["status"]["parents"] == json!(1));
    tenant.until_at(&second, &named.and(one_left)).await?;
    tenant.until_at(&second, &says("Conflicted", "True")).await?;

    // Its label moves: the other one rules it, from what stands to what is so, and loses nothing any more.
    tenant
        .admin
        .merge(&tenant.address("Database/ours")?, "", &json!({ "metadata": { "labels": { "team": "y" } } }))
        .await?;
    tenant.until("Database/ours", says("Ready", "False").and(mentions("Ready", "StatefulSet"))).await?;
    tenant.until_at(&second, &has("Conflicted", false)).await?;
    // Who goes takes along what is its own, and nothing of its neighbour's.
    tenant
        .admin
        .merge(&tenant.address("Database/ours")?, "", &json!({ "metadata": { "labels": { "team": "x" } } }))
        .await?;
    tenant.until("Database/ours", says("Ready", "True")).await?;
    tenant.admin.delete(&second).await?;
    tenant.until("Database/theirs", has("Ready", false)).await?;
    tenant.until("Database/ours", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_is_not_there_yet_is_waited_for() -> Result<()> {
    let tenant = database_tenant("unknown").await?;
    let children = json!([tenant.child("Deployment"), tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    tenant.policy("later", "Later", over_deployments(&tenant)).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let (db_policy, later_policy) = (policy_address(&tenant, "db")?, policy_address(&tenant, "later")?);
    tenant.until_at(&db_policy, &says("Accepted", "True").and(mentions("Watching", "Shard"))).await?;
    tenant.until_at(&later_policy, &says("Accepted", "True").and(mentions("Watching", "Later"))).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let missing = says("Ready", "False").and(because("Ready", "ChildrenMissing"));
    tenant.until("Database/db", missing.and(mentions("Ready", "Shard"))).await?;

    tenant.crd(&CrdBuilder::new("Shard")).await?;
    tenant.crd(&CrdBuilder::new("Later")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "one"))).await?;
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    tenant.change_status("Shard/one", ready).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.until_at(&db_policy, &says("Watching", "True")).await?;
    let later = tenant.create(tenant.custom("Later", "now")).await?;
    tenant.create(owned_by(&later, deployment("late", 1))).await?;
    tenant.until("Later/now", says("Ready", "True")).await?;

    let shard = format!("CustomResourceDefinition/shards.{}", tenant.group);
    tenant.delete(&shard).await?;
    tenant.until(&shard, gone()).await?;
    tenant.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenMissing"))).await?;
    Ok(())
}

#[tokio::test]
async fn children_are_found_by_labels_and_a_template_that_reads_nothing_is_unknown() -> Result<()> {
    let tenant = database_tenant("labels").await?;
    let mut child = tenant.child("Deployment");
    child["find"] = json!({ "labels": { "database": "{parent.spec.nick}" } });
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(tenant.custom("Database", "nameless")).await?;
    let failed = says("Ready", "Unknown").and(because("Ready", "TemplateFailed"));
    tenant.until("Database/nameless", failed.and(mentions("Ready", "spec.nick"))).await?;

    let mut named = tenant.custom("Database", "named");
    named["spec"]["nick"] = json!("blue");
    tenant.create(named).await?;
    let mut web = deployment("web", 1);
    web["metadata"]["labels"] = json!({ "database": "blue" });
    tenant.create(web).await?;
    tenant.until("Database/named", says("Ready", "True")).await?;
    tenant.change("Database/nameless", json!({ "spec": { "nick": "blue" } })).await?;
    tenant.until("Database/nameless", says("Ready", "True")).await?;
    // A label moves: both lose the child.
    tenant.change("Deployment/web", json!({ "metadata": { "labels": { "database": "red" } } })).await?;
    tenant.until("Database/named", because("Ready", "ChildrenMissing")).await?;
    tenant.until("Database/nameless", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

#[tokio::test]
async fn roles_selectors_and_counts_do_what_they_say() -> Result<()> {
    let tenant = database_tenant("counts").await?;
    let mut web = tenant.child("Deployment");
    web["expect"] = json!({ "min": 1, "max": 1, "names": ["{parent.metadata.name}-web"] });
    web["ignore"] = json!({ "selector": { "matchLabels": { "extra": "yes" } } });
    let mut store = tenant.child("StatefulSet");
    store["role"] = json!("optional");
    let mut spec = json!({ "children": [web, store], "settle": "100ms" });
    spec["parent"] = json!({ "selector": { "matchLabels": { "tier": "gold" } } });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let mut gold = tenant.custom("Database", "gold");
    gold["metadata"]["labels"] = json!({ "tier": "gold" });
    let gold = tenant.create(gold).await?;
    tenant.create(tenant.custom("Database", "plain")).await?;
    tenant.create(owned_by(&gold, deployment("gold-web", 1))).await?;
    let crashing = acceptance::objects::playing("crash", acceptance::objects::stateful_set("store", 1));
    tenant.create(owned_by(&gold, crashing)).await?;
    let mut extra = acceptance::objects::playing("crash", deployment("extra", 1));
    extra["metadata"]["labels"] = json!({ "extra": "yes" });
    tenant.create(owned_by(&gold, extra)).await?;
    let beside = mentions("Ready", "; optional: ").and(mentions("Ready", "StatefulSet store"));
    let well = says("Ready", "True").and(mentions("Ready", "1 of 1 ready"));
    tenant.until("Database/gold", well.and(beside)).await?;
    let unready = ["kind=\"StatefulSet.apps\"", "verdict=\"Progressing\""];
    running.until_metric("rollcall_children", &unready, |stores| stores >= 1.0).await?;
    assert!(condition(&tenant.get("Database/plain").await?, "Ready").is_none(), "not selected");

    tenant.create(owned_by(&gold, deployment("one-more", 1))).await?;
    tenant.until("Database/gold", says("Ready", "False").and(because("Ready", "TooManyChildren"))).await?;
    tenant.delete("Deployment/gold-web").await?;
    let missing = because("Ready", "ChildrenMissing").and(mentions("Ready", "gold-web"));
    tenant.until("Database/gold", missing).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_invalid_is_refused_by_the_server_and_what_makes_no_sense_by_name() -> Result<()> {
    let tenant = database_tenant("invalid").await?;
    let mut both = tenant.child("Deployment");
    both["expect"] = json!({ "min": 2, "max": 1 });
    let refused = tenant.policy("range", "Database", json!({ "children": [both] })).await;
    assert!(format!("{:#}", refused.unwrap_err()).contains("min must not be above max"));
    let unknown = tenant.policy("unknown", "Database", json!({ "colour": "blue" })).await?;
    assert!(unknown["spec"]["colour"].is_null(), "an unknown field is pruned with a warning");

    let mut script = tenant.child("Deployment");
    script["ready"] = json!({ "cel": { "current": "frobnicate(1)" } });
    tenant
        .policy("script", "Database", json!({ "children": [script], "condition": { "type": "Two" } }))
        .await?;
    tenant.apply_rights(&[])?;
    let _rollcall = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let policy = policy_address(&tenant, "script")?;
    let named = mentions("Accepted", "spec.children[0].ready.cel.current");
    tenant.until_at(&policy, &says("Accepted", "False").and(named)).await?;
    Ok(())
}

#[tokio::test]
async fn a_rule_over_secrets_or_a_kind_that_the_administrator_protects_is_refused_and_nothing_of_it_is_read()
-> Result<()> {
    let tenant = database_tenant("protected").await?;
    tenant.crd(&CrdBuilder::new("Vault")).await?;
    let secret = json!({ "kind": { "kind": "Secret" } });
    for (name, mut child) in [("secret", secret), ("vault", tenant.child("Vault"))] {
        child["ready"] = json!({ "cel": { "current": "self.data.token == 'x'" } });
        let spec = json!({ "children": [child], "condition": { "type": format!("Has{name}") } });
        tenant.policy(name, "Database", spec).await?;
    }
    let flag = format!("--protected-kinds=Vault.{}", tenant.group);
    // No role can be printed for what is refused.
    tenant.apply_rights(&[])?;
    let rollcall = tenant.rollcall_at(tenant.plane.url(), &[&flag]).await?;
    for name in ["secret", "vault"] {
        let policy = policy_address(&tenant, name)?;
        let named = mentions("Accepted", "spec.children[0].ready");
        tenant.until_at(&policy, &says("Accepted", "False").and(named)).await?;
    }
    let followed = rollcall.http("/metrics").await?.body;
    assert!(!followed.contains("Secret") && !followed.contains("Vault"), "{followed}");
    Ok(())
}

#[tokio::test]
async fn a_policy_tells_how_many_parents_it_has_and_how_many_are_ready() -> Result<()> {
    let tenant = database_tenant("numbers").await?;
    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    for name in ["one", "two"] {
        tenant.create(tenant.custom("Database", name)).await?;
    }
    let one = tenant.get("Database/one").await?;
    tenant.create(owned_by(&one, deployment("web", 1))).await?;
    let policy = policy_address(&tenant, "db")?;
    let counts = StateExpectation::new("1 of 2 ready", |policy: &Value| {
        policy["status"]["parents"] == 2 && policy["status"]["ready"] == 1
    });
    tenant.until_at(&policy, &counts.and(says("Ready", "True")).and(says("Watching", "True"))).await?;
    let row = tenant.plane.kubectl(&["get", "readinesspolicy", &policy.name, "--no-headers"])?;
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..6], ["Database", "2", "1", "write", "True"], "{row}");
    Ok(())
}

/// Selects Events about this policy.
fn about(policy: &str) -> String {
    format!("fieldSelector=involvedObject.kind=ReadinessPolicy,involvedObject.name={policy}")
}

/// The Events about a policy by their reasons, when all of these are there.
async fn until_told(tenant: &TestTenant, policy: &str, reasons: &[&str]) -> Result<Value> {
    let all_there = |events: Vec<Value>| {
        let told = events
            .iter()
            .filter_map(|event| Some((event["reason"].as_str()?.to_owned(), event["message"].clone())));
        let told: Value = told.collect::<serde_json::Map<_, _>>().into();
        reasons.iter().all(|reason| told[reason].is_string()).then_some(told)
    };
    let found = tenant.until_found(&tenant.kind("Event"), "", &about(policy), all_there).await;
    found.with_context(|| format!("no {reasons:?}"))
}

#[tokio::test]
async fn a_typo_in_a_live_policy_takes_no_word_back() -> Result<()> {
    let tenant = database_tenant("typo").await?;
    let judged_by = |current: &str| {
        let mut child = tenant.child("Deployment");
        child["ready"] = json!({ "cel": { "current": current } });
        json!({ "children": [child] })
    };
    let mut spec = judged_by("true");
    spec["settle"] = json!("100ms");
    tenant.policy("db", "Database", spec).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let told = tenant.until("Database/db", says("Ready", "True")).await?;
    let policy = policy_address(&tenant, "db")?;
    let accepted = tenant.until_at(&policy, &says("Accepted", "True")).await?;
    let generation = accepted["metadata"]["generation"].clone();

    tenant.admin.merge(&policy, "", &json!({ "spec": judged_by("nonsense(") })).await?;
    let column = "line 1, column 10";
    let field = mentions("Accepted", "spec.children[0].ready.cel.current").and(mentions("Accepted", column));
    let refused = tenant.until_at(&policy, &says("Accepted", "False").and(field)).await?;
    assert_eq!(refused["status"]["acceptedGeneration"], generation);
    assert_ne!(refused["status"]["observedGeneration"], generation);
    let events = until_told(&tenant, &policy.name, &["PolicyAccepted", "PolicyRefused"]).await?;
    let note = events["PolicyRefused"].as_str().unwrap_or_default();
    assert!(note.contains("spec.children[0].ready.cel.current") && note.contains(column), "{note}");
    rollcall.until_printed("policy refused; what was last accepted stays in force").await?;
    rollcall.until_printed(column).await?;
    let after = tenant.get("Database/db").await?;
    assert_eq!(condition(&after, "Ready"), condition(&told, "Ready"), "it was left alone");
    // What was accepted is still in force: it judges what comes.
    tenant.create(tenant.custom("Database", "later")).await?;
    tenant.until("Database/later", because("Ready", "ChildrenMissing")).await?;

    rollcall.kill()?;
    rollcall.again().await?;
    rollcall.until_metric("rollcall_policy_refused", &[], |refused| refused > 0.0).await?;
    tenant.create(tenant.custom("Database", "latest")).await?;
    tenant.until("Database/latest", because("Ready", "ChildrenMissing")).await?;
    let after = tenant.get("Database/db").await?;
    assert_eq!(condition(&after, "Ready"), condition(&told, "Ready"), "a restart left it alone");

    tenant.admin.merge(&policy, "", &json!({ "spec": judged_by("false") })).await?;
    tenant.until_at(&policy, &says("Accepted", "True")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    rollcall.until_printed("policy accepted").await?;
    let (events, _) = tenant.admin.list(&tenant.kind("Event"), "", &about(&policy.name)).await?;
    let refusals = events.iter().filter(|event| event["reason"] == "PolicyRefused");
    let times = refusals.map(|event| event["series"]["count"].as_i64().unwrap_or(1));
    assert_eq!(times.sum::<i64>(), 1, "no turn and no restart tells of it again: {events:#?}");
    Ok(())
}
