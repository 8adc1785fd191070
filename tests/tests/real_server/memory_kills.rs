//! A hundred Jobs come and go while Rollcall is killed at random: what is remembered is right or not known, never wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use acceptance::objects::{condition, owned_by, playing};
use acceptance::recorder::{Recorder, Recording};
use acceptance::rollcall::Rollcall;
use acceptance::scene::{PATIENCE, Scene};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::memory::{fleeting, remembering};

const JOBS: u64 = 100;
const KILLS: usize = 12;
/// Where the moments of the kills come from.
const SEED: u64 = 6;

/// So many looks, each 200 ms after the last, are waited for Events.
const EVIDENCE: usize = 200;

/// Every fourth Job fails.
fn fails(n: u64) -> bool {
    n.is_multiple_of(4)
}

/// A number below `span` for this key.
fn random(key: u64, span: u64) -> u64 {
    let mut z = (SEED ^ key.rotate_left(32)).wrapping_add(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % span
}

/// What is recorded of each Job, by its number.
async fn recorded(scene: &Scene) -> Result<BTreeMap<u64, String>> {
    let (records, _) = scene.admin.list(&scene.kind("ReadinessRecord"), &scene.name, "").await?;
    let mut words = BTreeMap::new();
    for outcome in records.iter().filter_map(|r| r["spec"]["outcomes"].as_array()).flatten() {
        let number = outcome["name"].as_str().and_then(|name| name.strip_prefix("job-")?.parse().ok());
        let word = outcome["outcome"].as_str().unwrap_or("?").to_owned();
        words.insert(number.context("a Job without a number")?, word);
    }
    Ok(words)
}

fn check_records(words: &BTreeMap<u64, String>) -> Result<()> {
    for (n, word) in words {
        let right = if fails(*n) { "Failed" } else { "Complete" };
        ensure!(
            [right, "Running", "Unseen"].contains(&word.as_str()),
            "job-{n} is {right}, recorded: {word}"
        );
    }
    Ok(())
}

fn count(words: &BTreeMap<u64, String>, word: &str) -> usize {
    words.values().filter(|w| *w == word).count()
}

async fn work(scene: &Scene) -> Result<()> {
    for n in 0..JOBS {
        let db = scene.create(scene.custom("Database", &format!("db-{n}"))).await?;
        let job = fleeting(&format!("job-{n}"));
        let job = if fails(n) { playing("fail", job) } else { job };
        scene.create(owned_by(&db, job)).await?;
        sleep(Duration::from_millis(random(n, 120))).await;
    }
    Ok(())
}

/// Kills and starts again; one line for each.
async fn kill(scene: &Scene, rollcall: &mut Rollcall) -> Result<String> {
    let mut table = "kill  after ms  away ms  running  complete  failed  unseen\n".to_owned();
    for round in 0..KILLS {
        let (after, away) = (random(1_000 + round as u64, 1_500), random(2_000 + round as u64, 1_200));
        sleep(Duration::from_millis(after)).await;
        rollcall.kill()?;
        let words = recorded(scene).await?;
        check_records(&words)?;
        let [running, complete, failed, unseen] =
            ["Running", "Complete", "Failed", "Unseen"].map(|word| count(&words, word));
        writeln!(
            table,
            "{:>4}  {after:>8}  {away:>7}  {running:>7}  {complete:>8}  {failed:>6}  {unseen:>6}",
            round + 1
        )?;
        sleep(Duration::from_millis(away)).await;
        rollcall.again_at_once()?;
    }
    rollcall.until_ready().await?;
    Ok(table)
}

/// How a parent stands when nothing more will come.
fn end(parent: &Value) -> Option<&'static str> {
    let ready = condition(parent, "Ready")?;
    let says = |part: &str| ready["message"].as_str().is_some_and(|message| message.contains(part));
    match (ready["status"].as_str()?, ready["reason"].as_str()?) {
        ("True", _) => Some("Complete"),
        (_, "ChildrenFailed") => Some("Failed"),
        (_, "ChildrenUnknown") if says("nobody saw how it ended") => Some("Unseen"),
        (_, "ChildrenMissing") => Some("never met"),
        _ => None,
    }
}

/// Once all Jobs are gone. Events come late where many Jobs end at once: they are given a while to tell of what nobody saw.
async fn settled(scene: &Scene) -> Result<BTreeMap<u64, &'static str>> {
    let mut rounds = 0;
    let ends = async {
        loop {
            let (jobs, _) = scene.admin.list(&scene.kind("Job"), &scene.name, "limit=1").await?;
            let (parents, _) = scene.admin.list(&scene.kind("Database"), &scene.name, "").await?;
            let ends = parents.iter().map(|parent| {
                let number = parent["metadata"]["name"].as_str()?.strip_prefix("db-")?.parse().ok()?;
                Some((number, end(parent)?))
            });
            let ends: Option<BTreeMap<_, _>> = ends.collect();
            if let Some(ends) = ends.filter(|_| jobs.is_empty()) {
                rounds += 1;
                if rounds == 1 || rounds == EVIDENCE {
                    let unseen = ends.values().filter(|end| **end == "Unseen").count();
                    eprintln!("{unseen} unseen at look {rounds} after the last Job");
                }
                if rounds == EVIDENCE || ends.values().all(|end| *end != "Unseen") {
                    return Ok(ends);
                }
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(2 * PATIENCE, ends).await.context("not all parents have settled")?
}

/// Nobody was ever told the contrary of how its Job ended.
fn never_wrong(scene: &Scene, recording: &Recording) -> Result<()> {
    for n in 0..JOBS {
        let parent = scene.address(&format!("Database/db-{n}"))?;
        let (field, word) = if fails(n) { ("status", "True") } else { ("reason", "ChildrenFailed") };
        let wrong = |entry: &Value| entry[field] == word;
        let told = recording.said(&parent, "Ready");
        ensure!(!told.iter().any(|said| wrong(&said.entry)), "{}", recording.transcript(&parent, "Ready"));
    }
    Ok(())
}

#[tokio::test]
async fn a_hundred_jobs_and_a_dozen_kills_leave_no_wrong_outcome() -> Result<()> {
    let scene = remembering("kills", "remember").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let recorder = Recorder::start(&scene, &["Database"]).await?;
    let (worked, table) = tokio::join!(work(&scene), kill(&scene, &mut rollcall));
    worked?;
    let table = table?;
    let ends = settled(&scene).await?;
    let words = recorded(&scene).await?;
    check_records(&words)?;
    never_wrong(&scene, &recorder.stop().await?)?;
    let tally = |word: &str| ends.values().filter(|end| **end == word).count();
    eprintln!("{table}");
    eprintln!(
        "{JOBS} Jobs: {} complete, {} failed, {} unseen, {} never met",
        tally("Complete"),
        tally("Failed"),
        tally("Unseen"),
        tally("never met")
    );
    for (n, end) in &ends {
        let right = if fails(*n) { "Failed" } else { "Complete" };
        ensure!([right, "Unseen", "never met"].contains(end), "job-{n} is {right}, told: {end}");
        // What was never met has no record; what was met is not forgotten.
        ensure!(words.contains_key(n) != (*end == "never met"), "job-{n}: {end}, {:?}", words.get(n));
    }
    let known = tally("Complete") + tally("Failed");
    ensure!(ends.len() as u64 == JOBS && known as u64 > JOBS / 2, "only {known} of {} are known", ends.len());
    Ok(())
}
