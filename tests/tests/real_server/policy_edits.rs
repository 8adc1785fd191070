//! Policies that are edited while a parent's write is under way: what the write said is still known, and taken back when it
//! does not hold any more.

use acceptance::caller::ApiCaller;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{current, has, mentions, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::owned_by;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};

/// When the child fails whose failure takes the True back.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// Before anything is heard of the write.
    BeforeAnswer,
    /// Once the answer was heard.
    AfterAnswer,
}

/// A Database of two Shards, `one` and `two`, which are judged by their phase, and Rollcall behind a gate.
struct HeldDatabase {
    tenant: TestTenant,
    gate: ApiGate,
    _rollcall: RollcallProcess,
}

/// Spec of a policy that judges Shards by this expression.
fn shards_by(tenant: &TestTenant, ready: &str, settle: &str) -> Value {
    let mut child = tenant.child("Shard");
    (child["ready"], child["expect"]) = (json!({ "cel": { "current": ready } }), json!({ "min": 2 }));
    json!({ "children": [child], "settle": settle })
}

fn writes() -> (Method, String) {
    (Method::PATCH, "/databases/db".to_owned())
}

impl HeldDatabase {
    async fn start(word: &str, options: &[&str]) -> Result<HeldDatabase> {
        let tenant = TestTenant::start(word).await?;
        tenant.crd(&CrdBuilder::new("Database")).await?;
        tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
        tenant.policy("db", "Database", shards_by(&tenant, "status.phase == 'Up'", "100ms")).await?;
        tenant.grant().await?;
        let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
        let gate = ApiGate::open(&own).await?;
        let rollcall = tenant.rollcall_at(&gate.url, options).await?;
        let db = tenant.create(tenant.custom("Database", "db")).await?;
        for name in ["one", "two"] {
            tenant.create(owned_by(&db, tenant.custom("Shard", name))).await?;
        }
        let held = HeldDatabase { tenant, gate, _rollcall: rollcall };
        held.phase("two", "Up").await?;
        held.phase("one", "Down").await?;
        held.until_false("one").await?;
        Ok(held)
    }

    async fn phase(&self, shard: &str, phase: &str) -> Result<()> {
        self.tenant.change_status(&format!("Shard/{shard}"), json!({ "phase": phase })).await?;
        Ok(())
    }

    async fn until_false(&self, shard: &str) -> Result<()> {
        let named = mentions("Ready", &format!("Shard {shard}"));
        self.tenant.until("Database/db", says("Ready", "False").and(named)).await?;
        Ok(())
    }

    /// Edits the policy, and waits until it is in force.
    async fn edit(&self, spec: &Value) -> Result<()> {
        let policy = policy_address(&self.tenant, "db")?;
        self.tenant.admin.merge(&policy, "", &json!({ "spec": spec })).await?;
        self.tenant.until_at(&policy, &says("Ready", "True").and(current("Ready"))).await?;
        Ok(())
    }

    /// Edits the policy while the write of a True is held up by this rule, and lets `two` fail. Ends as it began.
    async fn round(&self, rule: GateRule, spec: &Value, failure: Failure) -> Result<()> {
        let is_told = matches!(rule, GateRule::HoldAnswer(..));
        self.gate.set(rule);
        self.phase("one", "Up").await?;
        self.gate.caught().await?;
        if is_told {
            self.tenant.until("Database/db", says("Ready", "True")).await?;
        }
        self.edit(spec).await?;
        match failure {
            Failure::BeforeAnswer => {
                self.phase("two", "Down").await?;
                self.gate.set(GateRule::Pass);
            }
            Failure::AfterAnswer => {
                self.gate.set(GateRule::Pass);
                self.tenant.until("Database/db", says("Ready", "True")).await?;
                self.phase("two", "Down").await?;
            }
        }
        self.until_false("two").await?;
        self.begin_again().await
    }

    /// Edits the policy while the answer to a live read is held up, of a time at which `one` was not ready, and lets `one` recover
    /// and `two` fail. Ends as it began.
    async fn round_of_reads(&self, path: &str, spec: &Value, failure: Failure) -> Result<()> {
        self.gate.set(GateRule::HoldAnswer(Method::GET, path.to_owned()));
        self.gate.caught().await?;
        self.edit(spec).await?;
        self.phase("one", "Up").await?;
        self.tenant.until("Database/db", says("Ready", "True")).await?;
        if let Failure::AfterAnswer = failure {
            self.gate.set(GateRule::Pass);
        }
        self.phase("two", "Down").await?;
        self.until_false("two").await?;
        self.gate.set(GateRule::Pass);
        self.begin_again().await
    }

