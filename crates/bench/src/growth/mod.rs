//! How what the service costs grows with the size of the work.

mod args;
mod cascade;
mod cascade_cluster;
mod catalog;
mod events;
mod judgement;
mod law;
mod lifecycle;
mod page;
mod point;
mod run;
mod running;
mod unready;

use std::fmt::Write;

use anyhow::{Context, bail};
use serde_json::json;

pub(crate) use self::args::GrowthArgs;
use self::args::GrowthOutput;
use self::catalog::GrowthWorkload;
use self::judgement::{JudgedFigure, growth_table, judge_all};
use self::point::{GrowthLine, GrowthPoint};
use self::run::measure_all;
use crate::compare::measurement::{append_line, read_lines};
use crate::subject::SubjectArgs;

/// Measures, prints the figures, and fails if one of them does not keep its law or has none because an answer was wrong.
pub(crate) async fn run(subject: &SubjectArgs, args: &GrowthArgs) -> anyhow::Result<()> {
    let mut failures = Vec::new();
    let lines = match &args.from {
        Some(file) => read_lines(file)?,
        None => measure_all(subject, args, &mut failures).await?,
    };
    let points: Vec<GrowthPoint> = lines.iter().filter_map(GrowthLine::to_point).collect();
    let judged = judge_all(&points);
    match args.output {
        GrowthOutput::Text => print!("{}", render_growth_text(&judged)),
        GrowthOutput::Json => println!("{}", json!({ "figures": judged, "failures": failures })),
    }
    if let Some(folder) = &args.page {
        let conditions = lines.iter().find_map(GrowthLine::to_conditions);
        let conditions = conditions.context("there is no line of the run")?;
        page::write_growth_page(folder, &judged, &conditions)?;
        let raw = folder.join("growth.jsonl");
        std::fs::write(&raw, "").with_context(|| format!("writing {}", raw.display()))?;
        lines.iter().try_for_each(|line| append_line(&raw, line))?;
        eprintln!("written: {}", folder.display());
    }
    let broken = judged.iter().filter(|figure| figure.breaks.is_some()).count();
    if broken > 0 || !failures.is_empty() {
        bail!("laws broken: {broken}; not measured: {}\n{}", failures.len(), failures.join("\n"));
    }
    Ok(())
}

fn render_growth_text(judged: &[JudgedFigure]) -> String {
    let mut text = String::new();
    for view in GrowthWorkload::ALL.map(GrowthWorkload::view) {
        if let Some(table) = growth_table(view, judged) {
            let _ = write!(text, "\n{}", table.to_text());
        }
    }
    text + "\nlaws that are broken:\n" + &page::broken_laws(judged)
}
