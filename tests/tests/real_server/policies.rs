//! Policies come, change and go while Rollcall runs.

use acceptance::crd::CrdBuilder;
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::rollcall::policy_address;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, because, gone, has, mentions, says};
use anyhow::Result;
use serde_json::{Value, json};

async fn database_scene(word: &str) -> Result<TestTenant> {
    let scene = TestTenant::set(word).await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    Ok(scene)
}

fn over_deployments(scene: &TestTenant) -> Value {
    json!({ "children": [scene.child("Deployment")], "settle": "100ms" })
}

#[tokio::test]
async fn a_policy_that_goes_takes_its_entries_along_and_comes_back() -> Result<()> {
    let scene = database_scene("readded").await?;
    scene.policy("db", "Database", over_deployments(&scene)).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    let neighbour = json!([
        { "op": "add", "path": "/status/conditions/0", "value": { "type": "Neighbour", "status": "True" } },
    ]);
    scene.admin.json_patch(&scene.address("Database/db")?, "/status", &neighbour).await?;
    let policy = policy_address(&scene, "db")?;
    scene.admin.delete(&policy).await?;
    scene.until_at(&policy, &gone()).await?;
    let left = scene.until("Database/db", has("Ready", false)).await?;
    assert_eq!(left["status"]["conditions"], json!([{ "type": "Neighbour", "status": "True" }]));
    scene.policy("db", "Database", over_deployments(&scene)).await?;
    scene.until("Database/db", says("Ready", "True").and(says("Neighbour", "True"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_that_changes_is_followed() -> Result<()> {
    let scene = database_scene("changed").await?;
    scene.policy("db", "Database", over_deployments(&scene)).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    let policy = policy_address(&scene, "db")?;
    let mut two = scene.child("Deployment");
    two["expect"] = json!({ "min": 2 });
    scene.admin.merge(&policy, "", &json!({ "spec": { "children": [two] } })).await?;
    scene.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenMissing"))).await?;
    let renamed = json!({ "spec": { "condition": { "type": "ChildrenReady" } } });
    scene.admin.merge(&policy, "", &renamed).await?;
    scene.until("Database/db", says("ChildrenReady", "False").and(has("Ready", false))).await?;
    scene.admin.merge(&policy, "", &json!({ "spec": { "mode": "shadow" } })).await?;
    scene.create(owned_by(&db, deployment("more", 1))).await?;
    scene.until("Deployment/more", says("Available", "True")).await?;
    scene.until("Database/db", has("ChildrenReady", false)).await?;
    Ok(())
}

#[tokio::test]
async fn a_second_policy_for_the_same_condition_is_refused() -> Result<()> {
    let scene = database_scene("second").await?;
    scene.policy("first", "Database", over_deployments(&scene)).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let first = policy_address(&scene, "first")?;
    scene.until_at(&first, &says("Accepted", "True")).await?;
    scene.policy("second", "Database", over_deployments(&scene)).await?;
    let second = policy_address(&scene, "second")?;
    let named = says("Accepted", "False").and(mentions("Accepted", &scene.policy_name("first")));
    scene.until_at(&second, &named).await?;
    scene.until_at(&first, &says("Accepted", "True")).await?;
    scene.admin.delete(&first).await?;
    scene.until_at(&second, &says("Accepted", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn policies_with_other_selectors_share_a_kind_and_where_two_meet_the_older_rules() -> Result<()> {
    let scene = database_scene("shared").await?;
    let of_team = |team: &str, kind: &str| {
        json!({
            "parent": { "selector": { "matchLabels": { "team": team } } },
            "children": [scene.child(kind)], "settle": "100ms",
        })
    };
    scene.policy("first", "Database", of_team("x", "Deployment")).await?;
    let everyone = json!({ "children": [scene.child("StatefulSet")], "settle": "100ms" });
    scene.policy("second", "Database", everyone).await?;
    let second = policy_address(&scene, "second")?;
    let _rollcall = scene.rollcall(&[]).await?;
    let labelled = |name: &str, team: &str| {
        let mut db = scene.custom("Database", name);
        db["metadata"]["labels"] = json!({ "team": team });
        db
    };
    let ours = scene.create(labelled("ours", "x")).await?;
    scene.create(owned_by(&ours, deployment("web", 1))).await?;
    scene.until("Database/ours", says("Ready", "True")).await?;
    scene.create(labelled("theirs", "y")).await?;
    scene.until("Database/theirs", mentions("Ready", "StatefulSet")).await?;
    let named = says("Accepted", "True").and(mentions("Conflicted", &format!("{}/ours (by ", scene.name)));
    let lost = scene.until_at(&second, &named).await?;
    assert_eq!(lost["status"]["parents"], json!(1));
    scene.until_at(&second, &says("Conflicted", "True")).await?;

    // Its label moves: the other one rules it, from what stands to what is so, and loses nothing any more.
    scene
        .admin
        .merge(&scene.address("Database/ours")?, "", &json!({ "metadata": { "labels": { "team": "y" } } }))
        .await?;
    scene.until("Database/ours", says("Ready", "False").and(mentions("Ready", "StatefulSet"))).await?;
    scene.until_at(&second, &has("Conflicted", false)).await?;
    // Who goes takes along what is its own, and nothing of its neighbour's.
    scene
        .admin
        .merge(&scene.address("Database/ours")?, "", &json!({ "metadata": { "labels": { "team": "x" } } }))
        .await?;
    scene.until("Database/ours", says("Ready", "True")).await?;
    scene.admin.delete(&second).await?;
    scene.until("Database/theirs", has("Ready", false)).await?;
    scene.until("Database/ours", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_is_not_there_yet_is_waited_for() -> Result<()> {
    let scene = database_scene("unknown").await?;
    let children = json!([scene.child("Deployment"), scene.child("Shard")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    scene.policy("later", "Later", over_deployments(&scene)).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let (db_policy, later_policy) = (policy_address(&scene, "db")?, policy_address(&scene, "later")?);
    scene.until_at(&db_policy, &says("Accepted", "True").and(mentions("Watching", "Shard"))).await?;
    scene.until_at(&later_policy, &says("Accepted", "True").and(mentions("Watching", "Later"))).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    let missing = says("Ready", "False").and(because("Ready", "ChildrenMissing"));
    scene.until("Database/db", missing.and(mentions("Ready", "Shard"))).await?;

    scene.crd(&CrdBuilder::new("Shard")).await?;
    scene.crd(&CrdBuilder::new("Later")).await?;
    scene.create(owned_by(&db, scene.custom("Shard", "one"))).await?;
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    scene.change_status("Shard/one", ready).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    scene.until_at(&db_policy, &says("Watching", "True")).await?;
    let later = scene.create(scene.custom("Later", "now")).await?;
    scene.create(owned_by(&later, deployment("late", 1))).await?;
    scene.until("Later/now", says("Ready", "True")).await?;

    let shard = format!("CustomResourceDefinition/shards.{}", scene.group);
    scene.delete(&shard).await?;
    scene.until(&shard, gone()).await?;
    scene.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenMissing"))).await?;
    Ok(())
}

#[tokio::test]
async fn children_are_found_by_labels_and_a_template_that_reads_nothing_is_unknown() -> Result<()> {
    let scene = database_scene("labels").await?;
    let mut child = scene.child("Deployment");
    child["find"] = json!({ "labels": { "database": "{parent.spec.nick}" } });
    scene.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    scene.create(scene.custom("Database", "nameless")).await?;
    let failed = says("Ready", "Unknown").and(because("Ready", "TemplateFailed"));
    scene.until("Database/nameless", failed.and(mentions("Ready", "spec.nick"))).await?;

    let mut named = scene.custom("Database", "named");
    named["spec"]["nick"] = json!("blue");
    scene.create(named).await?;
    let mut web = deployment("web", 1);
    web["metadata"]["labels"] = json!({ "database": "blue" });
    scene.create(web).await?;
    scene.until("Database/named", says("Ready", "True")).await?;
    scene.change("Database/nameless", json!({ "spec": { "nick": "blue" } })).await?;
    scene.until("Database/nameless", says("Ready", "True")).await?;
    // A label moves: both lose the child.
    scene.change("Deployment/web", json!({ "metadata": { "labels": { "database": "red" } } })).await?;
    scene.until("Database/named", because("Ready", "ChildrenMissing")).await?;
    scene.until("Database/nameless", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

#[tokio::test]
async fn roles_selectors_and_counts_do_what_they_say() -> Result<()> {
    let scene = database_scene("counts").await?;
    let mut web = scene.child("Deployment");
    web["expect"] = json!({ "min": 1, "max": 1, "names": ["{parent.metadata.name}-web"] });
    web["ignore"] = json!({ "selector": { "matchLabels": { "extra": "yes" } } });
    let mut store = scene.child("StatefulSet");
    store["role"] = json!("optional");
    let mut spec = json!({ "children": [web, store], "settle": "100ms" });
    spec["parent"] = json!({ "selector": { "matchLabels": { "tier": "gold" } } });
    scene.policy("db", "Database", spec).await?;
    let running = scene.rollcall(&[]).await?;
    let mut gold = scene.custom("Database", "gold");
    gold["metadata"]["labels"] = json!({ "tier": "gold" });
    let gold = scene.create(gold).await?;
    scene.create(scene.custom("Database", "plain")).await?;
    scene.create(owned_by(&gold, deployment("gold-web", 1))).await?;
    let crashing = acceptance::objects::playing("crash", acceptance::objects::stateful_set("store", 1));
    scene.create(owned_by(&gold, crashing)).await?;
    let mut extra = acceptance::objects::playing("crash", deployment("extra", 1));
    extra["metadata"]["labels"] = json!({ "extra": "yes" });
    scene.create(owned_by(&gold, extra)).await?;
    let beside = mentions("Ready", "; optional: ").and(mentions("Ready", "StatefulSet store"));
    let well = says("Ready", "True").and(mentions("Ready", "1 of 1 ready"));
    scene.until("Database/gold", well.and(beside)).await?;
    let unready = ["kind=\"StatefulSet.apps\"", "verdict=\"Progressing\""];
    running.until_metric("rollcall_children", &unready, |stores| stores >= 1.0).await?;
    assert!(condition(&scene.get("Database/plain").await?, "Ready").is_none(), "not selected");

    scene.create(owned_by(&gold, deployment("one-more", 1))).await?;
    scene.until("Database/gold", says("Ready", "False").and(because("Ready", "TooManyChildren"))).await?;
    scene.delete("Deployment/gold-web").await?;
    let missing = because("Ready", "ChildrenMissing").and(mentions("Ready", "gold-web"));
    scene.until("Database/gold", missing).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_invalid_is_refused_by_the_server_and_what_makes_no_sense_by_name() -> Result<()> {
    let scene = database_scene("invalid").await?;
    let mut both = scene.child("Deployment");
    both["expect"] = json!({ "min": 2, "max": 1 });
    let refused = scene.policy("range", "Database", json!({ "children": [both] })).await;
    assert!(format!("{:#}", refused.unwrap_err()).contains("min must not be above max"));
    let unknown = scene.policy("unknown", "Database", json!({ "colour": "blue" })).await?;
    assert!(unknown["spec"]["colour"].is_null(), "an unknown field is pruned with a warning");

    let mut script = scene.child("Deployment");
    script["ready"] = json!({ "cel": { "current": "frobnicate(1)" } });
    scene
        .policy("script", "Database", json!({ "children": [script], "condition": { "type": "Two" } }))
        .await?;
    scene.apply_rights(&[])?;
    let _rollcall = scene.rollcall_at(scene.plane.url(), &[]).await?;
    let policy = policy_address(&scene, "script")?;
    let named = mentions("Accepted", "spec.children[0].ready.cel.current");
    scene.until_at(&policy, &says("Accepted", "False").and(named)).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_tells_how_many_parents_it_has_and_how_many_are_ready() -> Result<()> {
    let scene = database_scene("numbers").await?;
    scene.policy("db", "Database", over_deployments(&scene)).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    for name in ["one", "two"] {
        scene.create(scene.custom("Database", name)).await?;
    }
    let one = scene.get("Database/one").await?;
    scene.create(owned_by(&one, deployment("web", 1))).await?;
    let policy = policy_address(&scene, "db")?;
    let counts = StateExpectation::new("1 of 2 ready", |policy: &Value| {
        policy["status"]["parents"] == 2 && policy["status"]["ready"] == 1
    });
    scene.until_at(&policy, &counts.and(says("Ready", "True")).and(says("Watching", "True"))).await?;
    let row = scene.plane.kubectl(&["get", "readinesspolicy", &policy.name, "--no-headers"])?;
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..6], ["Database", "2", "1", "write", "True"], "{row}");
    Ok(())
}

#[tokio::test]
async fn a_typo_in_a_live_policy_takes_no_word_back() -> Result<()> {
    let scene = database_scene("typo").await?;
    let judged_by = |current: &str| {
        let mut child = scene.child("Deployment");
        child["ready"] = json!({ "cel": { "current": current } });
        json!({ "children": [child] })
    };
    let mut spec = judged_by("true");
    spec["settle"] = json!("100ms");
    scene.policy("db", "Database", spec).await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    let told = scene.until("Database/db", says("Ready", "True")).await?;
    let policy = policy_address(&scene, "db")?;
    let accepted = scene.until_at(&policy, &says("Accepted", "True")).await?;
    let generation = accepted["metadata"]["generation"].clone();

    scene.admin.merge(&policy, "", &json!({ "spec": judged_by("nonsense(") })).await?;
    let field = mentions("Accepted", "spec.children[0].ready.cel.current");
    let refused = scene.until_at(&policy, &says("Accepted", "False").and(field)).await?;
    assert_eq!(refused["status"]["acceptedGeneration"], generation);
    assert_ne!(refused["status"]["observedGeneration"], generation);
    let after = scene.get("Database/db").await?;
    assert_eq!(condition(&after, "Ready"), condition(&told, "Ready"), "it was left alone");
    // What was accepted is still in force: it judges what comes.
    scene.create(scene.custom("Database", "later")).await?;
    scene.until("Database/later", because("Ready", "ChildrenMissing")).await?;

    rollcall.kill()?;
    rollcall.again().await?;
    rollcall.until_metric("rollcall_policy_refused", &[], |refused| refused > 0.0).await?;
    scene.create(scene.custom("Database", "latest")).await?;
    scene.until("Database/latest", because("Ready", "ChildrenMissing")).await?;
    let after = scene.get("Database/db").await?;
    assert_eq!(condition(&after, "Ready"), condition(&told, "Ready"), "a restart left it alone");

    scene.admin.merge(&policy, "", &json!({ "spec": judged_by("false") })).await?;
    scene.until_at(&policy, &says("Accepted", "True")).await?;
    scene.until("Database/db", says("Ready", "False")).await?;
    Ok(())
}
