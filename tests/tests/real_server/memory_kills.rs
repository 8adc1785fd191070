//! A hundred Jobs come and go, some of them twice, while Rollcall is killed at random: what is remembered is right or not known,
//! never wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::gone;
use acceptance::objects::{condition, owned_by, playing, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::memory::fleeting;

const JOBS: u64 = 100;
const KILLS: usize = 12;
/// Where the moments of the kills come from.
const SEED: u64 = 6;

/// So many looks, each 200 ms after the last, are waited for Events.
const EVIDENCE: usize = 200;

/// A Job is run again, where it is, once so many others have been created after it.
const LAG: u64 = 10;

/// A parent is there so many parents before its Job, and for this long: what Events tell of the second in which it was created
/// may be about one before it.
const AHEAD: u64 = 20;
const OLDER: Duration = Duration::from_millis(1_100);

/// After every seventh there is one of somebody else's by the same name, which ends otherwise.
fn has_a_namesake(n: u64) -> bool {
    n.is_multiple_of(7) && !runs_again(n)
}

/// Every fourth Job fails the first time.
fn fails_first(n: u64) -> bool {
    n.is_multiple_of(4)
}

/// Every fifth Job is run again, and ends otherwise than the first time.
fn runs_again(n: u64) -> bool {
    n.is_multiple_of(5)
}

/// How a Job ends the last time.
fn fails(n: u64) -> bool {
    fails_first(n) != runs_again(n)
}

fn right(n: u64) -> &'static str {
    if fails(n) { "Failed" } else { "Complete" }
}

/// What its policy expects by name.
fn job_of(n: u64) -> String {
    format!("db-{n}-job")
}

/// How Jobs end, by uid; nothing of those that are somebody else's.
type Truth = Mutex<BTreeMap<String, &'static str>>;

