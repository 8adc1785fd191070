//! The story. What the operator, the controllers and the kubelet do, and what the parent has to say to it.

use std::time::Duration;

use serde_json::{Value, json};

use super::cast::{
    DATABASE, FINALIZER, JOB, MARK, MEDIA, POD, Part, SHOP, WEB, job_status, owned_by, pod_status, web_status,
};
use super::stage::{Stage, says};

const SECOND: Duration = Duration::from_secs(1);
/// How often the flapping one flaps, and how fast.
const FLAPS: usize = 40;
const FLAP: Duration = Duration::from_millis(50);
const SCENES: usize = 9;

/// Plays it.
pub(super) async fn play(s: &mut Stage) -> anyhow::Result<()> {
    s.scene(1, SCENES, "A parent appears")?;
    a_parent_appears(s).await?;
    s.scene(2, SCENES, "Its children are adopted late")?;
    its_children_are_adopted_late(s).await?;
    s.scene(3, SCENES, "One is slow")?;
    one_is_slow(s).await?;
    s.scene(4, SCENES, "One flaps")?;
    one_flaps(s).await?;
    s.scene(5, SCENES, "A grandchild fails and recovers")?;
    a_grandchild_fails_and_recovers(s).await?;
    s.scene(6, SCENES, "The spec changes")?;
    the_spec_changes(s).await?;
    s.scene(7, SCENES, "A Job lives one second")?;
    a_job_lives_one_second(s).await?;
    s.scene(8, SCENES, "A child hangs in deletion")?;
    a_child_hangs_in_deletion(s).await?;
    s.scene(9, SCENES, "A watch dies silently")?;
    a_watch_dies_silently(s).await
}

fn spec(version: &str) -> Value {
    json!({ "version": version })
}

async fn a_parent_appears(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "Shop books is created. Its operator has not noticed yet.",
        "A sync wave, or helm install --wait, goes on at once.",
    );
    s.cluster.create(SHOP.manifest(&spec("v1"), &Value::Null))?;
    s.expect(says("Unknown", "ChildrenPending").with("generation 1")).await?;
    s.tell("Time passes, and there are no children.", "No children is not all children ready.");
    s.expect(says("False", "ChildrenMissing").with("Deployment missing")).await
}

async fn its_children_are_adopted_late(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "The operator creates a Database, a volume claim, and a Deployment without an owner.",
        "A Deployment that names no owner is nobody's child yet.",
    );
    let c = &s.cluster;
    adopted(s, DATABASE, SHOP, &spec("v1"), &Value::Null)?;
    adopted(s, POD, DATABASE, &json!({}), &pod_status("Pending", Some("ContainerCreating")))?;
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "volumeName": "pv-1" });
    adopted(s, MEDIA, SHOP, &claim, &json!({ "phase": "Bound" }))?;
    c.patch(MEDIA, &json!({ "metadata": { "finalizers": [FINALIZER] } }))?;
    c.create(WEB.manifest(&json!({ "replicas": 3 }), &web_status(1, 0)))?;
    s.still(says("False", "ChildrenMissing").with("Deployment missing"), DATABASE).await?;
    s.tell(
        "It adopts the Deployment, and notes that generation 1 is handled.",
        "Being owned says nothing about being ready.",
    );
    s.cluster.patch(WEB, &owned_by(SHOP, &s.cluster.uid(SHOP)?))?;
    handled(s, "v1")?;
    s.expect(says("False", "ChildrenProgressing").with("Deployment books-web progressing")).await
}

async fn one_is_slow(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "The database is up. The web pods come one after the other.",
        "Ready=True comes with the last child, and not a moment before.",
    );
    s.cluster.status(POD, &pod_status("Running", None))?;
    for up in 1..=3 {
        s.takes(SECOND).await;
        s.cluster.status(WEB, &web_status(1, up))?;
    }
    s.expect(says("True", "AllChildrenReady").with("3 of 3 ready")).await
}

async fn one_flaps(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "A web pod comes and goes, forty times in a row.",
        "The parent is told at most once a second, and True waits for a rest.",
    );
    let (writes, since) = (s.cluster.writes(SHOP), s.cluster.now());
    s.cluster.status(WEB, &web_status(1, 2))?;
    s.expect(says("False", "ChildrenProgressing").with("Deployment books-web")).await?;
    for flap in 1..FLAPS {
        s.takes_at_most(FLAP).await;
        s.cluster.status(WEB, &web_status(1, if flap % 2 == 0 { 2 } else { 3 }))?;
    }
    s.tell("The pod stays.", "");
    s.expect(says("True", "AllChildrenReady")).await?;
    let seconds = (s.cluster.now() - since) / 1_000;
    let writes = s.cluster.writes(SHOP) - writes;
    s.check("at most one write a second, while one flaps", writes as i64 <= seconds + 3)
}

