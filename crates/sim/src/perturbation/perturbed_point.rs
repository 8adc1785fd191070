//! A disturbance of one point of a history.

use std::fmt;
use std::str::FromStr;

use super::disturbance::{Disturbance, PointKind};

/// A disturbance of one point of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perturbation {
    /// The points among which it is.
    pub point: PointKind,
    /// Its number among these, from 0.
    pub number: u32,
    /// What happens there.
    pub disturbance: Disturbance,
}

impl Perturbation {
    /// Returns every perturbation of a history with so many points of this kind.
    pub fn all_of(point: PointKind, points: u32) -> impl Iterator<Item = Perturbation> {
        let at = move |number| {
            let all = Disturbance::all_at(point).iter();
            all.map(move |disturbance| Perturbation { point, number, disturbance: *disturbance })
        };
        (0..points).flat_map(at)
    }
}

impl fmt::Display for Perturbation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{}/{:?}", self.point, self.number, self.disturbance)
    }
}

impl FromStr for Perturbation {
    type Err = String;

    fn from_str(text: &str) -> Result<Perturbation, String> {
        let wrong = || format!("{text} is no perturbation: Write/3/Refused is one");
        let [point, number, disturbance] = text.split('/').collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let points = [PointKind::Notification, PointKind::Write, PointKind::PolicyChange];
        let point = points.into_iter().find(|at| format!("{at:?}") == point).ok_or_else(wrong)?;
        let all = Disturbance::all_at(point).iter();
        let disturbance = all.copied().find(|of| format!("{of:?}") == disturbance).ok_or_else(wrong)?;
        Ok(Perturbation { point, number: number.parse().map_err(|_| wrong())?, disturbance })
    }
}
