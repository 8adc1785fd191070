//! Real admission webhooks before the status of parents.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::objects::{condition, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use acceptance::webhook::{AdmissionWebhook, WebhookMode};
use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Longest time until what could not be written is, once the webhook lets it pass: a parent is tried once a minute at least.
const RECOVERY_BOUND: Duration = Duration::from_secs(90);

/// A parent that says False by its only child, a Shard, behind a webhook that lets everything pass.
struct GuardedParent {
    tenant: TestTenant,
    webhook: AdmissionWebhook,
    running: RollcallProcess,
}

impl GuardedParent {
    async fn start(word: &str, crd: CrdBuilder) -> Result<GuardedParent> {
        let tenant = TestTenant::start(word).await?;
        tenant.crd(&crd).await?;
        tenant.crd(&CrdBuilder::new("Shard")).await?;
        let children = json!([tenant.child("Shard")]);
        tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
        let running = tenant.rollcall(&[]).await?;
        let webhook = AdmissionWebhook::start(&tenant).await?;
        let db = tenant.create(tenant.custom("Database", "db")).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", "shard"))).await?;
        let guarded = GuardedParent { tenant, webhook, running };
        guarded.turn("False").await?;
        guarded.until(says("Ready", "False").and(mentions("Ready", "Shard shard"))).await?;
        Ok(guarded)
    }

    /// The child turns.
    async fn turn(&self, status: &str) -> Result<()> {
        let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
        self.tenant.change_status("Shard/shard", json!({ "conditions": [entry] })).await?;
        Ok(())
    }

    async fn until(&self, expected: StateExpectation) -> Result<()> {
        self.tenant.until("Database/db", expected).await?;
        Ok(())
    }

    async fn until_policy(&self, expected: StateExpectation) -> Result<()> {
        self.tenant.until_at(&policy_address(&self.tenant, "db")?, &expected).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_condition_into_which_a_webhook_put_other_words_is_rollcalls_still_and_set_right() -> Result<()> {
    for (word, crd) in
        [("reworded", CrdBuilder::new("Database").atomic()), ("reworded-map", CrdBuilder::new("Database"))]
    {
        let guarded = GuardedParent::start(word, crd).await?;
        let mut times = RecoveryTimes::new("webhook that put other words in", RECOVERY_BOUND);
        for _ in 0..rounds(1) {
            guarded.webhook.set(WebhookMode::Reason)?;
            guarded.turn("True").await?;
            guarded.until(because("Ready", "Managed")).await?;
            guarded.webhook.set(WebhookMode::Allow)?;
            guarded.turn("False").await?;
            let turned = Instant::now();
            guarded.until(says("Ready", "False").and(mentions("Ready", "Shard shard"))).await?;
            times.add(turned.elapsed())?;
            guarded.turn("True").await?;
            guarded.until(says("Ready", "True").and(because("Ready", "AllChildrenReady"))).await?;
            guarded.turn("False").await?;
            guarded.until(says("Ready", "False")).await?;
        }
        println!("{times}");
    }
    Ok(())
}

#[tokio::test]
async fn conditions_that_a_webhook_takes_away_are_said_again_within_a_minute_of_its_end() -> Result<()> {
    let guarded = GuardedParent::start("stripped", CrdBuilder::new("Database")).await?;
    guarded.turn("True").await?;
    guarded.until(says("Ready", "True")).await?;
    let mut times = RecoveryTimes::new("webhook that took conditions away", RECOVERY_BOUND);
    for round in 0..rounds(1) {
        let status = if round % 2 == 0 { "False" } else { "True" };
        guarded.webhook.set(WebhookMode::Strip)?;
        guarded.turn(status).await?;
        let is_gone = |object: &Value| condition(object, "Ready").is_none();
        guarded.until(StateExpectation::new("without Ready", is_gone)).await?;
        guarded.until_policy(because("Ready", "ConditionPruned").and(mentions("Ready", "webhook"))).await?;
        guarded.webhook.set(WebhookMode::Allow)?;
        let allowed = Instant::now();
        // Nothing tells of that but the next try.
        guarded.until(says("Ready", status)).await?;
        times.add(allowed.elapsed())?;
        guarded.until_policy(because("Ready", "Synced")).await?;
    }
    println!("{times}");
    Ok(())
}

#[tokio::test]
async fn a_webhook_that_denies_fails_or_hangs_is_named_in_the_policy_and_told_past_once_it_ends() -> Result<()>
{
    let guarded = GuardedParent::start("unwritable", CrdBuilder::new("Database")).await?;
    let mut status = "False";
    let modes = [
        (WebhookMode::Deny, "ConditionRefused"),
        (WebhookMode::Fail, "WritesFailing"),
        (WebhookMode::Hang, "WritesFailing"),
    ];
    let mut times = RecoveryTimes::new("webhook that denied, failed or hung", RECOVERY_BOUND);
    for (mode, reason) in (0..rounds(1)).flat_map(|_| modes) {
        guarded.webhook.set(mode)?;
        status = if status == "True" { "False" } else { "True" };
        guarded.turn(status).await?;
        guarded
            .until_policy(because("Ready", reason).and(mentions("Ready", "1 parents cannot be told")))
            .await?;
        guarded.webhook.set(WebhookMode::Allow)?;
        let allowed = Instant::now();
        guarded.until(says("Ready", status)).await?;
        times.add(allowed.elapsed())?;
        guarded.until_policy(because("Ready", "Synced")).await?;
    }
    println!("{times}");
    let tried = guarded.running.metric("rollcall_writes_total", &[]).await?;
    assert!(tried < 60.0 * f64::from(rounds(1)), "{tried} writes to one parent");
    Ok(())
}
