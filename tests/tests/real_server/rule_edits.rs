//! Rules that are edited: judged beside what stands, and what becomes of answers that cannot be judged anew in time.

use acceptance::caller::{ApiCaller, version_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::rules::phase;

/// Databases `db`, with a Shard, and `plain`, without one, under a policy whose rule for Shards is `ready`; both ready.
async fn two_databases(word: &str, ready: &str) -> Result<(TestTenant, ApiGate, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    tenant.policy("db", "Database", children_by(&tenant, ready, "100ms")).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let rollcall = tenant.rollcall_at(&gate.url, &[]).await?;
    for name in ["db", "plain"] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, deployment(&format!("{name}-web"), 0))).await?;
    }
    let db = tenant.get("Database/db").await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "one"))).await?;
    phase(&tenant, "Up").await?;
    for name in ["Database/db", "Database/plain"] {
        tenant.until(name, says("Ready", "True")).await?;
    }
    Ok((tenant, gate, rollcall))
}

/// Spec of a policy that judges Shards by this expression.
fn children_by(tenant: &TestTenant, ready: &str, settle: &str) -> Value {
    let mut child = tenant.child("Shard");
    (child["ready"], child["expect"]) = (json!({ "cel": { "current": ready } }), json!({ "min": 0 }));
    json!({ "children": [child, tenant.child("Deployment")], "settle": settle })
}

fn lists_of_shards() -> GateRule {
    GateRule::Hold(Method::GET, "/shards?".to_owned())
}

#[tokio::test]
async fn a_changed_rule_is_judged_beside_what_stands_and_an_answer_turns_once_if_it_moves() -> Result<()> {
    let (tenant, gate, _rollcall) = two_databases("rule-swapped", "status.phase == 'Up'").await?;
    let policy = policy_address(&tenant, "db")?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    // No answer moves: nothing is written, however the rule is edited and how slowly its kind is listed.
    for (ready, settle) in
        [("status.phase in ['Up', 'Serving']", "100ms"), ("status.phase != 'Down'", "200ms")]
    {
        gate.set(lists_of_shards());
        let spec = json!({ "spec": children_by(&tenant, ready, settle) });
        tenant.admin.merge(&policy, "", &spec).await?;
        gate.caught().await?;
        gate.set(GateRule::Pass);
        // By the new rule alone it is not ready any more.
        phase(&tenant, "Down").await?;
        tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
        phase(&tenant, "Up").await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
    }
    // The answer moves: from the old one to the new one.
    gate.set(lists_of_shards());
    let spec = json!({ "spec": children_by(&tenant, "status.phase == 'Serving'", "100ms") });
    tenant.admin.merge(&policy, "", &spec).await?;
    gate.caught().await?;
    gate.set(GateRule::Pass);
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    phase(&tenant, "Serving").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    let statuses = recording.statuses(&tenant.address("Database/db")?, "Ready");
    assert_eq!(statuses, ["True", "False", "True", "False", "True", "False", "True"]);
    let other = recording.statuses(&tenant.address("Database/plain")?, "Ready");
    assert_eq!(other, ["True"], "what does not rest on that rule");
    Ok(())
}

#[tokio::test]
async fn edits_of_a_rule_write_nothing_on_two_hundred_parents_whose_answers_stand() -> Result<()> {
    let (tenant, _gate, _rollcall) = two_databases("rule-edits", "status.phase == 'Up'").await?;
    let policy = policy_address(&tenant, "db")?;
    let many: Vec<String> = (0..200).map(|number| format!("many-{number}")).collect();
    for name in &many {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, deployment(name, 0))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", name))).await?;
        tenant.change_status(&format!("Shard/{name}"), json!({ "phase": "Up" })).await?;
    }
    for name in &many {
        tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
    }
    let versions = async || -> Result<Vec<u64>> {
        let mut versions = Vec::new();
        for name in &many {
            versions.push(version_of(&tenant.get(&format!("Database/{name}")).await?));
        }
        Ok(versions)
    };
    let before = versions().await?;
    // One parent turns with each edit, by which the others are known to have been judged as well.
    for (edit, settle) in [("first", "100ms"), ("second", "100ms"), ("third", "200ms")] {
        phase(&tenant, edit).await?;
        tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
        let ready = format!("status.phase in ['Up', '{edit}']");
        let spec = json!({ "spec": children_by(&tenant, &ready, settle) });
        tenant.admin.merge(&policy, "", &spec).await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
    }
    assert_eq!(versions().await?, before);
    Ok(())
}

/// Edits the rule, and the settle time, while Shards cannot be listed, until these answers are taken back and come again;
/// returns what the two Databases said of themselves.
async fn edited_while_unlisted(word: &str, settle: &str, withdrawn: &[&str]) -> Result<[Vec<String>; 2]> {
    let (tenant, gate, _rollcall) = two_databases(word, "status.phase == 'Up'").await?;
    let policy = policy_address(&tenant, "db")?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    gate.set(lists_of_shards());
    let spec = json!({ "spec": children_by(&tenant, "status.phase == 'Serving'", settle) });
    tenant.admin.merge(&policy, "", &spec).await?;
    for name in withdrawn {
        tenant.until(name, because("Ready", "RuleChanged")).await?;
    }
    phase(&tenant, "Serving").await?;
    gate.set(GateRule::Pass);
    for name in withdrawn {
        tenant.until(name, says("Ready", "True")).await?;
    }
    let recording = recorder.stop().await?;
    let of = |name: &str| anyhow::Ok(recording.statuses(&tenant.address(name)?, "Ready"));
    Ok([of("Database/db")?, of("Database/plain")?])
}

#[tokio::test]
async fn what_a_changed_rule_cannot_judge_within_two_minutes_is_unknown() -> Result<()> {
    let [db, plain] = edited_while_unlisted("rule-unlisted", "100ms", &["Database/db"]).await?;
    assert_eq!(db, ["True", "Unknown", "True"]);
    assert_eq!(plain, ["True"], "what does not rest on that rule");
    Ok(())
}

#[tokio::test]
async fn so_is_all_that_a_policy_said_before_it_became_another() -> Result<()> {
    let [db, plain] =
        edited_while_unlisted("rule-replaced", "200ms", &["Database/db", "Database/plain"]).await?;
    assert_eq!(db, ["True", "Unknown", "True"]);
    assert_eq!(plain, ["True", "Unknown", "True"], "nobody knows on which children that rested");
    Ok(())
}