async fn a_grandchild_fails_and_recovers(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "Pod books-db-0, two levels down, crash-loops.",
        "Who looks at the Shop alone sees nothing of it.",
    );
    s.cluster.status(POD, &pod_status("Running", Some("CrashLoopBackOff")))?;
    s.expect(says("False", "ChildrenFailed").with("Pod books-db-0 failed (waiting: CrashLoopBackOff)"))
        .await?;
    s.tell("It comes up after all.", "It was never called Stalled: a crash loop may recover, as here.");
    s.cluster.status(POD, &pod_status("Running", None))?;
    s.expect(says("True", "AllChildrenReady")).await
}

async fn the_spec_changes(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "Somebody asks for v2. Every child is still ready, for v1.",
        "All that is there is ready, and none of it is what was asked for.",
    );
    s.cluster.patch(SHOP, &json!({ "spec": spec("v2") }))?;
    s.expect(says("Unknown", "ChildrenPending").with("generation 2")).await
}

async fn a_job_lives_one_second(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "The operator migrates the database by a Job, and rolls out v2.",
        "A tool that looks every minute never sees this Job run.",
    );
    adopted(s, JOB, DATABASE, &json!({ "completions": 1, "parallelism": 1 }), &job_status(false))?;
    s.cluster.patch(WEB, &json!({ "spec": { "template": { "metadata": { "labels": spec("v2") } } } }))?;
    handled(s, "v2")?;
    s.expect(says("False", "ChildrenProgressing").with("Job books-db-migrate progressing")).await?;
    s.tell(
        "A second later the Job is done; then v2 is up.",
        "Its end counts as an end, not as a child that went away.",
    );
    s.takes(SECOND).await;
    s.cluster.status(JOB, &job_status(true))?;
    s.cluster.status(WEB, &web_status(2, 3))?;
    s.expect(says("True", "AllChildrenReady").with("3 of 3 ready")).await
}

async fn a_child_hangs_in_deletion(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "The operator deletes the volume claim. Somebody's finalizer holds it.",
        "Whose finalizer, and since when, nobody says.",
    );
    s.cluster.delete(MEDIA)?;
    s.expect(says("False", "ChildrenTerminating").with("finalizers: example.org/backup")).await?;
    s.tell(
        "Nobody lets go. Beyond its limit (3 s here, 10 min by default) that is stuck.",
        "Stalled=True: whoever waits for this by kstatus may stop waiting.",
    );
    s.expect(says("False", "ChildrenStuck").with("media stuck (finalizers: example.org/backup)").stalled())
        .await?;
    s.tell("The finalizer's owner comes back and lets go.", "Rollcall itself never touches a finalizer.");
    s.cluster.patch(MEDIA, &json!({ "metadata": { "finalizers": null } }))?;
    s.expect(says("True", "AllChildrenReady").with("2 of 2 ready")).await
}

async fn a_watch_dies_silently(s: &mut Stage) -> anyhow::Result<()> {
    s.tell("A node goes away, and with it a web pod.", "");
    s.cluster.status(WEB, &web_status(2, 2))?;
    s.expect(says("False", "ChildrenProgressing").with("2 of 3 replicas ready")).await?;
    s.tell(
        "The pod is back, but the watch on Deployments has died without a word. The pass, every 3 s here and 30 s by default, looks live.",
        "A cache that trusts its watch says 2 of 3 for ever.",
    );
    let silence = s.cluster.silence("apps", "deployments");
    s.cluster.status(WEB, &web_status(2, 3))?;
    s.expect(says("True", "AllChildrenReady")).await?;
    s.check("an event was lost on the way", silence.fired() > 0)?;
    silence.lift();
    Ok(())
}

/// Creates an object that has its owner from the start.
fn adopted(s: &Stage, part: Part, owner: Part, spec: &Value, status: &Value) -> anyhow::Result<()> {
    let mut object = part.manifest(spec, status);
    object["metadata"]["ownerReferences"] =
        owned_by(owner, &s.cluster.uid(owner)?)["metadata"]["ownerReferences"].take();
    s.cluster.create(object)
}

/// The operator notes what it has handled, as Kopf does it.
fn handled(s: &Stage, version: &str) -> anyhow::Result<()> {
    let essence = json!({ "spec": spec(version) }).to_string();
    s.cluster.patch(SHOP, &json!({ "metadata": { "annotations": { (MARK): essence } } }))
}
