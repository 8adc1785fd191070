//! The queries of dashboards and rules, asked of a real Prometheus that scrapes a real Rollcall.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::objects::{deployment, job, owned_by, playing};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::process::LoggedProcess;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, anyhow, bail, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::front::reader;
use crate::grafana::{BOARDS, DASHBOARDS, board, list, panels, variables, word};

/// A service that is scraped.
#[derive(Clone, Copy)]
struct ScrapedService<'a> {
    address: &'a str,
    /// The file of a token. Without one the service is asked over HTTP, and asks nobody who they are.
    token: Option<&'a Path>,
}

fn open_at(address: &str) -> ScrapedService<'_> {
    ScrapedService { address, token: None }
}

/// The scrape configuration of the README, with a fixed target that says of itself what a cluster would.
fn recommended(target: ScrapedService<'_>) -> Result<Value> {
    let readme = fs::read_to_string(format!("{DASHBOARDS}/README.md"))?;
    let block = readme.split("```yaml").nth(1).and_then(|rest| rest.split("```").next());
    let mut config: Value = serde_saphyr::from_str(block.context("no scrape configuration")?)?;
    let scrape = config["scrape_configs"][0].as_object_mut().context("no scrape configuration")?;
    ensure!(scrape.remove("kubernetes_sd_configs").is_some(), "it finds nothing in a cluster");
    ensure!(scrape.contains_key("relabel_configs"), "it labels nothing");
    if let Some(token) = target.token {
        let file = scrape.get_mut("authorization").and_then(|own| own.get_mut("credentials_file"));
        *file.context("it shows no token")? = json!(token);
    } else {
        for field in ["scheme", "tls_config", "authorization"] {
            ensure!(scrape.remove(field).is_some(), "{field} is for the service in a cluster");
        }
    }
    let labels = json!({
        "__meta_kubernetes_service_name": "rollcall",
        "__meta_kubernetes_endpoint_port_name": "https",
        "__meta_kubernetes_namespace": "of-the-pod",
        "__meta_kubernetes_pod_name": "of-the-pod",
    });
    scrape.insert("static_configs".to_owned(), json!([{ "targets": [target.address], "labels": labels }]));
    Ok(config["scrape_configs"][0].take())
}

/// A Prometheus with its files in a folder, which scrapes one Rollcall and evaluates the rules that are shipped.
struct PrometheusServer {
    address: String,
    process: LoggedProcess,
}

