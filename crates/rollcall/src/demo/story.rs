//! The story: actions of the operator, the controllers and the kubelet, and the answers expected of the parent.

use std::time::Duration;

use serde_json::{Value, json};

use super::fixtures::{
    BACKUP_FINALIZER, DATABASE, DemoObject, JOB, MEDIA, POD, SHOP, WEB, handled_annotations, job_status,
    owner_patch, pod_status, web_status,
};
use super::stage::{ExpectedRow, StoryStage, expect_condition};

const SHORT_PAUSE: Duration = Duration::from_secs(1);
/// Number of flaps of the flapping pod, and the time between them.
const FLAP_COUNT: usize = 40;
const FLAP_INTERVAL: Duration = Duration::from_millis(50);
const SCENE_COUNT: usize = 9;
/// Metric of changes that the resync found after the watch had lost them.
const DRIFT_SERIES: &str = "rollcall_drift_total{found_by=\"resync\",kind=\"Deployment.apps\"}";

const DATABASE_UP: ExpectedRow = (DATABASE, "Ready", "");
const POD_UP: ExpectedRow = (POD, "Ready", "");
const WEB_UP: ExpectedRow = (WEB, "Ready", "");
const MEDIA_BOUND: ExpectedRow = (MEDIA, "Ready", "");
const WEB_LACKS_ONE: ExpectedRow = (WEB, "Progressing", "2 of 3 replicas ready");
const ALL_UP: &[ExpectedRow] = &[DATABASE_UP, POD_UP, WEB_UP, MEDIA_BOUND];

/// Plays the story.
pub(super) async fn play_story(s: &mut StoryStage) -> anyhow::Result<()> {
    s.begin_scene(1, SCENE_COUNT, "A parent appears")?;
    a_parent_appears(s).await?;
    s.begin_scene(2, SCENE_COUNT, "Its children are adopted late")?;
    its_children_are_adopted_late(s).await?;
    s.begin_scene(3, SCENE_COUNT, "One is slow")?;
    one_is_slow(s).await?;
    s.begin_scene(4, SCENE_COUNT, "One flaps")?;
    one_flaps(s).await?;
    s.begin_scene(5, SCENE_COUNT, "A grandchild fails and recovers")?;
    a_grandchild_fails_and_recovers(s).await?;
    s.begin_scene(6, SCENE_COUNT, "The spec changes")?;
    the_spec_changes(s).await?;
    s.begin_scene(7, SCENE_COUNT, "A Job lives one second")?;
    a_job_lives_one_second(s).await?;
    s.begin_scene(8, SCENE_COUNT, "A child hangs in deletion")?;
    a_child_hangs_in_deletion(s).await?;
    s.begin_scene(9, SCENE_COUNT, "A watch dies silently")?;
    a_watch_dies_silently(s).await?;
    nothing_else_was_touched(s).await
}

fn versioned_spec(version: &str) -> Value {
    json!({ "version": version })
}

async fn a_parent_appears(s: &mut StoryStage) -> anyhow::Result<()> {
    s.describe_event(
        "Shop books is created. Its operator has not observed it yet.",
        "A sync wave, or helm install --wait, continues at once.",
    );
    s.cluster.create_object(SHOP.to_manifest(&versioned_spec("v1"), &Value::Null))?;
    s.expect_answer(expect_condition("Unknown", "ChildrenPending").with_message("generation 1")).await?;
    s.describe_event(
        "Time passes without any children.",
        "Having no children does not mean that all children are ready.",
    );
    s.expect_answer(expect_condition("False", "ChildrenMissing").with_message("Deployment missing")).await
}

