//! Figures by size, and whether they keep their laws.

use serde::Serialize;

use super::catalog::{GrowthFigure, GrowthView, GrowthWorkload};
use super::law::FittedExponent;
use super::point::GrowthPoint;
use crate::compare::figure::number_text;
use crate::compare::session::count;
use crate::compare::table::FigureTable;

/// A figure of a workload over its sizes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JudgedFigure {
    pub(crate) workload: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) heading: &'static str,
    /// Value by size, in ascending order.
    pub(crate) values: Vec<(usize, f64)>,
    pub(crate) exponent: Option<f64>,
    /// Exponent of its law, and the largest that was let pass.
    pub(crate) law: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) ceiling: Option<f64>,
    pub(crate) is_wall_time: bool,
    /// What it breaks.
    pub(crate) breaks: Option<String>,
}

impl JudgedFigure {
    fn of(view: &'static GrowthView, figure: &GrowthFigure, values: Vec<(usize, f64)>) -> JudgedFigure {
        let fitted = FittedExponent::of(&values, figure.noise);
        let limit = fitted.zip(figure.exponent).map(|(fitted, law)| fitted.limit(law));
        let grows = fitted.zip(figure.exponent).filter(|(fitted, law)| fitted.exceeds(*law));
        let grows = grows.map(|(fitted, law)| {
            format!("exponent {:.2} where {:.2} passes as {law}", fitted.exponent, fitted.limit(law))
        });
        let over = figure.ceiling.and_then(|ceiling| {
            let worst = values.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
            let text = || format!("{} at {} where at most {ceiling} passes", number_text(worst.1), worst.0);
            (worst.1 > ceiling).then(text)
        });
        JudgedFigure {
            workload: view.name,
            figure: figure.name,
            heading: figure.heading,
            values,
            exponent: fitted.map(|fitted| fitted.exponent),
            law: figure.exponent,
            limit,
            ceiling: figure.ceiling,
            is_wall_time: figure.is_wall_time,
            breaks: grows.or(over),
        }
    }

    fn law_text(&self) -> String {
        match (self.law, self.ceiling) {
            (Some(law), _) => {
                let limit = self.limit.map(|limit| format!(" (to {limit:.2})")).unwrap_or_default();
                format!("exponent {law}{limit}")
            }
            (None, Some(ceiling)) => format!("at most {ceiling}"),
            (None, None) => String::new(),
        }
    }

    fn verdict(&self) -> &'static str {
        let has_law = self.limit.is_some() || self.ceiling.is_some();
        match (&self.breaks, has_law) {
            (Some(_), _) => "BROKEN",
            (None, true) => "kept",
            (None, false) => "",
        }
    }
}

/// Figures of all workloads that were run.
pub(crate) fn judge_all(points: &[GrowthPoint]) -> Vec<JudgedFigure> {
    GrowthWorkload::ALL.iter().flat_map(|workload| judge_workload(*workload, points)).collect()
}

fn judge_workload(workload: GrowthWorkload, points: &[GrowthPoint]) -> Vec<JudgedFigure> {
    let view = workload.view();
    let judged = view.figures.iter().filter_map(|figure| {
        let values = match (workload, figure.name) {
            (GrowthWorkload::LargeChildren, "rest_ratio") => ratio_to_small(points),
            (GrowthWorkload::Policies, "kb_per_policy") => memory_per_policy(points),
            _ => values_of(points, view.name, figure.name),
        };
        (!values.is_empty()).then(|| JudgedFigure::of(view, figure, values))
    });
    judged.collect()
}

fn values_of(points: &[GrowthPoint], workload: &str, figure: &str) -> Vec<(usize, f64)> {
    let of_workload = points.iter().filter(|point| point.workload == workload);
    let mut values: Vec<(usize, f64)> =
        of_workload.filter_map(|point| Some((point.size, *point.figures.get(figure)?))).collect();
    values.sort_by_key(|(size, _)| *size);
    values
}

