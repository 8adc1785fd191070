//! The tables, for a terminal and for the page.

use std::fmt::Write;

use super::figure::{WORKLOADS, WorkloadView, number_text};
use super::machine::RunConditions;
use super::summary::RunSummary;

/// A table of texts.
pub(crate) struct FigureTable {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl FigureTable {
    /// That of a workload at a size: medians, with minimum and maximum where there were several rounds.
    pub(crate) fn of_workload(
        summary: &RunSummary,
        view: &WorkloadView,
        size: (usize, usize),
    ) -> FigureTable {
        let headings = view.columns.iter().map(|column| column.heading.to_owned());
        let head = std::iter::once("subject".to_owned()).chain(headings).collect();
        let rows = summary.subjects_of(view.name).map(|subject| {
            let mut row = vec![subject.clone()];
            if let Some(why) = summary.disqualified(subject, view.name, size) {
                row.push(why);
                row.resize(view.columns.len() + 1, String::new());
                return row;
            }
            row.extend(view.columns.iter().map(|column| {
                let Some(spread) = summary.spread(subject, view.name, size, column.name) else {
                    return "none".to_owned();
                };
                let [median, min, max] = [spread.median, spread.min, spread.max].map(number_text);
                let ratio = summary.ratio(subject, &summary.subjects[0].0, view.name, size, column.name);
                let ratio = ratio.filter(|_| *subject != summary.subjects[0].0);
                let ratio = ratio.map(|ratio| format!(" [{}×]", number_text(ratio))).unwrap_or_default();
                if min == max {
                    format!("{median}{ratio}")
                } else {
                    format!("{median} ({min}–{max}){ratio}")
                }
            }));
            row
        });
        FigureTable { head, rows: rows.collect() }
    }

    /// Exponents of growth with the number of children; `None` where nothing was fitted.
    pub(crate) fn of_exponents(summary: &RunSummary) -> Option<FigureTable> {
        let mut head = vec!["subject".to_owned()];
        let mut rows: Vec<Vec<String>> =
            summary.subjects.iter().map(|(name, _, _)| vec![name.clone()]).collect();
        for view in WORKLOADS.iter().filter(|view| summary.sizes(view.name).len() > 1) {
            for figure in view.fitted {
                let column = view.columns.iter().find(|column| column.name == *figure)?;
                head.push(format!("{}: {}", view.name, column.heading));
                for row in &mut rows {
                    let fitted = summary.exponent(&row[0], view.name, figure);
                    row.push(fitted.map_or_else(|| "none".to_owned(), |exponent| format!("{exponent:.2}")));
                }
            }
        }
        (head.len() > 1).then_some(FigureTable { head, rows })
    }

    /// Memory that one child more takes at the peak of a start, in kB, between the smallest and the largest size.
    pub(crate) fn of_memory_per_child(summary: &RunSummary) -> Option<FigureTable> {
        let sizes = summary.sizes("start");
        let (first, last) = (*sizes.first()?, *sizes.last()?);
        let more = super::session::count((last.0 * last.1).checked_sub(first.0 * first.1)?);
        let rows = summary.subjects_of("start").map(|subject| {
            let of = |figure: &str| {
                let at = |size| summary.spread(subject, "start", size, figure).map(|spread| spread.median);
                let per_child = (at(last)? - at(first)?) * 1e3 / more;
                Some(number_text(per_child))
            };
            let text = |figure: &str| of(figure).unwrap_or_else(|| "none".to_owned());
            vec![subject.clone(), text("peak_mb"), text("rest_mb")]
        });
        let head = ["subject", "peak, kB a child", "at rest, kB a child"].map(str::to_owned).to_vec();
        (more > 0.0).then(|| FigureTable { head, rows: rows.collect() })
    }

    /// The table for a terminal.
    pub(crate) fn to_text(&self) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            let texts = lines().filter_map(|line| line.get(column));
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for line in lines() {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// The table in Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&self.head) + &line(&vec!["---".to_owned(); self.head.len()]);
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}

/// Everything, for a terminal.
pub(crate) fn render_text(summary: &RunSummary, conditions: &RunConditions) -> String {
    let mut text = format!(
        "\n{}, {} processors, {:.0} GB, Linux {}, load average before the run {}\n",
        conditions.processor,
        conditions.processors,
        conditions.memory_gb,
        conditions.kernel,
        conditions.load_before
    );
    for line in &conditions.toolchains {
        let _ = writeln!(text, "{line}");
    }
    for (name, version, about) in &summary.subjects {
        let _ = writeln!(text, "{name} {version}: {about}");
    }
    for (name, reason) in &summary.missing {
        let _ = writeln!(text, "{name}: left out, {reason}");
    }
    text +=
        "\nMedian (minimum–maximum) [multiple of the first subject's, within each round]; less is better.\n";
    for view in &WORKLOADS {
        for size in summary.sizes(view.name) {
            let _ = write!(text, "\n{}: {} parents × {} children\n", view.name, size.0, size.1);
            text += &FigureTable::of_workload(summary, view, size).to_text();
        }
    }
    if let Some(table) = FigureTable::of_memory_per_child(summary) {
        let _ = write!(text, "\nmemory of one child more\n{}", table.to_text());
    }
    if let Some(table) = FigureTable::of_exponents(summary) {
        let _ = write!(text, "\nexponents of growth with the number of children\n{}", table.to_text());
    }
    text
}