async fn its_children_are_adopted_late(s: &mut StoryStage) -> anyhow::Result<()> {
    const ROWS_STARTING: &[ExpectedRow] = &[
        (DATABASE, "Progressing", "ChildrenProgressing"),
        (POD, "Progressing", "ContainerCreating"),
        MEDIA_BOUND,
    ];
    const ROWS_ADOPTED: &[ExpectedRow] = &[
        ROWS_STARTING[0],
        ROWS_STARTING[1],
        ROWS_STARTING[2],
        (WEB, "Progressing", "0 of 3 replicas ready"),
    ];
    s.describe_event(
        "The operator creates a Database, a volume claim, and a Deployment without an owner.",
        "A Deployment without an ownerReference is not a child yet.",
    );
    create_owned(s, DATABASE, SHOP, &versioned_spec("v1"), &Value::Null)?;
    create_owned(s, POD, DATABASE, &json!({}), &pod_status("Pending", Some("ContainerCreating")))?;
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "volumeName": "pv-1" });
    create_owned(s, MEDIA, SHOP, &claim, &json!({ "phase": "Bound" }))?;
    s.cluster.add_finalizer(MEDIA, "backup", BACKUP_FINALIZER)?;
    s.cluster.create_object(WEB.to_manifest(&json!({ "replicas": 3 }), &web_status(1, 0)))?;
    s.expect_unchanged(
        expect_condition("False", "ChildrenMissing")
            .with_message("Deployment missing")
            .with_tree(ROWS_STARTING),
    )
    .await?;
    s.describe_event(
        "It adopts the Deployment and records that it has handled generation 1.",
        "An ownerReference does not make a child ready.",
    );
    s.cluster.patch_object(WEB, &owner_patch(SHOP, &s.cluster.object_uid(SHOP)?))?;
    mark_handled(s, "v1", 1)?;
    s.expect_answer(
        expect_condition("False", "ChildrenProgressing")
            .with_message("Deployment books-web progressing")
            .with_tree(ROWS_ADOPTED),
    )
    .await
}

async fn one_is_slow(s: &mut StoryStage) -> anyhow::Result<()> {
    s.describe_event(
        "The database is up. The web pods start one after the other.",
        "The tree changes at once; a new message alone is written at most every 10 s.",
    );
    s.cluster.patch_status(POD, &pod_status("Running", None))?;
    for up in 1..=2 {
        s.pause_story(SHORT_PAUSE).await;
        s.cluster.patch_status(WEB, &web_status(1, up))?;
    }
    let progressing = expect_condition("False", "ChildrenProgressing").with_message("Deployment books-web");
    s.expect_unchanged(progressing.with_tree(&[DATABASE_UP, POD_UP, WEB_LACKS_ONE, MEDIA_BOUND])).await?;
    s.describe_event("The last pod is up.", "True is written with the last ready child, not earlier.");
    s.pause_story(SHORT_PAUSE).await;
    s.cluster.patch_status(WEB, &web_status(1, 3))?;
    s.expect_answer(
        expect_condition("True", "AllChildrenReady").with_message("3 of 3 ready").with_tree(ALL_UP),
    )
    .await
}

async fn one_flaps(s: &mut StoryStage) -> anyhow::Result<()> {
    const ONE_DOWN: &[ExpectedRow] = &[DATABASE_UP, POD_UP, WEB_LACKS_ONE, MEDIA_BOUND];
    s.describe_event(
        "A web pod becomes ready and unready forty times in a row.",
        "The parent is written at most once a second, and True waits until the flapping ends.",
    );
    s.cluster.patch_status(WEB, &web_status(1, 2))?;
    s.expect_answer(
        expect_condition("False", "ChildrenProgressing")
            .with_message("Deployment books-web")
            .with_tree(ONE_DOWN),
    )
    .await?;
    let (writes, since) = (s.cluster.count_status_writes(SHOP), s.cluster.now_millis());
    for flap in 1..FLAP_COUNT {
        s.pause_at_most(FLAP_INTERVAL).await;
        s.cluster.patch_status(WEB, &web_status(1, if flap % 2 == 0 { 2 } else { 3 }))?;
    }
    s.describe_event("The pod stays.", "Readers get a single True once the flapping is over.");
    let ready = expect_condition("True", "AllChildrenReady").with_tree(ALL_UP);
    s.await_answer(ready).await?;
    let (writes, windows) =
        (s.cluster.count_status_writes(SHOP) - writes, (s.cluster.now_millis() - since) / 1_000 + 1);
    s.show_answer(ready).await?;
    // One more write than windows is allowed: the flapping may begin in the middle of a window.
    let holds = i64::try_from(writes).is_ok_and(|writes| writes <= windows + 1);
    s.record_check(
        format!("{FLAP_COUNT} changes of a child, {writes} writes to its parent in {windows} s"),
        holds,
    )
}