/// A number below `span` for this key.
fn random(key: u64, span: u64) -> u64 {
    let mut z = (SEED ^ key.rotate_left(32)).wrapping_add(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % span
}

/// What is recorded of each Job, by its number. Nothing of it may be wrong.
async fn recorded(tenant: &TestTenant, truth: &Truth) -> Result<BTreeMap<u64, String>> {
    let (records, _) = tenant.admin.list(&tenant.kind("ReadinessRecord"), &tenant.name, "").await?;
    let truth = truth.lock().map_err(|_| anyhow!("poisoned"))?;
    let mut words = BTreeMap::new();
    for outcome in records.iter().filter_map(|r| r["spec"]["outcomes"].as_array()).flatten() {
        let number = outcome["name"]
            .as_str()
            .and_then(|name| name.strip_suffix("-job")?.strip_prefix("db-")?.parse().ok());
        let word = outcome["outcome"].as_str().unwrap_or("?").to_owned();
        // One that was created a moment ago may be recorded before the test knows its uid.
        if let Some(right) = outcome["uid"].as_str().and_then(|uid| truth.get(uid)) {
            let known = [*right, "Running", "Unseen"].contains(&word.as_str());
            ensure!(known, "{} is {right}, recorded: {word}", outcome["name"]);
        }
        words.insert(number.context("a Job without a number")?, word);
    }
    Ok(words)
}

fn count(words: &BTreeMap<u64, String>, word: &str) -> usize {
    words.values().filter(|w| *w == word).count()
}

fn a_job(n: u64, fails: bool) -> Value {
    let job = fleeting(&job_of(n));
    if fails { playing("fail", job) } else { job }
}

/// Creates a Job, for the first time or again.
async fn run(tenant: &TestTenant, truth: &Truth, n: u64, fails: bool) -> Result<()> {
    let db = tenant.get(&format!("Database/db-{n}")).await?;
    let job = tenant.create(owned_by(&db, a_job(n, fails))).await?;
    let right = if fails { "Failed" } else { "Complete" };
    truth.lock().map_err(|_| anyhow!("poisoned"))?.insert(uid(&job).to_owned(), right);
    Ok(())
}

async fn work(tenant: &TestTenant, truth: &Truth) -> Result<()> {
    let mut born = Vec::new();
    for n in 0..JOBS + LAG {
        let ahead = (n + AHEAD).min(JOBS - 1);
        for parent in born.len() as u64..=ahead {
            tenant.create(tenant.custom("Database", &format!("db-{parent}"))).await?;
            born.push(Instant::now());
        }
        if n < JOBS {
            sleep_until(born[usize::try_from(n)?] + OLDER).await;
            run(tenant, truth, n, fails_first(n)).await?;
        }
        if let Some(again) = n.checked_sub(LAG).filter(|again| runs_again(*again)) {
            tenant.until(&format!("Job/{}", job_of(again)), gone()).await?;
            run(tenant, truth, again, fails(again)).await?;
        }
        if let Some(other) = n.checked_sub(LAG).filter(|other| has_a_namesake(*other)) {
            tenant.until(&format!("Job/{}", job_of(other)), gone()).await?;
            let job = tenant.create(a_job(other, !fails(other))).await?;
            truth.lock().map_err(|_| anyhow!("poisoned"))?.insert(uid(&job).to_owned(), "somebody else's");
        }
        sleep(Duration::from_millis(random(n, 120))).await;
    }
    Ok(())
}

/// Kills and starts again; one line for each.
async fn kill(tenant: &TestTenant, truth: &Truth, rollcall: &mut RollcallProcess) -> Result<String> {
    let mut table = "kill  after ms  away ms  running  complete  failed  unseen\n".to_owned();
    for round in 0..KILLS {
        let (after, away) = (random(1_000 + round as u64, 1_500), random(2_000 + round as u64, 1_200));
        sleep(Duration::from_millis(after)).await;
        rollcall.kill()?;
        let words = recorded(tenant, truth).await?;
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

/// How a parent stands when nothing more will come. One that lacks its Job still waits for the Events that tell of it.
fn end(parent: &Value) -> Option<&'static str> {
    let ready = condition(parent, "Ready")?;
    let says = |part: &str| ready["message"].as_str().is_some_and(|message| message.contains(part));
    match (ready["status"].as_str()?, ready["reason"].as_str()?) {
        ("True", _) => Some("Complete"),
        (_, "ChildrenFailed") => Some("Failed"),
        (_, "ChildrenUnknown") if says("its outcome was not observed") => Some("Unseen"),
        _ => None,
    }
}

/// Once all Jobs are gone. Events come late where many Jobs end at once, and are asked again after
/// 5 and 30 s: they are given a while to tell of what nobody saw.
async fn settled(tenant: &TestTenant) -> Result<BTreeMap<u64, &'static str>> {
    let mut rounds = 0;
    let ends = async {
        loop {
            let (jobs, _) = tenant.admin.list(&tenant.kind("Job"), &tenant.name, "limit=1").await?;
            let (parents, _) = tenant.admin.list(&tenant.kind("Database"), &tenant.name, "").await?;
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
                let known = |(n, end): (&u64, &&str)| *end == right(*n);
                if rounds == EVIDENCE || ends.iter().all(known) {
                    return Ok(ends);
                }
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(2 * TEST_TIMEOUT, ends).await.context("not all parents have settled")?
}

/// Nobody was ever told the contrary of how its Job ended, where that ran once.
fn never_wrong(tenant: &TestTenant, recording: &StateRecording) -> Result<()> {
    for n in (0..JOBS).filter(|n| !runs_again(*n)) {
        let parent = tenant.address(&format!("Database/db-{n}"))?;
        let (field, word) = if fails(n) { ("status", "True") } else { ("reason", "ChildrenFailed") };
        let wrong = |entry: &Value| entry[field] == word;
        let told = recording.said(&parent, "Ready");
        ensure!(!told.iter().any(|said| wrong(&said.entry)), "{}", recording.transcript(&parent, "Ready"));
    }
    Ok(())
}

#[tokio::test]
async fn a_hundred_jobs_and_a_dozen_kills_leave_no_wrong_outcome() -> Result<()> {
    let tenant = TestTenant::start("kills").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut jobs = tenant.child("Job");
    jobs["afterDeletion"] = json!("remember");
    jobs["expect"] = json!({ "names": ["{parent.metadata.name}-job"] });
    tenant.policy("db", "Database", json!({ "children": [jobs], "settle": "100ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let truth = Truth::default();
    let (worked, table) = tokio::join!(work(&tenant, &truth), kill(&tenant, &truth, &mut rollcall));
    worked?;
    let table = table?;
    let ends = settled(&tenant).await?;
    let words = recorded(&tenant, &truth).await?;
    never_wrong(&tenant, &recorder.stop().await?)?;
    let tally = |word: &str| ends.values().filter(|end| **end == word).count();
    eprintln!("{table}");
    eprintln!(
        "{JOBS} Jobs, {} of them twice, {} with a namesake: {} complete, {} failed, {} unseen",
        (0..JOBS).filter(|n| runs_again(*n)).count(),
        (0..JOBS).filter(|n| has_a_namesake(*n)).count(),
        tally("Complete"),
        tally("Failed"),
        tally("Unseen"),
    );
    for (n, end) in &ends {
        let right = right(*n);
        ensure!([right, "Unseen"].contains(end), "{} is {right}, told: {end}", job_of(*n));
        ensure!(words.contains_key(n), "{} is {end}, and nothing of it is recorded", job_of(*n));
    }
    let known = tally("Complete") + tally("Failed");
    ensure!(ends.len() as u64 == JOBS && known as u64 > JOBS / 2, "only {known} of {} are known", ends.len());
    Ok(())
}
