//! The dashboards and rules that are shipped, asked of a real Prometheus that scrapes a real Rollcall.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use acceptance::control_plane::free_ports;
use acceptance::crd::Crd;
use acceptance::objects::{deployment, job, owned_by, playing};
use acceptance::places;
use acceptance::process::Process;
use acceptance::rollcall::Rollcall;
use acceptance::scene::{PATIENCE, Scene};
use acceptance::wish::says;
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

const DASHBOARDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboards");
const BOARDS: [&str; 3] = ["fleet", "parent", "rollcall"];
/// What `@grafana/schema` 13.2 gives a new dashboard.
const SCHEMA: u64 = 42;

fn board(name: &str) -> Result<Value> {
    let text = fs::read_to_string(format!("{DASHBOARDS}/{name}.json"))?;
    serde_json::from_str(&text).with_context(|| format!("{name}.json"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The panels that show something: not the rows between them.
fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    list(&board["panels"]).iter().filter(|panel| panel["type"] != "row")
}

/// Variables that a query names, Grafana's own left out.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches('{');
        rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default()
    });
    names.filter(|name| !name.starts_with("__"))
}

#[test]
fn dashboards_keep_the_habits_of_grafanas_mixins() -> Result<()> {
    let (mut uids, mut titles) = (BTreeSet::new(), BTreeSet::new());
    for name in BOARDS {
        let board = board(name)?;
        assert_eq!(board["schemaVersion"], SCHEMA, "{name}");
        assert_eq!(board["refresh"], "30s", "{name}");
        assert_eq!(board["tags"], json!(["rollcall"]), "{name}");
        assert_eq!(board["links"][0]["tags"], json!(["rollcall"]), "{name} leads to the others");
        assert!(board["id"].is_null(), "{name} has the id of a database");
        assert!(uids.insert(board["uid"].to_string()) && titles.insert(board["title"].to_string()), "{name}");
        let known: BTreeSet<&str> =
            list(&board["templating"]["list"]).iter().map(|variable| word(&variable["name"])).collect();
        assert!(known.contains("datasource"), "{name}");
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for panel in list(&board["panels"]) {
            assert!(ids.insert(panel["id"].as_u64().context("an id")?), "{name}: {}", panel["id"]);
        }
        for panel in panels(&board) {
            let title = word(&panel["title"]);
            assert!(names.insert(title) && !title.is_empty(), "{name}: {title:?} twice, or no title");
            assert!(!word(&panel["description"]).is_empty(), "{name}/{title} has no description");
            if panel["type"] == "text" {
                continue;
            }
            let field = &panel["fieldConfig"];
            let unit = field.to_string().contains("\"unit\"");
            let mapped = !list(&field["defaults"]["mappings"]).is_empty();
            assert!(unit || mapped || panel["options"]["yAxis"]["unit"] == "s", "{name}/{title} has no unit");
            assert!(!list(&field["defaults"]["thresholds"]["steps"]).is_empty(), "{name}/{title}");
            for target in list(&panel["targets"]) {
                assert_eq!(target["datasource"]["uid"], "${datasource}", "{name}/{title}");
                for variable in variables(word(&target["expr"])) {
                    assert!(known.contains(variable), "{name}/{title} asks for ${variable}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn panels_do_not_lie_upon_each_other() -> Result<()> {
    for name in BOARDS {
        let board = board(name)?;
        let mut taken = BTreeSet::new();
        for panel in list(&board["panels"]) {
            let at = |key: &str| panel["gridPos"][key].as_u64().context("a place");
            let (x, y, w, h) = (at("x")?, at("y")?, at("w")?, at("h")?);
            assert!(x + w <= 24, "{name}/{} is too wide", panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{name}/{} lies upon another", panel["title"]);
            }
        }
    }
    Ok(())
}

#[test]
fn config_maps_carry_the_label_that_grafanas_sidecar_looks_for() -> Result<()> {
    let built = Command::new(places::program("kubectl")?).args(["kustomize", DASHBOARDS]).output()?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let maps: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&built.stdout))?;
    assert_eq!(maps.len(), BOARDS.len());
    for (map, name) in maps.iter().zip(BOARDS) {
        assert_eq!(map["kind"], "ConfigMap");
        assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
        let carried: Value = serde_json::from_str(word(&map["data"][format!("{name}.json")]))?;
        assert_eq!(carried, board(name)?);
    }
    Ok(())
}

/// A Prometheus of this scene, which scrapes one Rollcall every second and evaluates the rules that are shipped.
struct Prometheus {
    address: String,
    process: Process,
}

impl Prometheus {
    async fn start(scene: &Scene, target: &Rollcall) -> Result<Prometheus> {
        let config = scene.folder.join("prometheus.yaml");
        let settings = json!({
            "global": { "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s" },
            "rule_files": [format!("{DASHBOARDS}/rules/rollcall.rules.yaml")],
            "scrape_configs": [
                { "job_name": "rollcall", "static_configs": [{ "targets": [target.address()] }] },
            ],
        });
        fs::write(&config, settings.to_string())?;
        let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
        let args = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", scene.folder.join("prometheus").display()),
            format!("--web.listen-address={address}"),
            "--log.level=warn".to_owned(),
        ];
        let log = scene.folder.join("prometheus.log");
        let process = Process::start("prometheus", Path::new("prometheus"), &args, &[], &log)?;
        let prometheus = Prometheus { address, process };
        prometheus.first_scrape().await?;
        Ok(prometheus)
    }

    /// What happens from then on is seen as a change.
    async fn first_scrape(&self) -> Result<()> {
        let scraped = async {
            loop {
                match self.query("rollcall_build_info").await {
                    Ok(found) if !found.is_empty() => return,
                    _ => sleep(Duration::from_millis(50)).await,
                }
            }
        };
        timeout(PATIENCE, scraped).await.map_err(|_| anyhow!("nothing scraped\n{}", self.process.tail(20)))
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(&self.address).await?;
        // Of a server that speaks 1.0 nothing comes in chunks.
        stream.write_all(format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut text)).await??;
        let (_, body) = text.split_once("\r\n\r\n").context("half an answer")?;
        let answer: Value = serde_json::from_str(body).with_context(|| body.to_owned())?;
        ensure!(answer["status"] == "success", "{}", answer["error"]);
        Ok(answer["data"].clone())
    }

    /// What a query gives now: every series with a number.
    async fn query(&self, query: &str) -> Result<Vec<(Value, f64)>> {
        let encoded = query.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02x}"));
        let data = self.get(&format!("query?query={encoded}")).await.with_context(|| query.to_owned())?;
        let number = |series: &Value| {
            let value: f64 = word(&series["value"][1]).parse().ok()?;
            (!value.is_nan()).then(|| (series["metric"].clone(), value))
        };
        Ok(list(&data["result"]).iter().filter_map(number).collect())
    }

    /// The same as soon as it gives something; an error is none that passes.
    async fn until(&self, query: &str, end: Instant) -> Result<Vec<(Value, f64)>> {
        loop {
            let found = self.query(query).await?;
            if !found.is_empty() {
                return Ok(found);
            }
            ensure!(Instant::now() < end, "no data for {query}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// As Grafana would ask where a user chose nothing.
fn interpolated(expr: &str) -> String {
    let all = variables(expr).map(str::to_owned).collect::<BTreeSet<_>>();
    let plain = expr.replace("$__rate_interval", "1m");
    // Longer names first: one may begin with another.
    all.iter().rev().fold(plain, |expr, name| expr.replace(&format!("${name}"), ".*"))
}

/// Two parents, one of them ready and one with a Job that failed.
async fn story(scene: &Scene) -> Result<()> {
    for (name, part) in [("good", None), ("bad", Some("fail"))] {
        let parent = scene.create(scene.custom("Database", name)).await?;
        scene.create(owned_by(&parent, deployment(&format!("{name}-web"), 1))).await?;
        let migrate = job(&format!("{name}-migrate"));
        let migrate = part.into_iter().fold(migrate, |job, part| playing(part, job));
        scene.create(owned_by(&parent, migrate)).await?;
    }
    scene.until("Database/good", says("Ready", "True")).await?;
    scene.until("Job/bad-migrate", says("Failed", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn every_panel_and_every_rule_has_data_while_a_story_plays() -> Result<()> {
    let scene = Scene::set("dashboards").await?;
    scene.crd(&Crd::new("Database")).await?;
    let spec = json!({ "children": [scene.child("Deployment"), scene.child("Job")], "settle": "100ms" });
    scene.policy("db", "Database", spec).await?;
    let running = scene.rollcall(&[]).await?;
    let prometheus = Prometheus::start(&scene, &running).await?;
    story(&scene).await?;
    let end = Instant::now() + 2 * PATIENCE;
    let failed = "max by (name, verdict, reason) (rollcall_parent_not_ready_info{verdict=\"Failed\"})";
    prometheus.until(failed, end).await?;

    let mut missing = Vec::new();
    for name in BOARDS {
        let board = board(name)?;
        for panel in panels(&board) {
            for target in list(&panel["targets"]) {
                if let Err(error) = prometheus.until(&interpolated(word(&target["expr"])), end).await {
                    missing.push(format!("{name}/{}: {error:#}", panel["title"]));
                }
            }
        }
        for variable in list(&board["templating"]["list"]) {
            let asked = word(&variable["query"]["query"]).strip_prefix("label_values(");
            let Some((metric, label)) = asked.and_then(|a| a.strip_suffix(')')?.rsplit_once(", ")) else {
                continue;
            };
            let query = format!("count by ({label}) ({})", interpolated(metric));
            if let Err(error) = prometheus.until(&query, end).await {
                missing.push(format!("{name}/${}: {error:#}", word(&variable["name"])));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    rules_work(&prometheus, end).await?;
    truth(&prometheus).await
}

/// Every rule was evaluated without an error, every recorded series and every metric that an alert rests on is there.
async fn rules_work(prometheus: &Prometheus, end: Instant) -> Result<()> {
    let rules = loop {
        let data = prometheus.get("rules").await?;
        let rules: Vec<Value> =
            list(&data["groups"]).iter().flat_map(|g| list(&g["rules"])).cloned().collect();
        if !rules.is_empty() && rules.iter().all(|rule| rule["health"] != "unknown") {
            break rules;
        }
        ensure!(Instant::now() < end, "not evaluated: {data:#}");
        sleep(Duration::from_millis(200)).await;
    };
    for rule in &rules {
        ensure!(rule["health"] == "ok", "{}: {}", rule["name"], rule["lastError"]);
        let of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let recorded = (rule["type"] == "recording").then(|| word(&rule["name"]));
        let expr = word(&rule["query"]);
        let names = expr.split(|c| !of_a_name(c)).filter(|name| name.starts_with("rollcall"));
        for name in names.chain(recorded) {
            prometheus.until(name, end).await.with_context(|| rule["name"].to_string())?;
        }
    }
    ensure!(rules.len() > 10, "only {} rules", rules.len());
    Ok(())
}

/// What the first panels say is what the story was.
async fn truth(prometheus: &Prometheus) -> Result<()> {
    let expr = async |board_name: &str, title: &str| {
        let board = board(board_name)?;
        let panel = panels(&board).find(|panel| panel["title"] == title).context("a panel")?;
        prometheus.query(&interpolated(word(&panel["targets"][0]["expr"]))).await
    };
    let [(_, ready)] = &expr("fleet", "Ready").await?[..] else { bail!("one number") };
    assert!((ready - 0.5).abs() < 1e-9, "{ready} of the parents are ready");
    let worst = expr("fleet", "Parents that are not ready, longest first").await?;
    let [(labels, age)] = &worst[..] else { bail!("one parent is not ready: {worst:?}") };
    assert_eq!(
        (&labels["name"], &labels["verdict"], &labels["reason"]),
        (&json!("bad"), &json!("Failed"), &json!("ChildrenFailed"))
    );
    assert!((0.0..600.0).contains(age), "not ready for {age} s");
    let [(_, verdict)] = &expr("parent", "Verdict").await?[..] else { bail!("one verdict") };
    assert!((verdict - 7.0).abs() < 1e-9, "{verdict} is not Failed");
    let ready = prometheus.query("sum(rollcall_time_to_ready_seconds_count)").await?;
    assert_eq!(ready.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1.0], "one became ready, once");
    Ok(())
}
