//! The guide about groups, followed to the letter.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::expectation::{because, mentions, says};
use acceptance::guide::{GuidedSteps, InlineCommands};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::json;

use crate::guides::installed;

#[tokio::test]
async fn a_group_waits_for_what_has_no_parent() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let mut tenant = TestTenant::start_on(plane, "groupguide").await?;
    "default".clone_into(&mut tenant.name);
    let service = installed(&tenant).await?;
    let mut guide = GuidedSteps::open("deploy/guides/groups.md")?;
    guide.follow(&tenant, "rollcall check -f group.yaml")?;
    let missing = because("Ready", "ChildrenMissing").and(mentions("Ready", "Job shop-migrate"));
    tenant.until("ReadinessGroup/shop", missing).await.with_context(|| service.tail(40))?;
    guide.follow(&tenant, "kubectl create deployment")?;
    tenant.until("ReadinessGroup/shop", because("Ready", "ChildrenProgressing")).await?;
    let available = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        ],
    });
    tenant.change_status("Deployment/shop-web", available).await?;
    let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z");
    let ends = ["SuccessCriteriaMet", "Complete"].map(|kind| {
        json!({ "type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": end })
    });
    let complete = json!({
        "succeeded": 1, "startTime": start, "completionTime": end, "conditions": ends,
        "uncountedTerminatedPods": {},
    });
    tenant.change_status("Job/shop-migrate", complete).await?;
    guide.follow(&tenant, "kubectl delete job")?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let sentences = InlineCommands::of("deploy/guides/groups.md")?;
    let script = sentences.type_in(&tenant, "rollcall health-lua -f group.yaml", &[])?;
    assert!(script.contains("health.rollcall.dev_ReadinessGroup"), "{script}");
    guide.is_done()
}
