//! What a run measured: one JSON object a line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::machine::RunConditions;
use crate::compare::session::{Figures, figures};

/// A line of the raw data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrowthLine {
    /// The first: where and how everything was measured.
    Run(RunConditions),
    /// A workload at a size.
    Point(GrowthPoint),
}

/// What one workload took at one size. Its answers were right, or it would not be there.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct GrowthPoint {
    pub(crate) workload: String,
    pub(crate) size: usize,
    /// Figures by name; the name has the unit.
    pub(crate) figures: Figures,
    /// Requests by verb and what they address, while it was measured.
    pub(crate) requests: BTreeMap<String, u64>,
}

impl GrowthPoint {
    /// Adds figures, without those that nothing was seen for.
    pub(crate) fn add<const N: usize>(&mut self, more: [(&str, f64); N]) {
        self.figures.extend(figures(more));
    }
}

impl GrowthLine {
    /// The point, if it is one.
    pub(crate) fn to_point(&self) -> Option<GrowthPoint> {
        match self {
            GrowthLine::Point(point) => Some(point.clone()),
            GrowthLine::Run(_) => None,
        }
    }

    /// The conditions, if it is these.
    pub(crate) fn to_conditions(&self) -> Option<RunConditions> {
        match self {
            GrowthLine::Run(conditions) => Some(conditions.clone()),
            GrowthLine::Point(_) => None,
        }
    }
}