async fn a_grandchild_fails_and_recovers(s: &mut StoryStage) -> anyhow::Result<()> {
    const ROWS_CRASHING: &[ExpectedRow] =
        &[(DATABASE, "Failed", "ChildrenFailed"), (POD, "Failed", "CrashLoopBackOff"), WEB_UP, MEDIA_BOUND];
    s.describe_event("Pod books-db-0, two levels down, crash-loops.", "The Shop alone does not show it.");
    s.cluster.patch_status(POD, &pod_status("Running", Some("CrashLoopBackOff")))?;
    let words = "Pod books-db-0 failed (waiting: CrashLoopBackOff)";
    s.expect_answer(expect_condition("False", "ChildrenFailed").with_message(words).with_tree(ROWS_CRASHING))
        .await?;
    s.describe_event("It recovers.", "It was never Stalled: a crash loop may recover, as here.");
    s.cluster.patch_status(POD, &pod_status("Running", None))?;
    s.expect_answer(expect_condition("True", "AllChildrenReady").with_tree(ALL_UP)).await
}

async fn the_spec_changes(s: &mut StoryStage) -> anyhow::Result<()> {
    s.describe_event(
        "The Shop's spec is changed to v2. Every child is still ready, for v1.",
        "All children are ready, but none of them runs the requested version.",
    );
    s.cluster.patch_object(SHOP, &json!({ "spec": versioned_spec("v2") }))?;
    s.expect_answer(
        expect_condition("Unknown", "ChildrenPending").with_message("generation 2").with_tree(ALL_UP),
    )
    .await
}

async fn a_job_lives_one_second(s: &mut StoryStage) -> anyhow::Result<()> {
    const ROWS_ROLLING_OUT: &[ExpectedRow] = &[
        (DATABASE, "Progressing", "ChildrenProgressing"),
        POD_UP,
        (JOB, "Progressing", "0 of 1 completions"),
        (WEB, "Progressing", "its controller has not observed"),
        MEDIA_BOUND,
    ];
    s.describe_event(
        "The operator migrates the database by a Job, and rolls out v2.",
        "A tool that polls every minute never sees this Job.",
    );
    create_owned(s, JOB, DATABASE, &json!({ "completions": 1, "parallelism": 1 }), &job_status(false))?;
    s.cluster.patch_object(
        WEB,
        &json!({ "spec": { "template": { "metadata": { "labels": versioned_spec("v2") } } } }),
    )?;
    s.await_tree(ROWS_ROLLING_OUT).await?;
    mark_handled(s, "v2", 2)?;
    s.expect_answer(
        expect_condition("False", "ChildrenProgressing")
            .with_message("Job books-db-migrate progressing")
            .with_tree(ROWS_ROLLING_OUT),
    )
    .await?;
    s.describe_event(
        "A second later the Job is done, and deleted by its TTL. Then v2 is up.",
        "The Job no longer exists, but its completion was observed.",
    );
    s.pause_story(SHORT_PAUSE).await;
    s.cluster.patch_status(JOB, &job_status(true))?;
    s.cluster.delete_object(JOB)?;
    s.cluster.patch_status(WEB, &web_status(2, 3))?;
    s.expect_answer(
        expect_condition("True", "AllChildrenReady").with_message("3 of 3 ready").with_tree(ALL_UP),
    )
    .await?;
    s.record_check("the Job is gone: GET answers 404", s.cluster.find_object(JOB).await?.is_none())
}

async fn a_child_hangs_in_deletion(s: &mut StoryStage) -> anyhow::Result<()> {
    const ROWS_HELD: &[ExpectedRow] =
        &[DATABASE_UP, POD_UP, WEB_UP, (MEDIA, "Terminating", BACKUP_FINALIZER)];
    const ROWS_STUCK: &[ExpectedRow] = &[DATABASE_UP, POD_UP, WEB_UP, (MEDIA, "Stuck", BACKUP_FINALIZER)];
    s.describe_event(
        "The operator deletes the volume claim. Another controller's finalizer blocks that.",
        "Nothing else reports which finalizer it is, and since when.",
    );
    s.cluster.delete_object(MEDIA)?;
    s.expect_answer(
        expect_condition("False", "ChildrenTerminating").with_message(BACKUP_FINALIZER).with_tree(ROWS_HELD),
    )
    .await?;
    s.describe_event(
        "The finalizer stays. After a limit (3 s here, 10 min by default) the child is stuck.",
        "Stalled=True: tools that wait by kstatus can stop waiting.",
    );
    let words = "media stuck (finalizer example.org/backup (set by backup), terminating since";
    s.expect_answer(
        expect_condition("False", "ChildrenStuck").with_message(words).with_stalled().with_tree(ROWS_STUCK),
    )
    .await?;
    s.describe_event(
        "The finalizer's controller returns and removes it.",
        "Rollcall itself never touches a finalizer.",
    );
    s.cluster.patch_object(MEDIA, &json!({ "metadata": { "finalizers": null } }))?;
    s.expect_answer(expect_condition("True", "AllChildrenReady").with_message("2 of 2 ready").with_tree(&[
        DATABASE_UP,
        POD_UP,
        WEB_UP,
    ]))
    .await
}

