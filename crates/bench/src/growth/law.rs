//! How figures may grow with the size of a workload, and how surely their growth is known.

use crate::compare::session::count;
use crate::compare::summary::slope;

/// What an exponent may exceed its law by, beside what noise explains.
const EXPONENT_SLACK: f64 = 0.05;
/// Standard errors of an exponent that noise may explain: one run in forty has more.
const NOISE_ERRORS: f64 = 2.0;

/// Uncertainty of a measured value: a share of it, and at least so much in its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigureNoise {
    pub(crate) share: f64,
    pub(crate) least: f64,
}

/// Of processor time: caches that other processes use too, and what the service does every second for nothing.
pub(crate) const PROCESSOR_NOISE: FigureNoise = FigureNoise { share: 0.1, least: 0.02 };
/// Of resident memory in MB: pages that the allocator keeps.
pub(crate) const MEMORY_NOISE: FigureNoise = FigureNoise { share: 0.03, least: 1.5 };
/// Of what is divided by the number of events, or by the memory at rest.
pub(crate) const RATIO_NOISE: FigureNoise = FigureNoise { share: 0.1, least: 0.0 };
/// Of numbers that depend on what happens to fall together.
pub(crate) const COUNT_NOISE: FigureNoise = FigureNoise { share: 0.05, least: 1.0 };

impl FigureNoise {
    /// As a share of a value.
    fn relative(self, value: f64) -> f64 {
        self.share.hypot(self.least / value)
    }
}

/// Growth of a figure: the slope of its logarithm over that of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FittedExponent {
    pub(crate) exponent: f64,
    /// Its standard error, by the noise of the values.
    pub(crate) error: f64,
}

impl FittedExponent {
    /// Fits values by size; `None` unless two sizes have values above zero.
    pub(crate) fn of(values: &[(usize, f64)], noise: FigureNoise) -> Option<FittedExponent> {
        let known: Vec<(f64, f64)> = values
            .iter()
            .filter(|(size, value)| *size > 0 && *value > 0.0)
            .map(|(size, value)| (count(*size), *value))
            .collect();
        let exponent = slope(&known.iter().map(|(size, value)| (size.ln(), value.ln())).collect::<Vec<_>>())?;
        let mean = known.iter().map(|(size, _)| size.ln()).sum::<f64>() / count(known.len());
        let spread: f64 = known.iter().map(|(size, _)| (size.ln() - mean).powi(2)).sum();
        let uncertain =
            known.iter().map(|(size, value)| ((size.ln() - mean) * noise.relative(*value)).powi(2));
        Some(FittedExponent { exponent, error: uncertain.sum::<f64>().sqrt() / spread })
    }

    /// The largest exponent that does not exceed a law.
    pub(crate) fn limit(self, law: f64) -> f64 {
        law + EXPONENT_SLACK + NOISE_ERRORS * self.error
    }

    /// Whether it exceeds the exponent that the law of a figure says.
    pub(crate) fn exceeds(self, law: f64) -> bool {
        self.exponent > self.limit(law)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: FigureNoise = FigureNoise { share: 0.0, least: 0.0 };

    #[test]
    fn what_grows_with_the_square_exceeds_a_proportional_law() {
        let fitted = FittedExponent::of(&[(10, 1.0), (100, 100.0), (1_000, 10_000.0)], EXACT).unwrap();
        assert!((fitted.exponent - 2.0).abs() < 1e-9 && fitted.exceeds(1.0) && !fitted.exceeds(2.0));
    }

    #[test]
    fn noise_widens_the_limit_most_where_values_are_small() {
        let (small, large) = ([(10, 1.0), (100, 1.5)], [(10, 1_000.0), (100, 1_500.0)]);
        let small = FittedExponent::of(&small, FigureNoise { share: 0.0, least: 1.0 }).unwrap();
        let large = FittedExponent::of(&large, FigureNoise { share: 0.0, least: 1.0 }).unwrap();
        assert!(!small.exceeds(0.0) && large.exceeds(0.0));
    }

    #[test]
    fn sizes_and_values_of_zero_are_not_fitted() {
        assert_eq!(FittedExponent::of(&[(0, 5.0), (10, 5.0), (100, 0.0)], EXACT), None);
        let fitted = FittedExponent::of(&[(0, 9.0), (10, 5.0), (100, 5.0)], EXACT).unwrap();
        assert!(fitted.exponent.abs() < 1e-9);
    }
}
