//! Charts of a workload, as SVG: bars with whiskers, one panel per figure.

use std::fmt::Write;

use super::figure::{FigureColumn, WorkloadView, number_text};
use super::summary::{RoundSpread, RunSummary};

const WIDTH: f64 = 860.0;
const NAME_WIDTH: f64 = 190.0;
/// Room for the number behind a bar.
const NUMBER_WIDTH: f64 = 190.0;
const ROW_HEIGHT: f64 = 24.0;
const HEAD_HEIGHT: f64 = 34.0;

/// The largest bar is at most this many times as long as the smallest before the axis becomes logarithmic.
const LINEAR_RANGE: f64 = 30.0;

const STYLE: &str = "<style>\
text{font:13px system-ui,sans-serif;fill:#1f2328}\
.h{font-weight:600}.n{fill:#59636e}.bar{fill:#afb8c1}.own{fill:#0969da}.w{stroke:#59636e;stroke-width:1.5}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.n{fill:#9198a1}.bar{fill:#656c76}.own{fill:#4493f8}.w{stroke:#9198a1}}\
</style>";

/// Length of a bar, as a share of the longest.
struct BarScale {
    min: f64,
    max: f64,
    logarithmic: bool,
}

impl BarScale {
    fn of<'a>(spreads: impl Iterator<Item = &'a RoundSpread> + Clone) -> BarScale {
        let max = spreads.clone().map(|spread| spread.max).fold(0.0, f64::max);
        let lows = spreads.map(|spread| spread.min).filter(|low| *low > 0.0);
        let min = lows.fold(f64::INFINITY, f64::min);
        BarScale { min, max, logarithmic: max / min > LINEAR_RANGE }
    }

    fn share(&self, value: f64) -> f64 {
        if self.max <= 0.0 || value <= 0.0 {
            0.0
        } else if self.logarithmic {
            // A tenth of the smallest is where the axis begins.
            let from = (self.min / 10.0).ln();
            (value.ln() - from) / (self.max.ln() - from)
        } else {
            value / self.max
        }
    }
}

/// A figure of several subjects, or of one at several sizes.
pub(crate) struct ChartPanel {
    pub(crate) heading: String,
    /// Name and figure, or why there is none, and whether it is told apart by its colour.
    pub(crate) rows: Vec<(String, Result<RoundSpread, String>, bool)>,
}

/// The chart of a workload at its largest size.
pub(crate) fn render_chart(summary: &RunSummary, view: &WorkloadView) -> Option<String> {
    let size = *summary.sizes(view.name).last()?;
    let panel = |column: &FigureColumn| {
        let row = |name: &String| {
            let spread = match summary.disqualified(name, view.name, size) {
                Some(why) => Err(why),
                None => summary.spread(name, view.name, size, column.name).ok_or_else(|| "none".to_owned()),
            };
            (name.clone(), spread, *name == summary.subjects[0].0)
        };
        let rows = summary.subjects_of(view.name).map(row).collect();
        ChartPanel { heading: column.heading.to_owned(), rows }
    };
    let panels: Vec<ChartPanel> = view.columns.iter().filter(|column| column.charted).map(panel).collect();
    let title = format!("{}: {} parents × {} children; less is better", view.name, size.0, size.1);
    Some(render_panels(&title, &panels))
}

/// A chart of one panel below the other.
pub(crate) fn render_panels(title: &str, panels: &[ChartPanel]) -> String {
    let (mut body, mut y) = (String::new(), 8.0);
    for ChartPanel { heading, rows } in panels {
        let scale = BarScale::of(rows.iter().filter_map(|(_, spread, _)| spread.as_ref().ok()));
        let axis = if scale.logarithmic { " (logarithmic)" } else { "" };
        let _ = write!(body, "<text class=\"h\" x=\"8\" y=\"{:.0}\">{heading}{axis}</text>", y + 16.0);
        y += HEAD_HEIGHT - 8.0;
        for (name, spread, is_own) in rows {
            draw_row(&mut body, y, name, spread.as_ref(), &scale, *is_own);
            y += ROW_HEIGHT;
        }
        y += 12.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {y:.0}\" role=\"img\"><title>{title}</title>{STYLE}{body}</svg>\n"
    )
}

fn draw_row(
    body: &mut String,
    y: f64,
    name: &str,
    spread: Result<&RoundSpread, &String>,
    scale: &BarScale,
    is_own: bool,
) {
    let room = WIDTH - NAME_WIDTH - NUMBER_WIDTH;
    let (middle, text_y) = (y + ROW_HEIGHT / 2.0, y + 17.0);
    let _ = write!(body, "<text x=\"8\" y=\"{text_y:.0}\">{name}</text>");
    let (end, label) = match spread {
        Err(why) => (NAME_WIDTH, why.clone()),
        Ok(spread) => {
            let x = |value: f64| NAME_WIDTH + scale.share(value) * room;
            let (low, median, high) = (x(spread.min), x(spread.median), x(spread.max));
            let class = if is_own { "own" } else { "bar" };
            let _ = write!(
                body,
                "<rect class=\"{class}\" x=\"{NAME_WIDTH:.0}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.0}\" rx=\"2\"/>\
                <path class=\"w\" d=\"M{low:.1} {middle:.1}H{high:.1}\"/>",
                y + 4.0,
                median - NAME_WIDTH,
                ROW_HEIGHT - 8.0,
            );
            (high, number_text(spread.median))
        }
    };
    let label = label.replace('&', "&amp;").replace('<', "&lt;");
    let label: String = label.chars().take(40).collect();
    let _ = write!(body, "<text class=\"n\" x=\"{:.1}\" y=\"{text_y:.0}\">{label}</text>", end + 8.0);
}