async fn a_watch_dies_silently(s: &mut StoryStage) -> anyhow::Result<()> {
    const ONE_DOWN: &[ExpectedRow] = &[DATABASE_UP, POD_UP, WEB_LACKS_ONE];
    s.describe_event(
        "A node fails, and a web pod with it.",
        "Two of three pods are serving: the Shop is not in its desired state.",
    );
    s.cluster.patch_status(WEB, &web_status(2, 2))?;
    s.expect_answer(
        expect_condition("False", "ChildrenProgressing")
            .with_message("2 of 3 replicas ready")
            .with_tree(ONE_DOWN),
    )
    .await?;
    s.describe_event(
        "The pod is back, but the watch of Deployments has died silently. The resync \
         reads live: every 3 s here, every 30 s by default.",
        "A cache that trusts its watch reports 2 of 3 forever.",
    );
    let silence = s.cluster.silence_watch("apps", "deployments");
    s.cluster.patch_status(WEB, &web_status(2, 3))?;
    let ready = expect_condition("True", "AllChildrenReady").with_tree(&[DATABASE_UP, POD_UP, WEB_UP]);
    s.expect_answer(ready).await?;
    let parents = [SHOP, DATABASE];
    let answers = statuses_of(s, parents).await?;
    let writes = parents.map(|parent| s.cluster.count_status_writes(parent));
    s.await_metric(DRIFT_SERIES, 1.0).await?;
    s.record_check(
        "the watch never delivered it: the event was dropped in transit",
        silence.fired_count() > 0,
    )?;
    silence.lift();
    let since = parents.map(|parent| s.cluster.count_status_writes(parent));
    // The Database's count of children, which has changed long before, may be told only now: texts wait for ten seconds.
    let now = statuses_of(s, parents).await?;
    let holds = (0..parents.len()).all(|at| writes[at] == since[at] || answers[at] != now[at]);
    s.record_check("an unchanged answer is not written again: no write since", holds)
}

/// Returns the status of each of these parents, read over HTTP.
async fn statuses_of<const N: usize>(
    s: &StoryStage,
    parents: [DemoObject<'_>; N],
) -> anyhow::Result<Vec<Value>> {
    let mut statuses = Vec::with_capacity(N);
    for parent in parents {
        statuses.push(s.cluster.get_object(parent).await?["status"].take());
    }
    Ok(statuses)
}

/// Checks that all other tools see the cluster unchanged at the end.
async fn nothing_else_was_touched(s: &mut StoryStage) -> anyhow::Result<()> {
    let shop = s.cluster.get_object(SHOP).await?;
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
    s.record_check("managedFields: Rollcall owns entries in conditions, nothing else", holds)?;
    s.await_metric("rollcall_parents{policy=\"shops\",verdict=\"Ready\"}", 1.0).await
}

/// Creates an object with an ownerReference from the start.
fn create_owned(
    s: &StoryStage,
    part: DemoObject<'_>,
    owner: DemoObject<'_>,
    spec: &Value,
    status: &Value,
) -> anyhow::Result<()> {
    let mut object = part.to_manifest(spec, status);
    object["metadata"]["ownerReferences"] =
        owner_patch(owner, &s.cluster.object_uid(owner)?)["metadata"]["ownerReferences"].take();
    s.cluster.create_object(object)
}

/// Records the configuration the operator has handled, as Kopf does.
fn mark_handled(s: &StoryStage, version: &str, generation: i64) -> anyhow::Result<()> {
    let annotations = handled_annotations(&versioned_spec(version), generation);
    s.cluster.patch_object(SHOP, &json!({ "metadata": { "annotations": annotations } }))
}
