//! What a flip of a child costs programs that tell parents, over the real API server and etcd:
//! `cargo run -p acceptance --example flips -- rollcall=FILE kube-rs-tuned=FILE`.
//!
//! Each program has a cluster of its own in each round, one after the other, and each round begins with another one. Flips come at
//! their intended times, whatever became of those before; a latency runs from the intended time to the parent's new answer in a
//! watch. The parents' last answers are compared with what their children amount to: a round with one wrong answer has no figures.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it reads the clock and prints: it measures"
)]

mod answers;
mod subject;
mod widgets;

use std::collections::BTreeMap;
use std::time::Duration;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep_until};

use crate::answers::AnswerLog;
use crate::subject::{Subject, SubjectFigures};
use crate::widgets::Widgets;

/// What is measured, where nothing else is asked for.
#[derive(Clone, Copy)]
struct FlipPlan {
    parents: usize,
    children: usize,
    /// Flips a second.
    rate: u32,
    seconds: u32,
    rounds: usize,
}

const USAGE: &str =
    "Usage: flips [--parents 200] [--children 50] [--rate 30] [--seconds 60] [--rounds 3] NAME=PROGRAM…

A program that is called rollcall runs as `rollcall run`; all others get no arguments. Each has KUBECONFIG.";

fn parse_args() -> Result<(FlipPlan, Vec<Subject>)> {
    let mut plan = FlipPlan { parents: 200, children: 50, rate: 30, seconds: 60, rounds: 3 };
    let (mut subjects, mut args) = (Vec::new(), std::env::args().skip(1));
    while let Some(arg) = args.next() {
        if let Some((name, program)) = arg.split_once('=') {
            subjects.push(Subject { name: name.to_owned(), program: program.into() });
            continue;
        }
        let mut number = || -> Result<u32> { Ok(args.next().context(USAGE)?.parse()?) };
        match arg.as_str() {
            "--parents" => plan.parents = usize::try_from(number()?)?,
            "--children" => plan.children = usize::try_from(number()?)?,
            "--rate" => plan.rate = number()?,
            "--seconds" => plan.seconds = number()?,
            "--rounds" => plan.rounds = usize::try_from(number()?)?,
            _ => anyhow::bail!("{USAGE}"),
        }
    }
    ensure!(!subjects.is_empty() && plan.rate > 0 && plan.parents > 0, "{USAGE}");
    Ok((plan, subjects))
}

#[tokio::main]
async fn main() -> Result<()> {
    let (plan, subjects) = parse_args()?;
    let mut figures: BTreeMap<&str, Vec<SubjectFigures>> = BTreeMap::new();
    for round in 0..plan.rounds {
        for number in 0..subjects.len() {
            let subject = &subjects[(round + number) % subjects.len()];
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, subject.name);
            let measured = measure(plan, subject).await.with_context(|| subject.name.clone())?;
            println!("{:14} {measured}", subject.name);
            figures.entry(&subject.name).or_default().push(measured);
        }
    }
    println!(
        "medians of {} rounds, {} × {} children, {} flips a second",
        plan.rounds, plan.parents, plan.children, plan.rate
    );
    for (name, rounds) in figures {
        println!("{name:14} {}", SubjectFigures::median(&rounds));
    }
    Ok(())
}

/// One round of one program.
async fn measure(plan: FlipPlan, subject: &Subject) -> Result<SubjectFigures> {
    let plane = ControlPlane::start(ClusterParts::Storage).await?;
    let widgets = Widgets::create(&plane, plan.parents, plan.children).await?;
    let log = AnswerLog::follow(&widgets, plan.parents).await?;
    let running = subject.start(&plane, &widgets).await?;
    log.until_all(true).await?;
    running.until_at_rest().await?;
    log.forget_latencies();
    let (before, begun) = (running.processor_seconds()?, Instant::now());
    let flips = plan.rate * plan.seconds;
    let mut writes = Vec::new();
    for number in 0..flips {
        let due = begun + Duration::from_secs(1) * number / plan.rate;
        sleep_until(due).await;
        let number = usize::try_from(number)?;
        let (parent, ready) = (number % plan.parents, (number / plan.parents) % 2 == 1);
        log.expect(parent, ready, due);
        let widgets = widgets.clone();
        writes.push(tokio::spawn(async move { widgets.turn(parent, ready).await }));
    }
    for write in writes {
        write.await??;
    }
    log.until_answered().await?;
    running.until_at_rest().await?;
    let took = running.processor_seconds()? - before;
    let wrong = widgets.wrong_answers().await?;
    ensure!(
        wrong == 0,
        "{wrong} of {} parents are told something else than their children amount to",
        plan.parents
    );
    let peak = running.peak_megabytes()?;
    Ok(log.figures(took / f64::from(flips) * 1e3, peak))
}
