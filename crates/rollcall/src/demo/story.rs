//! The story. What the operator, the controllers and the kubelet do, and what the parent has to say to it.

use std::time::Duration;

use serde_json::{Value, json};

use super::cast::{
    DATABASE, FINALIZER, JOB, MARK, MEDIA, POD, Part, SHOP, WEB, job_status, owned_by, pod_status, web_status,
};
use super::stage::{Row, Stage, says};

const SECOND: Duration = Duration::from_secs(1);
/// How often the flapping one flaps, and how fast.
const FLAPS: usize = 40;
const FLAP: Duration = Duration::from_millis(50);
const SCENES: usize = 9;
/// What the pass has found and the watch had lost.
const DRIFT: &str = "rollcall_drift_total{found_by=\"resync\",kind=\"Deployment.apps\"}";

const DATABASE_UP: Row = (DATABASE, "Ready", "");
const POD_UP: Row = (POD, "Ready", "");
const WEB_UP: Row = (WEB, "Ready", "");
const MEDIA_BOUND: Row = (MEDIA, "Ready", "");
const WEB_LACKS_ONE: Row = (WEB, "Progressing", "2 of 3 replicas ready");
const ALL_UP: &[Row] = &[DATABASE_UP, POD_UP, WEB_UP, MEDIA_BOUND];

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
    a_watch_dies_silently(s).await?;
    nothing_else_was_touched(s).await
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
    const STARTING: &[Row] = &[
        (DATABASE, "Progressing", "ChildrenProgressing"),
        (POD, "Progressing", "ContainerCreating"),
        MEDIA_BOUND,
    ];
    const ADOPTED: &[Row] =
        &[STARTING[0], STARTING[1], STARTING[2], (WEB, "Progressing", "0 of 3 replicas ready")];
    s.tell(
        "The operator creates a Database, a volume claim, and a Deployment without an owner.",
        "A Deployment that names no owner is nobody's child yet.",
    );
    adopted(s, DATABASE, SHOP, &spec("v1"), &Value::Null)?;
    adopted(s, POD, DATABASE, &json!({}), &pod_status("Pending", Some("ContainerCreating")))?;
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "volumeName": "pv-1" });
    adopted(s, MEDIA, SHOP, &claim, &json!({ "phase": "Bound" }))?;
    s.cluster.hold(MEDIA, "backup", FINALIZER)?;
    s.cluster.create(WEB.manifest(&json!({ "replicas": 3 }), &web_status(1, 0)))?;
    s.still(says("False", "ChildrenMissing").with("Deployment missing").over(STARTING)).await?;
    s.tell(
        "It adopts the Deployment, and notes that generation 1 is handled.",
        "Being owned says nothing about being ready.",
    );
    s.cluster.patch(WEB, &owned_by(SHOP, &s.cluster.uid(SHOP)?))?;
    handled(s, "v1")?;
    s.expect(says("False", "ChildrenProgressing").with("Deployment books-web progressing").over(ADOPTED))
        .await
}

async fn one_is_slow(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "The database is up. The web pods come one after the other.",
        "The tree moves at once; words alone are written every 10 s at most.",
    );
    s.cluster.status(POD, &pod_status("Running", None))?;
    for up in 1..=2 {
        s.takes(SECOND).await;
        s.cluster.status(WEB, &web_status(1, up))?;
    }
    let progressing = says("False", "ChildrenProgressing").with("Deployment books-web");
    s.still(progressing.over(&[DATABASE_UP, POD_UP, WEB_LACKS_ONE, MEDIA_BOUND])).await?;
    s.tell("The last pod is up.", "True comes with the last child, not a moment before.");
    s.takes(SECOND).await;
    s.cluster.status(WEB, &web_status(1, 3))?;
    s.expect(says("True", "AllChildrenReady").with("3 of 3 ready").over(ALL_UP)).await
}

