//! What metrics in the text format say of the readiness of parents.

/// Series in which a subject exports which parents are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadinessSeries {
    /// Rollcall's numbers of parents by verdict.
    ParentsByVerdict,
    /// kube-state-metrics: three series for each condition of each parent, one of which is 1.
    ConditionStates,
    /// kube-state-metrics: one series for each parent, 1 where it is ready.
    ReadyGauge,
}

/// Parents as an exposition counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ParentCounts {
    pub(crate) parents: f64,
    pub(crate) unready: f64,
}

impl ReadinessSeries {
    /// Counts the parents.
    pub(crate) fn count_parents(self, exposition: &str) -> ParentCounts {
        let mut counts = ParentCounts::default();
        for (series, value) in samples(exposition) {
            let Some((parents, unready)) = self.parents_of(series, value) else { continue };
            counts.parents += parents;
            counts.unready += unready;
        }
        counts
    }

    /// Parents that a sample tells of, and how many of them are not ready.
    fn parents_of(self, series: &str, value: f64) -> Option<(f64, f64)> {
        match self {
            ReadinessSeries::ParentsByVerdict => {
                let is_ready = series.strip_prefix("rollcall_parents{")?.contains("verdict=\"Ready\"");
                Some((value, if is_ready { 0.0 } else { value }))
            }
            ReadinessSeries::ConditionStates => {
                let labels = series.strip_prefix("kube_widget_status_condition{")?;
                let is_counted = labels.contains("condition=\"Ready\"") && labels.contains("status=\"True\"");
                is_counted.then_some((1.0, 1.0 - value))
            }
            ReadinessSeries::ReadyGauge => {
                series.strip_prefix("kube_widget_ready{")?;
                Some((1.0, 1.0 - value))
            }
        }
    }
}

/// Number of samples, those of the program itself included.
pub(crate) fn count_samples(exposition: &str) -> usize {
    samples(exposition).count()
}

fn samples(exposition: &str) -> impl Iterator<Item = (&str, f64)> {
    let lines = exposition.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        Some((series, value.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_counts_the_same_parents() {
        let cases = [
            (
                ReadinessSeries::ParentsByVerdict,
                "# TYPE rollcall_parents gauge\n\
                rollcall_parents{policy=\"widgets\",verdict=\"Failed\"} 1\n\
                rollcall_parents{policy=\"widgets\",verdict=\"Ready\"} 2\n\
                rollcall_parents_owned{policy=\"widgets\"} 7\n",
            ),
            (
                ReadinessSeries::ConditionStates,
                "kube_widget_status_condition{condition=\"Ready\",name=\"a\",status=\"True\"} 1\n\
                kube_widget_status_condition{condition=\"Ready\",name=\"a\",status=\"False\"} 0\n\
                kube_widget_status_condition{condition=\"Stalled\",name=\"a\",status=\"True\"} 0\n\
                kube_widget_status_condition{condition=\"Ready\",name=\"b\",status=\"True\"} 0\n\
                kube_widget_status_condition{condition=\"Ready\",name=\"c\",status=\"True\"} 1\n",
            ),
            (
                ReadinessSeries::ReadyGauge,
                "kube_widget_ready{name=\"a\"} 1\nkube_widget_ready{name=\"b\"} 0\nkube_widget_ready{name=\"c\"} 1\n# EOF\n",
            ),
        ];
        for (series, text) in cases {
            assert_eq!(series.count_parents(text), ParentCounts { parents: 3.0, unready: 1.0 }, "{series:?}");
        }
    }

    #[test]
    fn comments_are_no_samples() {
        assert_eq!(count_samples("# HELP a b 1\na 1\nb{c=\"d e\"} 2.5\n# EOF\n"), 2);
    }
}
