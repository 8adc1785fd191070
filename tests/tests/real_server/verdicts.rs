//! What the dashboards say of one parent, on series that are made by hand.

use std::fs;

use acceptance::places;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::grafana::{board, list, panels, word};
use crate::observed::promtool;

fn panel(of: &str, title: &str) -> Result<Value> {
    let board = board(of)?;
    let mut named = panels(&board).filter(|panel| panel["title"] == title);
    named.next().cloned().with_context(|| format!("{of} has no panel {title}"))
}

/// What one of its queries asks, of the policy `p` and the parent `a/x`.
fn asked(panel: &Value, query: usize) -> String {
    let chosen = [("$policy", "p"), ("$namespace", "a"), ("$name", "x")];
    let expr = word(&panel["targets"][query]["expr"]).to_owned();
    chosen.iter().fold(expr, |expr, (variable, value)| expr.replace(variable, value))
}

/// Holds when these queries give these samples, each at its minute.
fn hold(name: &str, series: &[(&str, &str)], cases: &[(&str, u32, Value)]) -> Result<()> {
    let series: Vec<_> =
        series.iter().map(|(of, values)| json!({ "series": of, "values": values })).collect();
    let case = |(expr, minute, samples): &(&str, u32, Value)| json!({ "expr": expr, "eval_time": format!("{minute}m"), "exp_samples": samples });
    let test = json!({ "interval": "1m", "input_series": series,
        "promql_expr_test": cases.iter().map(case).collect::<Vec<_>>() });
    let place = places::run_folder()?.join(format!("{name}.test.yaml"));
    fs::write(&place, json!({ "evaluation_interval": "1m", "tests": [test] }).to_string())?;
    promtool(&["test", "rules", &place.display().to_string()], "")?;
    Ok(())
}

#[test]
fn a_parent_is_green_only_where_somebody_knows_that_it_is_ready() -> Result<()> {
    let series = [
        (
            r#"rollcall_parent_not_ready_info{policy="p", namespace="a", name="x", verdict="Failed", reason="ChildrenFailed"}"#,
            "1x4 stale",
        ),
        // Worse, but another one.
        (
            r#"rollcall_parent_not_ready_info{policy="p", namespace="a", name="xy", verdict="Stuck", reason="ChildrenStuck"}"#,
            "1x70",
        ),
        (r#"rollcall_leader{instance="a"}"#, "1x9 0x59"),
        (r#"rollcall_leader{instance="b"}"#, "0x19 1x49"),
        (r#"rollcall_parents_not_exported{instance="b"}"#, "0x29 5x9 0x29"),
        (r#"rollcall_parents{policy="p", verdict="Ready", instance="b"}"#, "2x49 0x19"),
        (r#"rollcall_parents{policy="q", verdict="Ready", instance="b"}"#, "2x70"),
        (r#"rollcall_build_info{instance="a"}"#, "1x70"),
    ];
    let (now, story) = (panel("parent", "Verdict")?, panel("parent", "Verdict over time")?);
    let (now, story) = (asked(&now, 0), asked(&story, 0));
    let (is, unknown) = (|value: u32| json!([{ "labels": "{}", "value": value }]), json!([]));
    let told = [
        (2, is(7)),
        (7, is(0)),
        // Nobody leads; parents without series of their own; none of this policy is ready.
        (15, unknown.clone()),
        (25, is(0)),
        (35, unknown.clone()),
        (45, is(0)),
        (55, unknown),
    ];
    let told = told
        .iter()
        .flat_map(|(minute, samples)| [&now, &story].map(|expr| (expr.as_str(), *minute, samples.clone())));
    hold("verdict", &series, &told.collect::<Vec<_>>())
}

#[test]
fn the_worst_parents_stand_first_and_the_oldest_of_these() -> Result<()> {
    let table = panel("fleet", "Parents that are not ready, worst first")?;
    let sorted =
        json!([{ "displayName": "verdict", "desc": true }, { "displayName": "not ready for", "desc": true }]);
    assert_eq!(table["options"]["sortBy"], sorted);
    let columns = &list(&table["transformations"])[1]["options"]["renameByName"];
    assert_eq!(*columns, json!({ "Value #A": "not ready for", "Value #B": "verdict" }));
    let words = list(&table["fieldConfig"]["overrides"]).iter().flat_map(|of| list(&of["properties"]));
    let words = words.filter(|of| of["id"] == "mappings").map(|of| &of["value"][0]["options"]).next();
    let verdicts = ["Suspended", "Terminating", "Progressing", "Unknown", "Missing", "Stuck", "Failed"];
    let (mut series, mut ranks, mut ages) = (Vec::new(), Vec::new(), Vec::new());
    for (at, verdict) in verdicts.iter().enumerate() {
        assert_eq!(words.context("no words")?[(at + 1).to_string()]["text"], *verdict);
        // Two replicas show it while the lease changes hands.
        for instance in ["a", "b"] {
            let name = format!(r#"policy="p", namespace="a", name="{verdict}", instance="{instance}""#);
            let info =
                format!(r#"rollcall_parent_not_ready_info{{{name}, verdict="{verdict}", reason="r"}}"#);
            series.push((info, "1x9".to_owned()));
            series.push((
                format!("rollcall_parent_not_ready_since_timestamp_seconds{{{name}}}"),
                format!("{at}x9"),
            ));
        }
        let labels =
            format!(r#"{{policy="p", namespace="a", name="{verdict}", verdict="{verdict}", reason="r"}}"#);
        ranks.push(json!({ "labels": labels, "value": at + 1 }));
        ages.push(json!({ "labels": labels, "value": 300 - at }));
    }
    let series: Vec<_> = series.iter().map(|(of, values)| (of.as_str(), values.as_str())).collect();
    let (age, rank) = (asked(&table, 0), asked(&table, 1));
    let all = |expr: &str| expr.replace("=~\"p\"", "=~\".*\"").replace("=~\"a\"", "=~\".*\"");
    hold("fleet", &series, &[(&all(&age), 5, json!(ages)), (&all(&rank), 5, json!(ranks))])
}