async fn one_flaps(s: &mut Stage) -> anyhow::Result<()> {
    const ONE_DOWN: &[Row] = &[DATABASE_UP, POD_UP, WEB_LACKS_ONE, MEDIA_BOUND];
    s.tell(
        "A web pod comes and goes, forty times in a row.",
        "The parent is told at most once a second, and True waits for a rest.",
    );
    s.cluster.status(WEB, &web_status(1, 2))?;
    s.expect(says("False", "ChildrenProgressing").with("Deployment books-web").over(ONE_DOWN)).await?;
    let (writes, since) = (s.cluster.writes(SHOP), s.cluster.now());
    for flap in 1..FLAPS {
        s.takes_at_most(FLAP).await;
        s.cluster.status(WEB, &web_status(1, if flap % 2 == 0 { 2 } else { 3 }))?;
    }
    s.tell("The pod stays.", "Whoever waits is told once that it is over.");
    let ready = says("True", "AllChildrenReady").over(ALL_UP);
    s.hear(ready).await?;
    let (writes, windows) = (s.cluster.writes(SHOP) - writes, (s.cluster.now() - since) / 1_000 + 1);
    s.show(ready).await?;
    // One window more: the flapping may begin in the middle of one.
    let holds = writes as i64 <= windows + 1;
    s.check(format!("{FLAPS} changes of a child, {writes} writes to its parent in {windows} s"), holds)
}

async fn a_grandchild_fails_and_recovers(s: &mut Stage) -> anyhow::Result<()> {
    const CRASHING: &[Row] =
        &[(DATABASE, "Failed", "ChildrenFailed"), (POD, "Failed", "CrashLoopBackOff"), WEB_UP, MEDIA_BOUND];
    s.tell(
        "Pod books-db-0, two levels down, crash-loops.",
        "Who looks at the Shop alone sees nothing of it.",
    );
    s.cluster.status(POD, &pod_status("Running", Some("CrashLoopBackOff")))?;
    let words = "Pod books-db-0 failed (waiting: CrashLoopBackOff)";
    s.expect(says("False", "ChildrenFailed").with(words).over(CRASHING)).await?;
    s.tell("It comes up after all.", "It was never called Stalled: a crash loop may recover, as here.");
    s.cluster.status(POD, &pod_status("Running", None))?;
    s.expect(says("True", "AllChildrenReady").over(ALL_UP)).await
}

async fn the_spec_changes(s: &mut Stage) -> anyhow::Result<()> {
    s.tell(
        "Somebody asks for v2. Every child is still ready, for v1.",
        "All that is there is ready, and none of it is what was asked for.",
    );
    s.cluster.patch(SHOP, &json!({ "spec": spec("v2") }))?;
    s.expect(says("Unknown", "ChildrenPending").with("generation 2").over(ALL_UP)).await
}

async fn a_job_lives_one_second(s: &mut Stage) -> anyhow::Result<()> {
    const ROLLING: &[Row] = &[
        (DATABASE, "Progressing", "ChildrenProgressing"),
        POD_UP,
        (JOB, "Progressing", "0 of 1 completions"),
        (WEB, "Progressing", "its controller has not seen"),
        MEDIA_BOUND,
    ];
    s.tell(
        "The operator migrates the database by a Job, and rolls out v2.",
        "A tool that looks every minute never sees this Job run.",
    );
    adopted(s, JOB, DATABASE, &json!({ "completions": 1, "parallelism": 1 }), &job_status(false))?;
    s.cluster.patch(WEB, &json!({ "spec": { "template": { "metadata": { "labels": spec("v2") } } } }))?;
    s.drawn(ROLLING).await?;
    handled(s, "v2")?;
    s.expect(says("False", "ChildrenProgressing").with("Job books-db-migrate progressing").over(ROLLING))
        .await?;
    s.tell(
        "A second later the Job is done, and deleted by its TTL. Then v2 is up.",
        "Nothing is left of it to look at; its end was seen.",
    );
    s.takes(SECOND).await;
    s.cluster.status(JOB, &job_status(true))?;
    s.cluster.delete(JOB)?;
    s.cluster.status(WEB, &web_status(2, 3))?;
    s.expect(says("True", "AllChildrenReady").with("3 of 3 ready").over(ALL_UP)).await?;
    s.check("the Job is gone: GET answers 404", s.cluster.find(JOB).await?.is_none())
}

