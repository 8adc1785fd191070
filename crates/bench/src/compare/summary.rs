//! Medians with minimum and maximum, ratios within rounds, and exponents over sizes.

use super::catalog::takes_part;
use super::measurement::{Measurement, RawLine};

/// A figure over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundSpread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl RoundSpread {
    /// That of these values; `None` of none.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<RoundSpread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(RoundSpread { median, min, max })
    }
}

/// All measurements of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunSummary {
    pub(crate) measurements: Vec<Measurement>,
    /// Name, version and description of each subject.
    pub(crate) subjects: Vec<(String, String, String)>,
    /// Subjects that were not built, and why.
    pub(crate) missing: Vec<(String, String)>,
}

impl RunSummary {
    /// That of raw data.
    pub(crate) fn of(lines: &[RawLine]) -> RunSummary {
        let mut summary = RunSummary::default();
        for line in lines {
            match line.clone() {
                RawLine::Run(_) => {}
                RawLine::Subject { name, version, about } => summary.subjects.push((name, version, about)),
                RawLine::Missing { name, reason } => summary.missing.push((name, reason)),
                RawLine::Measurement(measurement) => summary.measurements.push(measurement),
            }
        }
        summary
    }

    /// Names of the subjects that have a part in a workload.
    pub(crate) fn subjects_of(&self, workload: &str) -> impl Iterator<Item = &String> {
        self.subjects.iter().map(|(name, _, _)| name).filter(move |name| takes_part(name, workload))
    }

    /// Numbers of parents and of children at which a workload was run, in ascending order.
    pub(crate) fn sizes(&self, workload: &str) -> Vec<(usize, usize)> {
        let of_workload = self.measurements.iter().filter(|one| one.workload == workload);
        let mut sizes: Vec<_> = of_workload.map(|one| (one.parents, one.children)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The rounds of a subject with a workload at a size.
    pub(crate) fn rounds<'a>(
        &'a self,
        subject: &'a str,
        workload: &'a str,
        size: (usize, usize),
    ) -> impl Iterator<Item = &'a Measurement> + 'a {
        let is_of = move |one: &&Measurement| {
            one.subject == subject && one.workload == workload && (one.parents, one.children) == size
        };
        self.measurements.iter().filter(is_of)
    }

    /// A figure over the rounds.
    pub(crate) fn spread(
        &self,
        subject: &str,
        workload: &str,
        size: (usize, usize),
        figure: &str,
    ) -> Option<RoundSpread> {
        let rounds = self.rounds(subject, workload, size);
        RoundSpread::of(rounds.filter_map(|one| one.figures.get(figure).copied()).collect())
    }

    /// Why a subject has no figures in a workload: one wrong answer in one round is enough.
    pub(crate) fn disqualified(&self, subject: &str, workload: &str, size: (usize, usize)) -> Option<String> {
        let rounds: Vec<_> = self.rounds(subject, workload, size).collect();
        if rounds.is_empty() {
            return Some("not run".to_owned());
        }
        if let Some(worst) = rounds.iter().filter(|one| one.wrong > 0).max_by_key(|one| one.wrong) {
            return Some(format!("wrong: {} of {}", worst.wrong, worst.parents));
        }
        rounds.iter().find_map(|one| one.failure.as_ref()).map(|failure| format!("failed: {failure}"))
    }

    /// Median, over the rounds, of a subject's figure as a multiple of another's in the same round.
    pub(crate) fn ratio(
        &self,
        subject: &str,
        base: &str,
        workload: &str,
        size: (usize, usize),
        figure: &str,
    ) -> Option<f64> {
        let of_round = |one: &Measurement| {
            let mut bases = self.rounds(base, workload, size);
            let beside = bases.find(|other| other.round == one.round)?.figures.get(figure)?;
            (*beside > 0.0).then_some(one.figures.get(figure)? / beside)
        };
        let ratios = self.rounds(subject, workload, size).filter_map(of_round);
        RoundSpread::of(ratios.collect()).map(|spread| spread.median)
    }

    /// Exponent with which a figure grows with the number of children: the slope of its logarithm.
    pub(crate) fn exponent(&self, subject: &str, workload: &str, figure: &str) -> Option<f64> {
        let point = |size: (usize, usize)| {
            let value = self.spread(subject, workload, size, figure)?.median;
            let children = super::session::count(size.0 * size.1);
            (value > 0.0).then_some((children.ln(), value.ln()))
        };
        slope(&self.sizes(workload).into_iter().filter_map(point).collect::<Vec<_>>())
    }
}

/// Slope of the line that fits points best; `None` of fewer than two.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let number = super::session::count(points.len());
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / number;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 0.0).then_some(together / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(subject: &str, round: u32, parents: usize, value: f64, wrong: usize) -> Measurement {
        Measurement {
            subject: subject.to_owned(),
            workload: "start".to_owned(),
            round,
            parents,
            children: 10,
            wrong,
            figures: [("seconds".to_owned(), value)].into(),
            ..Measurement::default()
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The second round was slow for both: the medians differ by a factor of 5.5, and yet each round says 10.
        let rounds = [("a", 0, 1.0), ("b", 0, 10.0), ("a", 1, 10.0), ("b", 1, 100.0)];
        let measurements = rounds.map(|(subject, round, value)| measured(subject, round, 1, value, 0)).into();
        let summary = RunSummary { measurements, ..RunSummary::default() };
        let ratio = summary.ratio("b", "a", "start", (1, 10), "seconds");
        assert_eq!(ratio.map(f64::round), Some(10.0));
    }

    #[test]
    fn one_wrong_answer_in_one_round_takes_all_figures() {
        let measurements = vec![measured("a", 0, 100, 1.0, 0), measured("a", 1, 100, 1.0, 3)];
        let summary = RunSummary { measurements, ..RunSummary::default() };
        assert_eq!(summary.disqualified("a", "start", (100, 10)).as_deref(), Some("wrong: 3 of 100"));
        assert_eq!(summary.disqualified("b", "start", (100, 10)).as_deref(), Some("not run"));
    }

    #[test]
    fn what_grows_with_the_square_has_exponent_two() {
        let measurements = vec![measured("a", 0, 10, 1.0, 0), measured("a", 0, 100, 100.0, 0)];
        let summary = RunSummary { measurements, ..RunSummary::default() };
        assert!((summary.exponent("a", "start", "seconds").unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(slope(&[(1.0, 1.0)]), None);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        assert_eq!(RoundSpread::of(vec![3.0, 1.0]), Some(RoundSpread { median: 2.0, min: 1.0, max: 3.0 }));
    }
}