impl PrometheusServer {
    async fn start(folder: &Path, target: ScrapedService<'_>, every: &str) -> Result<PrometheusServer> {
        let config = folder.join("prometheus.yaml");
        let settings = json!({
            "global": { "scrape_interval": every, "scrape_timeout": every, "evaluation_interval": "1s" },
            "rule_files": [format!("{DASHBOARDS}/rules/rollcall.rules.yaml")],
            "scrape_configs": [recommended(target)?],
        });
        fs::write(&config, settings.to_string())?;
        let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
        let args = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.join("prometheus").display()),
            format!("--web.listen-address={address}"),
            "--log.level=warn".to_owned(),
        ];
        let log = folder.join("prometheus.log");
        let process = LoggedProcess::start("prometheus", Path::new("prometheus"), &args, &[], &log)?;
        let prometheus = PrometheusServer { address, process };
        prometheus.answers("vector(1)").await?;
        Ok(prometheus)
    }

    /// Waits until the query gives something.
    async fn answers(&self, query: &str) -> Result<()> {
        let scraped = async {
            loop {
                match self.query(query).await {
                    Ok(found) if !found.is_empty() => return,
                    _ => sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let end = timeout(TEST_TIMEOUT, scraped).await;
        end.map_err(|_| anyhow!("nothing for {query}\n{}", self.process.tail(20)))
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(&self.address).await?;
        // Of a server that speaks 1.0 nothing comes in chunks.
        stream.write_all(format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        timeout(TEST_TIMEOUT, stream.read_to_string(&mut text)).await??;
        let (_, body) = text.split_once("\r\n\r\n").context("half an answer")?;
        let answer: Value = serde_json::from_str(body).with_context(|| body.to_owned())?;
        ensure!(answer["status"] == "success", "{}", answer["error"]);
        Ok(answer["data"].clone())
    }

    /// What a query gave in the last two minutes: every number of every series.
    async fn over_the_story(&self, query: &str) -> Result<Vec<f64>> {
        let now = self.query("time()").await?.first().map_or(0.0, |(_, now)| now.floor());
        let span = format!("start={}&end={now}&step=0.25", now - 120.0);
        let asked = format!("query_range?query={}&{span}", encoded(query));
        let data = self.get(&asked).await.with_context(|| query.to_owned())?;
        let points = list(&data["result"]).iter().flat_map(|series| list(&series["values"]));
        let number = |point: &Value| word(&point[1]).parse().ok().filter(|value: &f64| !value.is_nan());
        Ok(points.filter_map(number).collect())
    }

    /// What a query gives now: every series with a number.
    async fn query(&self, query: &str) -> Result<Vec<(Value, f64)>> {
        let asked = format!("query?query={}", encoded(query));
        let data = self.get(&asked).await.with_context(|| query.to_owned())?;
        let number = |series: &Value| {
            let value: f64 = word(&series["value"][1]).parse().ok()?;
            (!value.is_nan()).then(|| (series["metric"].clone(), value))
        };
        // A number by itself is no series.
        if data["resultType"] == "scalar" {
            return Ok(word(&data["result"][1])
                .parse()
                .map(|value| (Value::Null, value))
                .into_iter()
                .collect());
        }
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

fn encoded(query: &str) -> String {
    utf8_percent_encode(query, NON_ALPHANUMERIC).to_string()
}

/// What a user chose: on the parent's dashboard one parent, on the others nothing.
struct DashboardChoice([(&'static str, String); 3]);

impl DashboardChoice {
    fn parent(policy: &str, namespace: &str, name: &str) -> DashboardChoice {
        let of = |variable, value: &str| (variable, value.to_owned());
        DashboardChoice([of("policy", policy), of("namespace", namespace), of("name", name)])
    }

    /// As Grafana would ask.
    fn ask(&self, board: &str, expr: &str) -> String {
        let all = variables(expr).map(str::to_owned).collect::<BTreeSet<_>>();
        let plain = expr.replace("$__rate_interval", "1m");
        let value = |name: &str| {
            let chosen = self.0.iter().find(|(variable, _)| board == "parent" && *variable == name);
            chosen.map_or(".*", |(_, value)| value)
        };
        // Longer names first: one may begin with another.
        all.iter().rev().fold(plain, |expr, name| expr.replace(&format!("${name}"), value(name)))
    }
}

/// There only while somebody fights, which the tests of Kopf's handlers bring about.
pub(crate) const IN_A_FIGHT: [&str; 2] =
    ["rollcall_parent_yielding_info", "rollcall_parent_finalizers_flapping_info"];

/// Two parents, one of them ready and one with a Job that failed.
async fn story(tenant: &TestTenant) -> Result<()> {
    for (name, part) in [("good", None), ("bad", Some("fail"))] {
        let parent = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&parent, deployment(&format!("{name}-web"), 1))).await?;
        let migrate = job(&format!("{name}-migrate"));
        let migrate = part.into_iter().fold(migrate, |job, part| playing(part, job));
        tenant.create(owned_by(&parent, migrate)).await?;
    }
    tenant.until("Database/good", says("Ready", "True")).await?;
    tenant.until("Job/bad-migrate", says("Failed", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn every_panel_and_every_rule_has_data_while_a_story_plays() -> Result<()> {
    let tenant = TestTenant::start("dashboards").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment"), tenant.child("Job")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let history = format!("--history=file://{}", tenant.folder.join("history").display());
    let running = tenant.rollcall(&[&history, "--history-flush=500ms"]).await?;
    let prometheus = PrometheusServer::start(&tenant.folder, open_at(running.address()), "1s").await?;
    // What happens from then on is seen as a change.
    prometheus.answers("rollcall_build_info").await?;
    story(&tenant).await?;
    let end = Instant::now() + 2 * TEST_TIMEOUT;
    let failed = "max by (name, verdict, reason) (rollcall_parent_not_ready_info{verdict=\"Failed\"})";
    prometheus.until(failed, end).await?;

    let chosen = DashboardChoice::parent(&tenant.policy_name("db"), &tenant.name, "bad");
    let mut missing = Vec::new();
    for name in BOARDS {
        let board = board(name)?;
        for panel in panels(&board) {
            for target in list(&panel["targets"]) {
                if let Err(error) = prometheus.until(&chosen.ask(name, word(&target["expr"])), end).await {
                    missing.push(format!("{name}/{}: {error:#}", panel["title"]));
                }
            }
        }
        for variable in list(&board["templating"]["list"]) {
            let asked = word(&variable["query"]["query"]).strip_prefix("label_values(");
            let Some((metric, label)) = asked.and_then(|a| a.strip_suffix(')')?.rsplit_once(", ")) else {
                continue;
            };
            let query = format!("count by ({label}) ({})", chosen.ask(name, metric));
            if let Err(error) = prometheus.until(&query, end).await {
                missing.push(format!("{name}/${}: {error:#}", word(&variable["name"])));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    rules_work(&prometheus, end).await?;
    // What was scraped may be of a moment before the end of the story.
    while let Err(error) = truth(&prometheus, &chosen, &tenant.name).await {
        ensure!(Instant::now() < end, "{error:#}");
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

#[tokio::test]
async fn the_scrape_configuration_reads_a_service_over_tls_with_the_token_of_one_who_may() -> Result<()> {
    let tenant = TestTenant::start("tls-scraped").await?;
    tenant.apply_rights(&[])?;
    for (name, reads) in [("somebody", false), ("prometheus", true)] {
        reader(&tenant, name, reads).await?;
    }
    let port = free_ports(1)?[0];
    let options = [&*format!("--listen=0.0.0.0:{port}"), "--tls-self-signed"];
    let _running = tenant.rollcall_at(tenant.plane.url(), &options).await?;
    let (address, token) = (format!("127.0.0.1:{port}"), tenant.folder.join("token"));
    fs::write(&token, tenant.plane.token_of(&tenant.name, "somebody").await?)?;
    let target = ScrapedService { address: &address, token: Some(&token) };
    let prometheus = PrometheusServer::start(&tenant.folder, target, "1s").await?;
    prometheus.answers("up == 0").await?;
    ensure!(prometheus.query("rollcall_build_info").await?.is_empty(), "a stranger reads it");
    fs::write(&token, tenant.plane.token_of(&tenant.name, "prometheus").await?)?;
    prometheus.answers("rollcall_build_info").await?;
    prometheus.answers("up == 1").await
}

/// Panels that the demo leaves empty: it keeps no history.
const NOT_IN_THE_DEMO: [&str; 1] = ["Last batch kept"];

#[tokio::test]
async fn every_panel_has_data_while_the_demo_plays() -> Result<()> {
    let folder = places::run_folder()?.join("dashboards-demo");
    fs::create_dir_all(&folder)?;
    let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
    let prometheus = PrometheusServer::start(&folder, open_at(&address), "200ms").await?;
    // With pauses for readers: what is shown for less than a scrape is on no dashboard.
    let args = ["demo", "--speed=4", "--listen", &address].map(str::to_owned);
    let demo = LoggedProcess::start("demo", &places::rollcall()?, &args, &[], &folder.join("demo.log"))?;
    let over = async {
        while !demo.output().contains("expectations held") {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(2 * TEST_TIMEOUT, over).await.map_err(|_| anyhow!("it does not end\n{}", demo.tail(20)))?;
    let chosen = DashboardChoice::parent("shops", "default", "books");
    let mut missing = Vec::new();
    for name in BOARDS {
        let board = board(name)?;
        let asked = panels(&board).filter(|panel| !NOT_IN_THE_DEMO.contains(&word(&panel["title"])));
        for (panel, target) in asked.flat_map(|panel| list(&panel["targets"]).iter().map(move |t| (panel, t)))
        {
            if prometheus.over_the_story(&chosen.ask(name, word(&target["expr"]))).await?.is_empty() {
                missing.push(format!("{name}/{}: {}", panel["title"], target["expr"]));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    // The parent's own story, as its panel tells it: ready, progressing, stuck, failed.
    let board = board("parent")?;
    let panel = panels(&board).find(|panel| panel["title"] == "Verdict over time").context("a panel")?;
    let told = prometheus.over_the_story(&chosen.ask("parent", word(&panel["targets"][0]["expr"]))).await?;
    for verdict in [0, 3, 6, 7] {
        assert!(told.contains(&f64::from(verdict)), "{verdict} is not in {told:?}");
    }
    Ok(())
}

/// Every rule was evaluated without an error, every recorded series and every metric that an alert rests on is there.
async fn rules_work(prometheus: &PrometheusServer, end: Instant) -> Result<()> {
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
        let names = names.filter(|name| !IN_A_FIGHT.contains(name));
        for name in names.chain(recorded) {
            prometheus.until(name, end).await.with_context(|| rule["name"].to_string())?;
        }
    }
    ensure!(rules.len() > 10, "only {} rules", rules.len());
    Ok(())
}

/// What the first panels say is what the story was.
async fn truth(prometheus: &PrometheusServer, chosen: &DashboardChoice, namespace: &str) -> Result<()> {
    let expr = async |board_name: &str, title: &str| {
        let board = board(board_name)?;
        let panel = panels(&board).find(|panel| panel["title"] == title).context("a panel")?;
        prometheus.query(&chosen.ask(board_name, word(&panel["targets"][0]["expr"]))).await
    };
    let [(_, ready)] = &expr("fleet", "Ready").await?[..] else { bail!("one number") };
    ensure!((ready - 0.5).abs() < 1e-9, "{ready} of the parents are ready");
    let worst = expr("fleet", "Parents that are not ready, worst first").await?;
    let [(labels, age)] = &worst[..] else { bail!("one parent is not ready: {worst:?}") };
    let named = ["namespace", "name", "verdict", "reason"].map(|label| word(&labels[label]));
    ensure!(named == [namespace, "bad", "Failed", "ChildrenFailed"], "{named:?}");
    ensure!((0.0..600.0).contains(age), "not ready for {age} s");
    let [(_, verdict)] = &expr("parent", "Verdict").await?[..] else { bail!("one verdict") };
    ensure!((verdict - 7.0).abs() < 1e-9, "{verdict} is not Failed");
    let [(cause, _)] = &expr("parent", "Root cause").await?[..] else { bail!("one root cause") };
    let named = ["kind", "child", "verdict", "reason"].map(|label| word(&cause[label]));
    ensure!(named == ["Job.batch", "bad-migrate", "Failed", "JobFailed"], "{named:?}");
    let children = expr("parent", "Its children by verdict").await?;
    let mut children: Vec<_> =
        children.iter().map(|(labels, count)| (word(&labels["verdict"]), *count)).collect();
    children.sort_by_key(|(verdict, _)| *verdict);
    ensure!(children == [("Failed", 1.0), ("Ready", 1.0)], "its own children, and no others: {children:?}");
    let ready = prometheus.query("sum(rollcall_time_to_ready_seconds_count)").await?;
    let ready: Vec<f64> = ready.iter().map(|(_, count)| *count).collect();
    ensure!(ready == [1.0], "one became ready, once: {ready:?}");
    Ok(())
}