/// Memory at rest of large children as a multiple of that of small ones, where both were run and it is most: the pages that
/// the allocator keeps are much of a small number.
fn ratio_to_small(points: &[GrowthPoint]) -> Vec<(usize, f64)> {
    let small = values_of(points, "children", "rest_mb");
    let large = values_of(points, "large-children", "rest_mb");
    let ratio = |(size, large): &(usize, f64)| {
        let (_, small) = small.iter().find(|(other, _)| other == size)?;
        (*small > 0.0).then_some((*size, large / small))
    };
    large.iter().filter_map(ratio).next_back().into_iter().collect()
}

/// Memory of one policy more than at the smallest size, in kB.
fn memory_per_policy(points: &[GrowthPoint]) -> Vec<(usize, f64)> {
    let values = values_of(points, "policies", "rest_mb");
    let Some(&(least, base)) = values.first() else { return Vec::new() };
    values[1..].iter().map(|(size, memory)| (*size, (memory - base) * 1e3 / count(size - least))).collect()
}

/// The table of a workload: a row for each figure, a column for each size.
pub(crate) fn growth_table(view: &GrowthView, judged: &[JudgedFigure]) -> Option<FigureTable> {
    let of_workload: Vec<&JudgedFigure> =
        judged.iter().filter(|figure| figure.workload == view.name).collect();
    let mut sizes: Vec<usize> =
        of_workload.iter().flat_map(|figure| figure.values.iter().map(|(size, _)| *size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut head = vec![format!("{}, by {}", view.name, view.unit)];
    head.extend(sizes.iter().map(ToString::to_string));
    head.extend(["exponent", "law", ""].map(str::to_owned));
    let rows = of_workload.iter().map(|figure| {
        let value = |size: &usize| {
            let known = figure.values.iter().find(|(at, _)| at == size);
            known.map(|(_, value)| number_text(*value)).unwrap_or_default()
        };
        let mut row = vec![figure.heading.to_owned()];
        row.extend(sizes.iter().map(value));
        let exponent = figure.exponent.map(|exponent| format!("{exponent:.2}"));
        row.extend([exponent.unwrap_or_default(), figure.law_text(), figure.verdict().to_owned()]);
        row
    });
    (!sizes.is_empty()).then(|| FigureTable { head, rows: rows.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(workload: &str, size: usize, figure: &str, value: f64) -> GrowthPoint {
        let mut point = GrowthPoint { workload: workload.to_owned(), size, ..GrowthPoint::default() };
        point.add([(figure, value)]);
        point
    }

    fn broken(points: &[GrowthPoint]) -> Vec<&'static str> {
        let judged = judge_all(points);
        judged.iter().filter(|figure| figure.breaks.is_some()).map(|figure| figure.figure).collect()
    }

    #[test]
    fn a_figure_that_grows_faster_than_its_law_is_broken() {
        let steep = [10_000, 100_000].map(|size| {
            let seconds = (count(size) / 10_000.0).powf(1.5);
            point("firehose", size, "processor_s", seconds)
        });
        assert_eq!(broken(&steep), ["processor_s"]);
        let straight =
            [10_000, 100_000].map(|size| point("firehose", size, "processor_s", count(size) / 10_000.0));
        assert_eq!(broken(&straight), [""; 0]);
    }

    #[test]
    fn one_needless_write_is_too_many() {
        assert_eq!(broken(&[point("children", 10_000, "outage_writes", 1.0)]), ["outage_writes"]);
        assert_eq!(broken(&[point("children", 10_000, "outage_writes", 0.0)]), [""; 0]);
    }

    #[test]
    fn large_children_are_compared_with_small_ones_at_the_largest_size() {
        let points = [
            point("children", 10_000, "rest_mb", 1.0),
            point("large-children", 10_000, "rest_mb", 3.0),
            point("children", 100_000, "rest_mb", 30.0),
            point("large-children", 100_000, "rest_mb", 31.0),
        ];
        assert_eq!(ratio_to_small(&points).iter().map(|(size, _)| *size).collect::<Vec<_>>(), [100_000]);
        assert!(!broken(&points).contains(&"rest_ratio"));
    }

    #[test]
    fn every_name_stands_once_in_its_workload() {
        for workload in GrowthWorkload::ALL {
            let mut names: Vec<&str> = workload.view().figures.iter().map(|figure| figure.name).collect();
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", workload.view().name);
        }
    }
}