async fn a_child_hangs_in_deletion(s: &mut Stage) -> anyhow::Result<()> {
    const HELD: &[Row] = &[DATABASE_UP, POD_UP, WEB_UP, (MEDIA, "Terminating", FINALIZER)];
    const STUCK: &[Row] = &[DATABASE_UP, POD_UP, WEB_UP, (MEDIA, "Stuck", FINALIZER)];
    s.tell(
        "The operator deletes the volume claim. Somebody's finalizer holds it.",
        "Whose finalizer, and since when, nobody says.",
    );
    s.cluster.delete(MEDIA)?;
    s.expect(says("False", "ChildrenTerminating").with(FINALIZER).over(HELD)).await?;
    s.tell(
        "Nobody lets go. Beyond its limit (3 s here, 10 min by default) that is stuck.",
        "Stalled=True: whoever waits for this by kstatus may stop waiting.",
    );
    let words = "media stuck (finalizer example.org/backup (set by backup), terminating since";
    s.expect(says("False", "ChildrenStuck").with(words).stalled().over(STUCK)).await?;
    s.tell("The finalizer's owner comes back and lets go.", "Rollcall itself never touches a finalizer.");
    s.cluster.patch(MEDIA, &json!({ "metadata": { "finalizers": null } }))?;
    s.expect(says("True", "AllChildrenReady").with("2 of 2 ready").over(&[DATABASE_UP, POD_UP, WEB_UP])).await
}

async fn a_watch_dies_silently(s: &mut Stage) -> anyhow::Result<()> {
    const ONE_DOWN: &[Row] = &[DATABASE_UP, POD_UP, WEB_LACKS_ONE];
    s.tell(
        "A node goes away, and with it a web pod.",
        "Two pods of three serve; the Shop is not what was asked for.",
    );
    s.cluster.status(WEB, &web_status(2, 2))?;
    s.expect(says("False", "ChildrenProgressing").with("2 of 3 replicas ready").over(ONE_DOWN)).await?;
    s.tell(
        "The pod is back, but the watch of Deployments has died without a word. The pass looks live: every 3 s here, every 30 s by default.",
        "A cache that trusts its watch says 2 of 3 for ever.",
    );
    let silence = s.cluster.silence("apps", "deployments");
    s.cluster.status(WEB, &web_status(2, 3))?;
    let ready = says("True", "AllChildrenReady").over(&[DATABASE_UP, POD_UP, WEB_UP]);
    s.expect(ready).await?;
    let writes = [SHOP, DATABASE].map(|parent| s.cluster.writes(parent));
    s.counted(DRIFT, 1.0).await?;
    s.check("the watch never brought it: the event was dropped on its way", silence.fired() > 0)?;
    silence.lift();
    let since = [SHOP, DATABASE].map(|parent| s.cluster.writes(parent));
    s.check("what is known is not said twice: no write since", writes == since)
}

/// What the cluster looks like to others when all is over.
async fn nothing_else_was_touched(s: &mut Stage) -> anyhow::Result<()> {
    let shop = s.cluster.get(SHOP).await?;
    let managed = shop["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let mut ours = managed.iter().filter(|entry| entry["manager"] == "rollcall").peekable();
    let only = |fields: &Value, name: &str| {
        fields.as_object().is_some_and(|f| f.keys().all(|key| key == "." || key.starts_with(name)))
    };
    let conditions = |entry: &Value| {
        let fields = &entry["fieldsV1"];
        only(fields, "f:status") && only(&fields["f:status"], "f:conditions")
    };
    let holds = ours.peek().is_some() && ours.all(conditions);
    s.check("managedFields: Rollcall owns entries in conditions, nothing else", holds)?;
    s.counted("rollcall_parents{policy=\"shops\",verdict=\"Ready\"}", 1.0).await
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