    async fn begin_again(&self) -> Result<()> {
        self.phase("two", "Up").await?;
        self.tenant.until("Database/db", says("Ready", "True")).await?;
        self.phase("one", "Down").await?;
        self.until_false("one").await
    }
}

#[tokio::test]
async fn a_true_whose_write_is_under_way_while_its_policy_is_edited_is_taken_back() -> Result<()> {
    let held = HeldDatabase::start("edited", &[]).await?;
    let (up, not_down) = ("status.phase == 'Up'", "status.phase != 'Down'");
    let edits = [(up, "200ms"), (not_down, "200ms"), (up, "100ms")];
    let mut edits = edits.iter().cycle();
    for failure in [Failure::BeforeAnswer, Failure::AfterAnswer] {
        for hold in [GateRule::Hold, GateRule::HoldAnswer, GateRule::LoseAnswer] {
            // The settle time alone, the rule alone, and both.
            for _ in 0..3 {
                let (ready, settle) = edits.next().context("a cycle ends")?;
                let (method, part) = writes();
                let rule = hold(method, part);
                let round = format!("{rule:?}, then {ready} and {settle}, {failure:?}");
                let spec = shards_by(&held.tenant, ready, settle);
                held.round(rule, &spec, failure).await.context(round)?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn so_is_one_beside_a_live_read_that_was_begun_under_the_spec_before() -> Result<()> {
    let held = HeldDatabase::start("edited-read", &["--resync=1s"]).await?;
    let edits = [("status.phase != 'Down'", "100ms"), ("status.phase == 'Up'", "200ms")];
    let mut edits = edits.iter().cycle();
    for failure in [Failure::BeforeAnswer, Failure::AfterAnswer] {
        for path in ["/databases/db", "/shards/one"] {
            let (ready, settle) = edits.next().context("a cycle ends")?;
            let spec = shards_by(&held.tenant, ready, settle);
            let round = format!("{path}, then {ready} and {settle}, {failure:?}");
            held.round_of_reads(path, &spec, failure).await.context(round)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn under_another_type_a_parent_says_what_is_so_at_once_and_turns_no_more_than_its_children()
-> Result<()> {
    let tenant = TestTenant::start("retyped").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    tenant.policy("db", "Database", shards_by(&tenant, "status.phase == 'Up'", "100ms")).await?;
    let first = tenant.rollcall(&[]).await?;
    for (name, last) in [("up", "Up"), ("down", "Down")] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        for (at, phase) in [(1, "Up"), (2, last)] {
            let shard = tenant.create(owned_by(&db, tenant.custom("Shard", &format!("{name}-{at}")))).await?;
            let shard = format!("Shard/{}", shard["metadata"]["name"].as_str().context("a name")?);
            tenant.change_status(&shard, json!({ "phase": phase })).await?;
        }
    }
    let said = [("Database/up", "True"), ("Database/down", "False")];
    for (db, status) in said {
        tenant.until(db, says("Ready", status)).await?;
    }
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let policy = policy_address(&tenant, "db")?;
    // The operator is silent: under a condition that nobody knew it would be waited for.
    let edit = async |condition: &str| {
        let spec = json!({ "condition": { "type": condition }, "settle": "10m" });
        tenant.admin.merge(&policy, "", &json!({ "spec": spec })).await
    };
    let until_turned = async |before: &str, now: &str| {
        for (db, status) in said {
            tenant.until(db, says(now, status).and(has(before, false))).await?;
        }
        anyhow::Ok(())
    };
    edit("Whole").await?;
    until_turned("Ready", "Whole").await?;
    // So it is where the edit was made while nothing ran.
    drop(first);
    edit("Ready").await?;
    let _second = tenant.rollcall(&[]).await?;
    until_turned("Whole", "Ready").await?;
    let recording = recorder.stop().await?;
    for (db, status) in said {
        let db = tenant.address(db)?;
        assert_eq!(
            recording.statuses(&db, "Whole"),
            [status, "gone"],
            "{}",
            recording.transcript(&db, "Whole")
        );
        assert_eq!(
            recording.statuses(&db, "Ready"),
            [status, "gone", status],
            "{}",
            recording.transcript(&db, "Ready")
        );
    }
    Ok(())
}
